"""A runtime's end of one run: requests in, their answers out.

The mirror of ``session.py``; a runtime in another language needs exactly this much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_handoff.wire.frames import FrameDecoder, FrameViolation, decode_payload, encode_frame
from airflow_handoff.wire.messages import InvalidMessage, parse_response
from airflow_handoff.wire.requests import TERMINAL
from airflow_handoff.wire.responses import ErrorResponse, StartupDetails
from airflow_handoff.wire.states import (
    DEFAULT_LIMITS,
    TASK_TABLE,
    Input,
    Limits,
    State,
    Violation,
    after,
    to_body,
)
from airflow_handoff.wire.values import Message, Request


@dataclass(frozen=True)
class Started:
    """The startup details arrived.

    :param details: typed.
    :param body: the same as a map, with keys that the schema does not know.
    """

    details: StartupDetails
    body: dict[str, Any]


@dataclass(frozen=True)
class ReplyReceived:
    """The supervisor answered.

    :param id: the number that :meth:`TaskSession.request` returned.
    :param message: the typed answer, or ``None`` where it is empty or an error.
    :param error: the failure, whichever of the two places it came in.
    :param body: the answer as a map.
    """

    id: int
    message: Message | None = None
    error: ErrorResponse | None = None
    body: dict[str, Any] | None = field(default=None, repr=False)


_TERMINAL_NAMES = frozenset(cls.__name__ for cls in TERMINAL)

TaskEvent = Started | ReplyReceived | Violation


class TaskSession:
    """The runtime's end of one run.

    :param limits: of what a peer can make this end hold.
    """

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.state = State.NEW
        self.limits = limits
        self.violation: Violation | None = None
        self._frames = FrameDecoder(limits.max_frame)
        self._next = 0
        self._open: dict[int, bool] = {}
        self._outgoing: list[bytes | bytearray] = []

    @property
    def open_requests(self) -> tuple[int, ...]:
        """Numbers of requests without an answer, oldest first."""
        return tuple(self._open)

    def request(self, message: Request | Mapping[str, Any], carrier: Mapping[str, str] | None = None) -> int:
        """Send a request.

        :param carrier: W3C trace context of the caller's span.
        :returns: the number that its answer will carry.
        :raises SessionMisuse: before the startup details, after the end, or for a second terminal message.
        :raises UnencodableFrame: where it cannot be sent.
        """
        body = to_body(message)
        terminal = body.get("type") in _TERMINAL_NAMES
        after = self._after(Input.TERMINAL if terminal else Input.REQUEST)
        content: list[Any] = [self._next, body]
        if carrier:
            content.append(dict(carrier))
        self._outgoing.append(encode_frame(content, self.limits.max_frame))
        self.state = after
        number, self._next = self._next, self._next + 1
        self._open[number] = terminal
        return number

    def receive_comm(self, data: bytes | bytearray | memoryview) -> list[TaskEvent]:
        """Take bytes of the comm channel; an empty value is its end."""
        if self.state in (State.BROKEN, State.ENDED):
            return []
        events: list[TaskEvent] = []
        try:
            if not data:
                self._frames.end()
                self.state = self._after(Input.EOF)
                return events
            for frame in self._frames.feed(data):
                events.append(self._event(decode_payload(frame), frame.offset))
        except FrameViolation as violation:
            self.violation = Violation(str(violation), violation.offset)
            self.state = State.BROKEN
            self._outgoing.clear()
            events.append(self.violation)
        return events

    def data_to_send(self) -> list[bytes | bytearray]:
        """Return what must be written to the comm channel, in order, and forget it."""
        data, self._outgoing = self._outgoing, []
        return data

    def _after(self, event: Input) -> State:
        return after(TASK_TABLE, self.state, event)

    def _event(self, content: list[Any], offset: int) -> TaskEvent:
        number, body = content[0], content[1]
        error = content[2] if len(content) > 2 else None
        if self.state is State.NEW:
            return self._startup(body, error, offset)
        if number not in self._open:
            raise FrameViolation(f"nothing was asked under the id {number}", offset, in_sync=True)
        reply = _reply(number, body, error)
        if self._open.pop(number):
            self.state = self._after(Input.REFUSE if reply.error else Input.ACCEPT)
        return reply

    def _startup(self, body: Any, error: Any, offset: int) -> Started:
        try:
            details = parse_response(body if error is None else error)
        except InvalidMessage as invalid:
            raise FrameViolation(str(invalid), offset, in_sync=True) from invalid
        if not isinstance(details, StartupDetails):
            came = type(details).__name__
            raise FrameViolation(f"StartupDetails were expected and {came} came", offset, in_sync=True)
        self.state = self._after(Input.STARTUP)
        return Started(details, body)


def _reply(number: int, body: Any, error: Any) -> ReplyReceived:
    try:
        message = None if body is None else parse_response(body)
        failure = None if error is None else parse_response(error)
    except InvalidMessage as invalid:
        # A newer supervisor may know more answers; only this request fails, the wire is fine.
        return ReplyReceived(number, None, ErrorResponse(detail={"message": str(invalid)}), body)
    if isinstance(message, ErrorResponse):
        message, failure = None, message
    elif failure is not None and not isinstance(failure, ErrorResponse):
        failure = ErrorResponse(detail={"message": f"an error was expected and {failure} came"})
    return ReplyReceived(number, message, failure, body)
