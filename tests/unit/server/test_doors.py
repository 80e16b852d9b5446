"""Answers to a real api-server application: every case at Airflow's own route and at ours."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta

import pytest
from tests.unit.server import rows
from tests.unit.server.conftest import Api

from airflow_handoff.compat.versions import HAS_AWAITING_INPUT
from airflow_handoff.hitl.question import FormField

pytestmark = pytest.mark.asyncio

DOORS = ["airflow", "approve"]


async def give(api: Api, door: str, dag_id: str, task_id: str, approved: bool = True, **rest):
    """Answer through one of the doors."""
    if door == "approve":
        params = rest.pop("params", None)
        return await api.approve(dag_id, task_id, approved, data=params or {}, **rest)
    return await api.patch(dag_id, task_id, ["Approve" if approved else "Reject"], **rest)


@pytest.mark.parametrize("door", DOORS)
async def test_a_good_answer_is_written_in_the_callers_name(api, dag_id, door):
    """200, the row names who answered, and from Airflow 3.3 on the task goes on at once."""
    rows.add_task(dag_id, "run", "gate")
    response = await give(api, door, dag_id, "gate", params={"n": 4}, user="alice")
    assert response.status_code == 200, response.text
    state, detail = rows.stored(dag_id, "run", "gate")
    assert detail.responded_by == {"id": "alice", "name": "alice"}
    assert (detail.chosen_options, detail.params_input) == (["Approve"], {"n": 4})
    assert state == ("scheduled" if HAS_AWAITING_INPUT else "deferred")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"__classname__": "x"}, id="reserved-keys"),
        pytest.param({"n": 1}, id="late-validation"),
        pytest.param({"zzz": 1}, id="unknown-keys"),
    ],
)
async def test_case_reserved_keys_and_late_validation(api, dag_id, door, params):
    """What would fail the task later is a 400 that says what is allowed; the request stays open."""
    rows.add_task(dag_id, "run", "gate")
    response = await give(api, door, dag_id, "gate", params=params)
    assert response.status_code == 400
    body = response.json()
    assert isinstance(body["detail"], str)
    assert body["reasons"]
    assert body["allowed"]["fields"]["n"]["schema"]["minimum"] == 3
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None
    assert (await give(api, door, dag_id, "gate")).status_code == 200


async def test_an_option_that_was_not_offered_is_refused_on_all_versions(api, dag_id):
    """Airflow 3.1 and 3.2 would take it and fail the task."""
    rows.add_task(dag_id, "run", "gate")
    assert (await api.patch(dag_id, "gate", ["Maybe"])).status_code == 400
    assert (await api.patch(dag_id, "gate", ["Approve", "Reject"])).status_code == 400


@pytest.mark.parametrize("door", DOORS)
async def test_case_route_without_auth(api, dag_id, door):
    """Nobody logged in: 401; a viewer: 403; a cookie works like a token."""
    rows.add_task(dag_id, "run", "gate")
    assert (await give(api, door, dag_id, "gate", user=None)).status_code == 401
    assert (await give(api, door, dag_id, "gate", user="viewer")).status_code == 403
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/handoff/v1/runs/run/approve/gate"),
        ("POST", "/handoff/v1/runs/run/answer/gate"),
        ("POST", "/handoff/v1/dags/d/runs/run/approve/gate"),
        ("POST", "/handoff/v1/dags/d/runs/run/answer/gate"),
        ("GET", "/handoff/v1/runs/run"),
        ("GET", "/handoff/v1/dags/d/runs/run"),
        ("GET", "/handoff/v1/dags/d/runs/run/requests/gate"),
        ("GET", "/handoff/v1/requests"),
        ("GET", "/handoff/v1/audit"),
        ("GET", "/handoff/v1/service"),
    ],
)
async def test_case_route_without_auth_at_every_route(api, method, path):
    """Plugin applications do not inherit Airflow's login: each route of ours asks for it."""
    rest = {"json": {"approved": True, "options": ["a"]}} if method == "POST" else {}
    if "answer" in path:
        rest = {"json": {"options": ["a"]}}
    elif method == "POST":
        rest = {"json": {"approved": True}}
    assert (await api.call(method, path, user=None, **rest)).status_code == 401
    assert (await api.call(method, path, user=None)).status_code == 401


async def test_a_cookie_works_like_a_token(api, dag_id):
    """Airflow's own page sends its login as a cookie."""
    rows.add_task(dag_id, "run", "gate")
    assert (await api.patch(dag_id, "gate", ["Approve"], cookie=True)).status_code == 200


