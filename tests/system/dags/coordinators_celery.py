"""One run for a Celery worker: XComs both ways, retries, tasks that park, tasks that are to be stopped."""

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

    @task.stub(queue="fixture")
    def defer(): ...

    @task.stub(queue="fixture")
    def question(): ...

    @task.stub(task_id="late", queue="impatient", retries=1, retry_delay=timedelta(seconds=1))
    def stays_too_long(): ...

    doubled = double()
    numbers() >> doubled
    total(doubled)
    retry()
    silent()
    linger()
    defer()
    question()
    stays_too_long()


coordinators_celery()
