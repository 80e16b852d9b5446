"""How ``scripts/demo.py`` ends where no real Airflow is needed to see it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from scripts import demo
from tests.system.rest import StackError


class StackDouble:
    """An Airflow in which a run has ended in given states."""

    url = "http://127.0.0.1:1"
    component_names = ("api-server",)

    def __init__(self, *_: Any, run: str = "success", approval: str = "success", **__: Any) -> None:
        self.state, self.approval = run, approval

    def __enter__(self) -> StackDouble:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def task_instances(self, *_: Any) -> list[dict[str, Any]]:
        """Two tasks."""
        times = {"start_date": "2026-01-01", "end_date": "2026-01-01", "duration": 1.0}
        states = {"submit": "success", "manager_approval": self.approval}
        return [{"task_id": name, "state": state, **times} for name, state in states.items()]

    def hitl(self, *_: Any) -> list[dict[str, Any]]:
        """The answered request."""
        return [{"chosen_options": ["Approve"], "responded_by_user": {"name": "manager"}}]

    def run(self, *_: Any) -> dict[str, Any]:
        """The run."""
        return {"state": self.state}

    def describe(self, *_: Any) -> str:
        """What a failure shows."""
        return "everything about the run"


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The script sets signal handlers and what it shows; both are put back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    monkeypatch.setattr(demo, "DEMO", demo.DEMO)
    monkeypatch.setattr(demo, "Stack", StackDouble)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--version", "3.2"])
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def ending(monkeypatch: pytest.MonkeyPatch, stack: StackDouble) -> int:
    """Run the script with a run that has ended as *stack* says."""
    monkeypatch.setattr(demo, "play", lambda _, clock: demo.report(stack, "demo", clock))
    return demo.main()


def test_it_exits_0_where_all_is_as_expected(monkeypatch, capsys):
    """The table of tasks and the outcome are shown."""
    assert ending(monkeypatch, StackDouble()) == 0
    shown = capsys.readouterr().out
    assert "manager chose Approve; the run ended: success" in shown
    assert "manager_approval" in shown


@pytest.mark.parametrize("wrong", [{"run": "failed"}, {"approval": "failed"}])
def test_it_exits_1_where_a_state_is_not_as_expected(monkeypatch, capsys, wrong):
    """A run or a task that ended otherwise is named, with all that helps to see why."""
    assert ending(monkeypatch, StackDouble(**wrong)) == 1
    shown = capsys.readouterr()
    assert "NOT as expected" in shown.err
    assert "everything about the run" in shown.err
    if "approval" in wrong:
        assert "expected success" in shown.out


@pytest.mark.parametrize(
    ("trouble", "code"), [(StackError("the scheduler died"), 1), (KeyboardInterrupt(), 130)]
)
def test_it_exits_non_zero_where_airflow_fails_or_somebody_stops_it(monkeypatch, capsys, trouble, code):
    """No traceback."""

    def play(*_: Any) -> bool:
        raise trouble

    monkeypatch.setattr(demo, "play", play)
    assert demo.main() == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert ("the scheduler died" in shown.err) is (code == 1)


def test_without_its_node_it_says_what_to_run(monkeypatch, capsys, tmp_path):
    """On 3.3 the receipt is written by Node."""
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    monkeypatch.setattr(demo, "NODE", tmp_path / "node")
    assert demo.main() == 1
    assert "make venv" in capsys.readouterr().err