async def test_a_form_of_another_site_gets_nowhere(api, dag_id):
    """A browser sends cookies with a foreign form, but not as application/json."""
    rows.add_task(dag_id, "run", "gate")
    response = await api.call(
        "POST",
        f"/handoff/v1/dags/{dag_id}/runs/run/approve/gate",
        cookie=True,
        content=json.dumps({"approved": True}),
        headers={"content-type": "text/plain"},
    )
    assert response.status_code in (415, 422)
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


@pytest.mark.parametrize("door", DOORS)
async def test_a_young_park_is_held_not_refused(api, dag_id, door):
    """An answer right after the park could be fatal: it waits until the park has settled."""
    rows.add_task(dag_id, "run", "gate", age=0.0)
    start = time.monotonic()
    response = await give(api, door, dag_id, "gate")
    assert response.status_code == 200
    assert time.monotonic() - start > 0.2


@pytest.mark.parametrize("door", DOORS)
async def test_a_held_answer_holds_no_connection(api, dag_id, door):
    """Many of them would otherwise starve the api-server of its pool."""
    from airflow import settings
    from sqlalchemy import event

    pools = [settings.engine.pool, settings.async_engine.sync_engine.pool]
    out = taken = 0

    def count(step):
        def listener(*_):
            nonlocal out, taken
            out += step
            taken += 1

        return listener

    listeners = [
        (pool, name, count(step)) for pool in pools for name, step in (("checkout", 1), ("checkin", -1))
    ]
    rows.add_task(dag_id, "run", "gate", age=0.0)
    for listener in listeners:
        event.listen(*listener)
    try:
        pending = asyncio.create_task(give(api, door, dag_id, "gate"))
        await asyncio.sleep(0.2)
        held = not pending.done()
        during = out
        assert (await pending).status_code == 200
    finally:
        for listener in listeners:
            event.remove(*listener)
    assert held
    assert taken
    assert during == 0


@pytest.mark.parametrize("door", DOORS)
async def test_a_held_answer_is_dropped_when_the_task_is_cleared_meanwhile(api, dag_id, door):
    """It was given to a question that is not open any more."""
    rows.add_task(dag_id, "run", "gate", age=0.0)
    pending = asyncio.create_task(give(api, door, dag_id, "gate"))
    await asyncio.sleep(0.1)
    rows.clear_task(dag_id, "run", "gate")
    response = await pending
    assert response.status_code == 409
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


@pytest.mark.parametrize("door", DOORS)
async def test_case_answer_before_park(api, dag_id, door):
    """The row is there and the task still runs: the answer waits for the park and is taken then."""
    rows.add_task(dag_id, "run", "gate", state="running", queued_age=90)
    pending = asyncio.create_task(give(api, door, dag_id, "gate"))
    await asyncio.sleep(0.2)
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None
    rows.change_task(dag_id, "run", "gate", state=rows.PARKED)
    assert (await pending).status_code == 200
    assert rows.stored(dag_id, "run", "gate")[1].chosen_options == ["Approve"]


@pytest.mark.skipif(not HAS_AWAITING_INPUT, reason="programs in other languages ask from Airflow 3.3 on")
async def test_an_answer_to_a_program_in_another_language_waits_for_its_park(api, dag_id):
    """The program is no operator of ours, but an answer before its park has settled would be as fatal."""
    rows.add_task(
        dag_id, "run", "ask", state="running", queued_age=90, ours=False, asked=rows.question(form={})
    )
    rows.change_task(dag_id, "run", "ask", custom_operator_name="@task.stub")
    pending = asyncio.create_task(give(api, "airflow", dag_id, "ask"))
    await asyncio.sleep(0.2)
    assert rows.stored(dag_id, "run", "ask")[1].responded_at is None
    rows.change_task(dag_id, "run", "ask", state=rows.PARKED)
    assert (await pending).status_code == 200
    assert rows.stored(dag_id, "run", "ask")[1].chosen_options == ["Approve"]
    assert (await give(api, "airflow", dag_id, "ask", approved=False)).status_code == 409


@pytest.mark.parametrize("door", DOORS)
async def test_a_task_that_does_not_park_in_time_gets_425(api, dag_id, door, monkeypatch):
    """The wait is bounded; Retry-After says when to come again."""
    monkeypatch.setattr("airflow_handoff.server.answer.Door.running_wait", 0.2, raising=False)
    _shorten_waits(api, monkeypatch)
    rows.add_task(dag_id, "run", "gate", state="running", queued_age=90)
    response = await give(api, door, dag_id, "gate")
    assert response.status_code == 425
    assert int(response.headers["retry-after"]) > 0


