"""One run for a Celery worker: XComs both ways, failures with a retry, a task that is to be stopped."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task


@dag(schedule=None)
def coordinators_celery():
    again = {"queue": "fixture", "retries": 1, "retry_delay": timedelta(seconds=1)}

    @task
    def numbers():
        return [1, 2, 3]

    @task.stub(queue="fixture")
    def double(): ...

    @task
    def total(values):
        return sum(values)

    @task.stub(**again)
    def retry(): ...

    @task.stub(**again)
    def silent(): ...

    @task.stub(queue="fixture")
    def linger(): ...

    doubled = double()
    numbers() >> doubled
    total(doubled)
    retry()
    silent()
    linger()


coordinators_celery()
