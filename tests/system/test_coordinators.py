"""Foreign tasks on a running Airflow 3.3, through our coordinators."""

from __future__ import annotations

import re
import time

import psutil
import pytest

pytestmark = pytest.mark.versions("3.3")


def gone(pid: int) -> bool:
    """Whether a process runs no more."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def children(run, try_number=1, task_id="linger") -> list[int]:
    """The processes that the lingering task has named in its log."""
    found = re.search(r"children: ([\d ]+)\.", run.task_log(task_id, try_number))
    return [int(pid) for pid in found[1].split()] if found else []


def wait_for_children(run, try_number=1) -> list[int]:
    """Wait until the lingering task has started everything."""
    return run.stack.until("the children are named", lambda: children(run, try_number) or None, timeout=120)


def assert_gone(run, pids: list[int], seconds: float = 30) -> None:
    """All of these processes end within the limit."""
    end = time.monotonic() + seconds
    while not all(gone(pid) for pid in pids):
        assert time.monotonic() < end, [pid for pid in pids if not gone(pid)]
        time.sleep(0.2)


@pytest.fixture(scope="module")
def triggerer(stack):
    """A triggerer, which the campaign's Airflow does not have."""
    stack.start("triggerer")
    yield
    stack.stop("triggerer")


@pytest.mark.proves("coordinators")
@pytest.mark.smoke
@pytest.mark.run(
    "coordinators_exchange", until={"total": {"success", "failed", "upstream_failed"}}, settle=False
)
def test_xcoms_go_both_ways(run):
    """A foreign task reads a Python task's XCom, and a Python task reads the foreign task's."""
    assert run.wait_run() == "success", run.describe()
    assert run.xcom("double") == [2, 4, 6]
    assert run.xcom("total") == 12
    log = run.task_log("double")
    for line in ("doubling", "printed by the runtime", "Starting the scenarios: it speaks schema 2026-06-16"):
        assert line in log, log


@pytest.mark.run("coordinators_states", until={"question": "awaiting_input"})
def test_every_way_to_end(run, triggerer):
    """All eight terminal states arrive; what parks comes back in a new process with what it kept."""
    answer = run.answer("question", "yes")
    assert answer.status_code == 200, answer.text
    run.wait_tasks(
        {
            "succeed": "success",
            "fail": "failed",
            "skip": "skipped",
            "remove": "removed",
            "retry": "success",
            "reschedule": "success",
            "defer": "success",
            "question": "success",
            "silent": "failed",
            "broken": "failed",
            "misspelt": "failed",
            "nowhere": "failed",
            "unmade": "failed",
        }
    )
    assert run.xcom("retry") == 2
    assert run.xcom("reschedule") == 1
    assert run.xcom("defer") == ["after_the_wait", [1, 2], True]
    assert run.xcom("question") == [3, ["yes"]]
    assert "ended without reporting a result (exit code 0)" in run.task_log("silent")
    assert "broke the wire" in run.task_log("broken")
    assert "did you mean 'execution_timeout'?" in run.task_log("misspelt")
    assert "its queue 'fixtur' to a coordinator; did you mean 'fixture'?" in run.task_log("nowhere")
    assert "did you mean 'airflow_handoff.coordinators.JavaCoordinator'?" in run.task_log("unmade")


@pytest.mark.run("coordinators_linger", until={"linger": "running"}, settle=False)
def test_marking_failed_ends_the_tree(run):
    """A task that is marked failed while it runs is gone with its whole tree."""
    pids = wait_for_children(run)
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/linger"
    answer = run.stack.client().patch(path, json={"new_state": "failed"})
    assert answer.status_code == 200, answer.text
    assert_gone(run, pids)
    assert run.wait_run() == "failed"


@pytest.mark.run("coordinators_linger", until={"linger": "running"}, settle=False)
def test_clearing_ends_the_tree_and_starts_anew(run):
    """A running task that is cleared is ended with its tree, and starts again."""
    pids = wait_for_children(run)
    run.clear(["linger"])
    assert_gone(run, pids)
    second = run.stack.until("it runs again", lambda: set(children(run, 2)) - set(pids) or None, timeout=120)
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/linger"
    run.stack.client().patch(path, json={"new_state": "failed"})
    assert_gone(run, sorted(second))


@pytest.mark.run("coordinators_timeout", until={"linger": "failed"}, settle=False)
def test_a_timeout_ends_the_tree(run):
    """A task that runs past its coordinator's execution_timeout fails, and the log says why."""
    assert run.wait_run() == "failed"
    assert "ran past its execution_timeout of 6 s" in run.task_log("linger")
    pids = children(run)
    assert len(pids) == 3
    assert_gone(run, pids)
