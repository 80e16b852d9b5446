"""A foreign task that runs as Python, because its queue leads to no coordinator, says so in its own log.

Airflow runs a task of an unknown queue as Python, where a stub fails without a word about queues.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("airflow.task")


def speak_up(task_instance: Any) -> None:
    """Write one line where the task that is about to run in this process is a stub."""
    task = getattr(task_instance, "task", None)
    if type(task).__name__ in ("_StubOperator", "StubOperator"):
        log.error(explain(str(getattr(task, "queue", None) or "default"), _queues()))


def _queues() -> Mapping[str, Any]:
    from airflow.configuration import conf

    try:
        found = conf.getjson("sdk", "queue_to_coordinator", fallback={})
    except Exception:
        return {}
    return found if isinstance(found, Mapping) else {}


def explain(queue: str, queues: Mapping[str, Any]) -> str:
    """Say why a stub runs as Python and what to do.

    :param queue: the task's.
    :param queues: what ``[sdk] queue_to_coordinator`` holds.
    """
    from airflow_handoff.compat.versions import HAS_COORDINATORS

    if not HAS_COORDINATORS:
        return "This stub runs as Python and will fail: tasks in other languages need Airflow 3.3 or later."
    near = difflib.get_close_matches(queue, list(queues), n=1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif queues:
        hint = f"it leads the queues {', '.join(sorted(queues))}"
    else:
        hint = "it is empty"
    return (
        f"This stub runs as Python and will fail: [sdk] queue_to_coordinator does not lead "
        f"its queue {queue!r} to a coordinator; {hint}"
    )
