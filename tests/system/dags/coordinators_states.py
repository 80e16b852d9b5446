"""Foreign tasks: one for each way in which a task can end, XComs both ways, and tasks that stay too long."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task


def stub(task_id, queue="fixture", **options):
    @task.stub(task_id=task_id, queue=queue, **options)
    def body(): ...

    return body()


@dag(schedule=None)
def coordinators_exchange():
    @task
    def numbers():
        return [1, 2, 3]

    @task.stub(queue="fixture")
    def double(): ...

    @task
    def total(values):
        return sum(values)

    doubled = double()
    numbers() >> doubled
    total(doubled)


@dag(schedule=None)
def coordinators_states():
    for name in ("succeed", "fail", "skip", "remove", "reschedule", "defer", "question", "silent", "broken"):
        stub(name)
    stub("retry", retries=1, retry_delay=timedelta(seconds=1))
    stub("misspelt", queue="misspelt-keyword")
    stub("nowhere", queue="fixtur")
    stub("unmade", queue="misspelt-class")


@dag(schedule=None)
def coordinators_linger():
    stub("linger")


@dag(schedule=None)
def coordinators_timeout():
    stub("linger", queue="impatient")


coordinators_exchange()
coordinators_states()
coordinators_linger()
coordinators_timeout()
