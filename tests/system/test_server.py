"""The doors of a real api-server: the expense flow by curl alone, and each case at each door."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from typing import Any

import pytest

from tests.system.stack import ROOT, Stack


def by_curl(stack: Stack, path: str, body: dict[str, Any] | None = None, *extra: str) -> tuple[int, Any]:
    """Call a route with curl; return the status and the JSON."""
    command = ["curl", "-sS", "-w", "\n%{http_code}", stack.url + path, *extra]
    if not extra:
        command += ["-H", "Authorization: " + stack.client().headers["authorization"]]
    if body is not None:
        command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    text, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(text)


def environment(stack: Stack) -> dict[str, str]:
    """What the walk-through and the script need."""
    token = stack.client().headers["authorization"].removeprefix("Bearer ")
    return {**os.environ, "AIRFLOW_URL": stack.url, "TOKEN": token, "no_proxy": "127.0.0.1"}


def status_of(run: Any) -> dict[str, Any]:
    """Ask our route where a run stands."""
    answer = run.stack.client().get(f"/handoff/v1/dags/{run.dag_id}/runs/{run.run_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def shown(run: Any) -> dict[str, Any]:
    """Return the one request of a run."""
    page = run.stack.client().get("/handoff/v1/requests", params={"run_id": run.run_id}).json()
    (request,) = page["hitl_details"]
    return request


def approve(run: Any, key: str, user: str = "admin", query: str = "", **body: Any) -> Any:
    """Answer through the approve route."""
    path = f"/handoff/v1/dags/{run.dag_id}/runs/{run.run_id}/approve/{key}{query}"
    return run.stack.client(user).post(path, json={"approved": True, **body})


def choose(run: Any, key: str, *options: str, user: str = "admin", query: str = "", **body: Any) -> Any:
    """Answer through the answer route."""
    path = f"/handoff/v1/dags/{run.dag_id}/runs/{run.run_id}/answer/{key}{query}"
    return run.stack.client(user).post(path, json={"options": list(options), **body})


def test_the_walk_through_of_the_documentation_runs(stack: Stack, tmp_path: Any) -> None:
    """Trigger, poll to Interrupted, approve, poll to Completed with its result: every block, as printed."""
    page = (ROOT / "docs" / "answers.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 4
    script = "set -euo pipefail\n" + "\n".join(blocks)
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(stack),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["status"], status["outcome"], status["error"]) == ("Completed", "approved", None)
    assert status["result"] == {
        "accounting_post": {"posted": 128.5, "cost_center": "4712", "approved_by": "admin"}
    }


@pytest.mark.versions("3.3")
@pytest.mark.parametrize(
    ("word", "code", "status", "error"),
    [("yes", 0, "Completed", None), ("no", 1, "Failed", "HumanRejected")],
)
def test_the_script_of_the_examples_approves_and_rejects(
    stack: Stack, word: str, code: int, status: str, error: str | None
) -> None:
    """The same by approve_cli.sh: yes is a completed run, no a failed one and exit status 1."""
    command = [str(ROOT / "example_dags" / "approve_cli.sh"), word, "seen by the script"]
    done = subprocess.run(command, env=environment(stack), capture_output=True, text=True, timeout=240)
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["status"], (found["error"] or {}).get("code")) == (status, error)


@pytest.mark.run("server_expense")
def test_rejected_by_curl_is_failed_with_human_rejected(run: Any) -> None:
    """Interrupted, with metadata only; then approved false; the second answer gets 409."""
    status, found = by_curl(run.stack, f"/handoff/v1/runs/{run.run_id}")
    assert (status, found["status"]) == (200, "Interrupted")
    assert found["interrupt"]["approval_key"] == "manager"
    assert found["interrupt"]["kind"] == "approval"
    assert found["interrupt"]["expires_at"]
    assert "Lunch" not in json.dumps(found)
    path = f"/handoff/v1/runs/{run.run_id}/approve/manager"
    bad = by_curl(run.stack, path, {"approved": True, "data": {"cost_centre": "nowhere"}})
    assert (bad[0], "pattern" in json.dumps(bad[1]["allowed"])) == (400, True)
    taken = by_curl(run.stack, path, {"approved": False, "comment": "Too much."})
    assert (taken[0], taken[1]["chosen_options"]) == (200, ["Reject"])
    assert by_curl(run.stack, path, {"approved": True})[0] == 409
    run.wait_run({"failed"})
    found = by_curl(run.stack, f"/handoff/v1/runs/{run.run_id}")[1]
    assert (found["status"], found["outcome"], found["result"]) == ("Failed", "rejected", None)
    assert found["error"]["code"] == "HumanRejected"
    (entry,) = by_curl(run.stack, f"/handoff/v1/audit?run_id={run.run_id}")[1]["entries"]
    assert (entry["comment"], entry["door"], entry["who"]) == ("Too much.", "approve", "admin")
    assert run.xcom("ask_manager", "handoff")["answer"]["comment"] == "Too much."


@pytest.mark.run("server_timeout", until={})
def test_a_timeout_is_failed_with_human_timeout(run: Any) -> None:
    """Nobody answers; the retries of the task do not ask again."""
    run.wait_run({"failed"})
    found = by_curl(run.stack, f"/handoff/v1/runs/{run.run_id}")[1]
    assert (found["status"], found["error"]["code"]) == ("Failed", "HumanTimeout")
    assert run.task_instance("manager")["try_number"] == 1
    assert run.answer("manager", "Approve").status_code == 409


@pytest.mark.proves("judged-answers")
@pytest.mark.run("server_entry")
def test_case_late_validation_and_reserved_keys_and_route_without_auth(run: Any) -> None:
    """At both doors a bad answer is a 4xx and the request stays open; the good one is then taken."""
    bare = ["-H", "X-Nobody: 1"]
    path = f"/handoff/v1/runs/{run.run_id}/answer/fill"
    patch = f"/api/v2/dags/server_entry/dagRuns/{run.run_id}/taskInstances/fill/-1/hitlDetails"
    good = {"options": ["OK"], "data": {"count": 4}}
    assert by_curl(run.stack, path, good, *bare)[0] == 401
    assert by_curl(run.stack, patch, {"chosen_options": ["OK"]}, "-X", "PATCH", *bare)[0] == 401
    assert choose(run, "fill", "OK", user="viewer", data={"count": 4}).status_code == 403
    for bad in ({"count": 1}, {"__classname__": "x"}, {"count": 4, "zzz": 1}):
        assert run.answer("fill", "OK", bad).status_code == 400
        assert choose(run, "fill", "OK", data=bad).status_code == 400
    assert choose(run, "fill", "Maybe").status_code == 400
    assert status_of(run)["status"] == "Interrupted"
    assert run.answer("fill", "OK", {"count": 4, "comment": "four"}).status_code == 200
    run.wait_run({"success"})
    assert run.xcom("fill")["params_input"] == {"count": 4}
    assert run.xcom("fill")["comment"] == "four"
    assert status_of(run)["result"]["fill"]["params_input"] == {"count": 4}


@pytest.mark.run("server_choice")
def test_case_answered_elsewhere(run: Any) -> None:
    """Marked failed by hand: 409 at both doors."""
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/choose"
    marked = run.stack.client().patch(path, json={"new_state": "failed"})
    assert marked.status_code == 200, marked.text
    for answer in (run.answer("choose", "a"), choose(run, "choose", "a")):
        assert answer.status_code == 409, answer.text
        assert "failed" in answer.json()["detail"]


@pytest.mark.run("server_assigned")
def test_case_respondent_ids(run: Any) -> None:
    """Alice is known by her name only; an admin who is not assigned gets 403 at both doors."""
    assert run.answer("choose", "a").status_code == 403
    assert choose(run, "choose", "a").status_code == 403
    # The other one named does not exist, which was said when the question was asked.
    facts = shown(run)["handoff"]
    assert facts["assigned_checked"] is True
    assert ["4712 or dora@example.org" in warning for warning in facts["warnings"]] == [True]
    path = f"/api/v2/eventLogs?dag_id={run.dag_id}&run_id={run.run_id}&event=handoff_unknown_assignee"
    (line,) = run.stack.client().get(path).json()["event_logs"]
    assert "dora@example.org" in line["extra"]
    assert line["task_id"] == "choose"
    taken = run.answer("choose", "b", user="alice")
    assert taken.status_code == 200, taken.text
    run.wait_run({"success"})
    assert run.xcom("choose")["responded_by_user"] == {"id": "alice", "name": "alice"}


@pytest.mark.run("server_slow_notifier", until={}, settle=False)
def test_case_answer_before_park(run: Any) -> None:
    """Answered again and again from before the question is there: taken once, and not fatal."""
    statuses = []

    def taken() -> bool:
        statuses.append(run.answer("choose", "a").status_code)
        return statuses[-1] == 200

    run.stack.until("the answer to be taken", taken, every=0.1)
    assert set(statuses[:-1]) <= {404, 425}, statuses
    run.wait_run({"success"})
    assert run.xcom("choose")["chosen_options"] == ["a"]


@pytest.mark.run("server_fresh")
def test_case_fresh_question_and_answer_after_clear_and_stale_tab(run: Any) -> None:
    """Cleared: 409 until it has asked again; then the new words are shown and the old page is told."""
    (old,) = (
        run.stack.client().get("/handoff/v1/requests", params={"run_id": run.run_id}).json()["hitl_details"]
    )
    assert old["subject"] == "try 1"
    run.clear(["choose"])
    refused = []

    def asked_again() -> bool:
        if run.task_instance("choose")["state"] == run.stack.parked_state:
            return True
        # With what was read before the clear: an answer to nothing in particular could meet the new question.
        stale = {"handoff-seen": f"{old['task_instance']['id']}:"}
        path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/choose/-1/hitlDetails"
        body = {"chosen_options": ["a"], "params_input": {}}
        refused.append(run.stack.client().patch(path, json=body, headers=stale))
        refused.append(choose(run, "choose", "a", digest=old["handoff"]["digest"]))
        return False

    run.stack.until("the question of the second attempt", asked_again, every=0.2)
    assert refused
    assert {answer.status_code for answer in refused} == {409}
    (new,) = (
        run.stack.client().get("/handoff/v1/requests", params={"run_id": run.run_id}).json()["hitl_details"]
    )
    assert (new["subject"], new["options"]) == ("try 2", ["a", "try 2"])
    stale = choose(run, "choose", "a", digest=old["handoff"]["digest"])
    assert stale.status_code == 409, stale.text
    assert stale.json()["open"].endswith("/tasks/choose/required_actions")
    assert run.answer("choose", "try 1").status_code == 400
    taken = choose(run, "choose", "try 2", digest=new["handoff"]["digest"])
    assert taken.status_code == 200, taken.text
    run.wait_run({"success"})
    assert run.xcom("choose")["chosen_options"] == ["try 2"]


@pytest.mark.run("server_rounds")
def test_case_fresh_question_in_a_second_round_a_retry_and_after_an_answer(run: Any) -> None:
    """Airflow's own list shows what is asked now, each time, and only that is answered."""

    def asks(subject: str, options: list[str]) -> dict[str, Any]:
        def shows() -> dict[str, Any] | None:
            (row,) = run.hitl()
            waits = row["task_instance"]["state"] == run.stack.parked_state and not row["response_received"]
            return row if waits and row["subject"] == subject else None

        row = run.stack.until(f"the question {subject!r}", shows)
        assert row["options"] == options
        assert "reader will see" not in run.task_log("choose", row["task_instance"]["try_number"])
        return shown(run)["handoff"]

    first = asks("try 1", ["more", "done", "only in 1"])
    assert run.answer("choose", "more").status_code == 200
    second = asks("round 2 of try 1", ["fail", "done"])
    assert choose(run, "choose", "done", digest=first["digest"]).status_code == 409
    assert run.answer("choose", "more").status_code == 400
    assert choose(run, "choose", "fail", digest=second["digest"]).status_code == 200
    asks("try 2", ["more", "done", "only in 2"])
    assert run.answer("choose", "only in 2").status_code == 200
    run.wait_run({"success"})
    run.clear(["choose"])
    asks("try 3", ["more", "done", "only in 3"])
    assert choose(run, "choose", "only in 3", try_number=3).status_code == 200
    run.wait_run({"success"})
    assert run.xcom("choose")["chosen_options"] == ["only in 3"]


@pytest.mark.run("server_mapped")
def test_instances_of_a_mapped_gate_are_told_apart(run: Any) -> None:
    """Without an index the door asks which one."""
    assert choose(run, "choose", "a").json()["map_indexes"] == [0, 1]
    assert choose(run, "choose", "b", query="?map_index=1").status_code == 200
    assert [found["map_index"] for found in status_of(run)["interrupts"]] == [0]
    assert choose(run, "choose", "a", query="?map_index=0").status_code == 200
    run.wait_run({"success"})
    assert run.xcom("choose", map_index=1)["chosen_options"] == ["b"]


@pytest.mark.run("server_choice")
def test_the_first_answer_stands(run: Any) -> None:
    """A wrong one is refused at once, a right one taken, a second one told."""
    start = time.monotonic()
    assert approve(run, "choose").status_code == 400, "other options than Approve and Reject"
    assert time.monotonic() - start < 5
    assert choose(run, "choose", "b", comment="from the route").status_code == 200
    assert run.answer("choose", "a").status_code == 409
    run.wait_run({"success"})
