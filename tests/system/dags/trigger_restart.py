"""Requests that wait while nothing looks after them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_handoff.operators.hitl import HITLOperator

with DAG("trigger_restart", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    HITLOperator(task_id="answered", subject="Answered meanwhile?", options=["yes", "no"])
    HITLOperator(
        task_id="both",
        subject="Answered in time, read after the deadline?",
        options=["yes", "no"],
        defaults=["no"],
        response_timeout=timedelta(seconds=60),
    )
    HITLOperator(
        task_id="late",
        subject="Timed out meanwhile?",
        options=["yes", "no"],
        defaults=["no"],
        response_timeout=timedelta(seconds=60),
    )
