"""One Dag for each language: an XCom both ways and a task that fails once."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task


def language_dag(language):
    @dag(dag_id=f"language_{language}", schedule=None)
    def build():
        @task
        def numbers():
            return [1, 2, 3]

        @task.stub(queue=language)
        def double(): ...

        @task
        def total(values):
            return sum(values)

        @task.stub(queue=language, retries=1, retry_delay=timedelta(seconds=1))
        def flaky(): ...

        doubled = double()
        numbers() >> doubled
        total(doubled)
        flaky()

    return build()


node, java, go, python = (language_dag(name) for name in ("node", "java", "go", "python"))
java_published, go_published = (language_dag(name) for name in ("java_published", "go_published"))
