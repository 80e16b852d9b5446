"""The supervisor's end of one run: bytes in; requests, log records and an outcome out.

Sockets, clocks, processes, masking and Airflow's models stay outside. What may happen in which state is in
:data:`airflow_handoff.wire.states.SUPERVISOR_TABLE`; the mirror for a runtime is ``task_session.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from airflow_handoff.wire.ending import SILENT, Outcome, describe_exit, settle
from airflow_handoff.wire.frames import (
    FrameDecoder,
    FrameViolation,
    UnencodableFrame,
    decode_payload,
    encode_frame,
)
from airflow_handoff.wire.logs import LevelName, LogDecoder, LogRecord, OutputDecoder
from airflow_handoff.wire.messages import InvalidMessage, parse_request
from airflow_handoff.wire.requests import TERMINAL, Terminal
from airflow_handoff.wire.responses import ErrorResponse, StartupDetails
from airflow_handoff.wire.states import (
    DEFAULT_LIMITS,
    SUPERVISOR_TABLE,
    Input,
    Limits,
    SessionMisuse,
    State,
    Violation,
    after,
    error_response,
    to_body,
)
from airflow_handoff.wire.values import Message, Request


class RequestReceived(Struct, frozen=True, eq=False):
    """A request that the caller must answer with :meth:`SupervisorSession.reply`, exactly once.

    :param id: as the task numbered it; two open requests may share one.
    :param message: typed, with lists filled that the API server wants filled.
    :param body: the same as a map; hand this to Airflow's models.
    :param carrier: W3C trace context, where the task sent one.
    :param terminal: whether it says how the task ended; its reply decides whether it counts.
    :param late: whether the task had already reported when it sent this.
    :param note: one line for the task log where the session changed the message, else ``None``.
    """

    id: int
    message: Request
    body: dict[str, Any]
    carrier: dict[str, str] | None = None
    terminal: bool = False
    late: bool = False
    note: str | None = None


class RequestRefused(Struct, frozen=True):
    """A request that the session answered itself with an ``ErrorResponse``; the connection stays usable.

    :param id: as the task numbered it.
    :param type_name: the type that the request claimed, where it claimed one.
    :param reason: what was expected and what came.
    """

    id: int
    type_name: str | None
    reason: str


SupervisorEvent = RequestReceived | RequestRefused | Violation


class SupervisorSession:
    """The supervisor's end of one run.

    Give it what the sockets read, act on the events it returns, and write :meth:`data_to_send` after each
    call.

    :param should_retry: whether Airflow would try again; a ``RetryTask`` becomes ``failed`` where not.
    :param terminal: ``"final"``: a terminal message is handed out like any request and counts as soon as the
        caller's reply accepts it, whatever happens afterwards. ``"provisional"``: the session acknowledges it
        itself and holds it; a violation before the end takes it back.
    :param on_violation: ``"end"``: nothing is read after one. ``"record"``: reading goes on where the stream
        is still in step.
    :param limits: of what a peer can make this end hold.
    :param parse: types a request's body, raising :class:`InvalidMessage`; replace it to serve another schema.
    """

    def __init__(
        self,
        *,
        should_retry: bool = False,
        terminal: Literal["final", "provisional"] = "final",
        on_violation: Literal["end", "record"] = "end",
        limits: Limits = DEFAULT_LIMITS,
        parse: Callable[[Any], Request] = parse_request,
    ) -> None:
        self.state = State.NEW
        self.should_retry = should_retry
        self.limits = limits
        self.violation: Violation | None = None
        self.report: Terminal | None = None
        self._final = terminal == "final"
        self._read_on = on_violation == "record"
        self._parse = parse
        self._frames = FrameDecoder(limits.max_frame)
        self._logs = LogDecoder(limits.max_line)
        self._outputs: dict[str, OutputDecoder] = {}
        self._open: list[RequestReceived] = []
        self._outgoing: list[bytes | bytearray] = []

    @property
    def open_requests(self) -> tuple[RequestReceived, ...]:
        """Requests that have no reply yet, oldest first."""
        return tuple(self._open)

    def start(self, details: StartupDetails | Mapping[str, Any]) -> None:
        """Send the startup details; ``should_retry`` is taken from them where they hold it.

        :raises SessionMisuse: where they were sent already.
        :raises UnencodableFrame: where they cannot be sent.
        """
        body = to_body(details)
        frame = encode_frame([0, body, None], self.limits.max_frame)
        self._move(Input.STARTUP)
        context = body.get("ti_context")
        if isinstance(context, Mapping):
            self.should_retry = bool(context.get("should_retry", self.should_retry))
        else:
            self.should_retry = bool(getattr(context, "should_retry", self.should_retry))
        self._outgoing.append(frame)

    def receive_comm(self, data: bytes | bytearray | memoryview) -> list[SupervisorEvent]:
        """Take bytes of the comm channel; an empty value is its end.

        :returns: what the caller must act on, in order.
        """
        if self.state in (State.BROKEN, State.ENDED):
            return []
        events: list[SupervisorEvent] = []
        try:
            if not data:
                self._frames.end()
                self._move(Input.EOF)
                return events
            for frame in self._frames.feed(data):
                try:
                    events.append(self._request(decode_payload(frame), frame.offset))
                except FrameViolation as violation:
                    events.append(self._broken(violation))
                if isinstance(events[-1], Violation) and events[-1].fatal:
                    break
        except FrameViolation as violation:
            events.append(self._broken(violation))
        return events

    def reply(
        self,
        request: RequestReceived,
        body: Message | Mapping[str, Any] | None = None,
        error: ErrorResponse | Mapping[str, Any] | None = None,
    ) -> None:
        """Answer a request; for a terminal one, ``error`` means that it does not count.

        A reply that cannot be encoded is replaced by an ``ErrorResponse`` that says so. After the channel has
        broken the reply is dropped; after its end it is still encoded, for a peer that only closed its half.

        :param error: a failure as the third element; a body of type ``ErrorResponse`` is sent as a body.
        :raises SessionMisuse: where the request is not open.
        """
        if request not in self._open:
            raise SessionMisuse(
                f"request {request.id} ({type(request.message).__name__}) already has its reply"
            )
        self._open.remove(request)
        accepted = error is None and not _is_error(body)
        if request.terminal and self.state is State.REPORTING:
            self._move(Input.ACCEPT if accepted else Input.REFUSE)
        if request.terminal and accepted and isinstance(request.message, TERMINAL):
            self.report = request.message
        self._send(request.id, body, error)

    def receive_logs(self, data: bytes | bytearray | memoryview) -> list[LogRecord]:
        """Take bytes of the log channel; an empty value is its end and releases an unfinished line."""
        return self._logs.feed(data) if data else self._logs.end()

    def receive_output(
        self, stream: Literal["stdout", "stderr"], data: bytes | bytearray | memoryview
    ) -> list[LogRecord]:
        """Take what the process printed; an empty value is the stream's end."""
        decoder = self._outputs.get(stream)
        if decoder is None:
            level: LevelName = "info" if stream == "stdout" else "error"
            decoder = self._outputs[stream] = OutputDecoder(stream, level, self.limits.max_line)
        return decoder.feed(data) if data else decoder.end()

    def data_to_send(self) -> list[bytes | bytearray]:
        """Return what must be written to the comm channel, in order, and forget it."""
        data, self._outgoing = self._outgoing, []
        return data

    def break_off(self, reason: str) -> Violation:
        """Let the caller declare a violation that it saw itself, a flood or a stray peer say."""
        violation = Violation(reason, self._frames.offset)
        self._record(violation)
        return violation

    def finish(self, exit_code: int | None = None) -> Outcome:
        """Say how the process ended and return what became of the task.

        :param exit_code: negative for a signal, ``None`` where it is not known.
        """
        report = self.report
        if self.violation is not None and self.violation.fatal and not self._final:
            report = None
        failure = None
        if report is None:
            failure = self.violation.reason if self.violation else f"{SILENT} ({describe_exit(exit_code)})."
        return Outcome(report, failure, exit_code, self.should_retry)

    # -- inside ---------------------------------------------------------------------------------------

    def _move(self, event: Input) -> None:
        self.state = after(SUPERVISOR_TABLE, self.state, event)

    def _broken(self, violation: FrameViolation) -> Violation:
        seen = Violation(str(violation), violation.offset, not (self._read_on and violation.in_sync))
        self._record(seen)
        return seen

    def _record(self, violation: Violation) -> None:
        if self.violation is None or (violation.fatal and not self.violation.fatal):
            self.violation = violation
        if violation.fatal and (self.state, Input.VIOLATION) in SUPERVISOR_TABLE:
            self._move(Input.VIOLATION)
            self._outgoing.clear()

    def _request(self, content: list[Any], offset: int) -> SupervisorEvent:
        number, body = content[0], content[1]
        if self.state is State.NEW:
            raise FrameViolation("a request came before the startup details were sent", offset, in_sync=True)
        try:
            message = self._parse(body)
        except InvalidMessage as invalid:
            return self._refuse(number, invalid.type_name, invalid.reason, invalid.status_code)
        late = self.state is State.REPORTED
        carrier = _carrier(content)
        if not isinstance(message, TERMINAL):
            return self._open_request(RequestReceived(number, message, body, carrier, late=late))
        if (self.state, Input.TERMINAL) not in SUPERVISOR_TABLE:
            return self._refuse(
                number, type(message).__name__, "the task has already reported how it ended", 409
            )
        return self._terminal(number, message, body, carrier)

    def _terminal(
        self, number: int, message: Terminal, body: dict[str, Any], carrier: dict[str, str] | None
    ) -> SupervisorEvent:
        message, body, note = settle(message, body, should_retry=self.should_retry)
        self._move(Input.TERMINAL)
        request = self._open_request(
            RequestReceived(number, message, body, carrier, terminal=True, note=note)
        )
        if not self._final:
            self.reply(request)
        return request

    def _open_request(self, request: RequestReceived) -> RequestReceived:
        self._open.append(request)
        return request

    def _refuse(self, number: int, type_name: str | None, reason: str, status_code: int) -> RequestRefused:
        self._send(number, None, error_response(f"{type_name or 'request'}: {reason}", status_code))
        return RequestRefused(number, type_name, reason)

    def _send(self, number: int, body: Any, error: Any) -> None:
        if self.state is State.BROKEN:
            return
        content = [number, body and to_body(body), error and to_body(error)]
        try:
            frame = encode_frame(content, self.limits.max_frame)
        except UnencodableFrame as unencodable:
            reason = f"the reply cannot be sent: {unencodable.reason}"
            frame = encode_frame([number, None, error_response(reason, 500)])
        self._outgoing.append(frame)


def _is_error(body: Any) -> bool:
    if type(body) is dict:  # nearly always, and asked for every reply: an abstract class is slow to ask
        return body.get("type") == "ErrorResponse"
    return isinstance(body, ErrorResponse) or (
        isinstance(body, Mapping) and body.get("type") == "ErrorResponse"
    )


def _carrier(content: list[Any]) -> dict[str, str] | None:
    found = content[2] if len(content) > 2 else None
    if not isinstance(found, dict):
        return None
    return {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, str)}
