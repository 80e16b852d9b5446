"""The operators on a real Airflow of each version: park all, wait once, answer, look at what became of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import httpx
import pytest

from tests.system.conftest import SETTLE


def ok(response: httpx.Response) -> None:
    """The answer was taken."""
    assert response.status_code == 200, response.text


@pytest.fixture(scope="session")
def unguarded(stack) -> Iterator[httpx.Client]:
    """A second api-server on the same database, with our guard switched off: Airflow's plain rules."""
    headers = {"Authorization": stack.client().headers["Authorization"]}
    env = {"AIRFLOW__HANDOFF__GUARD_AIRFLOW_API": "False"}
    with (
        stack.beside("api-server-unguarded", env=env) as url,
        httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client,
    ):
        yield client


@pytest.mark.run("operators_forms")
def test_case_dag_params_leak_and_dynamic_options_and_required_field(run):
    """The form shows the task's own fields; options come from upstream; a required field parks."""
    rows = {row["task_instance"]["task_id"]: row for row in run.hitl()}
    assert rows["choose"]["subject"] == "Param a is 1"
    assert rows["choose"]["options"] == ["red", "green", "blue"]
    assert set(rows["choose"]["params"]) == {"shade", "comment"}
    assert set(rows["entry"]["params"]) == {"count", "unit"}
    ok(run.answer("choose", ["blue", "red"], {"shade": "light", "comment": "both are fine"}))
    assert run.answer("entry", "OK", {"unit": "kg"}).status_code in (200, 400)
    run.wait_tasks({"choose": "success"})
    answer = run.xcom("choose")
    assert answer["chosen_options"] == ["blue", "red"]
    assert answer["params_input"] == {"shade": "light"}
    assert answer["comment"] == "both are fine"
    assert answer["responded_by_user"]["id"] == "admin"
    assert answer["timedout"] is False
    run.wait_settled()
    ok(run.answer("entry", "OK", {"count": 3}))
    run.wait_tasks({"entry": "success"})
    assert run.xcom("entry")["params_input"] == {"count": 3, "unit": "kg"}


@pytest.mark.run("operators_forms")
def test_case_notifier_fails_and_execution_timeout_and_answer_before_park(run):
    """A broken notifier is named in the log, a slow one outlasts execution_timeout, and the task parks."""
    assert run.task_instance("told")["state"] == run.stack.parked_state
    assert run.xcom("told", "told") is True
    log = run.task_log("told")
    assert "Broken failed; the request opens all the same" in log
    ok(run.answer("told", "yes"))
    run.wait_tasks({"told": "success"})


@pytest.mark.run("operators_forms", until={}, settle=False)
def test_case_answer_before_park(run):
    """While a notifier runs there is nothing yet that could be answered."""

    def asked():
        return [row for row in run.hitl() if row["task_instance"]["task_id"] == "told"]

    run.stack.until("the row", asked)
    assert run.xcom("told", "told") is True
    run.wait_settled()
    ok(run.answer("told", "no"))
    run.wait_tasks({"told": "success"})


@pytest.mark.run("operators_timeouts", until={}, settle=False)
def test_timeouts_with_and_without_defaults(run):
    """Cases default-replayed, decisions-are-not-retried, timeout-means-approve: nobody answers."""
    assert run.wait_run() == "failed"
    states = run.states()
    assert states == {
        "default": "success",
        "after_default": "success",
        "nothing": "failed",
        "required": "failed",
        "rejected": "success",
        "after_rejected": "skipped",
    }
    answer = run.xcom("default")
    assert (answer["chosen_options"], answer["params_input"]) == (["no"], {"n": 7})
    assert (answer["responded_by_user"], answer["timedout"]) == (None, True)
    assert run.task_instance("nothing")["try_number"] == 1
    for name in ("nothing", "required"):
        kept = run.xcom(name, "handoff")
        assert (kept["outcome"], kept["code"]) == ("timed_out", "HumanTimeout")


