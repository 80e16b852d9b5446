"""What is built on of Airflow, and what is not."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from airflow_handoff.compat.versions import HAS_COORDINATORS
from airflow_handoff.exceptions import EnvironmentUnfit

needs_33 = pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")

WATCH = """
import sys, pathlib, pytest
sys.path.insert(0, sys.argv[1])
import conftest
with pytest.MonkeyPatch.context() as patch:
    stage = conftest.Stage(pathlib.Path(sys.argv[2]), patch)
    result = stage.script("say('ran'); succeed()")
assert result.state == "success" and "ran" in result.lines(), result.text
assert not [name for name in sys.modules if name.startswith("airflow.sdk.coordinators")], "imported"
print("never imported")
"""


@needs_33
def test_no_code_of_airflows_own_coordinators_runs(tmp_path: Path) -> None:
    """A whole task runs and ``airflow.sdk.coordinators`` was not even imported."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, str(Path(__file__).parent), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "never imported" in done.stdout, done.stderr


@needs_33
def test_a_moved_hook_is_said_in_a_sentence() -> None:
    """An Airflow that moved a hook is met with its name and what to do."""
    from airflow_handoff.compat.coordinator import probe

    class Moved:
        def _handle_request(self, msg: object) -> None: ...

    with pytest.raises(
        EnvironmentUnfit, match=r"Moved\._handle_request does not take req_id any more; upgrade"
    ):
        probe([(Moved, "_handle_request", frozenset({"msg", "req_id"}))])
    with pytest.raises(EnvironmentUnfit, match=r"Moved\._gone is gone; upgrade airflow-provider-handoff"):
        probe([(Moved, "_gone", frozenset())])


@pytest.mark.skipif(HAS_COORDINATORS, reason="this Airflow has coordinators")
@pytest.mark.parametrize(
    "name", ["ExecutableCoordinator", "JavaCoordinator", "NodeCoordinator", "PythonCoordinator"]
)
def test_an_older_airflow_is_told_what_is_needed(name: str) -> None:
    """On 3.1 and 3.2 importing a coordinator says in one sentence that 3.3 is needed."""
    import importlib

    package = importlib.import_module("airflow_handoff.coordinators")
    with pytest.raises(EnvironmentUnfit, match=r"need Apache Airflow 3\.3 or later and 3\.[12] is installed"):
        getattr(package, name)


@needs_33
def test_tasks_run_side_by_side(stage: Any) -> None:
    """One coordinator runs tasks in several threads at once, each with its own result."""
    from airflow_handoff.coordinators.base import SubprocessCoordinator
    from airflow_handoff.coordinators.launch import Launch

    path = stage.folder / "many.py"
    path.write_text(stage.runtime + "say('hello from ' + ti['task_id']); succeed()")

    class Many(SubprocessCoordinator):
        """Runs the same script for every task."""

        def launch(self, what: Any, **kwargs: Any) -> Launch:
            """Run it."""
            return Launch(command=[sys.executable, str(path)])

    coordinator = Many()
    results: dict[str, Any] = {}

    def one(name: str) -> None:
        results[name] = stage.run(coordinator, task_id=name)

    threads = [threading.Thread(target=one, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"hello from {name}" in result.lines() for name, result in results.items())
    assert len(results) == 6
    assert stage.api.states == ["success"] * 6


@needs_33
def test_later_keywords_of_airflow_are_taken(stage: Any) -> None:
    """Keywords that a later Airflow passes to ``execute_task`` reach ``launch`` and break nothing."""
    from airflow_handoff.coordinators.base import SubprocessCoordinator
    from airflow_handoff.coordinators.launch import Launch

    path = stage.folder / "next.py"
    path.write_text(stage.runtime + "succeed()")
    seen: dict[str, Any] = {}

    class Next(SubprocessCoordinator):
        """Is called by the next Airflow."""

        def launch(self, what: Any, **kwargs: Any) -> Launch:
            """Remember the keywords."""
            seen.update(kwargs)
            return Launch(command=[sys.executable, str(path)])

        def execute_task(self, **kwargs: Any) -> Any:
            """Pass one more."""
            return super().execute_task(**kwargs, task_handler_bundle_name="handlers")

    assert stage.run(Next()).state == "success"
    assert seen == {"task_handler_bundle_name": "handlers"}


@needs_33
def test_a_program_that_only_closed_its_channel_has_not_reported(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped after Airflow's overtime, fails, and nobody says that it had reported."""
    from airflow.sdk.execution_time import supervisor

    monkeypatch.setattr(supervisor, "TASK_OVERTIME_THRESHOLD", 0.3)
    result = stage.script("comm.close(); time.sleep(600)", kill_grace=0.2)
    assert result.state == "failed"
    assert "still ran after it had closed its channel" in result.text
    assert "had reported" not in result.text
