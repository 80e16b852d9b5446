"""The stored question stays true: the middleware on the upsert."""

from __future__ import annotations

import json

import pytest
from tests.unit.server import rows

from airflow_handoff.server.guard import Guard

pytestmark = pytest.mark.asyncio


class Upsert:
    """Stands for Airflow's execution API: keeps the row as it was first written."""

    def __init__(self, status: int = 201, body: dict | None = None) -> None:
        self.status = status
        self.body = body or {"ti_id": "x", "subject": "old"}

    async def __call__(self, scope, receive, send):
        """Answer."""
        while (await receive()).get("more_body"):
            pass
        body = json.dumps(self.body).encode()
        headers = [(b"content-length", str(len(body)).encode()), (b"x-other", b"kept")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})


async def _upsert(app, ti_id, question):
    raw = json.dumps(question).encode()
    chunks = [raw[:10], raw[10:]]
    sent = []

    async def receive():
        body = chunks.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/airflow/prod/execution/hitlDetails/{ti_id}",
        "root_path": "/airflow/prod",
        "headers": [],
    }
    await Guard(app)(scope, receive, send)
    return sent


NEW = {
    "ti_id": "x",
    "subject": "new",
    "body": "text",
    "options": ["c", "d"],
    "defaults": ["c"],
    "multiple": True,
    "params": {"m": {"value": 1, "description": None, "schema": {}}},
    "assigned_users": [{"id": "bob", "name": "Bob"}],
}


async def test_case_fresh_question(api, dag_id):
    """Row and response say what this park asks, before the response is released."""
    ti_id = rows.add_task(dag_id, "run", "gate", state="running", age=500)
    sent = await _upsert(Upsert(), ti_id, NEW)
    _, detail = rows.stored(dag_id, "run", "gate")
    assert (detail.subject, detail.body, detail.options) == ("new", "text", ["c", "d"])
    assert (detail.defaults, detail.multiple, detail.params) == (["c"], True, NEW["params"])
    assert detail.assignees == NEW["assigned_users"]
    assert (rows.utcnow() - detail.created_at).total_seconds() < 60
    body = json.loads(b"".join(message.get("body", b"") for message in sent))
    assert body == {"ti_id": "x", "subject": "new"}, "no member that Airflow's response does not have"
    headers = dict(sent[0]["headers"])
    assert int(headers[b"content-length"]) == len(sent[1]["body"])
    assert headers[b"x-other"] == b"kept"


async def test_a_refused_upsert_changes_nothing(api, dag_id):
    """The task's token did not authorise it."""
    ti_id = rows.add_task(dag_id, "run", "gate", state="running")
    sent = await _upsert(Upsert(403, {"detail": "no"}), ti_id, NEW)
    assert sent[0]["status"] == 403
    assert json.loads(sent[1]["body"] + sent[2]["body"]) == {"detail": "no"}
    assert rows.stored(dag_id, "run", "gate")[1].subject == "Buy it?"


async def test_a_fault_here_never_fails_the_task(api, dag_id, monkeypatch):
    """The request is open; its reader may see an older wording, and the log says so."""

    def broken(*_):
        raise RuntimeError("no database")

    monkeypatch.setattr("airflow_handoff.compat.answers.refresh_question", broken)
    sent = await _upsert(Upsert(), rows.add_task(dag_id, "run", "gate", state="running"), NEW)
    assert sent[0]["status"] == 201
    assert json.loads(sent[1]["body"]) == {"ti_id": "x", "subject": "old"}


async def test_a_row_that_this_upsert_has_made_keeps_its_age(api, dag_id):
    """An answer that has seen it is not told that it was asked again."""
    ti_id = rows.add_task(dag_id, "run", "gate", state="running", row_age=-5)
    before = rows.stored(dag_id, "run", "gate")[1].created_at
    await _upsert(Upsert(), ti_id, NEW)
    assert rows.stored(dag_id, "run", "gate")[1].created_at == before


def _noted(dag_id):
    from airflow_handoff.compat import records
    from airflow_handoff.server.assignees import AUDIT_EVENT

    lines = records.read_audit((AUDIT_EVENT,), dag_ids=[dag_id], limit=10)
    return [json.loads(line.extra)["detail"] for line in lines]


async def test_case_respondent_ids_an_unmatched_name_is_noted_as_it_is_asked(api, dag_id):
    """Once for an attempt, in the audit log beside the task; names and ids of users are no doubt."""
    ti_id = rows.add_task(dag_id, "run", "gate", state="running")
    people = [{"id": "4711", "name": "alice"}, {"id": "bob", "name": "B"}]
    await _upsert(Upsert(), ti_id, {**NEW, "assigned_users": people})
    assert _noted(dag_id) == []
    people += [{"id": "carol", "name": "carol"}, {"id": "9", "name": "dan@example.org"}]
    for _ in range(2):
        sent = await _upsert(Upsert(), ti_id, {**NEW, "assigned_users": people})
        assert sent[0]["status"] == 201
    (detail,) = _noted(dag_id)
    assert "carol" in detail
    assert "9 or dan@example.org" in detail
    assert "alice" not in detail


@pytest.mark.parametrize("kind", ["another auth manager", "all are admins"])
async def test_case_respondent_ids_nothing_is_guessed_where_users_are_not_listed(
    api, dag_id, monkeypatch, kind
):
    """No doubt is noted, and the request says that nobody was looked up."""
    from airflow.api_fastapi import app as airflow_app

    if kind == "all are admins":
        monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    else:
        other = type("Other", (type(airflow_app.get_auth_manager()),), {})
        monkeypatch.setattr(airflow_app.get_auth_manager(), "__class__", other)
    asked = rows.question(assigned_users=({"id": "nobody", "name": "nobody"},))
    ti_id = rows.add_task(dag_id, "run", "gate", asked=asked)
    await _upsert(Upsert(), ti_id, {**NEW, "assigned_users": [{"id": "nobody", "name": "nobody"}]})
    assert _noted(dag_id) == []
    shown = (await api.call("GET", f"/handoff/v1/dags/{dag_id}/runs/run/requests/gate")).json()
    assert (shown["handoff"]["assigned_checked"], shown["handoff"]["warnings"]) == (False, [])
