"""From the first frame to the last: what one task process does."""

from __future__ import annotations

import logging

from airflow_handoff_sdk.binding import bind, bound_arguments
from airflow_handoff_sdk.context import Context, _current
from airflow_handoff_sdk.errors import HumanTimeout, SdkError, TriggerFailed
from airflow_handoff_sdk.human import ASKED
from airflow_handoff_sdk.outcomes import Fail, Park, Retry, Skip, iso_moment, now, seconds
from airflow_handoff_sdk.requests import UNSET, RetryTask, SucceedTask, TaskState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping

    from airflow_handoff_sdk.tasks import Task

    Body = Dict[str, Any]

log = logging.getLogger("airflow_handoff_sdk")
_FAILED = "__fail__"


def run_task(
    context: Context,
    registry: Mapping[tuple[str, str], Task],
    import_error: BaseException | None = None,
) -> Body:
    """Run the task that the context names and return the message that ends it.

    Nothing that the function raises leaves here.

    :param import_error: why the file of the tasks could not be loaded.
    """
    _current.append(context)
    found = registry.get((context.dag_id, context.task_id))
    try:
        if import_error is not None:
            raise import_error
        if found is None:
            return _removed(context, registry)
        for key in context.startup["ti_context"].get("xcom_keys_to_clear") or ():
            context.xcom.delete(key)
        result = _call(context, found)
        if result is not None:
            context.xcom.push_result(result)
        return SucceedTask(
            end_date=_now(),
            task_outlets=context.assets.outlets,  # type: ignore[arg-type]
            outlet_events=context.assets.outlet_events,
            rendered_map_index=_label(context),
        )
    except Park as park:
        return park.message
    except BaseException as error:
        try:
            return _ended_by(error, context, found)
        except BaseException as second:
            # A policy that exits, an error that cannot be told: the attempt still ends with a message.
            return unsayable(second, context)
    finally:
        _current.pop()


def _call(context: Context, found: Task) -> Any:
    name, kwargs = context.next_method, context.next_kwargs
    if name is None or name == ASKED:
        # Schema 2026-10-30 has the key; this one tolerates it.
        sent: Any = context.startup["ti_context"]
        arguments = bound_arguments(sent.get("arg_bindings") or (), context)
        return found.function(**bind(found.function, context, arguments))
    function = found.resumes.get(name)
    if function is None:
        raise _no_resume(name, kwargs, found)
    from airflow_handoff_sdk.jsonsafe import revive

    return function(**bind(function, context, _offered(function, revive(kwargs or {}))))


def _offered(function: Callable[..., Any], kwargs: Body) -> Body:
    """Return the resume arguments; the event is left out where the function does not want it."""
    from airflow_handoff_sdk.binding import parameters

    names, _, open_ended = parameters(function)
    return kwargs if open_ended else {k: v for k, v in kwargs.items() if k != "event" or k in names}


def _no_resume(name: str, kwargs: Body | None, found: Task) -> SdkError:
    if name == _FAILED:
        return TriggerFailed(str((kwargs or {}).get("error") or "the trigger failed"))
    known = sorted(found.resumes) or "none"
    return SdkError(
        f"{found.dag_id}.{found.task_id} was to resume in {name!r} and has {known}: "
        f"register it with @{found.__name__}.resume({name!r})"
    )


def _removed(context: Context, registry: Mapping[tuple[str, str], Task]) -> Body:
    known = ", ".join(sorted(f"{dag}.{task}" for dag, task in registry)) or "nothing"
    log.error("No function for %s.%s: this program runs %s.", context.dag_id, context.task_id, known)
    return TaskState(state="removed", end_date=_now())


def _ended_by(error: BaseException, context: Context, found: Task | None) -> Body:
    if isinstance(error, Skip):
        log.info("Skipped. %s", error)
        return TaskState(state="skipped", end_date=_now(), rendered_map_index=_label(context))
    decided = error if isinstance(error, (Fail, Retry)) else _decided(error, context, found)
    if decided is not error or not isinstance(error, (Fail, Retry)):
        log.error("The task function failed.", exc_info=error)
    if isinstance(decided, Fail):
        log.error("Failed for good. %s", decided)
        return _failed(context)
    delay = decided.after if isinstance(decided, Retry) else None
    reason = _said(decided) or _reason(error)
    # Airflow 3.3 takes a RetryTask even where no retry is left, and then repeats for ever.
    if not context.should_retry:
        log.error("Failed: no retry is left. %s", reason)
        return _failed(context)
    log.warning("Trying again%s. %s", "" if delay is None else f" after {seconds(delay):g} s", reason)
    return RetryTask(
        end_date=_now(),
        retry_delay_seconds=UNSET if delay is None else seconds(delay),
        retry_reason=reason[:500],
        rendered_map_index=_label(context),
    )


def unsayable(error: BaseException, context: Context) -> Body:
    """Return what ends an attempt whose own last message could not be made or sent."""
    reason = _reason(error)
    log.error("The end of the task could not be told as it was. %s", reason)
    if not context.should_retry:
        return TaskState(state="failed", end_date=_now())
    return RetryTask(end_date=_now(), retry_reason=reason[:500])


def _decided(error: BaseException, context: Context, found: Task | None) -> Exception | None:
    """Return what the task's retry policy makes of an error, and what is done without one."""
    decided = _by_policy(error, context, found)
    # That nobody answered is a decision: asking again from the start would undo it.
    return Fail(str(error)) if decided is None and isinstance(error, HumanTimeout) else decided


def _by_policy(error: BaseException, context: Context, found: Task | None) -> Exception | None:
    if found is None or found.retry_policy is None or not isinstance(error, Exception):
        return None
    try:
        decided = found.retry_policy(error, context)
    except Exception:
        log.exception("The retry policy failed; Airflow's own rules apply.")
        return None
    if decided is None or isinstance(decided, (Fail, Retry)):
        return decided
    log.error("The retry policy returned %r instead of Retry, Fail or None.", decided)
    return None


def _failed(context: Context) -> Body:
    return TaskState(state="failed", end_date=_now(), rendered_map_index=_label(context))


def _reason(error: BaseException) -> str:
    try:
        text = str(error).encode("utf-8", "replace").decode()
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _said(decided: Exception | None) -> str:
    return decided.reason.encode("utf-8", "replace").decode() if isinstance(decided, Retry) else ""


def _label(context: Context) -> Any:
    return UNSET if context.map_index_label is None else context.map_index_label


def _now() -> str:
    return iso_moment(now())
