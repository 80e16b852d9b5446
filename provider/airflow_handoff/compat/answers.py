"""The api-server's side of a request: Airflow's rows locked and written in Airflow's own order.

The task instance is locked first, then its request.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_handoff.compat.records import PARKED_STATES, RequestRecord, native, raw_next_kwargs
from airflow_handoff.compat.versions import HAS_AWAITING_INPUT

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Expectation:
    """What has to be true at the moment an answer is written.

    :param ti_id: the attempt that was judged.
    :param next_kwargs: the resume kwargs that were judged.
    :param admit: the caller's id and name as the auth manager has them, where the caller was found among the
        assignees by name or by text: Airflow itself compares ids only, and not as text.
    """

    ti_id: str
    next_kwargs: Any
    admit: dict[str, Any] | None = None


_EXPECTED: contextvars.ContextVar[Expectation | None] = contextvars.ContextVar(
    "airflow_handoff_expected", default=None
)


@contextlib.contextmanager
def expecting(expectation: Expectation) -> Iterator[None]:
    """Let Airflow write an answer in this context only while *expectation* still holds, else answer 409."""
    token = _EXPECTED.set(expectation)
    try:
        yield
    finally:
        _EXPECTED.reset(token)


def watch_writes() -> None:
    """Hook the check of :func:`expecting` into the ORM, once per process.

    Airflow 3.1 and 3.2 do not lock, so that two answers at once both get 200; all versions write an answer
    that arrives just after a clear. The hook runs where Airflow sets the answer, in Airflow's transaction.
    """
    from airflow.models.hitl import HITLDetail
    from sqlalchemy import event

    if not event.contains(HITLDetail.responded_at, "set", _confirm):
        event.listen(HITLDetail.responded_at, "set", _confirm)
        event.listen(HITLDetail, "load", _admit)


def is_sqlite() -> bool:
    """Say whether the database is SQLite.

    There a second writer blocks the api-server's event loop, which the first one needs to commit.
    """
    from airflow import settings

    return settings.engine is not None and settings.engine.dialect.name == "sqlite"


def _admit(detail: Any, _context: Any) -> None:
    expected = _EXPECTED.get()
    if expected is None or expected.admit is None or str(detail.ti_id) != expected.ti_id:
        return
    from sqlalchemy.orm.attributes import set_committed_value

    # Seen by this one call of Airflow's handler, never stored.
    set_committed_value(detail, "assignees", [*(detail.assignees or ()), expected.admit])


def _confirm(detail: Any, value: Any, _old: Any, _initiator: Any) -> None:
    expected = _EXPECTED.get()
    if expected is None or value is None:
        return
    from airflow.models.hitl import HITLDetail
    from fastapi import HTTPException
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(detail)
    if session is None:
        return
    with session.no_autoflush:
        _take_write_lock(session, detail.ti_id)
        task = _locked_task(session, detail.ti_id)
        answered = session.scalar(
            select(HITLDetail.responded_at)
            .where(HITLDetail.ti_id == detail.ti_id)
            .with_for_update(of=HITLDetail)
        )
    if answered is not None:
        raise HTTPException(409, "This request has already been answered.")
    if task is None or str(task.id) != expected.ti_id or task.state not in PARKED_STATES:
        raise HTTPException(409, "This request is no longer open: its task does not wait any more.")
    if task.next_kwargs != expected.next_kwargs:
        raise HTTPException(409, "This request was asked again while it was answered.")


def _take_write_lock(session: Any, ti_id: Any) -> None:
    """SQLite has no row locks: a write that changes nothing makes a second writer wait here."""
    if session.get_bind().dialect.name != "sqlite":
        return
    from airflow.models.hitl import HITLDetail
    from sqlalchemy import update

    session.execute(
        update(HITLDetail)
        .where(HITLDetail.ti_id == ti_id)
        .values(multiple=HITLDetail.multiple)
        .execution_options(synchronize_session=False)
    )


def _locked_task(session: Any, ti_id: Any) -> Any:
    from airflow.models.taskinstance import TaskInstance as TI
    from sqlalchemy import select

    return session.execute(
        select(TI.id, TI.state, raw_next_kwargs()).where(TI.id == ti_id).with_for_update(of=TI)
    ).one_or_none()


def resume(record: RequestRecord, trigger_classes: Sequence[str], settle: timedelta) -> bool:
    """Resume an answered, deferred task at once (3.1 and 3.2; later versions do so themselves).

    Nothing happens unless the task is still deferred in the attempt of *record*, to a trigger of
    *trigger_classes*, parked for at least *settle*, and its request is answered. On SQLite nothing happens
    either: trigger ids are reused there, and a stale event would resume another task.

    :returns: whether the task was resumed.
    """
    if HAS_AWAITING_INPUT:
        return False
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance as TI
    from airflow.models.trigger import Trigger, handle_event_submit
    from airflow.triggers.base import TriggerEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session(scoped=False) as session:
        if session.get_bind().dialect.name == "sqlite":
            return False
        task = session.scalar(select(TI).where(TI.id == native(TI.id, record.ti_id)).with_for_update(of=TI))
        if task is None or task.state != "deferred" or task.trigger_id is None:
            return False
        if datetime.now(timezone.utc) - task.updated_at < settle:
            return False
        classpath = session.scalar(select(Trigger.classpath).where(Trigger.id == task.trigger_id))
        if classpath not in trigger_classes:
            return False
        detail = session.scalar(select(HITLDetail).where(HITLDetail.ti_id == task.id))
        if detail is None or detail.responded_at is None:
            return False
        payload = {
            "chosen_options": list(detail.chosen_options or ()),
            "params_input": detail.params_input or {},
            "responded_at": detail.responded_at,
            "responded_by_user": detail.responded_by_user,
            "timedout": False,
        }
        event = TriggerEvent(payload)  # type: ignore[no-untyped-call]
        handle_event_submit(event, task_instance=task, session=session)
        return True


#: Fields of an upsert and the columns they belong to.
_QUESTION_COLUMNS = {
    "subject": "subject",
    "body": "body",
    "options": "options",
    "defaults": "defaults",
    "multiple": "multiple",
    "params": "params",
    "assigned_users": "assignees",
}


def refresh_question(ti_id: str, upsert: dict[str, Any], began: datetime) -> dict[str, Any]:
    """Write the question of *upsert* to the row of the task instance that has just upserted it.

    Airflow keeps the first attempt's question for ever.

    :param began: when the upsert came in; a row that is older belongs to an earlier round.
    :returns: the fields that the row now holds.
    """
    from airflow.models.hitl import HITLDetail
    from airflow.utils.session import create_session
    from sqlalchemy import select

    written = {name: upsert[name] for name in _QUESTION_COLUMNS if name in upsert}
    with create_session(scoped=False) as session:
        detail = session.scalar(
            select(HITLDetail)
            .where(HITLDetail.ti_id == native(HITLDetail.ti_id, ti_id))
            .with_for_update(of=HITLDetail)
        )
        if detail is None:
            return {}
        for name, value in written.items():
            column = _QUESTION_COLUMNS[name]
            if getattr(detail, column) != value:
                setattr(detail, column, value)
        if detail.created_at < began:
            detail.created_at = datetime.now(timezone.utc)
    return written
