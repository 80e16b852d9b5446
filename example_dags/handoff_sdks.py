"""A task in another Python and one in Rust, between tasks of Airflow's own Python.

The bodies of the stubs are in ``sdks/python/README.md`` and ``sdks/rust/README.md``; the queues lead to a
``PythonCoordinator`` and an ``ExecutableCoordinator`` (Airflow 3.3 and later).
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Asset, dag, task

report = Asset(name="report", uri="file:///srv/reports/latest")


@dag(schedule=None, tags=["handoff"])
def handoff_sdks():
    @task
    def values() -> list[int]:
        return [1, 2, 3]

    # A list from another language can be expanded over like any other.
    @task.stub(queue="rust", retries=2, retry_delay=timedelta(seconds=30))
    def double(): ...

    @task
    def halve(number: int) -> float:
        return number / 2

    # Asks a person from inside its function, and makes the asset event.
    @task.stub(queue="legacy", outlets=[report])
    def publish(): ...

    doubled = double()
    values() >> doubled
    halve.expand(number=doubled) >> publish()


handoff_sdks()
