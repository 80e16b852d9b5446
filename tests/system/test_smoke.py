"""The smallest proof that a real Airflow of each version runs, waits for a person and goes on."""

from __future__ import annotations

import pytest


@pytest.mark.smoke
@pytest.mark.run("smoke_standard")
def test_the_harness_parks_answers_and_goes_on(run):
    """A request of the standard provider parks, takes an answer over REST, and the next task runs."""
    assert run.task_instance("ask")["state"] == run.stack.parked_state
    assert run.answer("ask", "Approve").status_code == 200
    run.wait_tasks({"ask": "success", "after": "success"})
    assert run.wait_run() == "success"
    assert run.xcom("after") == "went on"
    assert run.xcom("ask")["chosen_options"] == ["Approve"]
