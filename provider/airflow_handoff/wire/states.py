"""What both ends of a session share: states, the table between them, limits and violations."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_handoff.exceptions import WireError
from airflow_handoff.wire.frames import DEFAULT_MAX_FRAME
from airflow_handoff.wire.lines import DEFAULT_MAX_LINE
from airflow_handoff.wire.responses import ErrorResponse
from airflow_handoff.wire.values import Message


class State(enum.Enum):
    """Where a session stands."""

    NEW = "new"
    """The startup details have not been sent (supervisor) or received (task)."""
    RUNNING = "running"
    """Requests and replies go back and forth."""
    REPORTING = "reporting"
    """A terminal message is on its way and not acknowledged."""
    REPORTED = "reported"
    """A terminal message was acknowledged; later requests are still served, a second terminal is refused."""
    BROKEN = "broken"
    """The peer broke the wire; nothing more is read or written."""
    ENDED = "ended"
    """The comm channel has ended."""


class Input(enum.Enum):
    """What can happen to a session."""

    STARTUP = "startup details"
    REQUEST = "request"
    TERMINAL = "terminal message"
    ACCEPT = "terminal message accepted"
    REFUSE = "terminal message refused"
    VIOLATION = "violation"
    EOF = "end of the comm channel"


Table = Mapping[tuple[State, Input], State]

_S, _I = State, Input

#: What a supervisor's session does with each input; a pair that is missing is refused.
SUPERVISOR_TABLE: Table = {
    (_S.NEW, _I.STARTUP): _S.RUNNING,
    (_S.RUNNING, _I.REQUEST): _S.RUNNING,
    (_S.RUNNING, _I.TERMINAL): _S.REPORTING,
    (_S.REPORTING, _I.REQUEST): _S.REPORTING,
    (_S.REPORTING, _I.ACCEPT): _S.REPORTED,
    (_S.REPORTING, _I.REFUSE): _S.RUNNING,
    (_S.REPORTED, _I.REQUEST): _S.REPORTED,
    **{(state, _I.VIOLATION): _S.BROKEN for state in (_S.NEW, _S.RUNNING, _S.REPORTING, _S.REPORTED)},
    **{(state, _I.EOF): _S.ENDED for state in (_S.NEW, _S.RUNNING, _S.REPORTING, _S.REPORTED)},
}
#: What a task's session does with each input: the same, seen from the other end.
TASK_TABLE: Table = SUPERVISOR_TABLE


class SessionMisuse(WireError):
    """The local caller asked for something that the state does not allow; nothing was written."""


@dataclass(frozen=True)
class Limits:
    """How much of a peer's data is held at once.

    :param max_frame: the largest payload of a frame, in bytes, both ways.
    :param max_line: the longest log or output line, in bytes; the rest is cut with a mark.
    """

    max_frame: int = DEFAULT_MAX_FRAME
    max_line: int = DEFAULT_MAX_LINE


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Violation:
    """The peer broke the wire.

    :param reason: one line for the task log, with the offset in the stream.
    :param offset: bytes of the comm channel before the offending frame.
    :param fatal: whether the session reads on; it never does where the stream is out of step.
    """

    reason: str
    offset: int
    fatal: bool = True


def after(table: Table, state: State, event: Input) -> State:
    """Return the state that follows.

    :raises SessionMisuse: where the table has none.
    """
    found = table.get((state, event))
    if found is None:
        raise SessionMisuse(f"{event.value}: not possible while the session is {state.value}")
    return found


def to_body(value: Message | Mapping[str, Any]) -> dict[str, Any]:
    """Return the map that goes into a frame."""
    if type(value) is dict:
        return value
    return value.to_body() if isinstance(value, Message) else dict(value)


def error_response(message: str, status_code: int) -> dict[str, Any]:
    """Return the body of a ``GENERIC_ERROR`` that carries a message and an HTTP-like status."""
    return ErrorResponse(detail={"status_code": status_code, "message": message}).to_body()
