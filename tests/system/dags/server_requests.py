"""Requests for the tests of the doors: each Dag is one situation."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, BaseNotifier, Param, task

from airflow_handoff.operators.hitl import ApprovalOperator, HITLEntryOperator, HITLOperator

MANY = int(os.environ.get("HANDOFF_TEST_MANY", "30"))
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


class SlowNotifier(BaseNotifier):
    """Takes five seconds to tell somebody."""

    def notify(self, context):
        """Take them."""
        time.sleep(5)


@task
def submit():
    """Hand in an expense."""
    return {"amount": 120}


@task
def post(answer):
    """Post it with what the manager has written."""
    return {"posted": True, "cost_centre": answer["params_input"]["cost_centre"]}


with DAG("server_expense", schedule=None, start_date=START):
    manager = ApprovalOperator(
        task_id="ask_manager",
        approval_key="manager",
        subject="Expense of {{ ti.xcom_pull('submit')['amount'] }}",
        body="Lunch with a customer",
        params={"cost_centre": Param("C-1", type="string", pattern="^C-[0-9]+$")},
        fail_on_reject=True,
        response_timeout=timedelta(hours=1),
    )
    submit() >> manager
    post(manager.output)

with DAG("server_timeout", schedule=None, start_date=START):
    ApprovalOperator(
        task_id="manager", subject="Nobody answers", response_timeout=timedelta(seconds=20), retries=2
    )

with DAG("server_entry", schedule=None, start_date=START):
    HITLEntryOperator(
        task_id="fill", subject="How many?", params={"count": Param(5, type="integer", minimum=3)}
    )

with DAG("server_assigned", schedule=None, start_date=START):
    HITLOperator(
        task_id="choose",
        subject="Alice decides",
        options=["a", "b"],
        # Known by name, under an id that Airflow does not know.
        assigned_users=[{"id": "4711", "name": "alice"}, {"id": "4712", "name": "dora@example.org"}],
    )

with DAG("server_slow_notifier", schedule=None, start_date=START):
    HITLOperator(task_id="choose", subject="Slow", options=["a", "b"], notifiers=[SlowNotifier()])

with DAG("server_fresh", schedule=None, start_date=START):
    HITLOperator(
        task_id="choose",
        subject="try {{ ti.try_number }}",
        options=["a", "try {{ ti.try_number }}"],
    )


class Rounds(HITLOperator):
    """Asks something else when told so, and fails when told so."""

    def execute_complete(self, context, event):
        """Ask once more in the same attempt, fail it, or be done."""
        answer = super().execute_complete(context, event)
        if answer["chosen_options"] == ["more"]:
            self.subject = f"round 2 of {self.subject}"
            self.options = ["fail", "done"]
            return self.execute(context)
        if answer["chosen_options"] == ["fail"]:
            raise RuntimeError("told so")
        return answer


with DAG("server_rounds", schedule=None, start_date=START):
    Rounds(
        task_id="choose",
        subject="try {{ ti.try_number }}",
        options=["more", "done", "only in {{ ti.try_number }}"],
        retries=1,
        retry_delay=timedelta(seconds=1),
    )

with DAG("server_pages", schedule=None, start_date=START):
    HITLOperator(
        task_id="choose",
        subject="Which of try {{ ti.try_number }}?",
        options=["a", "b"],
    )

with DAG("server_form_pages", schedule=None, start_date=START):
    HITLEntryOperator(
        task_id="fill", subject="How many?", params={"count": Param(5, type="integer", minimum=3)}
    )

with DAG("server_mapped", schedule=None, start_date=START):
    HITLOperator.partial(task_id="choose", options=["a", "b"]).expand(subject=["one", "two"])

with DAG("server_choice", schedule=None, start_date=START):
    HITLOperator(task_id="choose", subject="Which?", options=["a", "b"])

with DAG("server_many", schedule=None, start_date=START, max_active_tasks=256):
    HITLOperator.partial(task_id="choose", options=["a", "b"]).expand(
        subject=[f"number {number}" for number in range(MANY)]
    )
