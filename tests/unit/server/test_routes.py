"""Run status, lists and the audit log of a real api-server application."""

from __future__ import annotations

import json

import pytest
from tests.unit.server import rows

pytestmark = pytest.mark.asyncio


def _xcom(dag_id: str, task_id: str, key: str, value: object) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import insert, select

    with create_session() as session:
        run = session.scalar(select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == "run"))
        session.execute(
            insert(XComModel.__table__).values(
                dag_run_id=run, dag_id=dag_id, run_id="run", task_id=task_id, map_index=-1, key=key,
                value=value, timestamp=rows.utcnow(),
            )
        )  # fmt: skip


async def _status(api, dag_id, user="admin"):
    response = await api.call("GET", f"/handoff/v1/dags/{dag_id}/runs/run", user=user)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_waiting_run_is_interrupted(api, dag_id):
    """Metadata only: neither subject nor body nor form."""
    asked = rows.question("secret subject", body="secret body")
    rows.add_task(dag_id, "run", "gate", asked=asked, approval_key="manager")
    status = await _status(api, dag_id)
    assert status["status"] == "Interrupted"
    assert status["interrupt"] == status["interrupts"][0]
    assert status["interrupt"]["approval_key"] == "manager"
    assert status["interrupt"]["kind"] == "approval"
    assert "secret" not in json.dumps(status)


async def test_a_run_without_an_open_gate_is_running(api, dag_id):
    """Also between the row and the park."""
    rows.add_task(dag_id, "run", "gate", state="running")
    assert (await _status(api, dag_id))["status"] == "Running"


@pytest.mark.parametrize(("code", "outcome"), [("HumanRejected", "rejected"), ("HumanTimeout", "timed_out")])
async def test_a_failed_run_says_why(api, dag_id, code, outcome):
    """The gate's own outcome is the error."""
    rows.add_task(dag_id, "run", "gate", state="failed")
    record = {"approval_key": "gate", "outcome": outcome, "code": code}
    _xcom(dag_id, "gate", "handoff", record)
    rows.set_run(dag_id, "run", "failed")
    status = await _status(api, dag_id)
    assert (status["status"], status["outcome"]) == ("Failed", outcome)
    assert status["error"] == {"code": code, "approval_key": "gate", "task_id": "gate", "map_index": -1}


async def test_a_run_that_failed_otherwise_is_task_failed(api, dag_id):
    """No gate is to blame."""
    rows.set_run(dag_id, "run", "failed")
    assert (await _status(api, dag_id))["error"]["code"] == "TaskFailed"


async def test_a_completed_run_gives_the_values_of_its_leaves(api, dag_id, monkeypatch):
    """Only to who may read XComs."""
    tasks = {"gate": {"downstream_task_ids": ["post"]}, "post": {}}
    monkeypatch.setattr("airflow_handoff.compat.records.read_dag", lambda *_: tasks)
    rows.add_task(dag_id, "run", "gate", state="success")
    rows.add_task(dag_id, "run", "post", state="success", ours=False, row=False)
    _xcom(dag_id, "gate", "handoff", {"outcome": "rejected", "code": None})
    _xcom(dag_id, "gate", "return_value", {"no": "leaf"})
    _xcom(dag_id, "post", "return_value", {"posted": True})
    rows.set_run(dag_id, "run", "success")
    status = await _status(api, dag_id)
    assert (status["status"], status["outcome"]) == ("Completed", "rejected")
    assert status["result"] == {"post": {"posted": True}}
    monkeypatch.setattr(
        "airflow_handoff.compat.apiserver.may_access", lambda user, method, entity, dag: entity != "XCOM"
    )
    assert (await _status(api, dag_id))["result"] is None


async def test_a_run_id_that_several_dags_share_is_409_and_lists_them(api, dag_id):
    """The dags/... form then says which."""
    other = f"{dag_id}_other"
    rows.add_dag(other)
    rows.add_run(other, dag_id)
    rows.add_run(dag_id, dag_id)
    response = await api.call("GET", f"/handoff/v1/runs/{dag_id}")
    assert response.status_code == 409
    assert response.json()["dags"] == sorted([dag_id, other])
    response = await api.call("POST", f"/handoff/v1/runs/{dag_id}/approve/k", json={"approved": True})
    assert response.status_code == 409


