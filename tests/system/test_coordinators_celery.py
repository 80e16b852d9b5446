"""Foreign tasks in a Celery worker: its pool processes supervise one task after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.conftest import Run
from tests.system.foreign import FOREIGN_ENV
from tests.system.stack import ROOT, Stack
from tests.system.test_coordinators import assert_gone, wait_for_children

DAG = "coordinators_celery"

pytestmark = [pytest.mark.versions("3.3"), pytest.mark.needs("postgresql", "redis-server")]


@pytest.fixture(scope="module")
def celery(airflow_version: str) -> Iterator[Run]:
    """One run on PostgreSQL, Redis and one worker, which listens on the stub tasks' queue too."""
    dags = ROOT / "tests" / "system" / "dags"
    with Stack(
        airflow_version,
        dags,
        database="postgresql",
        executor="CeleryExecutor",
        queues=("default", "fixture"),
        env=FOREIGN_ENV,
    ) as running:
        yield Run(running, DAG, running.trigger(DAG))


def test_xcoms_go_both_ways_in_a_celery_worker(celery: Run) -> None:
    """A foreign task reads a Python task's XCom, and a Python task reads the foreign task's."""
    celery.wait_tasks({"numbers": "success", "double": "success", "total": "success"})
    assert celery.xcom("double") == [2, 4, 6]
    assert celery.xcom("total") == 12
    assert "printed by the runtime" in celery.task_log("double")
    assert celery.task_instance("double")["executor"] in (None, "CeleryExecutor")
    assert celery.task_instance("double")["queue"] == "fixture"


def test_failures_are_retried_in_a_celery_worker(celery: Run) -> None:
    """A try that fails is followed by another; the last one's failure is the task's."""
    celery.wait_tasks({"retry": "success", "silent": "failed"})
    assert celery.xcom("retry") == 2
    for try_number in (1, 2):
        log = celery.task_log("silent", try_number)
        assert "ended without reporting a result (exit code 0)" in log, log
    assert celery.task_instance("silent")["try_number"] == 2


def test_marking_failed_ends_the_tree_in_a_celery_worker(celery: Run) -> None:
    """A task that is marked failed is gone with its whole tree, and the worker goes on."""
    pids = wait_for_children(celery)
    path = f"/api/v2/dags/{celery.dag_id}/dagRuns/{celery.run_id}/taskInstances/linger"
    answer = celery.stack.client().patch(path, json={"new_state": "failed"})
    assert answer.status_code == 200, answer.text
    assert_gone(celery, pids)
    celery.wait_tasks({"linger": "failed", "double": "success"})
    celery.clear(["double"])
    celery.stack.until(
        "the worker takes another task",
        lambda: [
            t
            for t in celery.task_instances()
            if t["task_id"] == "double" and t["try_number"] == 2 and t["state"] == "success"
        ],
        timeout=60,
    )
