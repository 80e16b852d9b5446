"""Foreign tasks in a Celery worker: its pool processes supervise one task after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.system.conftest import SETTLE, Run
from tests.system.foreign import FOREIGN_ENV
from tests.system.stack import ROOT, Stack
from tests.system.test_coordinators import assert_gone, children, wait_for_children
from tests.system.test_server_postgres import answer_at_once, states

DAG = "coordinators_celery"

pytestmark = [pytest.mark.versions("3.3"), pytest.mark.needs("postgresql", "redis-server")]


@pytest.fixture(scope="module")
def celery_stack(airflow_version: str) -> Iterator[Stack]:
    """An Airflow on PostgreSQL and Redis with a triggerer and one worker, which hears the stub tasks' queues.

    All Dags of the folder are there: what else has to be seen under Celery is tested in this module, so that
    one Airflow serves for all of it.
    """
    dags = ROOT / "tests" / "system" / "dags"
    with Stack(
        airflow_version,
        dags,
        database="postgresql",
        executor="CeleryExecutor",
        queues=("default", "fixture", "impatient"),
        env=FOREIGN_ENV,
    ) as running:
        running.start("triggerer")
        yield running


@pytest.fixture(scope="module")
def celery(celery_stack: Stack) -> Run:
    """The one run of the Dag, whose tasks all run and park together."""
    return Run(celery_stack, DAG, celery_stack.trigger(DAG))


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


def test_a_deferred_task_comes_back_in_a_celery_worker(celery: Run) -> None:
    """The trigger's event reaches a new process of the same try, with what the first one kept."""
    celery.wait_tasks({"defer": "success"})
    assert celery.xcom("defer") == ["after_the_wait", [1, 2], True]
    assert celery.task_instance("defer")["try_number"] == 1


def test_a_timeout_ends_the_tree_in_a_celery_worker(celery: Run) -> None:
    """A task that runs past its coordinator's limit is ended with its tree on every try, and says why."""
    celery.wait_tasks({"late": "failed"})
    assert celery.task_instance("late")["try_number"] == 2
    for try_number in (1, 2):
        assert "ran past its execution_timeout of 6 s" in celery.task_log("late", try_number)
        pids = children(celery, try_number, "late")
        assert len(pids) == 3
        assert_gone(celery, pids)


def test_a_persons_answer_reaches_a_celery_worker(celery: Run) -> None:
    """The answer starts a new process, which gets it with what the first one kept."""
    celery.wait_tasks({"question": "awaiting_input"})
    time.sleep(SETTLE)  # an answer before the scheduler has seen the first process end can be fatal
    answer = celery.answer("question", "yes")
    assert answer.status_code == 200, answer.text
    celery.wait_tasks({"question": "success"})
    assert celery.xcom("question") == [3, ["yes"]]


def test_no_early_answer_is_lost_in_a_celery_worker(celery_stack: Stack) -> None:
    """Thirty answers from before their requests appear, through Airflow's own API: all taken, none fatal."""
    run_id = celery_stack.trigger("server_many")
    assert answer_at_once(celery_stack, "server_many", run_id) == [200] * 30
    celery_stack.wait_run("server_many", run_id, {"success"})
    assert states(celery_stack, "server_many", run_id) == ["success"] * 30


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