async def test_what_does_not_exist_is_404(api, dag_id):
    """Run, Dag and gate; the gates that exist are named."""
    assert (await api.call("GET", "/handoff/v1/runs/none")).status_code == 404
    rows.add_task(dag_id, "run", "gate")
    response = await api.approve(dag_id, "other")
    assert response.status_code == 404
    assert "gate" in response.json()["detail"]


async def test_a_gate_with_other_options_lists_them(api, dag_id):
    """The answer route takes what approve does not."""
    rows.add_task(dag_id, "run", "gate", asked=rows.question(options=("a", "b")))
    response = await api.approve(dag_id, "gate")
    assert response.status_code == 400
    assert response.json()["allowed"]["options"] == ["a", "b"]
    path = f"/handoff/v1/dags/{dag_id}/runs/run/answer/gate"
    response = await api.call("POST", path, json={"options": ["b"], "data": {"n": 3}})
    assert response.status_code == 200, response.text
    assert response.json()["chosen_options"] == ["b"]


async def test_a_mapped_gate_needs_a_map_index(api, dag_id):
    """Several instances share the key."""
    for index in (0, 1):
        rows.add_task(dag_id, "run", "gate", map_index=index)
    response = await api.approve(dag_id, "gate")
    assert response.status_code == 409
    assert response.json()["map_indexes"] == [0, 1]
    response = await api.approve(dag_id, "gate", query="?map_index=1")
    assert response.json()["map_index"] == 1


@pytest.mark.parametrize(
    "body",
    [{}, {"approved": "yes"}, {"approved": True, "extra": 1}, {"approved": True, "comment": "x" * 5000}, []],
)
async def test_a_body_that_is_no_approval_is_422(api, dag_id, body):
    """Unknown members are no typing errors that pass."""
    rows.add_task(dag_id, "run", "gate")
    path = f"/handoff/v1/dags/{dag_id}/runs/run/approve/gate"
    assert (await api.call("POST", path, json=body)).status_code == 422


async def test_the_list_is_airflows_with_what_we_know(api, dag_id):
    """Filters, pages and permissions are Airflow's; each item says whether it is the caller's."""
    asked = rows.question(assigned_users=({"id": "alice", "name": "alice"},))
    rows.add_task(dag_id, "run", "gate", asked=asked, approval_key="manager")
    rows.add_task(dag_id, "run", "stock", ours=False)
    for user, mine in (("alice", True), ("bob", False)):
        path = f"/handoff/v1/requests?dag_id={dag_id}&response_received=false&limit=10"
        page = (await api.call("GET", path, user=user)).json()
        items = {item["task_instance"]["task_id"]: item for item in page["hitl_details"]}
        assert page["total_entries"] == 2
        assert items["stock"]["handoff"] is None
        assert items["gate"]["handoff"]["approval_key"] == "manager"
        assert items["gate"]["handoff"]["mine"] is mine
    bad = await api.call("GET", "/handoff/v1/requests?limit=x")
    assert bad.status_code == 422


async def test_one_request_is_shown_whole(api, dag_id):
    """Airflow's fields and ours."""
    rows.add_task(dag_id, "run", "gate", asked=rows.question("Really?"))
    shown = (await api.call("GET", f"/handoff/v1/dags/{dag_id}/runs/run/requests/gate")).json()
    assert shown["subject"] == "Really?"
    assert shown["handoff"]["digest"] == rows.question("Really?").digest
    missing = await api.call("GET", f"/handoff/v1/dags/{dag_id}/runs/run/requests/none")
    assert missing.status_code == 404


