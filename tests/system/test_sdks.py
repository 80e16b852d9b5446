"""Our own SDKs on a running Airflow 3.3, through our coordinators."""

from __future__ import annotations

import time

import pytest

from tests.system.conftest import SETTLE, Run
from tests.system.foreign import CACHE, OLDEST_PYTHON
from tests.system.languages import available, fresh_root, run, tool
from tests.system.stack import ROOT

pytestmark = pytest.mark.versions("3.3")

RUST = ROOT / "sdks" / "rust"
STATES = {
    "succeed": "success",
    "fail": "failed",
    "skip": "skipped",
    "remove": "removed",
    "retry": "success",
    "reschedule": "success",
    "defer": "success",
    "ask": "success",
    "listed": "success",
    ("doubled", 0): "success",
    ("doubled", 1): "success",
    ("doubled", 2): "success",
    "emit": "success",
    "everything": "success",
    "emit_alias": "success",
    "reach": "success",
    "interview": "success",
    "defer_then_ask": "success",
    "unanswered": "success",
}
CONNECTION = {
    "connection_id": "sdks_db",
    "conn_type": "postgres",
    "host": "db.example",
    "password": "correct-horse-battery",
    "extra": '{"a": 1}',
}


def build_rust() -> None:
    """Build the Rust SDK's example and pack it with the SDK's own packer."""
    root = fresh_root("sdk-rust")
    run([tool("cargo"), "build", "--example", "states", "--bin", "airflow-handoff-pack"], RUST)
    built = RUST / "target" / "debug"
    source = RUST / "examples" / "states.rs"
    packer = built / "airflow-handoff-pack"
    run([packer, built / "examples" / "states", "--source", source, "-o", root / "states"], CACHE)


@pytest.fixture(scope="module")
def started(stack):
    """A run of each SDK's Dag, its question asked and old enough to be answered."""
    available(build_rust)
    stack.start("triggerer")
    made = stack.client().post("/api/v2/connections", json=CONNECTION)
    assert made.status_code == 201, made.text
    runs = {}
    for language in ("python", "rust"):
        dag_id = f"sdks_{language}"
        stack.wait_dag(dag_id)
        runs[language] = Run(stack, dag_id, stack.trigger(dag_id, {"limit": 8}))
    asking = dict.fromkeys(("ask", "interview", "defer_then_ask"), "awaiting_input")
    for started in runs.values():
        started.wait_tasks(asking, timeout=240)
    time.sleep(SETTLE)
    for started in runs.values():
        for task_id, option in (("interview", "blue"), ("defer_then_ask", "yes")):
            answer = started.answer(task_id, option)
            assert answer.status_code == 200, answer.text
    yield runs
    stack.stop("triggerer")


def wait_asked_again(run):
    """Wait until the second question of the interview is open: the answer to the first one is gone."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        waits = run.task_instance("interview")["state"] == "awaiting_input"
        if waits and "interview" in {
            q["task_instance"]["task_id"] for q in run.hitl(response_received=False)
        }:
            return
        time.sleep(0.5)
    pytest.fail(f"the second question was never asked\n{run.describe()}")


@pytest.mark.parametrize("language", ["python", "rust"])
def test_everything_a_task_can_do(started, language):
    """All eight states, both resumes, a retry without old XComs, a mapped downstream and an asset event."""
    run = started[language]
    question = next(q for q in run.hitl() if q["task_instance"]["task_id"] == "ask")
    assert (question["subject"], question["options"]) == ("Publish?", ["yes", "no"])
    answer = run.answer("ask", "yes", {"reason": "tested"})
    assert answer.status_code == 200, answer.text
    wait_asked_again(run)
    time.sleep(SETTLE)
    answer = run.answer("interview", "yes")
    assert answer.status_code == 200, answer.text
    run.wait_tasks(STATES, timeout=240)
    assert run.xcom("succeed") == ["written by the task", {"page": 3}, [1, 2]]
    assert run.xcom("retry") == [2, None]
    assert run.xcom("reschedule") == [1, 1]
    assert run.xcom("defer") == [[1, 2], True]
    assert run.xcom("ask") == ["yes", {"reason": "tested"}, "admin"]
    assert [run.xcom("doubled", map_index=n) for n in range(3)] == [2, 4, 6]
    events = run.stack.client().get("/api/v2/assets/events", params={"source_dag_id": run.dag_id}).json()
    made = [(e["uri"], e["extra"].get("rows")) for e in events["asset_events"]]
    assert made == [(f"x-report://sdks/{language}", 3), (f"x-report://sdks/{language}", 4)]


@pytest.mark.parametrize("language", ["python", "rust"])
def test_several_questions_and_none_answered(started, language):
    """Two questions in one function, one of a function that resumed, and one that nobody answers."""
    run = started[language]
    asked = ("interview", "defer_then_ask", "unanswered")
    run.wait_tasks(dict.fromkeys(asked, "success"), timeout=240)
    assert run.xcom("interview") == ["blue", "yes"]
    assert run.xcom("defer_then_ask") == [[7], True, "yes"]
    assert run.xcom("unanswered") == "nobody answered"


@pytest.mark.parametrize("language", ["python", "rust"])
def test_types_and_moments(started, language):
    """The run's conf, JSON variables, an expiry, cleared asset state, events by time and by alias."""
    run = started[language]
    run.wait_tasks({"reach": "success"}, timeout=240)
    assert run.xcom("reach") == [[8, 9, 1], [5, None], [1, 1, 0, 0], None]


@pytest.mark.parametrize("language", ["python", "rust"])
def test_what_airflow_keeps(started, language):
    """Delays of the task's own and of its policy, a connection, a variable, an asset's values and events."""
    run = started[language]
    run.wait_tasks({"everything": "success"}, timeout=240)
    assert run.xcom("everything") == [3, ["db.example", {"a": 1}], "gone", {"rows": 3}, [3]]
    assert "too early" in run.task_log("everything", 1)
    assert "the policy says so" in run.task_log("everything", 2)
    log = run.task_log("everything", 3)
    assert "the password is ***" in log
    assert CONNECTION["password"] not in log
    assert "above its threshold" in log
    assert "below its threshold" not in log


@pytest.mark.parametrize("language", ["python", "rust"])
def test_logs_of_the_program(started, language):
    """Records arrive with their fields, and an error of the first try with its reason."""
    run = started[language]
    run.wait_tasks({"succeed": "success", "retry": "success"}, timeout=240)
    assert f"running in {language.title()}" in run.task_log("succeed")
    assert "the first try never works" in run.task_log("retry", 1)
    assert "Skipped. no new files" in run.task_log("skip")
    assert "No function for" in run.task_log("remove")


def test_the_foreign_interpreter_is_another_one(started):
    """The Python tasks ran in the oldest interpreter of the machine, which has nothing installed."""
    run = started["python"]
    run.wait_tasks({"succeed": "success"}, timeout=240)
    assert f"running in Python {OLDEST_PYTHON[1]}." in run.task_log("succeed")
