"""What each SDK can do: one stub for each task of ``sdks/<language>/examples/states``."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Asset, AssetAlias, dag, task


def sdk_dag(language):
    def stub(task_id, queue=f"sdk-{language}", **options):
        @task.stub(task_id=task_id, queue=queue, **options)
        def body(): ...

        return body()

    @dag(dag_id=f"sdks_{language}", schedule=None)
    def build():
        @task
        def numbers():
            return [1, 2]

        @task
        def doubled(number):
            return 2 * number

        numbers() >> stub("succeed")
        for name in ("skip", "remove", "reschedule", "defer", "ask"):
            stub(name)
        for name in ("interview", "defer_then_ask", "unanswered"):
            stub(name)
        stub("fail", retries=3)
        stub("retry", retries=1, retry_delay=timedelta(seconds=1))
        # Airflow's own coordinator runs our bundles as well.
        queues = {"rust": "stock-executable"}
        doubled.expand(number=stub("listed", queue=queues.get(language, f"sdk-{language}")))
        report = Asset(name=f"sdks_{language}_report", uri=f"x-report://sdks/{language}")
        # The delay is longer than any test waits: only what the task says itself can be in time.
        later = {"retries": 2, "retry_delay": timedelta(hours=1)}
        everything = stub("everything", outlets=[report], **later)
        stub("emit", outlets=[report]) >> everything
        alias = AssetAlias(f"sdks_{language}_alias")
        everything >> stub("emit_alias", outlets=[report, alias]) >> stub("reach", outlets=[report])

    return build()


python, rust = (sdk_dag(name) for name in ("python", "rust"))
