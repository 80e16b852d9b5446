"""The campaign: one Airflow per version, all requests parked together, one wait, then the answers.

A system test names the run it wants; the runs of all selected tests of a version are triggered before the
first of them, so that the waiting is paid once::

    @pytest.mark.run("approve_something", conf={"amount": 7})
    def test_reject_skips(run):
        run.answer("ask", "Reject")
        run.wait_run({"success"})

``until={"task": "state"}`` replaces the default wait ("something is parked, nothing else moves, or the run
has ended"); ``until={}`` waits for nothing. ``settle=False`` leaves out the wait for the age at which an
answer is safe. ``@pytest.mark.versions("3.2", "3.3")`` restricts a test. Several marks give several runs, in
source order, through the fixture ``runs``. ``@pytest.mark.needs("postgresql", "chromium")``
names optional tools.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.system.foreign import FOREIGN_ENV
from tests.system.rest import RUN_FINISHED, Expected, StackError, TaskKey
from tests.system.services import has_tool
from tests.system.stack import ROOT, VERSIONS, Stack

#: Seconds after a park before an answer is safe: the scheduler must have seen the first process end.
SETTLE = 9.0
#: Extra environment of the campaign's Airflow.
CAMPAIGN_ENV: dict[str, str] = {**FOREIGN_ENV}


def selected_versions() -> list[str]:
    """Return the versions to test, from ``HANDOFF_VERSIONS`` (a comma list) or all."""
    named = os.environ.get("HANDOFF_VERSIONS", "")
    return [v.strip() for v in named.split(",") if v.strip()] or list(VERSIONS)


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Bring the option ``--record-features``."""
    pluginmanager.import_plugin("tests.system.recorder")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C and SIGTERM unwind, so that the stacks end."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    # SIGINT too: a shell that starts us in the background has it ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the budget of a ``make`` target is used, set-up included."""
    budget = os.environ.get("HANDOFF_BUDGET")
    if budget:
        name, seconds, started = budget.split(":")
        terminalreporter.section("budget")
        terminalreporter.line(f"{name}: {time.time() - float(started):.0f} s of {seconds} s")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that uses a stack once per version, grouped by version."""
    if "stack" not in metafunc.fixturenames and "airflow_version" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("versions")
    versions = [v for v in selected_versions() if mark is None or v in mark.args]
    metafunc.parametrize("airflow_version", versions, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder, and let those that bring their own Airflow run before the campaigns.

    So one Airflow runs at a time, also where the session's stack of a version is still up.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.system)

    def place(item: pytest.Item) -> tuple[bool, str]:
        shared = "stack" in getattr(item, "fixturenames", ())
        callspec = getattr(item, "callspec", None)
        return shared, str(callspec.params.get("airflow_version", "")) if shared and callspec else ""

    items.sort(key=place)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose optional tool is missing; in CI that is a failure."""
    for mark in item.iter_markers("needs"):
        missing = [tool for tool in mark.args if not has_tool(tool)]
        if missing:
            reason = f"missing: {', '.join(missing)} (scripts/install-tools.sh installs them)"
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@dataclass
class Run:
    """One Dag run of the campaign, with the stack's methods bound to it."""

    stack: Stack
    dag_id: str
    run_id: str
    until: Mapping[TaskKey, Any] | None = None
    settle: bool = True
    trouble: str | None = None
    parked_at: float | None = None

    def _bound(self, name: str) -> Callable[..., Any]:
        return partial(getattr(self.stack, name), self.dag_id, self.run_id)

    def answer(self, task_id: str, options: Any, params: Any = None, **rest: Any) -> httpx.Response:
        """Answer a request of this run; see ``Stack.answer``."""
        return self._bound("answer")(task_id, options, params, **rest)  # type: ignore[no-any-return]

    def wait_tasks(self, expected: Expected, **rest: Any) -> dict[TaskKey, dict[str, Any]]:
        """Wait for task states; see ``Stack.wait_tasks``."""
        return self._bound("wait_tasks")(expected, **rest)  # type: ignore[no-any-return]

    def wait_run(self, *states: Any, **rest: Any) -> str:
        """Wait for the run's state; see ``Stack.wait_run``."""
        return self._bound("wait_run")(*states, **rest)  # type: ignore[no-any-return]

    def wait_settled(self, **rest: Any) -> list[dict[str, Any]]:
        """Wait until something is parked and nothing else moves, and until answers are safe."""
        found: list[dict[str, Any]] = self._bound("wait_settled")(**rest)
        time.sleep(SETTLE)
        return found

    def task_instances(self) -> list[dict[str, Any]]:
        """Return the task instances of this run."""
        return self._bound("task_instances")()  # type: ignore[no-any-return]

    def task_instance(self, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """Return one task instance of this run."""
        return self._bound("task_instance")(task_id, map_index)  # type: ignore[no-any-return]

    def states(self) -> dict[TaskKey, str | None]:
        """Return the state of each task: by name, mapped ones by name and index."""
        return {
            t["task_id"] if t["map_index"] == -1 else (t["task_id"], t["map_index"]): t["state"]
            for t in self.task_instances()
        }

    def hitl(self, **params: Any) -> list[dict[str, Any]]:
        """Return the requests of this run."""
        return self._bound("hitl")(**params)  # type: ignore[no-any-return]

    def clear(self, task_ids: Any, **options: Any) -> None:
        """Clear tasks of this run."""
        self._bound("clear")(task_ids, **options)

    def task_log(self, task_id: str, try_number: int = 1, map_index: int = -1) -> str:
        """Return a task log of this run as text."""
        return self._bound("task_log")(task_id, try_number, map_index)  # type: ignore[no-any-return]

    def xcom(self, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        """Return an XCom of this run."""
        return self._bound("xcom")(task_id, key, map_index)

    def describe(self) -> str:
        """Return states and failed logs of this run, for messages."""
        return str(self._bound("describe")())


@dataclass
class Campaign:
    """All runs that the selected tests of one version want."""

    stack: Stack
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def add(self, item: pytest.Item) -> None:
        """Trigger the runs of one test."""
        wanted = self.runs.setdefault(item.nodeid, [])
        for number, mark in enumerate(reversed(list(item.iter_markers("run")))):
            dag_id = mark.args[0]
            name = re.sub(r"\W+", "_", item.name)[:60]
            digest = hashlib.sha256(item.nodeid.encode()).hexdigest()[:8]
            run = Run(
                self.stack,
                dag_id,
                f"{name}_{digest}_{number}",
                until=mark.kwargs.get("until"),
                settle=mark.kwargs.get("settle", True),
            )
            wanted.append(run)
            try:
                self.stack.trigger(dag_id, mark.kwargs.get("conf"), run.run_id)
            except StackError as error:
                self.stack.check()
                run.trouble = str(error)

    def wait(self, timeout: float = 240.0) -> None:
        """Wait until every run stands where its test wants it; a run that does not fails its test only."""
        waiting = [run for runs in self.runs.values() for run in runs if run.trouble is None]
        deadline = time.monotonic() + timeout
        while waiting and time.monotonic() < deadline:
            self.stack.check()
            waiting = [run for run in waiting if not self._stands(run)]
            time.sleep(0.5)
        for run in waiting:
            run.trouble = f"not parked after {timeout:.0f} s\n{run.describe()}\n{self.stack.tails()}"

    def _stands(self, run: Run) -> bool:
        if run.until is not None and not run.until:
            return True
        instances = run.task_instances()
        states: dict[TaskKey, Any] = {(t["task_id"], t["map_index"]): t["state"] for t in instances}
        states.update({t["task_id"]: t["state"] for t in instances if t["map_index"] == -1})
        if run.until is None:
            stands = self.stack.is_settled(instances) or self._ended(run)
        else:
            stands = all(
                states.get(key) in ({want} if want is None or isinstance(want, str) else set(want))
                for key, want in run.until.items()
            )
            if not stands and self._ended(run):
                run.trouble = f"ended before it reached {run.until}\n{run.describe()}"
                stands = True
        if stands:
            run.parked_at = time.monotonic()
        return stands

    def _ended(self, run: Run) -> bool:
        return self.stack.run(run.dag_id, run.run_id)["state"] in RUN_FINISHED


@pytest.fixture(scope="session")
def stack(airflow_version: str) -> Iterator[Stack]:
    """A running Airflow of the version under test, shared by all tests of that version."""
    folders = [ROOT / "tests" / "system" / "dags", ROOT / "example_dags"]
    dags = [folder for folder in folders if any(folder.glob("*.py"))]
    with Stack(airflow_version, dags, env=CAMPAIGN_ENV) as running:
        yield running


@pytest.fixture(scope="session")
def campaign(stack: Stack, request: pytest.FixtureRequest) -> Campaign:
    """The runs of all selected tests of this version, triggered together and parked."""
    campaign = Campaign(stack)
    for item in request.session.items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("airflow_version") == stack.version:
            campaign.add(item)
    campaign.wait()
    return campaign


@pytest.fixture
def runs(campaign: Campaign, request: pytest.FixtureRequest) -> list[Run]:
    """The runs that this test's marks name, parked and old enough to be answered."""
    mine = campaign.runs[request.node.nodeid]
    for run in mine:
        if run.trouble is not None:
            pytest.fail(f"{run.dag_id} {run.run_id}: {run.trouble}", pytrace=False)
        if run.settle and run.parked_at is not None:
            time.sleep(max(0.0, run.parked_at + SETTLE - time.monotonic()))
    return mine


@pytest.fixture
def run(runs: list[Run]) -> Run:
    """The run that this test's (first) mark names."""
    return runs[0]
