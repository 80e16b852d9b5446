"""The page about coordinators: every block on it works as it is written."""

from __future__ import annotations

import ast
import configparser
import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_handoff.compat.versions import HAS_COORDINATORS

pytestmark = pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")

TEXT = (Path(__file__).parents[3] / "docs" / "coordinators.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
INI = re.findall(r"^```ini\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def block(word: str) -> str:
    """The one Python block that holds a word."""
    (found,) = [source for source in PYTHON if word in source]
    return found


def test_the_dag_is_a_dag(tmp_path: Path) -> None:
    """The first block makes a Dag with a stub on a queue that the configuration maps."""
    path = tmp_path / "orders_dag.py"
    path.write_text(block("@dag").replace("\norders()\n", "\nmade = orders()\n"))
    made = runpy.run_path(str(path))["made"]
    queues = json.loads(INI[0].rpartition("queue_to_coordinator = ")[2])
    assert made.get_task("double").queue in queues


@pytest.mark.parametrize("text", INI)
def test_case_documented_config(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """documented-config: every configuration example loads as written, and every keyword is taken."""
    from airflow.sdk.execution_time.coordinator import CoordinatorManager

    parsed = configparser.ConfigParser()
    parsed.read_string(text)
    for name in ("coordinators", "queue_to_coordinator"):
        monkeypatch.setenv(f"AIRFLOW__SDK__{name.upper()}", parsed["sdk"][name])
    manager = CoordinatorManager.from_config()
    queues = json.loads(parsed["sdk"]["queue_to_coordinator"])
    assert len(queues) == 4
    for queue in queues:
        assert manager.for_queue(queue).problems == ()


def test_the_table_has_every_keyword_with_its_default() -> None:
    """The table of keywords is the constructor's, with its defaults."""
    import inspect

    from airflow_handoff.coordinators import SubprocessCoordinator

    rows = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+)`? \|", TEXT, re.MULTILINE))
    shown = {"none": None, "{}": None, "[]": ()}
    parameters = inspect.signature(SubprocessCoordinator).parameters
    assert set(rows) == set(parameters) - {"bundles_root", "unknown"}
    for name, text in rows.items():
        default = parameters[name].default
        value = text.strip()
        assert (shown[value] if value in shown else type(default)(value)) == default, name


def test_a_fifth_language_is_a_short_class(stage: Any) -> None:
    """The class of the page has at most 30 lines and two public methods, and runs a task."""
    source = block("class RubyCoordinator")
    (cls,) = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert (cls.end_lineno or 0) - cls.lineno < 30
    methods = [node.name for node in cls.body if isinstance(node, ast.FunctionDef)]
    assert [name for name in methods if not name.startswith("_")] == ["read_bundle", "command"]
    names: dict[str, Any] = {"__name__": "ruby_coordinator"}
    exec(source, names)
    script = stage.folder / "root" / "orders.rb"
    script.parent.mkdir()
    script.write_text(stage.runtime + "say('Ruby, it says'); succeed()")
    script.with_suffix(".yaml").write_text(
        'sdk: {language: ruby, supervisor_schema_version: "2026-06-16"}\ndags: {d: {tasks: [t]}}\n'
    )
    coordinator = names["RubyCoordinator"](ruby_executable=sys.executable, bundles_root=script.parent)
    result = stage.run(coordinator)
    assert result.state == "success", result.text
    assert "Ruby, it says" in result.lines()
    stage.api.calls.clear()
    wrong = names["RubyCoordinator"](ruby_executible="x", bundles_root=script.parent)
    assert "did you mean 'ruby_executable'?" in stage.run(wrong).text


class Job:
    """A job that is done at the second look."""

    name = "job-7"

    def __init__(self) -> None:
        self.looks = 0
        self.cancelled = False

    def done(self) -> bool:
        """Look."""
        self.looks += 1
        return (self.looks > 1 and not self.cancelled) or self.looks > 50

    def result(self) -> int:
        """Return the result."""
        return 42

    def cancel(self) -> None:
        """Stop."""
        self.cancelled = True


def service(stage: Any, connect: Any) -> Any:
    """Run a task of the page's ServiceCoordinator."""
    names: dict[str, Any] = {"__name__": "service_coordinator"}
    exec(block("class ServiceCoordinator"), names)
    return stage.run(names["ServiceCoordinator"](connect=connect))


def test_a_coordinator_without_a_process(stage: Any) -> None:
    """The page's other class runs a task: XCom, log, success."""
    result = service(stage, lambda dag_id, task_id: Job())
    assert result.state == "success", result.text
    assert stage.api.xcoms["return_value"] == 42
    assert "the service is done" in result.lines()


@pytest.mark.parametrize(("retry", "state"), [(True, "up_for_retry"), (False, "failed")])
def test_a_coordinator_without_a_process_that_raises(stage: Any, retry: bool, state: str) -> None:
    """An exception fails or retries the task, and is in its log."""
    stage.api.should_retry = retry

    def refuse(dag_id: str, task_id: str) -> Job:
        raise ConnectionError("the service is closed")

    result = service(stage, refuse)
    assert result.state == state
    assert "the service is closed" in result.text


def test_a_coordinator_without_a_process_that_is_cleared(stage: Any) -> None:
    """A task that Airflow wants gone is told so at its heartbeat, and reports nothing."""
    stage.api.refuse["/heartbeat"] = (410, {"reason": "not_found"})
    stage.impatient(0.0)
    job = Job()
    result = service(stage, lambda dag_id, task_id: job)
    assert job.cancelled
    assert result.state is None
