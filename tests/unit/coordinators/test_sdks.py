"""Both SDKs through our coordinators and Airflow's own supervisor code, with the API server played."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_handoff.compat.versions import HAS_COORDINATORS

pytestmark = pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")

SDKS = Path(__file__).resolve().parents[3] / "sdks"


@pytest.fixture(scope="module")
def rust_program() -> Path:
    """The example of the Rust SDK; no cargo is a failure in CI and a skip elsewhere."""
    cargo = shutil.which("cargo")
    if cargo is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("cargo is not installed")
    subprocess.run([cargo, "build", "--quiet", "--example", "tasks"], cwd=SDKS / "rust", check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", SDKS / "rust" / "target"))
    return target / "debug" / "examples" / "tasks"


@pytest.fixture(params=["python", "rust"])
def language(request: pytest.FixtureRequest) -> str:
    """Each of our own SDKs."""
    return str(request.param)


def program_of(path: Path) -> Any:
    """A coordinator that runs one program, whatever the Dag."""
    from airflow_handoff.coordinators.base import SubprocessCoordinator
    from airflow_handoff.coordinators.launch import Launch

    class OneProgram(SubprocessCoordinator):
        """Runs it."""

        def launch(self, what: Any, **kwargs: Any) -> Launch:
            """Say it."""
            return Launch(command=[str(path)], schema_version="2026-06-16")

    return OneProgram()


@pytest.fixture
def task(request: pytest.FixtureRequest, language: str, stage: Any) -> Any:
    """Runs a task of an SDK's example program by its id."""
    if language == "rust":
        return lambda task_id: stage.run(
            program_of(request.getfixturevalue("rust_program")), dag_id="dag", task_id=task_id
        )
    from airflow_handoff.coordinators import PythonCoordinator

    module = str(SDKS / "python" / "tests" / "programs" / "tasks.py")
    coordinator = PythonCoordinator(module=module, python_executable=sys.executable)
    return lambda task_id: stage.run(coordinator, dag_id="dag", task_id=task_id)


@pytest.fixture
def bind(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Adds arguments to the startup details, as the schema after 2026-06-16 has them."""
    from airflow_handoff.compat.coordinator import TaskSupervisor

    begin = TaskSupervisor.begin

    def with_arguments(values: dict[str, Any]) -> None:
        bindings = [{"name": name, "kind": "literal", "value": value} for name, value in values.items()]

        def begin_with_them(self: TaskSupervisor, **details: Any) -> dict[str, Any]:
            body = begin(self, **details)
            return {**body, "ti_context": {**body["ti_context"], "arg_bindings": bindings}}

        monkeypatch.setattr(TaskSupervisor, "begin", begin_with_them)

    return with_arguments


def ending(stage: Any) -> dict[str, Any]:
    """What the API server was told last about the state of the task."""
    found: list[dict[str, Any]] = stage.api.bodies("/state")
    return found[-1]


def test_arguments_reach_the_parameters(stage: Any, task: Any, language: str, bind: Any) -> None:
    """Arguments are bound by folded name and have the types of the parameters."""
    values = {"FROM_DATE": "2026-11-30T10:00:00Z", "names": ["a"]}
    bind({**values, "limits": {"low": 1}} if language == "python" else values)
    result = task("typed")
    assert result.state == "success", result.text
    expected = {
        "python": ["datetime", 1, ["a"], 0.5, "typed"],
        "rust": ["2026-11-30T10:00:00Z", ["a"], None],
    }
    assert stage.api.xcoms["return_value"] == expected[language]


def test_arguments_that_do_not_fit_fail_the_task(stage: Any, task: Any, bind: Any) -> None:
    """An argument that the function does not take is in the task log by name."""
    bind({"stranger": 5})
    result = task("typed")
    assert result.state == "failed"
    assert "stranger" in result.text


def test_threads_that_ask_at_once_get_their_own_replies(stage: Any, task: Any) -> None:
    """Eight threads share the channel to the real supervisor."""
    stage.api.variables.update({f"v{n}": f"value of v{n}" for n in range(8)})
    result = task("many_threads")
    assert result.state == "success", result.text
    assert stage.api.xcoms["return_value"] is True


def test_refusals_in_mid_task_are_raised_in_the_function(stage: Any, task: Any, language: str) -> None:
    """Both ways in which Airflow says no reach the function, and the task goes on."""
    stage.api.refuse["/dag-runs/x/y"] = (404, {"reason": "not_found"})
    result = task("raises_in_the_task" if language == "python" else "many_threads")
    assert result.state == "success", result.text
    expected = {"python": ["VARIABLE_NOT_FOUND", 404], "rust": False}
    assert stage.api.xcoms["return_value"] == expected[language]


@pytest.mark.parametrize(("should_retry", "state"), [(True, "up_for_retry"), (False, "failed")])
def test_unhandled_error_is_reported(stage: Any, task: Any, should_retry: bool, state: str) -> None:
    """An error is told with its reason before the channel closes; the process leaves with 0."""
    stage.api.should_retry = should_retry
    result = task("breaks")
    assert (result.state, result.exit_code) == (state, 0)
    if should_retry:
        assert "retry_reason" in ending(stage)


def test_retry_says_when_and_why(stage: Any, task: Any) -> None:
    """Delay and reason of a retry reach the API server."""
    stage.api.should_retry = True
    assert task("retries").state == "up_for_retry"
    told = ending(stage)
    assert (told["retry_delay_seconds"], told["retry_reason"]) == (90.0, "busy")


@pytest.mark.parametrize(("word", "state"), [("later", "up_for_retry"), ("never", "failed")])
def test_policy_decides(stage: Any, task: Any, bind: Any, word: str, state: str) -> None:
    """The retry policy's decision is what Airflow is told."""
    stage.api.should_retry = True
    bind({"word": word})
    result = task("with_policy")
    assert result.state == state, result.text
    if state == "up_for_retry":
        told = ending(stage)
        assert (told["retry_delay_seconds"], told["retry_reason"]) == (5.0, "policy says later")


def test_thresholds_of_airflow_reach_the_program(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The level and the namespace levels of Airflow's configuration decide what is sent."""
    monkeypatch.setenv("AIRFLOW__LOGGING__LOGGING_LEVEL", "INFO")
    monkeypatch.setenv("AIRFLOW__LOGGING__NAMESPACE_LEVELS", "noisy=ERROR quiet=DEBUG")
    lines = task("logs").lines()
    assert {"kept", "shown", "worst", "printed"} <= set(lines)
    assert not {"dropped", "below"} & set(lines)


def test_nobody_of_the_program_is_left_when_it_parks(stage: Any, task: Any) -> None:
    """A reschedule beside a running thread ends the process at once."""
    result = task("reschedules")
    assert (result.state, result.exit_code) == ("up_for_reschedule", 0)
    assert "still ran" not in result.text
