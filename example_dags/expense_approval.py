"""An expense claim: somebody submits it, a manager decides, accounting posts what was approved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from airflow_handoff.operators.hitl import ApprovalOperator


@dag(
    schedule=None,
    tags=["handoff", "example"],
    params={
        "employee": Param("Mira Holm", type="string", description="Who claims the expense."),
        "purpose": Param("Train to the customer", type="string"),
        "amount": Param(128.5, type="number", exclusiveMinimum=0),
        "currency": Param("EUR", type="string", enum=["EUR", "SEK", "USD"]),
    },
)
def expense_approval() -> None:
    # [START expense_approval]
    @task
    def submit(params: dict[str, Any]) -> dict[str, Any]:
        names = ("employee", "purpose", "amount", "currency")
        return {name: params[name] for name in names}

    @task
    def post(claim: dict[str, Any], decision: dict[str, Any]) -> dict[str, Any]:
        approver = decision["responded_by_user"]["name"]
        return {
            "posted": claim["amount"],
            "cost_center": decision["params_input"]["cost_center"],
            "approved_by": approver,
        }

    claim = submit()
    manager_approval = ApprovalOperator(
        task_id="manager_approval",
        subject="{{ ti.xcom_pull('submit')['employee'] }} claims "
        "{{ ti.xcom_pull('submit')['amount'] }} {{ ti.xcom_pull('submit')['currency'] }}",
        body="Purpose: {{ ti.xcom_pull('submit')['purpose'] }}",
        params={
            "cost_center": Param("4711", type="string", pattern="^[0-9]{4}$", description="Four digits."),
        },
        comment=True,
        # A rejected claim is a failed run: nothing may be posted, and everybody can see it.
        fail_on_reject=True,
        response_timeout=timedelta(days=7),
    )
    claim >> manager_approval
    post.override(task_id="accounting_post")(claim, manager_approval.output)
    # [END expense_approval]


expense_approval()
