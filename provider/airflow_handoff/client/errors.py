"""What can go wrong between a client and the api-server, told by what the caller can do next.

The server may not be reached at all (:class:`ServerUnreachable`). It may not know the caller
(:class:`NotAuthenticated`) or may know that this is not theirs to answer (:class:`NotAllowed`). There may
be no such request (:class:`RequestNotFound`). The answer may break the question's rules
(:class:`AnswerRejected`: the request stays open), come too late (:class:`NotOpen`), or a moment too early
(:class:`NotSettled`: the same answer is right a few seconds later). A run that is waited for may stop at a
person (:class:`RunInterrupted`), which is news rather than a fault.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow_handoff.exceptions import HandoffError


class ClientError(HandoffError):
    """Base of what a client raises.

    :param detail: what the server said, or what was found; a sentence for a person.
    :param status: HTTP status of the reply, ``None`` where there was none.
    :param body: the reply's decoded body, for programs.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str, *, status: int | None = None, body: Any = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.body = body


class AnswerRejected(ClientError):
    """The answer breaks a rule of its question; the request is still open (400, 422)."""

    exit_code = 1


class InvalidUse(ClientError):
    """The call itself is not complete or not well formed: no URL, no token, a malformed reference."""

    exit_code = 2


class NotAuthenticated(ClientError):
    """The server does not know the caller (401)."""

    exit_code = 3


class NotAllowed(ClientError):
    """The caller may not read or answer this (403)."""

    exit_code = 3


class RequestNotFound(ClientError):
    """There is no such Dag, run, task, request or key (404)."""

    exit_code = 4


class NotOpen(ClientError):
    """Somebody answered first, or the task no longer waits (409)."""

    exit_code = 5


class NotSettled(ClientError):
    """The request exists, but its task has not finished asking (425), or a proxy asks for patience (429).

    :param retry_after: seconds after which the same answer can be sent again.
    """

    exit_code = 6

    def __init__(self, detail: str, *, retry_after: float = 1.0, status: int = 425, body: Any = None) -> None:
        super().__init__(detail, status=status, body=body)
        self.retry_after = retry_after


class ServerUnreachable(ClientError):
    """No usable reply: no connection, a time-out, or a fault of the server (5xx)."""

    exit_code = 7


class WaitTimedOut(ClientError):
    """A run was still going when the caller's patience ended."""

    exit_code = 8


class RunFailed(ClientError):
    """The run that was waited for failed.

    :param code: ``HumanRejected``, ``HumanTimeout``, or ``None`` where no person's decision was the cause.
    """

    exit_code = 9

    def __init__(self, run_id: str, code: str | None, body: Any = None) -> None:
        super().__init__(f"run {run_id} failed" + (f": {code}" if code else ""), body=body)
        self.run_id = run_id
        self.code = code


class RunInterrupted(ClientError):
    """A run that is waited for stands at a person.

    :param run_id: the run.
    :param approval_key: the gate's key; approve with it and wait again.
    :param interrupts: every gate that is open, as the server lists them.
    """

    exit_code = 10

    def __init__(self, run_id: str, approval_key: str, interrupts: list[dict[str, Any]]) -> None:
        super().__init__(f"run {run_id} waits for a person at {approval_key!r}")
        self.run_id = run_id
        self.approval_key = approval_key
        self.interrupts = interrupts