async def test_the_audit_log_reads_on(api, dag_id):
    """Pages by offset, oldest first, since a moment."""
    for name in ("one", "two", "three"):
        rows.add_task(dag_id, "run", name)
        assert (await api.patch(dag_id, name, ["Approve"])).status_code == 200
    first = (await api.call("GET", f"/handoff/v1/audit?dag_id={dag_id}&limit=2")).json()
    assert [entry["task_id"] for entry in first["entries"]] == ["one", "two"]
    rest = (await api.call("GET", f"/handoff/v1/audit?dag_id={dag_id}&offset={first['next_offset']}")).json()
    assert [entry["task_id"] for entry in rest["entries"]] == ["three"]
    assert rest["next_offset"] is None
    late = await api.call("GET", f"/handoff/v1/audit?dag_id={dag_id}&since=2100-01-01T00:00:00Z")
    assert late.json()["entries"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/handoff/v1/audit?since=0001-01-01T00:00:00%2B23:59", 400),
        ("/handoff/v1/audit?dag_id=%00", 400),
        ("/handoff/v1/runs/a%00b", 400),
        ("/handoff/v1/audit?limit=0", 422),
        ("/handoff/v1/requests?dag_id=d&run_id=r/taskInstances/t/-1", 400),
        ("/handoff/v1/requests?dag_id=d%2FdagRuns%2Fr", 400),
        ("/handoff/v1/dags/d/runs/r/requests/t?map_index=99999999999", 422),
    ],
)
async def test_odd_addresses_are_the_callers_fault(api, path, status):
    """Never a 500."""
    assert (await api.call("GET", path)).status_code == status


async def test_openapi_has_examples_and_every_status(api):
    """The description that clients are written against."""
    document = (await api.call("GET", "/handoff/openapi.json", user=None)).json()
    post = document["paths"]["/v1/runs/{run_id}/approve/{approval_key}"]["post"]
    assert {"200", "400", "401", "403", "404", "409", "413", "415", "425"} <= set(post["responses"])
    assert document["components"]["schemas"]["Approval"]["examples"]


async def test_the_documentation_names_every_route(api):
    """The table of docs/answers.md and the OpenAPI description say the same."""
    from pathlib import Path

    page = (Path(__file__).parents[3] / "docs" / "answers.md").read_text()
    document = (await api.call("GET", "/handoff/openapi.json", user=None)).json()
    for path, operations in document["paths"].items():
        short = path.replace("/v1/dags/{dag_id}/runs/{run_id}", "/v1/runs/{run_id}")
        named = path if "/requests/" in path else short
        for method in operations:
            assert f"`{method.upper()} {named}`" in page, path


async def test_case_respondent_ids_a_request_names_whom_nobody_is_called(api, dag_id):
    """Before anybody waits for them: in the list and in the one request."""
    people = ({"id": "alice", "name": "A"}, {"id": "17", "name": "nobody@example.org"})
    rows.add_task(dag_id, "run", "gate", asked=rows.question(assigned_users=people))
    page = (await api.call("GET", f"/handoff/v1/requests?dag_id={dag_id}")).json()
    facts = page["hitl_details"][0]["handoff"]
    assert facts["assigned_checked"] is True
    (warning,) = facts["warnings"]
    assert "17 or nobody@example.org" in warning


async def test_who_may_not_answer_has_no_request_of_their_own(api, dag_id):
    """A viewer reads the list and answers nothing."""
    rows.add_task(dag_id, "run", "gate")
    for user, mine in (("viewer", False), ("bob", True)):
        page = (await api.call("GET", f"/handoff/v1/requests?dag_id={dag_id}", user=user)).json()
        assert page["hitl_details"][0]["handoff"]["mine"] is mine


async def test_gates_whose_keys_are_rendered_alike_are_told_apart(api, dag_id):
    """409 names the tasks, and a task id in the key's place is enough."""
    for task_id in ("north", "south"):
        rows.add_task(dag_id, "run", task_id, approval_key="region")
    response = await api.approve(dag_id, "region")
    assert response.status_code == 409
    assert response.json()["task_ids"] == ["north", "south"]
    assert "task id in its place" in response.json()["detail"]
    response = await api.approve(dag_id, "south")
    assert (response.status_code, response.json()["task_id"]) == (200, "south")


