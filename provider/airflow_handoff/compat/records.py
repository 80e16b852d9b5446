"""What Airflow's database knows of requests, runs and answers, read in short sessions.

Every function opens its own session, so no connection is held between two calls.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

#: States in which a request is open.
PARKED_STATES = frozenset({"awaiting_input", "deferred"})
#: What Airflow calls a task whose body another language has.
_STUB = "@task.stub"


@dataclass(frozen=True)
class RequestRow:
    """What Airflow's ``hitl_detail`` says."""

    subject: str
    body: str | None
    options: tuple[str, ...]
    multiple: bool
    params: dict[str, Any]
    assignees: tuple[dict[str, Any], ...]
    created_at: datetime
    responded_at: datetime | None
    responded_by: dict[str, Any] | None
    chosen_options: tuple[str, ...]
    params_input: dict[str, Any]


@dataclass(frozen=True)
class RequestRecord:
    """A task instance, its request and its trigger as they lie in the database.

    :param ti_id: changes with every attempt.
    :param state: the task's state; ``None`` before it is scheduled.
    :param updated_at: when the task instance last changed: for a parked task, when it parked.
    :param next_kwargs: the resume kwargs as stored.
    :param scheduler_seen_at: last heartbeat of the scheduler that queued the task; ``None`` if it has ended.
    :param row: ``None`` where nothing was asked yet.
    :param foreign: whether the task's body is a program in another language (``@task.stub``).
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    ti_id: str
    try_number: int
    state: str | None
    updated_at: datetime | None
    queued_at: datetime | None
    next_kwargs: Any
    dag_version_id: str | None
    row: RequestRow | None
    scheduler_seen_at: datetime | None = None
    foreign: bool = False


@dataclass(frozen=True)
class RunRecord:
    """A Dag run."""

    dag_id: str
    run_id: str
    state: str
    logical_date: datetime | None
    start_date: datetime | None
    end_date: datetime | None


def raw_next_kwargs() -> Any:
    """Select the resume kwargs as stored: decoding them could run code or fail."""
    from sqlalchemy import JSON, literal_column

    return literal_column("task_instance.next_kwargs", JSON).label("next_kwargs")


def _request_columns() -> Any:
    from airflow.jobs.job import Job
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance as TI
    from sqlalchemy import and_, select

    query = select(
        TI.dag_id,
        TI.run_id,
        TI.task_id,
        TI.map_index,
        TI.id,
        TI.try_number,
        TI.state,
        TI.updated_at,
        TI.queued_dttm,
        raw_next_kwargs(),
        TI.dag_version_id,
        TI.custom_operator_name,
        HITLDetail.ti_id.label("row_id"),
        HITLDetail.subject,
        HITLDetail.body,
        HITLDetail.options,
        HITLDetail.multiple,
        HITLDetail.params,
        HITLDetail.assignees,
        HITLDetail.created_at,
        HITLDetail.responded_at,
        HITLDetail.responded_by,
        HITLDetail.chosen_options,
        HITLDetail.params_input,
        Job.latest_heartbeat.label("scheduler_seen_at"),
    ).outerjoin(HITLDetail, HITLDetail.ti_id == TI.id)
    running = and_(Job.id == TI.queued_by_job_id, Job.state == "running")
    return query.outerjoin(Job, running)


def _record(found: Any) -> RequestRecord:
    row = None
    if found.row_id is not None:
        row = RequestRow(
            subject=found.subject,
            body=found.body,
            options=tuple(found.options or ()),
            multiple=bool(found.multiple),
            params=found.params or {},
            assignees=tuple(found.assignees or ()),
            created_at=found.created_at,
            responded_at=found.responded_at,
            responded_by=found.responded_by,
            chosen_options=tuple(found.chosen_options or ()),
            params_input=found.params_input or {},
        )
    return RequestRecord(
        dag_id=found.dag_id,
        run_id=found.run_id,
        task_id=found.task_id,
        map_index=found.map_index,
        ti_id=str(found.id),
        try_number=found.try_number,
        state=None if found.state is None else str(getattr(found.state, "value", found.state)),
        updated_at=found.updated_at,
        queued_at=found.queued_dttm,
        next_kwargs=found.next_kwargs,
        dag_version_id=None if found.dag_version_id is None else str(found.dag_version_id),
        row=row,
        scheduler_seen_at=found.scheduler_seen_at,
        foreign=found.custom_operator_name == _STUB,
    )


def read_request(dag_id: str, run_id: str, task_id: str, map_index: int) -> RequestRecord | None:
    """Read one task instance with its request; ``None`` where there is no such task instance."""
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.utils.session import create_session

    query = _request_columns().where(
        TI.dag_id == dag_id, TI.run_id == run_id, TI.task_id == task_id, TI.map_index == map_index
    )
    with create_session(scoped=False) as session:
        found = session.execute(query).one_or_none()
        return None if found is None else _record(found)


def read_requests(places: Sequence[tuple[str, str, str, int]]) -> list[RequestRecord]:
    """Read the task instances at *places* (Dag, run, task, map index) with their requests."""
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.utils.session import create_session
    from sqlalchemy import tuple_

    key = tuple_(TI.dag_id, TI.run_id, TI.task_id, TI.map_index)
    query = _request_columns().where(key.in_(list(places)))
    with create_session(scoped=False) as session:
        return [_record(found) for found in session.execute(query)] if places else []


def read_attempt(ti_id: str) -> RequestRecord | None:
    """Read the task instance whose attempt has this id, with its request."""
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.utils.session import create_session

    query = _request_columns().where(TI.id == native(TI.id, ti_id))
    with create_session(scoped=False) as session:
        found = session.execute(query).one_or_none()
        return None if found is None else _record(found)


def read_run_requests(dag_id: str, run_id: str, task_ids: Sequence[str] = ()) -> list[RequestRecord]:
    """Read every task instance of a run that has asked something, and those of *task_ids*."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.utils.session import create_session
    from sqlalchemy import or_

    query = (
        _request_columns()
        .where(TI.dag_id == dag_id, TI.run_id == run_id)
        .where(or_(HITLDetail.ti_id.is_not(None), TI.task_id.in_(task_ids)))
        .order_by(HITLDetail.created_at, TI.task_id, TI.map_index)
    )
    with create_session(scoped=False) as session:
        return [_record(found) for found in session.execute(query)]


