"""Run Airflow tasks in any Python from 3.8, with nothing of Airflow installed.

Names are loaded when they are first used: a task process pays only for what it needs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from airflow_handoff_sdk.context import Context as Context
    from airflow_handoff_sdk.context import current_context as current_context
    from airflow_handoff_sdk.errors import ApiServerError as ApiServerError
    from airflow_handoff_sdk.errors import BindingError as BindingError
    from airflow_handoff_sdk.errors import ConnectionLost as ConnectionLost
    from airflow_handoff_sdk.errors import HumanTimeout as HumanTimeout
    from airflow_handoff_sdk.errors import NotFound as NotFound
    from airflow_handoff_sdk.errors import NotJsonSafe as NotJsonSafe
    from airflow_handoff_sdk.errors import SdkError as SdkError
    from airflow_handoff_sdk.errors import SupervisorError as SupervisorError
    from airflow_handoff_sdk.errors import TriggerFailed as TriggerFailed
    from airflow_handoff_sdk.human import Answer as Answer
    from airflow_handoff_sdk.human import ask_human as ask_human
    from airflow_handoff_sdk.outcomes import Fail as Fail
    from airflow_handoff_sdk.outcomes import Retry as Retry
    from airflow_handoff_sdk.outcomes import Skip as Skip
    from airflow_handoff_sdk.outcomes import defer as defer
    from airflow_handoff_sdk.outcomes import reschedule as reschedule
    from airflow_handoff_sdk.tasks import Task as Task
    from airflow_handoff_sdk.tasks import task as task

__version__ = "0.1.0"

_HOMES = {
    "context": ("Context", "current_context"),
    "errors": (
        "ApiServerError", "BindingError", "ConnectionLost", "HumanTimeout", "NotFound", "NotJsonSafe",
        "SdkError", "SupervisorError", "TriggerFailed",
    ),
    "human": ("Answer", "ask_human"),
    "outcomes": ("Fail", "Retry", "Skip", "defer", "reschedule"),
    "tasks": ("Task", "task"),
}  # fmt: skip

__all__ = [
    "Answer", "ApiServerError", "BindingError", "ConnectionLost", "Context", "Fail", "HumanTimeout",
    "NotFound", "NotJsonSafe", "Retry", "SdkError", "Skip", "SupervisorError", "Task", "TriggerFailed",
    "ask_human", "current_context", "defer", "reschedule", "task",
]  # fmt: skip


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            module = __import__(f"{__name__}.{home}", fromlist=[name])
            value = getattr(module, name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
