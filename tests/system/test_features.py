"""Features of the matrix that no other test shows."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.proves("history")
@pytest.mark.versions("3.2", "3.3")
@pytest.mark.run("expense_approval")
def test_the_answer_of_each_try_can_be_read_back(run: Any) -> None:
    """A cleared approval asks again, and what was said the first time is still there."""

    def said(try_number: int) -> Any:
        task = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/manager_approval/-1"
        found = run.stack.client().get(f"{task}/hitlDetails/tries/{try_number}")
        assert found.status_code == 200, found.text
        return found.json()

    answered = run.answer("manager_approval", "Approve", {"cost_center": "0815"})
    assert answered.status_code == 200, answered.text
    assert run.wait_run() == "success"
    before = run.task_instance("manager_approval")["id"]
    run.clear(["manager_approval"])

    def asks_again() -> bool:
        now = run.task_instance("manager_approval")
        return bool(now["id"] != before and now["state"] == run.stack.parked_state)

    run.stack.until("the second request", asks_again)
    run.wait_settled()
    answered = run.answer("manager_approval", "Approve", {"cost_center": "4711"}, user="alice")
    assert answered.status_code == 200, answered.text
    run.wait_tasks({"manager_approval": "success"})
    assert [said(number)["params_input"] for number in (1, 2)] == [
        {"cost_center": "0815"},
        {"cost_center": "4711"},
    ]
    assert said(2)["responded_by_user"]["name"] == "alice"
