"""Every way to ask a person: fill in, choose one, choose several, let time decide, approve, branch, tell."""

from __future__ import annotations

import logging
from datetime import timedelta

from airflow.sdk import BaseNotifier, Context, Param, dag, task

from airflow_handoff.operators.hitl import (
    ApprovalOperator,
    HITLBranchOperator,
    HITLEntryOperator,
    HITLOperator,
)


# [START notifier]
class LogTheLink(BaseNotifier):
    """Writes where to answer to the task log; a real one would send it."""

    template_fields = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__()

    def notify(self, context: Context) -> None:
        link = HITLOperator.generate_link_to_ui_from_context(
            context=context,
            base_url="http://localhost:8080",
            options="Approve",
        )
        logging.getLogger(__name__).info("%s %s", self.message, link)


# [END notifier]


@dag(schedule=None, tags=["handoff", "example"])
def hitl_all_forms() -> None:
    # [START entry]
    trip = HITLEntryOperator(
        task_id="trip",
        subject="Where do you want to go?",
        params={
            "city": Param(type="string", minLength=2, description="No default: it has to be filled in."),
            "nights": Param(2, type="integer", minimum=1, maximum=14),
        },
    )
    # [END entry]

    # [START single]
    hotel = HITLOperator(
        task_id="hotel",
        subject="Which hotel in {{ ti.xcom_pull('trip')['params_input']['city'] }}?",
        options=["By the sea", "In the old town"],
        comment=True,
    )
    # [END single]

    # [START multiple]
    @task
    def possible_extras() -> list[str]:
        return ["Breakfast", "Late checkout", "Bicycle"]

    extras = HITLOperator(
        task_id="extras",
        subject="Which extras?",
        options=possible_extras(),  # known when the task runs
        multiple=True,
    )
    # [END multiple]

    # [START defaults]
    insurance = HITLOperator(
        task_id="insurance",
        subject="Do you want an insurance?",
        options=["Yes", "No"],
        defaults="No",
        response_timeout=timedelta(minutes=5),
    )
    # [END defaults]

    # [START approval]
    approval = ApprovalOperator(
        task_id="approval",
        subject="Book it?",
        body="""
| what | chosen |
|------|--------|
| city | {{ ti.xcom_pull('trip')['params_input']['city'] }} |
| hotel | {{ ti.xcom_pull('hotel')['chosen_options'][0] }} |
| extras | {{ ti.xcom_pull('extras')['chosen_options'] | join(', ') }} |
""",
        assigned_users=[{"id": "admin", "name": "admin"}, {"id": "reviewer", "name": "reviewer"}],
        notifiers=LogTheLink("A trip in run {{ run_id }} waits for you:"),
        approval_key="book",
    )
    # [END approval]

    # [START branch]
    payment = HITLBranchOperator(
        task_id="payment",
        subject="How do you pay?",
        options=["Card", "Invoice"],
        options_mapping={"Card": "charge_card", "Invoice": "send_invoice"},
    )
    # [END branch]

    @task
    def charge_card() -> str:
        return "charged"

    @task
    def send_invoice() -> str:
        return "sent"

    @task(trigger_rule="none_failed_min_one_success")
    def confirm() -> str:
        return "booked"

    trip >> [hotel, extras, insurance] >> approval >> payment
    payment >> [charge_card(), send_invoice()] >> confirm()


hitl_all_forms()
