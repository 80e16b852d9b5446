"""The gates of a Dag: which tasks of ours it has and by which key they are approved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from airflow_handoff.compat import records

#: The template field that tells our operators, subclasses and decorated functions from all others.
MARK = "approval_key"


def of_dag(dag_id: str, dag_version_id: str | None) -> Mapping[str, str]:
    """Return the approval keys of our tasks by task id, templates unrendered; blocks on the database.

    :param dag_version_id: ``None`` for the latest version.
    """
    if dag_version_id is None:
        return _read(records.read_dag(dag_id))
    return _of_version(dag_id, dag_version_id)


# A version never changes once it has a task instance.
@lru_cache(maxsize=512)
def _of_version(dag_id: str, dag_version_id: str) -> Mapping[str, str]:
    return _read(records.read_dag(dag_id, dag_version_id))


def _read(tasks: Mapping[str, dict[str, Any]]) -> Mapping[str, str]:
    ours = {task_id: task for task_id, task in tasks.items() if MARK in (task.get("template_fields") or ())}
    return {task_id: _key(task) or task_id for task_id, task in ours.items()}


def _key(task: Mapping[str, Any]) -> str | None:
    own = task.get(MARK)
    if own is None:
        own = (_plain(task.get("partial_kwargs")) or {}).get(MARK)
    own = _plain(own)
    return own if isinstance(own, str) else None


def _plain(value: Any) -> Any:
    """Take off the envelope of Airflow's serialization."""
    return value["__var"] if isinstance(value, dict) and set(value) == {"__type", "__var"} else value


def leaves(tasks: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the tasks that no other task waits for."""
    return sorted(task_id for task_id, task in tasks.items() if not task.get("downstream_task_ids"))
