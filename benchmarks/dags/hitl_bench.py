"""Many requests that wait at once, asked by the standard operator and with this package's trigger."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator as StandardOperator
from airflow.sdk import DAG, task, task_group

from airflow_handoff.operators.hitl import HITLOperator as HandoffOperator

MANY = int(os.environ.get("HANDOFF_BENCH_WAITING", "200"))
FEW = int(os.environ.get("HANDOFF_BENCH_ANSWERS", "20"))
OPERATORS: dict[str, Any] = {"standard": StandardOperator, "handoff": HandoffOperator}


@task
def after() -> None:
    """Start as soon as the answer is there."""


def bench(kind: str, operator: Any, size: str, count: int) -> DAG:
    """Build a Dag of mapped groups: a question, and what follows its answer."""
    with DAG(
        dag_id=f"bench_{kind}_{size}",
        schedule=None,
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        max_active_tasks=512,
    ) as dag:

        @task_group
        def one(subject: str) -> None:
            operator(task_id="ask", subject=subject, options=["go on", "stop"]) >> after()

        one.expand(subject=[f"Question {n}" for n in range(count)])
    return dag


for kind, operator in OPERATORS.items():
    globals()[f"many_{kind}"] = bench(kind, operator, "many", MANY)
    globals()[f"few_{kind}"] = bench(kind, operator, "few", FEW)
