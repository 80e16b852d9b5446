"""Airflow's real ``supervise_task`` around our coordinators, with the API server played by a script."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

#: The head of every runtime of these tests.
RUNTIME = (Path(__file__).parents[2] / "runtimes" / "kit.py").read_text()


@dataclass
class FakeApi:
    """The execution API of one task instance: what was asked and what it says."""

    should_retry: bool = False
    max_tries: int = 0
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    xcoms: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    connections: dict[str, dict[str, Any]] = field(default_factory=dict)
    next_method: str | None = None
    next_kwargs: dict[str, Any] | None = None
    refuse: dict[str, tuple[int, Any]] = field(default_factory=dict)
    on_call: Callable[[str, str], None] = lambda method, path: None

    @property
    def states(self) -> list[str]:
        """The states that the task instance was put into, in order."""
        return [
            body["state"]
            for method, path, body in self.calls
            if method == "PATCH" and path.endswith("/state")
        ]

    def bodies(self, ending: str) -> list[Any]:
        """The bodies of all calls of one kind."""
        return [body for _, path, body in self.calls if path.endswith(ending)]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        path = request.url.path
        body = json.loads(request.content) if request.content else None
        self.calls.append((request.method, path, body))
        self.on_call(request.method, path)
        for ending, (status, detail) in self.refuse.items():
            if path.endswith(ending):
                return httpx.Response(status, json={"detail": detail})
        if path.endswith("/run"):
            return httpx.Response(200, json=self._context())
        if (
            path.endswith("/state")
            and body
            and body["state"] == "success"
            and body.get("task_outlets") is None
        ):
            return httpx.Response(422, json={"detail": "task_outlets: a list was expected"})
        if path.startswith("/variables/"):
            return self._found(
                self.variables, path.split("/")[2], lambda key, value: {"key": key, "value": value}
            )
        if path.startswith("/connections/"):
            return self._found(
                self.connections, path.split("/")[2], lambda key, value: {"conn_id": key, **value}
            )
        if path.startswith("/xcoms/"):
            if request.method == "POST":
                self.xcoms[path.split("/")[-1]] = body
                return httpx.Response(201, json={})
            return self._found(self.xcoms, path, lambda key, value: {"key": key, "value": value})
        if path.startswith("/hitlDetails"):
            if body.get("params") is None or body.get("assigned_users") is None:  # as the API server does
                return httpx.Response(422, json={"detail": "null was not expected"})
            return httpx.Response(201, json={**body, "assigned_users": body.get("assigned_users") or []})
        return httpx.Response(204)

    def _found(self, shelf: dict[str, Any], path: str, show: Callable[[str, Any], Any]) -> httpx.Response:
        key = path.split("/")[-1]
        if key not in shelf:
            return httpx.Response(404, json={"detail": {"reason": "not_found", "message": "none"}})
        return httpx.Response(200, json=show(key, shelf[key]))

    def _context(self) -> dict[str, Any]:
        now = datetime.now(tz=timezone.utc).isoformat()
        run = {
            "dag_id": "d", "run_id": "r", "logical_date": None, "data_interval_start": None,
            "data_interval_end": None, "run_after": now, "start_date": now, "end_date": None,
            "clear_number": 0, "run_type": "manual", "state": "running", "conf": {},
            "consumed_asset_events": [], "partition_key": None, "note": None,
        }  # fmt: skip
        return {
            "dag_run": run, "task_reschedule_count": 0, "max_tries": self.max_tries, "variables": [],
            "connections": [], "next_method": self.next_method, "next_kwargs": self.next_kwargs,
            "xcom_keys_to_clear": [], "should_retry": self.should_retry,
        }  # fmt: skip


@dataclass
class Result:
    """What became of a task."""

    api: FakeApi
    exit_code: int
    log_path: Path

    @property
    def state(self) -> str | None:
        """The last state that Airflow was told."""
        return self.api.states[-1] if self.api.states else None

    @property
    def log(self) -> list[dict[str, Any]]:
        """The task log's records."""
        return [json.loads(line) for line in self.log_path.read_bytes().splitlines()]

    def lines(self, *levels: str) -> list[str]:
        """The texts of the task log, of the given levels where there are any."""
        return [str(one["event"]) for one in self.log if not levels or one["level"] in levels]

    @property
    def text(self) -> str:
        """The whole task log."""
        return self.log_path.read_text()


class Stage:
    """Runs tasks through Airflow's own supervisor."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.api = FakeApi()
        self._monkeypatch = monkeypatch

    runtime = RUNTIME

    def impatient(self, seconds: float = 0.5) -> None:
        """Let heartbeats be due soon."""
        from airflow.sdk.execution_time import supervisor

        self._monkeypatch.setattr(supervisor, "MIN_HEARTBEAT_INTERVAL", seconds)

    def script(self, body: str, *, plain: bool = False, **keywords: Any) -> Result:
        """Run a runtime written in Python; ``plain`` without the preamble that connects it."""
        source = textwrap.dedent(body) if plain else RUNTIME + textwrap.dedent(body)
        path = self.folder / f"runtime_{uuid.uuid4().hex}.py"
        path.write_text(source)
        return self.command([sys.executable, str(path)], **keywords)

    def command(self, command: list[str], *, schema: str | None = "2026-06-16", **keywords: Any) -> Result:
        """Run any command as a task."""
        from airflow_handoff.coordinators.base import SubprocessCoordinator
        from airflow_handoff.coordinators.launch import Launch

        options = keywords.pop("launch", {})

        class ScriptCoordinator(SubprocessCoordinator):
            """Launches what the test says."""

            def launch(self, what: Any, **kwargs: Any) -> Launch:
                """Say it."""
                return Launch(command=command, schema_version=schema, **options)

        return self.run(ScriptCoordinator(**keywords))

    def run(self, coordinator: Any, *, dag_id: str = "d", task_id: str = "t", **start: Any) -> Result:
        """Run a task of a coordinator through ``supervise_task``."""
        from airflow.sdk.api.client import Client
        from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance
        from airflow.sdk.execution_time import supervisor

        class Manager:
            def for_queue(self, queue: str) -> Any:
                return coordinator

        self._monkeypatch.setattr(supervisor, "get_coordinator_manager", Manager)
        self._monkeypatch.setattr(supervisor, "_make_process_nondumpable", lambda: None)
        ti = TaskInstance(
            id=uuid.uuid4(), task_id=task_id, dag_id=dag_id, run_id="r", try_number=1,
            dag_version_id=uuid.uuid4(), queue="foreign",
        )  # fmt: skip
        log_path = self.folder / f"{uuid.uuid4().hex}.log"
        client = Client(base_url="http://api.invalid", token="", transport=httpx.MockTransport(self.api))
        code = supervisor.supervise_task(
            ti=ti, bundle_info=BundleInfo(name="b", version=None), dag_rel_path="dag.py", token="",
            client=client, log_path=str(log_path), **start,
        )  # fmt: skip
        return Result(self.api, code, log_path)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage of this test's own."""
    monkeypatch.setenv("AIRFLOW__CORE__UNIT_TEST_MODE", "False")
    os.environ.setdefault("AIRFLOW_HOME", str(tmp_path))
    return Stage(tmp_path, monkeypatch)
