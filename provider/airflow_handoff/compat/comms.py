"""What a running task asks of its supervisor, beyond the public interface of the task SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol


def send(message: Any) -> Any:
    """Send *message* to the supervisor and return its answer.

    The channel is looked up at each call: it does not exist before the task runs.
    """
    from airflow.sdk.execution_time import task_runner

    return task_runner.SUPERVISOR_COMMS.send(message)


def upsert_hitl_detail(
    *,
    ti_id: UUID,
    subject: str,
    body: str | None,
    options: Sequence[str],
    defaults: Sequence[str] | None,
    multiple: bool,
    params: Mapping[str, Any],
    assigned_users: Sequence[Mapping[str, str]],
) -> Any:
    """Write the request's row: from now on it can be answered; an earlier response of it is cleared.

    :returns: the row as Airflow now has it, or ``None`` where Airflow does not say.
    """
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload

    return send(
        CreateHITLDetailPayload.model_validate(
            {
                "ti_id": ti_id,
                "subject": subject,
                "body": body,
                "options": list(options),
                "defaults": None if defaults is None else list(defaults),
                "multiple": multiple,
                "params": dict(params),
                "assigned_users": [dict(user) for user in assigned_users],
            }
        )
    )


def count_instances(
    ti: RuntimeTaskInstanceProtocol,
    task_ids: Sequence[str],
    *,
    map_index: int | None = None,
    states: Sequence[str] | None = None,
) -> int:
    """Count the task instances of *task_ids* in the run of *ti*.

    :param map_index: only those with this index.
    :param states: only those in one of these states.
    """
    count: int = ti.get_ti_count(
        dag_id=ti.dag_id,
        run_ids=[ti.run_id],
        task_ids=list(task_ids),
        map_index=map_index,
        states=None if states is None else list(states),
    )
    return count


def pull_of_all_indexes(ti: RuntimeTaskInstanceProtocol, key: str) -> list[dict[str, Any]]:
    """Return what all mapped instances of the task of *ti* have pushed under *key*: dictionaries only."""
    pulled = ti.xcom_pull(task_ids=ti.task_id, key=key)
    values = pulled if isinstance(pulled, (list, tuple)) else [pulled]
    return [value for value in values if isinstance(value, dict)]


def push_result(ti: RuntimeTaskInstanceProtocol, result: Any, log: Any) -> None:
    """Push *result* as the task's return value, as the task runner would have done.

    For a task that ends by raising: the runner pushes nothing then.
    """
    from airflow.sdk.execution_time import task_runner

    task_runner._push_xcom_if_needed(result, ti, log)  # type: ignore[arg-type]
