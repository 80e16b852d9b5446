"""Requests for the tests of the terminal, the Python client and the agent's loop."""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import DAG, Param, task

from airflow_handoff.operators.hitl import ApprovalOperator, HITLOperator

START = datetime(2026, 1, 1, tzinfo=timezone.utc)

with DAG("client_form", schedule=None, start_date=START):
    HITLOperator(
        task_id="fill",
        subject="Where does it go?",
        body="Two places at most.",
        options=["north", "south", "west"],
        multiple=True,
        params={"amount": Param(5, type="integer", minimum=3, description="how many")},
    )


@task
def post():
    """Return what the run is for."""
    return "posted"


with DAG("client_gate", schedule=None, start_date=START):
    ApprovalOperator(task_id="ask", approval_key="gate", subject="Post it?", fail_on_reject=True) >> post()

with DAG("client_chain", schedule=None, start_date=START):
    first = ApprovalOperator(task_id="first", subject="First?")
    second = ApprovalOperator(task_id="second", subject="Second?")
    first >> second >> post()

with DAG("client_mapped", schedule=None, start_date=START):
    ApprovalOperator.partial(task_id="each").expand(subject=["a", "b"])
