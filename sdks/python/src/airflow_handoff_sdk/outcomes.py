"""How a task function ends other than by returning."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import Any, NoReturn, Union

    Duration = Union[int, float, timedelta]


class Skip(Exception):
    """Raise it to end the task as skipped."""


class Fail(Exception):
    """Raise it to end the task as failed, whatever retries remain."""


class Retry(Exception):
    """Raise it to try again later, where retries remain; the task fails where none do.

    :param reason: shown in Airflow.
    :param after: seconds or a ``timedelta``; without it the delay of the task in the Dag applies.
    """

    def __init__(self, reason: str = "", *, after: Duration | None = None) -> None:
        self.reason = str(reason)
        self.after = after
        if after is not None:
            seconds(after)
        super().__init__(self.reason)


class Park(BaseException):
    """Ends the process with a message that lets the task wait without it.

    Not an ``Exception``: a function that catches everything must not lose it.

    :param message: what is sent to the supervisor before the process ends.
    """

    def __init__(self, message: dict[str, Any]) -> None:
        super().__init__(message.get("type"))
        self.message = message


def seconds(duration: Duration) -> float:
    """Return a duration in seconds.

    :raises ValueError: for one without an end.
    """
    value = float(duration.total_seconds()) if hasattr(duration, "total_seconds") else float(duration)
    if value != value or abs(value) == float("inf"):
        raise ValueError(f"expected a number of seconds, got {duration!r}")
    return value


def iso_duration(duration: Duration) -> str:
    """Return a duration as the ISO 8601 text of the wire: 5 is ``PT5S``."""
    return f"PT{seconds(duration):.6f}".rstrip("0").rstrip(".") + "S"


def iso_moment(moment: datetime) -> str:
    """Return an aware moment as RFC 3339 text.

    :raises ValueError: for one without a time zone.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"a datetime without a time zone: {moment!r}")
    return moment.isoformat()


def now() -> datetime:
    """Return the present moment, in UTC."""
    from datetime import datetime, timezone

    return datetime.now(timezone.utc)


def defer(
    trigger: str,
    trigger_kwargs: dict[str, Any] | None = None,
    *,
    resume: str,
    kwargs: dict[str, Any] | None = None,
    timeout: Duration | None = None,
) -> NoReturn:
    """End the process and wait for a trigger without it.

    :param trigger: dotted path of the trigger class, importable by Airflow's triggerer.
    :param trigger_kwargs: its arguments: JSON, aware datetimes and timedeltas.
    :param resume: name of the function, registered with ``@yourtask.resume(name)``, that runs when the
        trigger fires. It runs in a new process and gets ``event`` and ``kwargs`` by name.
    :param kwargs: what that function gets besides the event; JSON.
    :param timeout: seconds or a ``timedelta`` until :class:`~airflow_handoff_sdk.TriggerFailed` is raised.
    """
    from airflow_handoff_sdk.jsonsafe import check
    from airflow_handoff_sdk.requests import UNSET, DeferTask

    raise Park(
        DeferTask(
            classpath=trigger,
            trigger_kwargs=check(_for_trigger(trigger_kwargs or {}), "trigger_kwargs"),
            next_method=resume,
            next_kwargs=check(kwargs or {}, "kwargs"),
            trigger_timeout=UNSET if timeout is None else iso_duration(timeout),
        )
    )


def _for_trigger(value: Any) -> Any:
    """Return a value with its datetimes and timedeltas in the form that Airflow's triggerer reads."""
    if isinstance(value, dict):
        return {key: _for_trigger(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_trigger(item) for item in value]
    if hasattr(value, "total_seconds"):
        return {"__type": "timedelta", "__var": value.total_seconds()}
    if hasattr(value, "utcoffset") and hasattr(value, "timestamp"):
        iso_moment(value)
        return {"__type": "datetime", "__var": value.timestamp()}
    return value


def reschedule(when: datetime | Duration) -> NoReturn:
    """End the process and run the function again from its start, as the same try.

    Give Airflow ten seconds or more: where a task is due again before the scheduler has seen its first
    process end, Airflow 3.3 can fail it ("state mismatch"). The same holds for a trigger that fires at once.

    :param when: an aware moment, or seconds or a ``timedelta`` from now.
    """
    from datetime import timedelta

    from airflow_handoff_sdk.requests import RescheduleTask

    present = now()
    moment: Any = when if hasattr(when, "utcoffset") else present + timedelta(seconds=seconds(when))
    raise Park(RescheduleTask(reschedule_date=iso_moment(moment), end_date=iso_moment(present)))