def moment(text: str) -> datetime:
    """A time out of the API."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_case_deadline_race(stack):
    """An answer a moment before the time is up wins over the default, and nothing fails.

    What resumes the task on a timeout then meets an answered row: its next look comes after the deadline. A
    machine so slow that the answer comes too late gets another run; that the answer wins has to be seen.
    """
    dag_id = "operators_deadline"
    for _ in range(4):
        run_id = stack.trigger(dag_id)
        stack.until("the request", lambda run_id=run_id: stack.hitl(dag_id, run_id))
        # The deadline counts from before the row is written, and the task has started before that.
        started = moment(stack.task_instance(dag_id, run_id, "ask")["start_date"])
        deadline = started + timedelta(seconds=20)
        left = deadline - timedelta(seconds=2) - datetime.now(timezone.utc)
        time.sleep(max(left.total_seconds(), 0))
        response = stack.answer(dag_id, run_id, "ask", "yes")
        assert stack.wait_run(dag_id, run_id) == "success"
        answer = stack.xcom(dag_id, run_id, "ask")
        if response.status_code == 200:
            assert (answer["chosen_options"], answer["timedout"]) == (["yes"], False)
            assert answer["responded_by_user"]["id"] == "admin"
            assert stack.task_instance(dag_id, run_id, "ask")["try_number"] == 1
            if moment(stack.hitl(dag_id, run_id)[0]["responded_at"]) < deadline:
                return
        else:
            taken = (response.status_code, answer["timedout"], answer["chosen_options"])
            assert taken == (409, True, ["no"])
    pytest.fail("no answer was recorded in time")


@pytest.mark.run("operators_decisions")
def test_case_decisions_are_not_retried_and_branch_in_group(run):
    """Approve goes on, Reject skips or fails at once, a branch in a group finds its tasks."""
    for task_id, option in [("yes", "Approve"), ("no", "Reject"), ("all_off", "Reject"), ("final", "Reject")]:
        ok(run.answer(task_id, option))
    ok(run.answer("g.branch", "one"))
    assert run.wait_run() == "failed"
    assert run.states() == {
        "yes": "success",
        "after_yes": "success",
        "no": "success",
        "after_no": "skipped",
        "later": "success",
        "all_off": "success",
        "direct": "skipped",
        "always": "skipped",
        "final": "failed",
        "after_final": "upstream_failed",
        "g.branch": "success",
        "g.one": "success",
        "g.two": "skipped",
        "g.three": "skipped",
        "g.join": "success",
    }
    assert run.task_instance("final")["try_number"] == 1
    for task_id, outcome, code in [
        ("yes", "approved", None),
        ("no", "rejected", None),
        ("final", "rejected", "HumanRejected"),
        ("g.branch", "branched", None),
    ]:
        kept = run.xcom(task_id, "handoff")
        assert (kept["outcome"], kept["code"]) == (outcome, code)
        assert run.xcom(task_id)["responded_by_user"]["id"] == "admin"


@pytest.mark.run("operators_mapped")
def test_case_mapped_group_reject_and_mapped_operator_any_all(run):
    """An index of a group decides for itself; what all indexes share follows the policy."""
    ok(run.answer("gate.ask", "Reject", map_index=0))
    ok(run.answer("gate.ask", "Approve", map_index=1))
    ok(run.answer("fork.ask", "left", map_index=0))
    ok(run.answer("fork.ask", "right", map_index=1))
    for index, (each, most) in enumerate([("Approve", "Reject"), ("Reject", "Approve"), ("Approve",) * 2]):
        ok(run.answer("each", each, map_index=index))
        ok(run.answer("most", most, map_index=index))
    assert run.wait_run() == "success"
    states = run.states()
    assert {key: states[key] for key in states if key[0] in ("gate.work", "fork.left", "fork.right")} == {
        ("gate.work", 0): "skipped",
        ("gate.work", 1): "success",
        ("fork.left", 0): "success",
        ("fork.right", 0): "skipped",
        ("fork.left", 1): "skipped",
        ("fork.right", 1): "success",
    }
    assert states["publish"] == "skipped"
    assert states["go"] == "success"
    assert run.xcom("each", map_index=1)["chosen_options"] == ["Reject"]


@pytest.mark.run("operators_rounds")
def test_a_retry_asks_and_a_cleared_task_asks_again(run):
    """The second attempt waits like the first; what was cleared while it waited waits anew."""
    before = run.task_instance("cleared")
    ok(run.answer("second_try", "a"))
    run.clear(["cleared"])

    def asks_again():
        now = run.task_instance("cleared")
        return now["id"] != before["id"] and now["state"] == run.stack.parked_state

    run.stack.until("the second request", asks_again)
    run.wait_tasks({"second_try": "success"})
    assert run.xcom("second_try", "handoff")["try_number"] == 2
    run.wait_settled()
    ok(run.answer("cleared", "a"))
    run.wait_tasks({"cleared": "success", "after_cleared": "success"})


@pytest.mark.run("operators_rounds")
def test_case_cancel_is_not_approve(run):
    """A task that was marked failed while it waited stays so; nothing runs as if it had been approved."""
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/stopped"
    response = run.stack.client().patch(path, json={"new_state": "failed"})
    assert response.status_code == 200, response.text
    run.wait_tasks({"stopped": "failed", "after_stopped": "upstream_failed"})
    assert run.xcom("stopped") is None


@pytest.mark.run("operators_cancelled")
@pytest.mark.run("operators_cancelled")
@pytest.mark.run("operators_cancelled")
def test_case_cancel_is_not_approve_for_runs_and_old_answers(runs):
    """A run that was set failed or deleted takes no answer; an answer from before a clear does not count."""
    failed, deleted, cleared = runs
    client = failed.stack.client()
    ok(cleared.answer("ask", "Approve"))
    for run in (failed, deleted):
        ok(client.patch(f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}", json={"state": "failed"}))
    gone = client.delete(f"/api/v2/dags/{deleted.dag_id}/dagRuns/{deleted.run_id}")
    assert gone.status_code == 204, gone.text
    assert failed.answer("ask", "Approve").status_code in (404, 409)
    assert deleted.answer("ask", "Approve").status_code == 404
    cleared.wait_tasks({"ask": "success", "after": "success"})
    before = cleared.task_instance("ask")["id"]
    cleared.clear(["ask", "after"])

    def asks_again():
        now = cleared.task_instance("ask")
        return now["id"] != before and now["state"] == cleared.stack.parked_state

    cleared.stack.until("the second request", asks_again)
    assert [row["response_received"] for row in cleared.hitl()] == [False]
    cleared.wait_settled()
    assert cleared.states() == {"ask": cleared.stack.parked_state, "after": None}
    ok(cleared.answer("ask", "Reject"))
    cleared.wait_tasks({"ask": "success", "after": "skipped"})
    # By now whatever could have resumed the others would have done so.
    assert failed.wait_run() == "failed"
    assert not {failed.states()["ask"], failed.states()["after"]} & {
        "success",
        "running",
        "scheduled",
        "queued",
    }
    assert failed.xcom("ask") is None


@pytest.mark.run("operators_one_at_a_time")
def test_a_waiting_task_does_not_hold_max_active_tasks(run):
    """The other task of a Dag that allows one at a time has run."""
    assert run.states() == {"ask": run.stack.parked_state, "other": "success"}
    ok(run.answer("ask", "Approve"))
    assert run.wait_run() == "success"


@pytest.mark.proves("pool-slots")
@pytest.mark.run("operators_pool", until={}, settle=False)
def test_a_pool_of_one_slot_that_counts_deferred_tasks(run):
    """A waiting task holds no slot where Airflow has a state for it; before, it does if the pool says so."""
    pool = {"name": "operators_one_slot", "slots": 1, "include_deferred": True}
    assert run.stack.client().post("/api/v2/pools", json=pool).status_code in (201, 409)
    if run.stack.parked_state == "deferred":
        run.wait_tasks({"ask": "deferred"})
        time.sleep(SETTLE)  # the answer has to be safe anyway; several rounds of the scheduler go by
        assert run.task_instance("other")["state"] in (None, "scheduled")
    else:
        run.wait_tasks({"ask": "awaiting_input", "other": "success"})
        time.sleep(SETTLE)
    ok(run.answer("ask", "Approve"))
    assert run.wait_run() == "success"


@pytest.mark.run("operators_bad_answers")
def test_case_late_validation_and_reserved_keys_and_unknown_keys(run, unguarded):
    """Through Airflow's plain API a bad answer is taken, and the request opens again instead of failing."""
    bad = {"late": {"n": 1}, "reserved": {"data": {"__classname__": "x"}}, "unknown": {"zzz": 1}}
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances"
    for task_id, params in bad.items():
        body = {"chosen_options": ["a"], "params_input": params}
        ok(unguarded.patch(f"{path}/{task_id}/-1/hitlDetails", json=body))

    def refused():
        return all(run.xcom(task_id, "handoff_refused") for task_id in bad)

    run.stack.until("all of them to be refused", refused)
    run.wait_settled()
    assert set(run.states().values()) == {run.stack.parked_state}
    for task_id, word in [("late", "minimum"), ("reserved", "__classname__"), ("unknown", "unknown field")]:
        (refusal,) = run.xcom(task_id, "handoff_refused")
        assert word in refusal["reasons"][0] or "serialized" in refusal["reasons"][0], refusal
        assert "The answer was refused, number 1 of 20" in run.task_log(task_id)
        ok(run.answer(task_id, "b", {"n": 4, "data": {}}))
    assert run.wait_run() == "success"