def read_kwargs(places: Sequence[tuple[str, str, str, int]]) -> dict[tuple[str, str, str, int], Any]:
    """Read the stored resume kwargs of the task instances at *places* (Dag, run, task, map index)."""
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.utils.session import create_session
    from sqlalchemy import select, tuple_

    key = (TI.dag_id, TI.run_id, TI.task_id, TI.map_index)
    query = select(*key, raw_next_kwargs(), TI.updated_at).where(tuple_(*key).in_(list(places)))
    with create_session(scoped=False) as session:
        rows = session.execute(query) if places else ()
        return {(row[0], row[1], row[2], row[3]): (row.next_kwargs, row.updated_at) for row in rows}


def read_runs(run_id: str, dag_id: str | None = None) -> list[RunRecord]:
    """Read the runs with this id, of one Dag or of all."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(
        DagRun.dag_id, DagRun.run_id, DagRun.state, DagRun.logical_date, DagRun.start_date, DagRun.end_date
    ).where(DagRun.run_id == run_id)
    if dag_id is not None:
        query = query.where(DagRun.dag_id == dag_id)
    with create_session(scoped=False) as session:
        return [
            RunRecord(
                found.dag_id,
                found.run_id,
                str(getattr(found.state, "value", found.state)),
                found.logical_date,
                found.start_date,
                found.end_date,
            )
            for found in session.execute(query.order_by(DagRun.dag_id))
        ]


def read_run_version(dag_id: str, run_id: str) -> str | None:
    """Return the version of its Dag that a run's latest task ran with; ``None`` if none is recorded."""
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(TI.dag_version_id).where(TI.dag_id == dag_id, TI.run_id == run_id)
    query = query.where(TI.dag_version_id.is_not(None), TI.start_date.is_not(None))
    with create_session(scoped=False) as session:
        found = session.scalar(query.order_by(TI.start_date.desc()).limit(1))
        return None if found is None else str(found)


