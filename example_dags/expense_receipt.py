"""An expense claim in two languages: a manager decides in between, and Node writes the receipt.

The queue ``node`` must lead to a coordinator, so the Dag needs Airflow 3.3; ``make demo`` shows it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from airflow_handoff.operators.hitl import ApprovalOperator


@dag(
    schedule=None,
    tags=["handoff", "example"],
    params={
        "employee": Param("Mira Holm", type="string"),
        "amount": Param(128.5, type="number", exclusiveMinimum=0),
        "currency": Param("EUR", type="string", enum=["EUR", "SEK", "USD"]),
    },
)
def expense_receipt() -> None:
    # [START expense_receipt]
    @task
    def submit(params: dict[str, Any]) -> dict[str, Any]:
        return {name: params[name] for name in ("employee", "amount", "currency")}

    @task.stub(queue="node")
    def receipt(): ...

    @task
    def post(receipt: str) -> str:
        return f"posted: {receipt}"

    manager_approval = ApprovalOperator(
        task_id="manager_approval",
        subject="{{ ti.xcom_pull('submit')['employee'] }} claims "
        "{{ ti.xcom_pull('submit')['amount'] }} {{ ti.xcom_pull('submit')['currency'] }}",
        fail_on_reject=True,
        response_timeout=timedelta(days=7),
    )
    written = receipt()
    submit() >> manager_approval >> written
    post.override(task_id="accounting_post")(written)
    # [END expense_receipt]


expense_receipt()