def _shorten_waits(api, monkeypatch):
    from airflow_handoff.server import answer

    ready = answer.Door._ready
    monkeypatch.setattr(
        answer.Door, "_ready", lambda self, *rest: ready(answer.Door(self.settle, 0.2, self.turn), *rest)
    )


@pytest.mark.parametrize("door", DOORS)
async def test_case_answer_after_clear(api, dag_id, door, monkeypatch):
    """Cleared and not asked again yet: 409 at once, whatever state the new attempt is in."""
    rows.add_task(dag_id, "run", "gate")
    rows.clear_task(dag_id, "run", "gate")
    monkeypatch.setattr(
        "airflow_handoff.server.gates.of_dag", lambda dag, version: {"gate": "gate"}
    )  # the serialized Dag
    for state in (None, "scheduled", "queued", "running"):
        rows.change_task(dag_id, "run", "gate", state=state, queued_dttm=rows.utcnow())
        response = await give(api, door, dag_id, "gate")
        assert (response.status_code, state) == (409, state), response.text
        assert "not open yet" in response.json()["detail"]
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("state", ["success", "failed", "skipped", "removed"])
async def test_case_answered_elsewhere(api, dag_id, door, state):
    """The task was marked by hand: 409 that says so."""
    rows.add_task(dag_id, "run", "gate", state=state)
    response = await give(api, door, dag_id, "gate")
    assert response.status_code == 409
    assert state in response.json()["detail"]
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


async def test_case_stale_tab(api, dag_id):
    """A page that says which question it shows gets 409 and a link when another one is open."""
    first = rows.question("try 1")
    rows.add_task(dag_id, "run", "gate", asked=rows.question("try 2"))
    response = await api.approve(dag_id, "gate", digest=first.digest)
    assert response.status_code == 409
    body = response.json()
    assert body["open"] == (
        f"http://airflow.example/airflow/prod/dags/{dag_id}/runs/run/tasks/gate/required_actions"
    )
    assert body["digest"] == rows.question("try 2").digest
    assert (await api.approve(dag_id, "gate", try_number=7)).status_code == 409
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None
    good = await api.approve(dag_id, "gate", digest=body["digest"], try_number=1)
    assert good.status_code == 200


async def test_case_stale_tab_on_airflows_page(api, dag_id):
    """What a page sends back names the question that it shows; only while that one is open it is taken."""
    rows.add_task(dag_id, "run", "gate", asked=rows.question("try 1"))
    path = f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/gate/-1/hitlDetails"
    page = {
        "referer": f"http://airflow.example/airflow/prod/dags/{dag_id}/runs/run/tasks/gate/required_actions"
    }
    assert set((await api.call("GET", path)).json()["params"]) == {"n"}, "a program sees no hidden field"

    async def form():
        detail = (await api.call("GET", path, headers=page)).json()
        return {name: field["value"] for name, field in detail["params"].items()}

    old = await form()
    rows.clear_task(dag_id, "run", "gate")
    rows.ask_again(dag_id, "run", "gate", rows.question("try 2"))
    new = await form()
    assert old != new
    stale = await api.patch(dag_id, "gate", ["Approve"], old)
    assert stale.status_code == 409, stale.text
    assert stale.json()["open"] == page["referer"]
    assert page["referer"] in stale.json()["detail"], "the sentence names the open one"
    forged = await api.patch(dag_id, "gate", ["Approve"], {**new, "handoff:seen": 7})
    assert forged.status_code == 409
    taken = await api.patch(dag_id, "gate", ["Approve"], new)
    assert taken.status_code == 200, taken.text
    assert rows.stored(dag_id, "run", "gate")[1].params_input == {"n": 5}