@pytest.mark.proves("waiting", "resume")
@pytest.mark.run("expense_approval", conf={"amount": 12.5})
@pytest.mark.smoke
def test_the_expense_example(run):
    """The manager approves, accounting posts."""
    assert run.hitl()[0]["subject"] == "Mira Holm claims 12.5 EUR"
    ok(run.answer("manager_approval", "Approve", {"cost_center": "0815"}))
    assert run.wait_run() == "success"
    assert run.xcom("accounting_post") == {
        "posted": 12.5,
        "cost_center": "0815",
        "approved_by": run.xcom("manager_approval")["responded_by_user"]["name"],
    }


@pytest.mark.versions("3.3")
@pytest.mark.run("example_hitl_operator")
def test_the_standard_providers_own_example(run):
    """With only the import changed it runs to its end: every operator, its notifier, a default, a branch."""
    ok(run.answer("wait_for_input", "OK", {"information": "green"}))
    ok(run.answer("wait_for_option", "option 2"))
    ok(run.answer("wait_for_multiple_options", ["option 4", "option 6"]))
    run.wait_tasks({"wait_for_default_option": "success", "valid_input_and_options": run.stack.parked_state})
    run.wait_settled()
    body = next(r["body"] for r in run.hitl() if r["task_instance"]["task_id"] == "valid_input_and_options")
    for shown in ("Input: green", "['option 2']", "['option 4', 'option 6']", "['option 7']"):
        assert shown in body
    ok(run.answer("valid_input_and_options", "Approve"))
    run.wait_tasks({"choose_a_branch_to_run": run.stack.parked_state})
    run.wait_settled()
    ok(run.answer("choose_a_branch_to_run", "task_2"))
    assert run.wait_run() == "success"
    states = run.states()
    assert [states[f"task_{n}"] for n in (1, 2, 3)] == ["skipped", "success", "skipped"]
    assert "Url to respond http://localhost:28080/dags/" in run.task_log("wait_for_option")


