"""Resuming an answered task at once, and when it is left to its trigger (Airflow 3.1 and 3.2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.server import rows

from airflow_handoff.compat import records
from airflow_handoff.compat.versions import HAS_AWAITING_INPUT
from airflow_handoff.server.resume import RESUMABLE_TRIGGERS, resume

pytestmark = pytest.mark.skipif(HAS_AWAITING_INPUT, reason="this Airflow resumes answered tasks itself")

SETTLE = timedelta(seconds=8)


def _answered(dag_id: str, *, trigger: str, age: float, responded: bool) -> records.RequestRecord:
    """A deferred task with its trigger and, maybe, its answer."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session
    from sqlalchemy import update

    rows.add_task(dag_id, "run", "gate", age=age)
    with create_session() as session:
        waiting = Trigger(classpath=trigger, kwargs={})
        session.add(waiting)
        session.flush()
        number = waiting.id
    record = records.read_request(dag_id, "run", "gate", -1)
    assert record is not None
    rows.change_task(dag_id, "run", "gate", trigger_id=number, updated_at=record.updated_at)
    if responded:
        values = {"responded_at": rows.utcnow(), "chosen_options": ["Approve"], "params_input": {}}
        own = HITLDetail.ti_id == records.native(HITLDetail.ti_id, record.ti_id)
        with create_session() as session:
            session.execute(update(HITLDetail).where(own).values(**values))
    return record


@pytest.mark.parametrize(
    ("change", "resumed"),
    [
        pytest.param({}, True, id="safe"),
        pytest.param({"trigger": "some.other.Trigger"}, False, id="another trigger"),
        pytest.param({"age": 2.0}, False, id="too young"),
        pytest.param({"responded": False}, False, id="not answered"),
        pytest.param({"state": "running"}, False, id="not deferred"),
        pytest.param({"dialect": "sqlite"}, False, id="SQLite"),
    ],
)
def test_a_task_resumes_only_where_that_is_safe(
    api: Any, dag_id: str, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], resumed: bool
) -> None:
    """Deferred, to a trigger of ours, settled, answered, and not on SQLite, where trigger ids are reused."""
    from airflow import settings

    case = {"trigger": RESUMABLE_TRIGGERS[0], "age": 60.0, "responded": True, **change}
    state, dialect = case.pop("state", None), case.pop("dialect", "another")
    record = _answered(dag_id, **case)
    if state:
        rows.change_task(dag_id, "run", "gate", state=state, updated_at=record.updated_at)
    monkeypatch.setattr(settings.engine.dialect, "name", dialect)
    assert resume(record, SETTLE) is resumed
    monkeypatch.undo()
    after, _ = rows.stored(dag_id, "run", "gate")
    assert after == ("scheduled" if resumed else state or "deferred")
    if resumed:
        assert resume(record, SETTLE) is False, "never twice"