async def test_case_stale_tab_of_a_client_with_a_header(api, dag_id):
    """A program says in a header what it read; another question is 409."""
    rows.add_task(dag_id, "run", "gate")
    ti_id = rows.stored(dag_id, "run", "gate")[1].ti_id
    for stale in ("00000000-0000-0000-0000-000000000000:", f"{ti_id}:abc", "nonsense"):
        answer = await api.patch(dag_id, "gate", ["Approve"], headers={"handoff-seen": stale})
        assert answer.status_code == 409, (stale, answer.text)
    read = {"handoff-seen": f"{ti_id}:{rows.question().digest}"}
    assert (await api.patch(dag_id, "gate", ["Approve"], headers=read)).status_code == 200


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("person", [{"id": "alice", "name": "A"}, {"id": "4711", "name": "alice"}])
async def test_case_respondent_ids(api, dag_id, door, person):
    """An assignee is known by id or by name, as text; everybody else gets 403, an admin too."""
    rows.add_task(dag_id, "run", "gate", asked=rows.question(assigned_users=(person,)))
    assert (await give(api, door, dag_id, "gate", user="admin")).status_code == 403
    response = await give(api, door, dag_id, "gate", user="alice")
    assert response.status_code == 200, response.text
    detail = rows.stored(dag_id, "run", "gate")[1]
    assert detail.assignees == [person], "what is stored stays as it was asked"
    assert detail.responded_by["id"] == "alice"


@pytest.mark.parametrize("door", DOORS)
async def test_case_respondent_ids_that_are_integers(api, dag_id, door, monkeypatch):
    """An auth manager whose ids are integers: 7 is the "7" that the Dag author wrote."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    monkeypatch.setattr(SimpleAuthManagerUser, "get_id", lambda self: 7 if self.username == "alice" else 8)
    rows.add_task(dag_id, "run", "gate", asked=rows.question(assigned_users=({"id": "7", "name": "A"},)))
    assert (await give(api, door, dag_id, "gate", user="bob")).status_code == 403
    assert (await give(api, door, dag_id, "gate", user="alice")).status_code == 200
    assert rows.stored(dag_id, "run", "gate")[1].responded_by["id"] == "7"


async def test_of_many_answers_at_once_exactly_one_is_taken(api, dag_id):
    """The rest gets 409, through whichever door."""
    rows.add_task(dag_id, "run", "gate")
    replies = await asyncio.gather(
        *(give(api, DOORS[number % 2], dag_id, "gate", bool(number % 3)) for number in range(12))
    )
    assert sorted(reply.status_code for reply in replies) == [200, *[409] * 11]


async def test_a_clear_between_judging_and_writing_is_seen_under_the_lock(api, dag_id, monkeypatch):
    """Nothing that got a 200 is lost: the write itself checks that the request is still open."""
    from airflow_handoff.server.answer import Door

    rows.add_task(dag_id, "run", "gate")
    write = Door._write

    async def clear_then_write(self, *rest):
        rows.change_task(dag_id, "run", "gate", state=None, next_kwargs=None)
        return await write(self, *rest)

    monkeypatch.setattr(Door, "_write", clear_then_write)
    monkeypatch.setattr("airflow_handoff.server.gates.of_dag", lambda dag, version: {"gate": "gate"})
    response = await api.patch(dag_id, "gate", ["Approve"])
    assert response.status_code == 409
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


async def test_a_comment_travels_with_the_answer_and_into_the_audit_log(api, dag_id):
    """It is kept beside the form fields and is no form field itself."""
    rows.add_task(dag_id, "run", "gate")
    response = await api.approve(dag_id, "gate", comment="Fine by me.", data={"n": 4})
    assert response.status_code == 200
    assert rows.stored(dag_id, "run", "gate")[1].params_input == {"n": 4, "comment": "Fine by me."}
    audit = await api.call("GET", f"/handoff/v1/audit?dag_id={dag_id}")
    (entry,) = audit.json()["entries"]
    assert entry["comment"] == "Fine by me."
    assert (entry["who"], entry["door"], entry["params_input"]) == ("admin", "approve", {"n": 4})
    assert entry["digest"] == rows.question().digest
    twice = await api.approve(dag_id, "gate", comment="a", data={"comment": "b"})
    assert twice.status_code == 400


async def test_a_body_above_the_cap_is_413(api, dag_id):
    """At our routes and in front of Airflow's, for our tasks."""
    rows.add_task(dag_id, "run", "gate")
    large = {"n": 4, "x": "x" * 300_000}
    assert (await api.patch(dag_id, "gate", ["Approve"], large)).status_code == 413
    assert (await api.approve(dag_id, "gate", data=large)).status_code == 413
    path = f"/handoff/v1/dags/{dag_id}/runs/run/approve/gate"

    async def chunks():
        for _ in range(40):
            yield b" " * 10_000

    headers = {"content-type": "application/json"}
    streamed = await api.call("POST", path, content=chunks(), headers=headers)
    assert streamed.status_code == 413


