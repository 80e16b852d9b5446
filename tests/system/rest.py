"""Airflow's REST API as tests use it: log in, trigger, look, answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

RUN_FINISHED = frozenset({"success", "failed"})

TaskKey = str | tuple[str, int]
Expected = Mapping[TaskKey, str | Iterable[str | None] | None]


class StackError(AssertionError):
    """What was waited for did not come; the message holds the states and the tails of the logs."""


class AirflowApi:
    """What a running Airflow answers over REST; ``Stack`` adds the processes.

    :param one_answer_at_a_time: serialise answers, for SQLite.
    """

    url: str
    passwords: dict[str, str]
    tails: Callable[[], str]
    until: Callable[..., Any]

    def __init__(self, *, one_answer_at_a_time: bool) -> None:
        self._one_answer_at_a_time = one_answer_at_a_time
        self._clients: dict[str, httpx.Client] = {}
        self._answering = threading.Lock()

    def close_clients(self) -> None:
        """Close all HTTP clients."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def client(self, user: str = "admin") -> httpx.Client:
        """Return an HTTP client that is logged in as the user."""
        if user not in self._clients:
            login = httpx.post(
                f"{self.url}/auth/token",
                json={"username": user, "password": self.passwords[user]},
                timeout=30,
                trust_env=False,
            )
            if login.status_code != 201:
                raise StackError(f"{user} cannot log in: {login.status_code} {login.text}")
            self._clients[user] = httpx.Client(
                base_url=self.url,
                headers={"Authorization": f"Bearer {login.json()['access_token']}"},
                timeout=60,
                trust_env=False,
            )
        return self._clients[user]

    def get(self, path: str, **params: Any) -> Any:
        """GET ``/api/v2/<path>`` as admin and return the JSON; any other status than 200 is an error."""
        answer = self.client().get(f"/api/v2/{path}", params=params)
        if answer.status_code != 200:
            raise StackError(f"GET {path}: {_said(answer)}\n{self.tails()}")
        return answer.json()

    def wait_dag(self, dag_id: str, *, timeout: float = 120.0) -> None:
        """Wait until the Dag is known; an import error of any file ends the wait at once."""

        def known() -> bool:
            if self.client().get(f"/api/v2/dags/{dag_id}").status_code == 200:
                return True
            errors = self.get("importErrors")["import_errors"]
            named = [e for e in errors if dag_id in Path(e["filename"]).read_text(errors="replace")]
            if named:
                raise StackError("\n".join(f"{e['filename']}: {e['stack_trace']}" for e in named))
            return False

        self.until(f"the Dag {dag_id}", known, timeout=timeout)

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Trigger a run and return its id; waits until the Dag is known."""
        self.wait_dag(dag_id)
        body: dict[str, Any] = {"logical_date": None, "conf": dict(conf or {})}
        if run_id is not None:
            body["dag_run_id"] = run_id
        answer = self.client().post(f"/api/v2/dags/{dag_id}/dagRuns", json=body)
        if answer.status_code != 200:
            raise StackError(f"cannot trigger {dag_id}: {_said(answer)}")
        return str(answer.json()["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Return the Dag run."""
        return self.get(f"dags/{dag_id}/dagRuns/{run_id}")  # type: ignore[no-any-return]

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return all task instances of a run."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.get(f"dags/{dag_id}/dagRuns/{run_id}/taskInstances", limit=100, offset=len(found))
            found += page["task_instances"]
            if len(found) >= page["total_entries"] or not page["task_instances"]:
                return found

    def task_instance(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """Return one task instance."""
        for instance in self.task_instances(dag_id, run_id):
            if (instance["task_id"], instance["map_index"]) == (task_id, map_index):
                return instance
        raise StackError(f"{dag_id} {run_id} has no {task_id}[{map_index}]")

    def hitl(self, dag_id: str, run_id: str, **params: Any) -> list[dict[str, Any]]:
        """Return the requests of a run, answered or not, as Airflow's own API shows them."""
        found: list[dict[str, Any]] = []
        path = f"dags/{dag_id}/dagRuns/{run_id}/hitlDetails"
        while True:
            page = self.get(path, limit=100, offset=len(found), **params)
            found += page["hitl_details"]
            if len(found) >= page["total_entries"] or not page["hitl_details"]:
                return found

    def answer(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        options: str | Sequence[str],
        params: Mapping[str, Any] | None = None,
        map_index: int = -1,
        user: str = "admin",
    ) -> httpx.Response:
        """Answer a request through Airflow's own API and return its response, whatever the status.

        One answer at a time where the database is SQLite.
        """
        chosen = [options] if isinstance(options, str) else list(options)
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/{map_index}/hitlDetails"
        body = {"chosen_options": chosen, "params_input": dict(params or {})}
        if not self._one_answer_at_a_time:
            return self.client(user).patch(path, json=body)
        with self._answering:
            return self.client(user).patch(path, json=body)

    def clear(
        self, dag_id: str, run_id: str, task_ids: Sequence[str | tuple[str, int]], **options: Any
    ) -> None:
        """Clear tasks of a run, as the page's button does."""
        body = {
            "dry_run": False,
            "only_failed": False,
            "reset_dag_runs": True,
            "dag_run_id": run_id,
            "task_ids": [list(task) if isinstance(task, tuple) else task for task in task_ids],
            **options,
        }
        answer = self.client().post(f"/api/v2/dags/{dag_id}/clearTaskInstances", json=body)
        if answer.status_code != 200:
            raise StackError(f"cannot clear {task_ids}: {_said(answer)}")

    def task_log(
        self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, map_index: int = -1
    ) -> str:
        """Return a task log as text: one line for each record, ``level event key=value ...``."""
        answer = self.client().get(
            f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}",
            params={"map_index": map_index, "full_content": True},
            headers={"Accept": "application/json"},
        )
        if answer.status_code != 200:
            return f"(no log: {answer.status_code} {answer.text[:500]})"
        content = answer.json()["content"]
        return (
            "\n".join(_log_line(record) for record in content) if isinstance(content, list) else str(content)
        )

    def xcom(
        self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = -1
    ) -> Any:
        """Return an XCom value, or ``None`` where there is none."""
        answer = self.client().get(
            f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}",
            params={"map_index": map_index},
        )
        if answer.status_code == 404:
            return None
        if answer.status_code != 200:
            raise StackError(f"cannot read XCom {key} of {task_id}: {_said(answer)}")
        value = answer.json()["value"]
        if isinstance(value, str):
            # The API hands out what is stored: JSON text.
            try:
                return json.loads(value)
            except ValueError:
                return value
        return value


def _said(answer: httpx.Response) -> str:
    return f"{answer.status_code} {answer.text[:2000]}"


def _log_line(record: Any) -> str:
    if not isinstance(record, dict):
        return str(record)
    rest = {k: v for k, v in record.items() if k not in ("event", "level", "timestamp") and v is not None}
    fields = " ".join(f"{key}={value}" for key, value in rest.items())
    return f"{record.get('level') or ''} {record.get('event')} {fields}".strip()