async def test_an_instance_that_is_not_there_is_told_from_a_gate_that_has_not_asked(api, dag_id):
    """An unmapped gate has no index; a mapped one lists its own."""
    rows.add_task(dag_id, "run", "gate")
    response = await api.approve(dag_id, "gate", query="?map_index=0")
    assert response.status_code == 404
    assert "is not mapped" in response.json()["detail"]
    rows.add_task(dag_id, "run", "each", map_index=3)
    response = await api.approve(dag_id, "each", query="?map_index=0")
    assert (response.status_code, response.json()["map_indexes"]) == (404, [3])


MALFORMED = [
    '{"approved": NaN}',
    '{"approved": true, "comment": "\\ud800"}',
    '{"approved": true, "zz": [1e999]}',
]


@pytest.mark.parametrize("body", [*MALFORMED, '{"approved": true, "digest": "\\ud800"}', "{", "NaN"])
async def test_a_body_that_cannot_even_be_repeated_is_422(api, dag_id, body):
    """What came is not sent back: no JSON has it."""
    rows.add_task(dag_id, "run", "gate")
    path = f"/handoff/v1/dags/{dag_id}/runs/run/approve/gate"
    headers = {"content-type": "application/json"}
    response = await api.call("POST", path, content=body, headers=headers)
    assert response.status_code in (400, 409, 422), response.text
    assert response.json()["detail"]
    if response.status_code == 422:
        assert all(set(item) == {"type", "loc", "msg"} for item in response.json()["detail"])


@pytest.mark.parametrize(
    "body",
    ['{"chosen_options": NaN}', '{"chosen_options": ["Approve"], "params_input": "\\ud800"}'],
)
async def test_neither_does_airflows_own_route_fail_for_it(api, dag_id, body):
    """The door in front of it has the same manners."""
    rows.add_task(dag_id, "run", "gate")
    path = f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/gate/-1/hitlDetails"
    response = await api.call("PATCH", path, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422, response.text


async def test_a_costly_form_does_not_stop_the_others(api, dag_id, monkeypatch):
    """An answer is judged beside the event loop, not on it."""
    import threading

    from airflow_handoff.server import answer

    judge, threads = answer.judge, []
    monkeypatch.setattr(
        answer, "judge", lambda *rest: threads.append(threading.current_thread()) or judge(*rest)
    )
    rows.add_task(dag_id, "run", "gate")
    assert (await api.approve(dag_id, "gate")).status_code == 200
    assert threads
    assert threading.current_thread() not in threads


async def test_the_leaves_are_those_of_the_version_that_ran(api, dag_id, monkeypatch):
    """The Dag has changed since: what this run has left is still its result."""
    rows.add_task(dag_id, "run", "post", state="success", ours=False, row=False)
    _xcom(dag_id, "post", "return_value", 1)
    rows.set_run(dag_id, "run", "success")
    monkeypatch.setattr("airflow_handoff.compat.records.read_run_version", lambda *_: "old")
    versions = {"old": {"post": {}}, None: {"post": {"downstream_task_ids": ["new"]}, "new": {}}}
    monkeypatch.setattr(
        "airflow_handoff.compat.records.read_dag", lambda dag, version=None: versions[version]
    )
    assert (await _status(api, dag_id))["result"] == {"post": 1}


async def test_the_version_that_ran_is_read_from_the_tasks(api, dag_id):
    """None is recorded: the latest is taken."""
    from airflow_handoff.compat import records

    rows.add_task(dag_id, "run", "post", state="success", ours=False, row=False)
    assert records.read_run_version(dag_id, "run") is None


async def test_a_try_of_which_nothing_is_kept_is_404(api, dag_id):
    """The open one is shown by its number on all versions, also where Airflow has no route for tries."""
    rows.add_task(dag_id, "run", "gate")
    path = f"/handoff/v1/dags/{dag_id}/runs/run/requests/gate"
    shown = await api.call("GET", f"{path}?try=1")
    assert (shown.status_code, shown.json()["handoff"]["approval_key"]) == (200, "gate")
    assert (await api.call("GET", f"{path}?try=2")).status_code == 404
