"""Where a run stands, and its gates by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from airflow_handoff.compat import apiserver, records
from airflow_handoff.hitl.state import unwrapped
from airflow_handoff.server import gates
from airflow_handoff.server.answer import TurnedAway
from airflow_handoff.server.models import Interrupt, RunError, RunStatus
from airflow_handoff.server.standing import OpenRequest, Standing

#: XCom in which every outcome of a request of ours is kept.
OUTCOME_XCOM = "handoff"
RETURN_VALUE = "return_value"


async def find_gate(
    user: Any, dag_id: str | None, run_id: str, approval_key: str, map_index: int | None
) -> OpenRequest:
    """Return the request that a gate of a run has asked.

    :param dag_id: ``None`` if the run's id says enough.
    :param map_index: needed where several instances of a mapped task share the key.
    :raises TurnedAway: 403 or 404, or 409 where the id of the run or the key are not enough.
    """
    return await run_in_threadpool(_find_gate, user, dag_id, run_id, approval_key, map_index)


async def status(user: Any, dag_id: str | None, run_id: str) -> RunStatus:
    """Say where a run stands."""
    return await run_in_threadpool(_status, user, dag_id, run_id)


def _find_run(user: Any, dag_id: str | None, run_id: str) -> records.RunRecord:
    if dag_id is not None and not apiserver.may_access(user, "GET", "RUN", dag_id):
        raise TurnedAway(403, f"You may not read the runs of {dag_id}.")
    runs = records.read_runs(run_id, dag_id)
    if dag_id is None:
        runs = [run for run in runs if apiserver.may_access(user, "GET", "RUN", run.dag_id)]
    if not runs:
        raise TurnedAway(404, f"There is no run {run_id}" + (f" of {dag_id}." if dag_id else "."))
    if len(runs) > 1:
        names = [run.dag_id for run in runs]
        raise TurnedAway(
            409,
            f"Several Dags have a run {run_id}: name one of {', '.join(names)} with /handoff/v1/dags/...",
            dags=names,
        )
    return runs[0]


def _find_gate(
    user: Any, dag_id: str | None, run_id: str, approval_key: str, map_index: int | None
) -> OpenRequest:
    run = _find_run(user, dag_id, run_id)
    if not apiserver.may_access(user, "PUT", "HITL_DETAIL", run.dag_id):
        raise TurnedAway(403, f"You may not answer requests of {run.dag_id}.")
    named = _keyed(run)
    # Where keys are rendered alike, the task id still tells the gates apart.
    asked = [request for request, key in named if key == approval_key] or [
        request for request, _ in named if request.record.task_id == approval_key
    ]
    found = [request for request in asked if map_index in (None, request.record.map_index)]
    if not found:
        if asked:
            indexes = sorted(request.record.map_index for request in asked)
            instances = "is not mapped: leave map_index out" if indexes == [-1] else "has other instances"
            raise TurnedAway(404, f"The gate {approval_key} {instances}.", map_indexes=indexes)
        if approval_key in gates.of_dag(run.dag_id, None).values():
            raise TurnedAway(404, f"The gate {approval_key} has not asked anything yet.")
        keys = sorted({key for _, key in named})
        raise TurnedAway(
            404,
            f"This run has no gate {approval_key}; the gates that have asked: {', '.join(keys) or 'none'}.",
        )
    tasks = sorted({request.record.task_id for request in found})
    if len(tasks) > 1:
        raise TurnedAway(
            409,
            f"Several gates have the key {approval_key}: put the task id in its place, one of "
            f"{', '.join(tasks)}.",
            task_ids=tasks,
        )
    if len(found) > 1:
        indexes = sorted(request.record.map_index for request in found)
        raise TurnedAway(
            409, f"The gate {approval_key} has several instances: add ?map_index=.", map_indexes=indexes
        )
    return found[0]


def _keyed(run: records.RunRecord) -> list[tuple[OpenRequest, str]]:
    """Return the requests of a run with their keys, in the order of asking."""
    outcomes = _outcomes(run)
    keyed = []
    for record in records.read_run_requests(run.dag_id, run.run_id):
        request = OpenRequest.leniently(record)
        keyed.append((request, _key(request, outcomes.get((record.task_id, record.map_index)))))
    return keyed


def _key(request: OpenRequest, outcome: Mapping[str, Any] | None) -> str:
    record = request.record
    if request.state is not None:
        return request.state.approval_key
    if outcome and isinstance(outcome.get("approval_key"), str):
        return str(outcome["approval_key"])
    key = gates.of_dag(record.dag_id, record.dag_version_id).get(record.task_id)
    return record.task_id if key is None or "{{" in key or "{%" in key else key


def _outcomes(run: records.RunRecord) -> dict[tuple[str, int], Mapping[str, Any]]:
    stored = records.read_xcoms(run.dag_id, run.run_id, OUTCOME_XCOM)
    plain = {place: unwrapped(value) for place, value in stored.items()}
    return {place: value for place, value in plain.items() if isinstance(value, Mapping)}


def _status(user: Any, dag_id: str | None, run_id: str) -> RunStatus:
    run = _find_run(user, dag_id, run_id)
    keyed = _keyed(run)
    interrupts = [_interrupt(request, key) for request, key in keyed if request.standing is Standing.OPEN]
    outcomes = _outcomes(run)
    name = _status_name(run.state, bool(interrupts))
    return RunStatus(
        dag_id=run.dag_id,
        run_id=run.run_id,
        status=name,
        interrupt=interrupts[0] if interrupts else None,
        interrupts=interrupts,
        outcome=_last_outcome(keyed, outcomes),
        error=_error(outcomes) if name == "Failed" else None,
        result=_result(user, run) if name == "Completed" else None,
    )


def _status_name(state: str, interrupted: bool) -> Any:
    if state in ("success", "failed"):
        return "Completed" if state == "success" else "Failed"
    return "Interrupted" if interrupted else "Running"


def _interrupt(request: OpenRequest, key: str) -> Interrupt:
    record, state = request.record, request.state
    assert record.row is not None  # noqa: S101 - it is open
    return Interrupt(
        approval_key=key,
        kind=state.kind if state else "hitl",
        task_id=record.task_id,
        map_index=record.map_index,
        try_number=record.try_number,
        created_at=record.row.created_at,
        expires_at=state.deadline if state else None,
    )


def _last_outcome(
    keyed: Iterable[tuple[OpenRequest, str]], outcomes: Mapping[tuple[str, int], Mapping[str, Any]]
) -> str | None:
    """Return the outcome of the gate that asked last among those that were decided."""
    last = None
    for request, _ in keyed:
        outcome = outcomes.get((request.record.task_id, request.record.map_index))
        if outcome and isinstance(outcome.get("outcome"), str):
            last = str(outcome["outcome"])
    return last


def _error(outcomes: Mapping[tuple[str, int], Mapping[str, Any]]) -> RunError:
    for (task_id, map_index), outcome in outcomes.items():
        if isinstance(outcome.get("code"), str):
            return RunError(
                code=outcome["code"],
                approval_key=outcome.get("approval_key"),
                task_id=task_id,
                map_index=map_index,
            )
    return RunError(code="TaskFailed")


def _result(user: Any, run: records.RunRecord) -> dict[str, Any] | None:
    if not apiserver.may_access(user, "GET", "XCOM", run.dag_id):
        return None
    version = records.read_run_version(run.dag_id, run.run_id)
    leaves = gates.leaves(records.read_dag(run.dag_id, version))
    values = records.read_xcoms(run.dag_id, run.run_id, RETURN_VALUE, task_ids=leaves)
    result: dict[str, Any] = {}
    for task_id in leaves:
        mine = {index: unwrapped(value) for (task, index), value in values.items() if task == task_id}
        if -1 in mine:
            result[task_id] = mine[-1]
        elif mine:
            result[task_id] = [mine[index] for index in sorted(mine)]
    return result
