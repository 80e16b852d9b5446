"""The standard provider's operator beside ours, for comparisons."""

from __future__ import annotations

import os
from datetime import datetime, timezone

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG

MANY = int(os.environ.get("HANDOFF_TEST_STOCK_MANY", os.environ.get("HANDOFF_TEST_MANY", "30")))
START = datetime(2026, 1, 1, tzinfo=timezone.utc)

with DAG("server_stock_many", schedule=None, start_date=START, max_active_tasks=256):
    HITLOperator.partial(task_id="choose", options=["a", "b"]).expand(
        subject=[f"number {number}" for number in range(MANY)]
    )
