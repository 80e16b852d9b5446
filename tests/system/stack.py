"""A real Airflow for tests, demos and benchmarks: its own home, database, ports and processes.

``Stack`` runs the components of one Airflow version out of ``.venv-<version>`` and talks to them over REST
only; the process that uses it needs no Airflow.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from tests.system.processes import MARK, Component, belonging, end, free_port, undisturbed
from tests.system.rest import RUN_FINISHED, AirflowApi, Expected, StackError, TaskKey
from tests.system.services import Postgres, Redis

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.1", "3.2", "3.3")
USERS: Mapping[str, str] = {
    "admin": "admin",
    "alice": "user",
    "bob": "user",
    "carol": "user",
    "operator": "op",
    "viewer": "viewer",
}
_MOVING = frozenset({"scheduled", "queued", "running", "restarting", "up_for_retry", "up_for_reschedule"})


class Stack(AirflowApi):
    """A running Airflow.

    :param version: ``3.1``, ``3.2`` or ``3.3``: the environment ``.venv-<version>`` is used.
    :param dags_folder: one folder, or several, each of which becomes a Dag bundle.
    :param database: ``sqlite``, or ``postgresql`` for a private server, or an SQLAlchemy URL of an empty
        database.
    :param executor: ``LocalExecutor`` or ``CeleryExecutor`` (with a private Redis).
    :param queues: what the Celery worker listens on; a task of another queue stays queued.
    :param env: extra environment for all components; wins over what the stack sets.
    :param users: user name to role of the simple auth manager (viewer, user, op, admin).
    :param home: folder for config, database and logs; a temporary one, removed at the end, where left out.
    :param plugins_folder: where Airflow looks for plugin modules.
    :param verbose: called with one line for each phase of the start.
    """

    def __init__(
        self,
        version: str,
        dags_folder: Path | str | Sequence[Path | str],
        *,
        database: str = "sqlite",
        executor: str = "LocalExecutor",
        queues: Sequence[str] = ("default",),
        env: Mapping[str, str] | None = None,
        users: Mapping[str, str] = USERS,
        home: Path | None = None,
        plugins_folder: Path | None = None,
        verbose: Callable[[str], None] | None = None,
    ) -> None:
        self.version = version
        folders = [dags_folder] if isinstance(dags_folder, str | Path) else list(dags_folder)
        self.dags_folders = [Path(folder).resolve() for folder in folders]
        self.database = database
        self.executor = executor
        self.queues = tuple(queues)
        self.users = dict(users)
        self.passwords = {name: secrets.token_urlsafe(12) for name in users}
        self.plugins_folder = plugins_folder
        self.parked_state = "awaiting_input" if version == "3.3" else "deferred"
        self.venv = ROOT / f".venv-{version}"
        self.port = 0
        self.url = ""
        self.home = home or Path()
        self.mark = uuid.uuid4().hex
        self._own_home = home is None
        self._extra = dict(env or {})
        self._say = verbose or (lambda line: None)
        self._services = ExitStack()
        self._components: dict[str, Component] = {}
        self._ended: list[Component] = []
        super().__init__(one_answer_at_a_time=database == "sqlite")

    # --- start and end -------------------------------------------------------------------------------

    def __enter__(self) -> Stack:
        if not (self.venv / "bin" / "airflow").exists():
            raise StackError(f"no Airflow in {self.venv}: run `make venv AIRFLOW={self.version}`")
        if self._own_home:
            self.home = Path(tempfile.mkdtemp(prefix=f"handoff-{self.version}-"))
        self.home.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        try:
            self.env = self._environment()
            self._say("creating the database")
            self.airflow("db", "migrate")
            for name in self.component_names:
                self.start(name)
            self._say("starting " + ", ".join(self.component_names))
            self.wait_healthy()
        except BaseException as error:
            self._close(failed=not isinstance(error, KeyboardInterrupt))
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(failed=kind is not None and kind is not KeyboardInterrupt)

    def _close(self, *, failed: bool) -> None:
        self.close_clients()
        with undisturbed():
            try:
                end([*self._components.values(), *self._ended], self.mark)
            finally:
                self._services.close()
        if failed or os.environ.get("HANDOFF_KEEP_HOME"):
            print(f"the home of Airflow {self.version} is kept: {self.home}", file=sys.stderr)  # noqa: T201
        elif self._own_home:
            shutil.rmtree(self.home, ignore_errors=True)

    @property
    def component_names(self) -> tuple[str, ...]:
        """The components of this version and executor."""
        names = ["api-server", "scheduler", "dag-processor"]
        if self.version != "3.3":
            names.append("triggerer")
        if self.executor == "CeleryExecutor":
            names.append("worker")
        return tuple(names)

    def _command(self, name: str) -> list[str]:
        airflow = str(self.venv / "bin" / "airflow")
        return {
            "api-server": [airflow, "api-server", "--host", "127.0.0.1", "--port", str(self.port)],
            "scheduler": [airflow, "scheduler", "--skip-serve-logs"],
            "dag-processor": [airflow, "dag-processor"],
            "triggerer": [airflow, "triggerer", "--skip-serve-logs"],
            "worker": [
                *(airflow, "celery", "worker", "--skip-serve-logs", "--concurrency", "4"),
                *("--queues", ",".join(self.queues)),
            ],
        }[name]

    def _environment(self) -> dict[str, str]:
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "HANDOFF_", "PYTEST_"))}
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            keep.pop(name, None)
        home = self.home
        passwords = home / "passwords.json"
        passwords.write_text(json.dumps(self.passwords))
        bundles = [
            {
                "name": "dags-folder" if number == 0 else f"dags-folder-{number}",
                "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
                "kwargs": {"path": str(folder), "refresh_interval": 5},
            }
            for number, folder in enumerate(self.dags_folders)
        ]
        settings = {
            "CORE__DAGS_FOLDER": str(self.dags_folders[0]),
            "CORE__PLUGINS_FOLDER": str(self.plugins_folder or home / "plugins"),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "CORE__EXECUTOR": self.executor,
            "CORE__PARALLELISM": "8",
            "CORE__MAX_ACTIVE_TASKS_PER_DAG": "256",
            "CORE__MAX_ACTIVE_RUNS_PER_DAG": "256",
            "CORE__DEFAULT_POOL_TASK_SLOT_COUNT": "512",
            "CORE__FERNET_KEY": "",
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{n}:{r}" for n, r in self.users.items()),
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "API__BASE_URL": self.url,
            "API__SECRET_KEY": secrets.token_hex(16),
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "DATABASE__SQL_ALCHEMY_CONN": self._database_url(),
            "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
            "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "2",
            "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
            "LOGGING__COLORED_CONSOLE_LOG": "False",
            "USAGE_DATA_COLLECTION__ENABLED": "False",
        }
        if self.executor == "CeleryExecutor":
            redis = self._services.enter_context(Redis())
            settings["CELERY__BROKER_URL"] = redis.url
            settings["CELERY__RESULT_BACKEND"] = "db+" + settings["DATABASE__SQL_ALCHEMY_CONN"]
        return {
            **keep,
            "AIRFLOW_HOME": str(home),
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "PATH": f"{self.venv / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
            MARK: self.mark,
            **{f"AIRFLOW__{key}": value for key, value in settings.items()},
            **self._extra,
        }

    def _database_url(self) -> str:
        if self.database == "sqlite":
            return f"sqlite:///{self.home / 'airflow.db'}?timeout=120"
        if self.database == "postgresql":
            return self._services.enter_context(Postgres()).create("airflow")
        return self.database

    def airflow(self, *arguments: str, check: bool = True) -> str:
        """Run one ``airflow`` command in the stack's environment and return what it printed."""
        done = subprocess.run(
            [str(self.venv / "bin" / "airflow"), *arguments],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise StackError(
                f"`airflow {' '.join(arguments)}` exited {done.returncode}:\n{done.stdout[-4000:]}"
            )
        return done.stdout

    def start(self, name: str) -> None:
        """Start one component; returns before it is ready."""
        command = self._command(name)
        log = self.home / f"{name}.log"
        self._components[name] = Component(name, command, env=self.env, log=log, cwd=self.home)

    def stop(self, name: str) -> None:
        """Kill one component and all its children; its end is then expected."""
        component = self._components.pop(name)
        end([component])
        self._ended.append(component)

    @contextmanager
    def beside(self, name: str, *, path: str = "", env: Mapping[str, str] | None = None) -> Iterator[str]:
        """Run a second api-server on the same database and yield its address.

        :param path: what its ``base_url`` has after the host.
        :param env: what differs in its environment.
        """
        port = free_port()
        url = f"http://127.0.0.1:{port}{path}"
        component = Component(
            name,
            [str(self.venv / "bin" / "airflow"), "api-server", "--host", "127.0.0.1", "--port", str(port)],
            env={**self.env, "AIRFLOW__API__BASE_URL": url, **(env or {})},
            log=self.home / f"{name}.log",
            cwd=self.home,
        )

        def ready() -> bool:
            try:
                return httpx.get(f"{url}/api/v2/version", timeout=5, trust_env=False).status_code == 200
            except httpx.TransportError:
                return False

        try:
            self.until(f"the api-server {name}", ready)
            yield url
        finally:
            end([component])

    def restart(self, name: str) -> None:
        """Kill and start one component, and wait until the stack is healthy again."""
        self.stop(name)
        self.start(name)
        self.wait_healthy()

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each component."""
        return {name: component.pid for name, component in self._components.items()}

    def processes(self) -> list[int]:
        """Return the ids of all living processes of this stack."""
        return [process.pid for process in belonging(self._components.values(), self.mark)]

    # --- waiting -------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise if a component has died."""
        for component in self._components.values():
            code = component.returncode()
            if code is not None:
                raise StackError(
                    f"the {component.name} of Airflow {self.version} died with exit code {code}:\n"
                    + component.tail(60)
                )

    def tails(self, lines: int = 15) -> str:
        """Return the ends of all component logs."""
        return "\n".join(
            f"----- {name} ({component.log})\n{component.tail(lines)}"
            for name, component in self._components.items()
        )

    def until(
        self, what: str, probe: Callable[[], Any], *, timeout: float = 180.0, every: float = 0.25
    ) -> Any:
        """Poll until ``probe`` returns something true, and return that.

        :param what: for the failure message.
        :param timeout: seconds; generous, since a component that dies is noticed at once.
        """
        deadline = time.monotonic() + timeout
        while True:
            self.check()
            found = probe()
            if found:
                return found
            if time.monotonic() > deadline:
                raise StackError(f"after {timeout:.0f} s still waiting for {what}\n{self.tails()}")
            time.sleep(every)

    def wait_healthy(self, timeout: float = 180.0) -> None:
        """Wait until the health endpoint calls every started component healthy."""
        watched = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}
        wanted = ["metadatabase", *(watched[name] for name in self._components if name in watched)]

        def healthy() -> bool:
            try:
                answer = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5, trust_env=False)
                body = answer.json() if answer.status_code == 200 else {}
            except (httpx.HTTPError, ValueError):
                return False
            return all((body.get(name) or {}).get("status") == "healthy" for name in wanted)

        self.until("healthy " + ", ".join(wanted), healthy, timeout=timeout)

    def wait_tasks(
        self, dag_id: str, run_id: str, expected: Expected, *, timeout: float = 180.0
    ) -> dict[TaskKey, dict[str, Any]]:
        """Wait until each named task is in its (or one of its) expected states.

        A run that has ended otherwise fails at once.

        :returns: the task instances by the given keys.
        """
        wanted = {key: _as_set(states) for key, states in expected.items()}
        ended_at: list[float] = []

        def reached() -> dict[TaskKey, dict[str, Any]] | None:
            instances = self.task_instances(dag_id, run_id)
            by_key: dict[TaskKey, dict[str, Any]] = {(t["task_id"], t["map_index"]): t for t in instances}
            by_key.update({t["task_id"]: t for t in instances if t["map_index"] == -1})
            if all(key in by_key and by_key[key]["state"] in states for key, states in wanted.items()):
                return {key: by_key[key] for key in wanted}
            if self.run(dag_id, run_id)["state"] in RUN_FINISHED:
                ended_at.append(time.monotonic())
                if ended_at[-1] - ended_at[0] > 5:
                    states = {key: by_key.get(key, {}).get("state") for key in wanted}
                    raise StackError(
                        f"{dag_id} {run_id} has ended; expected {wanted}, found {states}\n{self.tails()}"
                    )
            else:
                ended_at.clear()
            return None

        try:
            return self.until(f"{dag_id} {run_id} to reach {wanted}", reached, timeout=timeout)  # type: ignore[no-any-return]
        except StackError as error:
            raise StackError(f"{error}\n{self.describe(dag_id, run_id)}") from None

    def wait_run(
        self, dag_id: str, run_id: str, states: Iterable[str] = RUN_FINISHED, *, timeout: float = 180.0
    ) -> str:
        """Wait until the run is in one of the states, and return which."""
        wanted = set(states)

        def reached() -> str | None:
            state = str(self.run(dag_id, run_id)["state"])
            if state not in wanted and state in RUN_FINISHED:
                raise StackError(f"{dag_id} {run_id} ended {state}, expected {wanted}")
            return state if state in wanted else None

        try:
            return str(self.until(f"{dag_id} {run_id} to be {wanted}", reached, timeout=timeout))
        except StackError as error:
            raise StackError(f"{error}\n{self.describe(dag_id, run_id)}") from None

    def wait_settled(self, dag_id: str, run_id: str, *, timeout: float = 180.0) -> list[dict[str, Any]]:
        """Wait until something is parked and nothing else is on its way, or the run has ended."""

        def settled() -> list[dict[str, Any]] | None:
            instances = self.task_instances(dag_id, run_id)
            if self.is_settled(instances) or self.run(dag_id, run_id)["state"] in RUN_FINISHED:
                return instances
            return None

        return self.until(f"{dag_id} {run_id} to park", settled, timeout=timeout)  # type: ignore[no-any-return]

    def is_settled(self, instances: Iterable[Mapping[str, Any]]) -> bool:
        """Tell whether at least one task is parked and none is being run."""
        states = {instance["state"] for instance in instances}
        return self.parked_state in states and not states & _MOVING

    def describe(self, dag_id: str, run_id: str) -> str:
        """Return the task states of a run and the logs of its failed tasks, for messages."""
        lines = [f"{dag_id} {run_id}: {self.run(dag_id, run_id)['state']}"]
        for instance in self.task_instances(dag_id, run_id):
            index = "" if instance["map_index"] == -1 else f"[{instance['map_index']}]"
            lines.append(f"  {instance['task_id']}{index} try {instance['try_number']}: {instance['state']}")
            if instance["state"] in ("failed", "up_for_retry"):
                where = (dag_id, run_id, instance["task_id"], instance["try_number"], instance["map_index"])
                lines += ["    " + line for line in self.task_log(*where).splitlines()[-25:]]
        return "\n".join(lines)


def _as_set(states: str | Iterable[str | None] | None) -> frozenset[str | None]:
    return frozenset({states}) if states is None or isinstance(states, str) else frozenset(states)