@pytest.mark.versions("3.3")
@pytest.mark.run("hitl_all_forms")
def test_the_example_with_all_forms(run):
    """Every form is filled in, one after the other, to the end."""
    ok(run.answer("trip", "OK", {"city": "Lund", "nights": 3}))
    run.wait_tasks(dict.fromkeys(("hotel", "extras", "insurance"), run.stack.parked_state))
    run.wait_settled()
    ok(run.answer("hotel", "By the sea"))
    ok(run.answer("extras", ["Breakfast", "Bicycle"]))
    ok(run.answer("insurance", "Yes"))
    run.wait_tasks({"approval": run.stack.parked_state})
    run.wait_settled()
    body = next(row["body"] for row in run.hitl() if row["task_instance"]["task_id"] == "approval")
    assert "| city | Lund |" in body
    assert "| extras | Breakfast, Bicycle |" in body
    assert "required_actions" in run.task_log("approval")
    ok(run.answer("approval", "Approve"))
    run.wait_tasks({"payment": run.stack.parked_state})
    run.wait_settled()
    ok(run.answer("payment", "Invoice"))
    assert run.wait_run() == "success"
    assert run.task_instance("charge_card")["state"] == "skipped"
    assert run.xcom("confirm") == "booked"


@pytest.mark.versions("3.3")
@pytest.mark.run("draft_review")
def test_the_example_with_a_draft(run):
    """The corrected text is what is sent, not the draft."""
    assert "required_actions" in run.task_log("correction")
    ok(run.answer("correction", "OK", {"text": "It arrives on Friday.", "tone": "formal"}))
    run.wait_tasks({"release": run.stack.parked_state})
    run.wait_settled()
    ok(run.answer("release", "Approve"))
    assert run.wait_run() == "success"
    assert run.xcom("send") == "sent: It arrives on Friday."


@pytest.mark.versions("3.3")
@pytest.mark.run("content_moderation")
def test_the_example_of_moderation(run):
    """Two posts are doubtful; each goes its own way."""
    ok(run.answer("moderate.decision", "Publish", map_index=0))
    ok(run.answer("moderate.decision", "Hide", map_index=1))
    assert run.wait_run() == "success"
    states = run.states()
    assert states["moderate.publish", 0] == states["moderate.hide", 1] == "success"
    assert states["moderate.hide", 0] == states["moderate.publish", 1] == "skipped"