@pytest.mark.parametrize("door", DOORS)
async def test_a_form_below_the_cap_is_taken_however_it_is_encoded(api, dag_id, door):
    """Most clients write letters beyond ASCII as escapes, three times as long as what is counted."""
    note = FormField("note", {"type": "string"})
    rows.add_task(dag_id, "run", "gate", asked=rows.question(form={"note": note}))
    text, comment = "ж" * 32_000, "😀" * 4_000
    paths = {
        "airflow": f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/gate/-1/hitlDetails",
        "approve": f"/handoff/v1/dags/{dag_id}/runs/run/approve/gate",
    }
    bodies = {
        "airflow": {"chosen_options": ["Approve"], "params_input": {"note": text, "comment": comment}},
        "approve": {"approved": True, "data": {"note": text}, "comment": comment},
    }
    body = json.dumps(bodies[door])
    assert body.isascii()
    method = "PATCH" if door == "airflow" else "POST"
    headers = {"content-type": "application/json"}
    response = await api.call(method, paths[door], content=body, headers=headers)
    assert response.status_code == 200, response.text[:300]


async def test_other_operators_answers_pass_as_they_are(api, dag_id):
    """No key in the resume kwargs: Airflow's plain rules, no hold, Airflow's own bytes."""
    rows.add_task(dag_id, "run", "gate", ours=False, age=0.0)
    response = await api.patch(dag_id, "gate", ["Approve"], {"whatever": 1})
    assert response.status_code == 200
    assert rows.stored(dag_id, "run", "gate")[1].params_input == {"whatever": 1}


async def test_a_lenient_map_index_is_no_way_around_the_door(api, dag_id):
    """Airflow takes "-1.0" for -1; so does the guard."""
    rows.add_task(dag_id, "run", "gate")
    for index in ("-1.0", "%20-1", "-1%20"):
        response = await api.patch(dag_id, "gate", ["Approve"], {"zzz": 1}, map_index=index)
        assert response.status_code in (400, 422), (index, response.text)
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None


@pytest.mark.parametrize("index", ["999999999999999999999", "-2147483649", "1e30", "nan", "inf"])
async def test_an_index_that_no_task_can_have_is_airflows_to_refuse(index):
    """The guard does not even ask the database, which would fail."""
    from airflow_handoff.server.guard import _place

    path = "/api/v2/dags/d/dagRuns/r/taskInstances/t/{}/hitlDetails"
    assert _place(path.format(index)) is None
    assert _place(path.format(2**31 - 1)) == ("d", "r", "t", 2**31 - 1)


async def test_a_state_of_a_newer_version_is_not_answered_blindly(api, dag_id):
    """The api-server is older than the worker: 503 that says what to upgrade."""
    rows.add_task(dag_id, "run", "gate")
    rows.change_task(dag_id, "run", "gate", next_kwargs={"handoff": {"version": 99}})
    for door in DOORS:
        refused = await give(api, door, dag_id, "gate")
        assert refused.status_code == 503
        assert "upgrade airflow-provider-handoff" in refused.json()["detail"]
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None
    page = await api.call("GET", f"/handoff/v1/requests?dag_id={dag_id}")
    assert page.json()["hitl_details"][0]["handoff"] is None, "the list shows what it can"
    assert (await api.call("GET", f"/handoff/v1/dags/{dag_id}/runs/run")).status_code == 200


@pytest.mark.parametrize("door", DOORS)
async def test_an_answer_waits_for_a_scheduler_that_lags(api, dag_id, door):
    """The scheduler that queued the task has not come by since the park: it could still fail the task."""
    from airflow.jobs.job import Job
    from airflow.utils.session import create_session
    from sqlalchemy import insert, update

    def ago(seconds):
        return rows.utcnow() - timedelta(seconds=seconds)

    rows.add_task(dag_id, "run", "gate", age=5)
    with create_session() as session:
        job = session.execute(
            insert(Job.__table__).values(job_type="SchedulerJob", state="running", latest_heartbeat=ago(9))
        ).inserted_primary_key[0]
    rows.change_task(dag_id, "run", "gate", queued_by_job_id=job)
    pending = asyncio.create_task(give(api, door, dag_id, "gate"))
    await asyncio.sleep(0.7)
    assert not pending.done()
    assert rows.stored(dag_id, "run", "gate")[1].responded_at is None
    with create_session() as session:
        session.execute(update(Job.__table__).where(Job.id == job).values(latest_heartbeat=rows.utcnow()))
    assert (await pending).status_code == 200
