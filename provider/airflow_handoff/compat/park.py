"""The version switch: how a task leaves its worker until a person has answered, and comes back."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_handoff.compat.versions import HAS_AWAITING_INPUT

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.triggers.base import BaseTrigger

log = logging.getLogger(__name__)

#: The method name under which Airflow resumes a task only to fail it.
FAIL_METHOD = "__fail__"
SETTLE_SECONDS = 8.0
MAX_SETTLE_SECONDS = 3600.0
_UNUSABLE = "event payload could not be serialized"


def park(
    operator: BaseOperator,
    *,
    trigger: Callable[[], BaseTrigger],
    method_name: str,
    kwargs: dict[str, Any],
    timeout: timedelta | None,
) -> NoReturn:
    """Leave the worker until the request is answered or its time is up.

    On Airflow 3.3 and later the task waits in the state ``awaiting_input``, which needs neither a worker nor
    a triggerer; before, it defers.

    :param operator: the task that waits.
    :param trigger: makes the trigger to wait with; called only where the task defers.
    :param method_name: the method that gets the event.
    :param kwargs: JSON values that the method gets besides ``event``.
    :param timeout: how long to wait; ``None`` waits for ever. A trigger keeps its own time: the timeout of
        ``defer`` would fail the task without asking it.
    """
    if HAS_AWAITING_INPUT:
        from airflow.sdk.exceptions import TaskAwaitingInput

        raise TaskAwaitingInput(method_name=method_name, kwargs=kwargs, timeout=timeout)
    operator.defer(trigger=trigger(), method_name=method_name, kwargs=kwargs)


def settle_time() -> timedelta:
    """Return how long a park must have stood before the task may go on: ``[handoff] settle_seconds``.

    Until then the scheduler may not have seen the end of the process that parked, and would fail a task
    that is queued again. A setting that is no time is told and not taken: it is read while somebody is being
    asked.
    """
    from airflow.configuration import conf

    try:
        seconds = float(conf.getfloat("handoff", "settle_seconds", fallback=SETTLE_SECONDS))
        if not 0 <= seconds <= MAX_SETTLE_SECONDS:
            raise ValueError(f"[handoff] settle_seconds is {seconds}, not 0 to {MAX_SETTLE_SECONDS} seconds.")
    except Exception as error:
        log.warning("%s It is taken to be %s.", error, SETTLE_SECONDS)
        seconds = SETTLE_SECONDS
    return timedelta(seconds=seconds)


def unusable_answer(next_method: str, next_kwargs: Mapping[str, Any] | None) -> str | None:
    """Say what Airflow said of an answer that it could record but not hand over; ``None`` for other resumes.

    Such a task is resumed under ``__fail__``, without its kwargs, though nothing is wrong with it.
    """
    error = (next_kwargs or {}).get("error")
    if next_method == FAIL_METHOD and isinstance(error, str) and _UNUSABLE in error:
        return error
    return None


@contextmanager
def execution_timeout_paused() -> Iterator[None]:
    """Stop the clock of ``execution_timeout`` for a while; it goes on with what was left.

    The task runner keeps that clock in the process's real-time interval timer, on all versions.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    handler = signal.getsignal(signal.SIGALRM)
    try:
        yield
    finally:
        if left:
            # Somebody may have used the alarm in between.
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, left)
