"""A person holds up a run, with the standard provider's own operator: tests the harness itself."""

from __future__ import annotations

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import dag, task


@dag(schedule=None)
def smoke_standard():
    @task
    def after():
        return "went on"

    ApprovalOperator(task_id="ask", subject="May it go on?") >> after()


smoke_standard()