def read_xcoms(
    dag_id: str, run_id: str, key: str, task_ids: Sequence[str] | None = None
) -> dict[tuple[str, int], Any]:
    """Read the XComs named *key* of a run by task and map index, as stored: JSON, maybe in envelopes.

    :param task_ids: of these tasks only; ``None`` for all.
    """

    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(XComModel.task_id, XComModel.map_index, XComModel.value).where(
        XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.key == key
    )
    if task_ids is not None:
        query = query.where(XComModel.task_id.in_(task_ids))
    with create_session(scoped=False) as session:
        found = {}
        for task_id, map_index, value in session.execute(query):
            if isinstance(value, str):
                with contextlib.suppress(ValueError):
                    value = json.loads(value)
            found[(task_id, map_index)] = value
        return found


def read_dag(dag_id: str, dag_version_id: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the serialized tasks of a Dag by id, at one version or the latest; never runs Dag code."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(SerializedDagModel).where(SerializedDagModel.dag_id == dag_id)
    if dag_version_id is not None:
        column = SerializedDagModel.dag_version_id
        query = query.where(column == native(column, dag_version_id))
    with create_session(scoped=False) as session:
        model = session.scalar(query.order_by(SerializedDagModel.created_at.desc()).limit(1))
        data = None if model is None else model.data
    tasks = ((data or {}).get("dag") or {}).get("tasks") or ()
    plain = [task.get("__var", task) for task in tasks if isinstance(task, dict)]
    return {task["task_id"]: task for task in plain if "task_id" in task}


def native(column: Any, value: str) -> Any:
    """Ids are text on Airflow 3.1 and UUIDs later."""
    with contextlib.suppress(NotImplementedError):
        if column.type.python_type is uuid.UUID:
            return uuid.UUID(value)
    return value


@dataclass(frozen=True)
class AuditLine:
    """One line of Airflow's audit log about an answer."""

    when: datetime
    event: str
    who: str | None
    dag_id: str | None
    run_id: str | None
    task_id: str | None
    map_index: int | None
    try_number: int | None
    extra: str | None = field(default=None, repr=False)


def write_audit(event: str, record: RequestRecord, who: str, extra: str) -> None:
    """Add a line to Airflow's audit log in a transaction of its own."""
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session(scoped=False) as session:
        session.add(
            Log(
                event=event,
                owner=who,
                owner_display_name=who,
                extra=extra,
                dag_id=record.dag_id,
                task_id=record.task_id,
                run_id=record.run_id,
                map_index=record.map_index,
                try_number=record.try_number,
            )
        )


def read_audited_dags(events: Sequence[str]) -> set[str]:
    """Return the ids of the Dags that audit lines of *events* are about."""
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(Log.dag_id).where(Log.event.in_(events), Log.dag_id.is_not(None)).distinct()
    with create_session(scoped=False) as session:
        return set(session.scalars(query))


def read_audit(
    events: Sequence[str],
    *,
    dag_ids: Sequence[str],
    run_id: str | None = None,
    task_id: str | None = None,
    since: datetime | None = None,
    limit: int,
    offset: int = 0,
) -> list[AuditLine]:
    """Read audit lines of *events* about the Dags of *dag_ids*, oldest first."""
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(Log).where(Log.event.in_(events), Log.dag_id.in_(dag_ids))
    for column, value in ((Log.run_id, run_id), (Log.task_id, task_id)):
        if value is not None:
            query = query.where(column == value)
    if since is not None:
        query = query.where(Log.dttm >= since)
    with create_session(scoped=False) as session:
        return [
            AuditLine(
                line.dttm or datetime.now(timezone.utc),
                line.event,
                line.owner,
                line.dag_id,
                line.run_id,
                line.task_id,
                line.map_index,
                line.try_number,
                line.extra,
            )
            for line in session.scalars(query.order_by(Log.dttm, Log.id).limit(limit).offset(offset))
        ]
