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


@pytest.mark.smoke
@pytest.mark.run("expense_approval")
def test_a_person_holds_up_a_run(run):
    """Our own approval parks, takes an answer with its form over REST, and accounting posts it."""
    assert run.task_instance("manager_approval")["state"] == run.stack.parked_state
    (request,) = run.hitl()
    assert request["subject"] == "Mira Holm claims 128.5 EUR"
    answered = run.answer("manager_approval", "Approve", {"cost_center": "0815"}, user="alice")
    assert answered.status_code == 200, answered.text
    assert run.wait_run() == "success"
    posted = run.xcom("accounting_post")
    assert posted == {"posted": 128.5, "cost_center": "0815", "approved_by": "alice"}
    assert run.xcom("manager_approval")["timedout"] is False
