"""Rows of Airflow's database, written by hand: a run whose tasks stand where a test wants them."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance as TI
from airflow.utils.session import create_session
from sqlalchemy import delete, insert, select, update

from airflow_handoff.compat.records import native
from airflow_handoff.compat.versions import HAS_AWAITING_INPUT
from airflow_handoff.hitl.question import FormField, Question
from airflow_handoff.hitl.state import RequestState

PARKED = "awaiting_input" if HAS_AWAITING_INPUT else "deferred"
COUNT = FormField(name="n", schema={"type": "integer", "minimum": 3}, has_default=True, value=5)


def utcnow() -> datetime:
    """Return now, with a zone."""
    return datetime.now(timezone.utc)


def add_dag(dag_id: str) -> None:
    """Write a Dag."""
    with create_session() as session:
        if session.get(DagBundleModel, "bundle") is None:
            session.add(DagBundleModel(name="bundle"))
            session.flush()
        values = _required(DagModel, dag_id=dag_id, bundle_name="bundle", is_paused=False)
        session.execute(insert(DagModel.__table__).values(values))


def add_run(dag_id: str, run_id: str, state: str = "running") -> None:
    """Write a run."""
    values = _required(
        *(DagRun,), dag_id=dag_id, run_id=run_id, state=state, run_type="manual", logical_date=utcnow(),
        run_after=utcnow(),
    )  # fmt: skip
    with create_session() as session:
        session.execute(insert(DagRun.__table__).values(values))


def set_run(dag_id: str, run_id: str, state: str) -> None:
    """End a run."""
    with create_session() as session:
        session.execute(
            update(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id).values(state=state)
        )


def _required(model: Any, **given: Any) -> dict[str, Any]:
    """Fill the columns that may not be null and have no default."""
    values = dict(given)
    for column in model.__table__.columns:
        if column.name in values or column.nullable or column.default is not None or column.server_default:
            continue
        if column.primary_key and column.name == "id" and column.type.python_type is int:
            continue
        kind = column.type.python_type if column.name not in ("context_carrier",) else dict
        values[column.name] = utcnow() if kind is datetime else kind()
    return values


def question(subject: str = "Buy it?", **fields: Any) -> Question:
    """Return a question with one form field."""
    return Question(**{"options": ("Approve", "Reject"), "form": {"n": COUNT}, "subject": subject, **fields})


def add_task(
    dag_id: str,
    run_id: str,
    task_id: str,
    *,
    state: str | None = PARKED,
    ours: bool = True,
    asked: Question | None = None,
    age: float = 60.0,
    row: bool = True,
    row_age: float | None = None,
    queued_age: float | None = None,
    map_index: int = -1,
    approval_key: str | None = None,
) -> str:
    """Write a task instance with its request.

    :param age: seconds since it parked.
    :param row_age: seconds since it asked; as old as the park where left out.
    :returns: the attempt's id.
    """
    ti_id, asked = str(uuid.uuid4()), asked or question()
    known = RequestState(
        approval_key=approval_key or task_id,
        kind="approval",
        question=asked,
        digest=asked.digest,
        ti_id=ti_id,
    )
    now = utcnow()
    values = _required(
        TI,
        id=native(TI.id, ti_id),
        dag_id=dag_id,
        run_id=run_id,
        task_id=task_id,
        map_index=map_index,
        try_number=1,
        state=state,
        pool="default_pool",
        pool_slots=1,
        executor_config={},
        updated_at=now - timedelta(seconds=age),
        queued_dttm=now - timedelta(seconds=age + 1 if queued_age is None else queued_age),
        next_method="execute_complete" if ours else None,
        next_kwargs=known.to_kwargs() if ours else None,
        task_display_name=task_id,
        context_carrier={},
    )
    with create_session() as session:
        session.execute(insert(TI.__table__).values(values))
        if row:
            session.add(_detail(ti_id, asked, now - timedelta(seconds=age if row_age is None else row_age)))
    return ti_id


def _detail(ti_id: str, asked: Question, created_at: datetime) -> HITLDetail:
    return HITLDetail(
        ti_id=native(HITLDetail.ti_id, ti_id),
        options=list(asked.options),
        subject=asked.subject,
        body=asked.body,
        defaults=None,
        multiple=asked.multiple,
        params={
            name: {"value": field.value, "description": None, "schema": field.schema}
            for name, field in asked.form.items()
        },
        assignees=[person.model_dump() for person in asked.assigned_users],
        created_at=created_at,
    )


def change_task(dag_id: str, run_id: str, task_id: str, **values: Any) -> None:
    """Change a task instance as a scheduler or a person would; ``updated_at`` stays unless it is given."""
    with create_session() as session:
        where = (TI.dag_id == dag_id, TI.run_id == run_id, TI.task_id == task_id)
        kept = {"updated_at": session.scalar(select(TI.updated_at).where(*where)), **values}
        session.execute(update(TI.__table__).where(*where).values(kept))


def clear_task(dag_id: str, run_id: str, task_id: str) -> str:
    """Clear a waiting task as Airflow does: a new attempt id, no resume kwargs, the old request stays."""
    ti_id = str(uuid.uuid4())
    with create_session() as session:
        old = session.scalar(select(TI.id).where(TI.dag_id == dag_id, TI.task_id == task_id))
        detail = session.scalar(select(HITLDetail).where(HITLDetail.ti_id == old))
        kept = {c.name: getattr(detail, c.name) for c in HITLDetail.__table__.columns if c.name != "ti_id"}
        session.execute(delete(HITLDetail.__table__).where(HITLDetail.__table__.c.ti_id == old))
        session.execute(
            update(TI.__table__)
            .where(TI.__table__.c.id == old)
            .values(
                id=native(TI.id, ti_id), state=None, next_method=None, next_kwargs=None, try_number=2,
                queued_dttm=None, updated_at=utcnow(),
            )
        )  # fmt: skip
        session.execute(insert(HITLDetail.__table__).values(ti_id=native(HITLDetail.ti_id, ti_id), **kept))
    return ti_id


def ask_again(dag_id: str, run_id: str, task_id: str, asked: Question) -> None:
    """Let the attempt that runs now write its question and park, long enough ago."""
    ti_id = str(stored(dag_id, run_id, task_id)[1].ti_id)
    known = RequestState(
        approval_key=task_id, kind="approval", question=asked, digest=asked.digest, ti_id=ti_id
    )
    then = utcnow() - timedelta(seconds=60)
    with create_session() as session:
        detail = session.scalar(select(HITLDetail).where(HITLDetail.ti_id == native(HITLDetail.ti_id, ti_id)))
        detail.subject, detail.created_at = asked.subject, then
    change_task(
        *(dag_id, run_id, task_id), state=PARKED, next_method="execute_complete",
        next_kwargs=known.to_kwargs(), updated_at=then,
    )  # fmt: skip


def stored(dag_id: str, run_id: str, task_id: str) -> tuple[str | None, HITLDetail | None]:
    """Return the task's state and its request."""
    with create_session() as session:
        found = session.scalar(
            select(TI).where(TI.dag_id == dag_id, TI.run_id == run_id, TI.task_id == task_id)
        )
        detail = session.scalar(select(HITLDetail).where(HITLDetail.ti_id == found.id))
        session.expunge_all()
        return found.state, detail
