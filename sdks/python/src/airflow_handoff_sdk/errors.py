"""The errors of this SDK, told as a story.

A task process starts and reads who it is. Where its function cannot be given what it asks for, that is a
:class:`BindingError`. The function asks its supervisor for things: an answer that says no is a
:class:`SupervisorError`, and :class:`NotFound` or :class:`ApiServerError` where the reason is known. What it
wants to hand on must be JSON, else :class:`NotJsonSafe`. Where the supervisor has gone, or says what the wire
does not allow, :class:`ConnectionLost` and :class:`WireError` end the process.

A task that parked may wake up badly: its trigger broke (:class:`TriggerFailed`) or nobody answered
(:class:`HumanTimeout`). Both are raised in the function and, unless it catches them, fail the attempt.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SdkError(Exception):
    """Base of every error that this SDK raises on purpose."""


class WireError(SdkError):
    """Bytes that are no MessagePack, or a frame that is not of this protocol."""


class ConnectionLost(SdkError):
    """The supervisor closed its end of the channel."""


class BindingError(SdkError, TypeError):
    """The arguments of the task do not fit the function's parameters."""


class NotJsonSafe(SdkError, TypeError):
    """A value that the wire would carry but Airflow would not accept.

    :param path: where in the value the trouble is, ``$`` being the value itself.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path


class SupervisorError(SdkError):
    """The supervisor refused a request.

    :param error: Airflow's code, ``VARIABLE_NOT_FOUND`` for example.
    :param detail: what Airflow says about it.
    :param request: the type of the request that was refused.
    """

    def __init__(self, error: str, detail: dict[str, Any] | None, request: str) -> None:
        super().__init__(f"{request} was refused: {error}" + (f" {detail}" if detail else ""))
        self.error = error
        self.detail = detail or {}
        self.request = request


class NotFound(SupervisorError, LookupError):
    """What was asked for does not exist."""


class ApiServerError(SupervisorError):
    """The API server refused the supervisor's call; ``detail["status_code"]`` says how."""


class TriggerFailed(SdkError):
    """The trigger of a deferred task failed or timed out."""


class HumanTimeout(SdkError):
    """Nobody answered in time and the question has no defaults."""


def refusal(body: Any, request: str) -> SupervisorError:
    """Return the exception for an ``ErrorResponse``, or for whatever else came in its place."""
    if not isinstance(body, dict):
        body = {"detail": {"message": str(body)}}
    code = str(body.get("error") or "GENERIC_ERROR")
    kind = SupervisorError
    if code.endswith("_NOT_FOUND"):
        kind = NotFound
    elif code == "API_SERVER_ERROR":
        kind = ApiServerError
    return kind(code, body.get("detail"), request)
