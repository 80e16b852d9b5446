"""The coordinator that runs any program which speaks the wire: the base of the four, and of a fifth."""

from __future__ import annotations

import difflib
import inspect
import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_handoff.compat.coordinator import (
    BaseCoordinator,
    host_environment,
    known_schema_versions,
    logging_environment,
)
from airflow_handoff.coordinators.language import Language, several
from airflow_handoff.coordinators.launch import (
    SCHEMA_POLICIES,
    CoordinatorMisconfigured,
    Launch,
    SchemaPolicy,
    apply_policy,
)
from airflow_handoff.coordinators.run import Prepared, RunSettings, TaskRun
from airflow_handoff.process import allowed_environment
from airflow_handoff.wire.frames import DEFAULT_MAX_FRAME
from airflow_handoff.wire.lines import DEFAULT_MAX_LINE
from airflow_handoff.wire.states import Limits

_INFO, _WARNING = 20, 30


class SubprocessCoordinator(Language, BaseCoordinator):
    """Runs each task in a program of its own, under Airflow's supervisor; safe to use from many threads.

    A language is a subclass with two methods: :meth:`~Language.read_bundle` says which files are bundles, and
    :meth:`~Language.command` how one is run. Everything below is a keyword of ``[sdk] coordinators``. What
    is wrong with them is said in the log of every task that would have run.

    :param bundles_root: a folder, or several, that are searched for bundles with everything below them.
    :param task_startup_timeout: seconds that a program has to connect.
    :param execution_timeout: seconds that a task may take once it has started; a value in a bundle's metadata
        goes before. No limit by default.
    :param kill_grace: seconds between TERM and KILL when a tree is ended.
    :param schema_policy: ``strict``, ``newest-known`` or ``unmigrated``.
    :param env: set for the program, whatever the worker has.
    :param pass_env: names that are passed on beyond the allow-list; ``*`` is a wildcard.
    :param logging_settings: further names of ``[logging]`` that are passed on as environment variables.
    :param max_frame: the largest message, in bytes.
    :param max_line: the longest line of a log, in bytes; longer ones are cut with a mark.
    """

    def __init__(
        self,
        *,
        bundles_root: Any = (),
        task_startup_timeout: float = 10.0,
        execution_timeout: float | None = None,
        kill_grace: float = 5.0,
        schema_policy: SchemaPolicy = "newest-known",
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        logging_settings: Sequence[str] = (),
        max_frame: int = DEFAULT_MAX_FRAME,
        max_line: int = DEFAULT_MAX_LINE,
        **unknown: Any,
    ) -> None:
        super().__init__(bundles_root=bundles_root)
        self.schema_policy = schema_policy
        self.env = env if isinstance(env, Mapping) else {}
        self.pass_env = several(pass_env)
        self.logging_settings = several(logging_settings)
        self.settings = RunSettings(
            startup_timeout=task_startup_timeout,
            execution_timeout=execution_timeout,
            kill_grace=kill_grace,
            limits=Limits(max_frame=max_frame, max_line=max_line),
        )
        # Airflow reports an error of a constructor as "Cannot instantiate coordinator", and not to the task.
        self.problems = (
            *self._unknown_keywords(unknown),
            *self._wrong_values(),
            *self._wrong_texts(bundles_root, env),
        )
        self._said_what_is_withheld = threading.Event()

    # -- what Airflow calls

    def execute_task(
        self,
        *,
        what: Any,
        dag_rel_path: Any,
        bundle_info: Any,
        client: Any,
        logger: Any = None,
        sentry_integration: str = "",
        subprocess_logs_to_stdout: bool = False,
        **kwargs: Any,
    ) -> BaseCoordinator.ExecutionResult:
        """Run one task to its end.

        :param kwargs: what later versions of Airflow pass; kept for :meth:`launch`.
        """
        task = {
            "what": what,
            "dag_rel_path": dag_rel_path,
            "bundle_info": bundle_info,
            "client": client,
            "logger": logger,
            "sentry_integration": sentry_integration,
            "subprocess_logs_to_stdout": subprocess_logs_to_stdout,
        }
        code, state = TaskRun(self.settings, lambda: self._prepare(what, kwargs), task).run()
        return self.ExecutionResult(code, state)

    def launch(self, what: Any, **kwargs: Any) -> Launch:
        """Say what is started for a task; the bundle that has its Dag unless a subclass knows better.

        :param what: Airflow's task instance.
        :param kwargs: what else Airflow passed to :meth:`execute_task`.
        :raises HandoffError: where there is nothing to start, with the line for the task log.
        """
        return self.find(what.dag_id, what.task_id)

    # -- preparing

    def _prepare(self, what: Any, kwargs: Mapping[str, Any]) -> Prepared:
        if self.problems:
            return Prepared(failure=f"{type(self).__name__} cannot run tasks: {'; '.join(self.problems)}")
        launch = self.launch(what, **kwargs)
        notes = [(_WARNING, note) for note in launch.notes]
        spoken = launch.schema_version
        version, decided = apply_policy(self.schema_policy, spoken, known_schema_versions(spoken))
        notes.append((_INFO, f"Starting {launch.what or launch.command[0]}: {decided}"))
        environment = allowed_environment(
            host_environment(),
            pass_env=self.pass_env,
            env={**logging_environment(self.logging_settings), **launch.environment, **self.env},
        )
        if environment.withheld and not self._said_what_is_withheld.is_set():
            self._said_what_is_withheld.set()
            names = ", ".join(environment.withheld)
            text = f"Withheld from the program's environment (pass_env passes them on): {names}"
            notes.append((_INFO, text))
        return Prepared(launch, version, environment.values, notes)

    # -- problems of the configuration

    def _unknown_keywords(self, unknown: Mapping[str, Any]) -> list[str]:
        known = sorted(
            {
                name
                for cls in type(self).__mro__
                if cls not in (object, Language)
                for name, parameter in inspect.signature(cls).parameters.items()
                if parameter.kind is inspect.Parameter.KEYWORD_ONLY
            }
        )
        found = []
        for name in unknown:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
            found.append(f"it does not take {name!r}, {hint}")
        return found

    def _wrong_values(self) -> list[str]:
        found = []
        if self.schema_policy not in SCHEMA_POLICIES:
            near = difflib.get_close_matches(str(self.schema_policy), SCHEMA_POLICIES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(SCHEMA_POLICIES)}"
            found.append(f"schema_policy is {self.schema_policy!r}, {hint}")
        for name in ("startup_timeout", "execution_timeout", "kill_grace"):
            value = getattr(self.settings, name)
            if value is None and name == "execution_timeout":
                continue
            seconds = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (seconds and math.isfinite(value) and value >= 0):
                shown = f"task_{name}" if name == "startup_timeout" else name
                found.append(f"{shown} is {value!r}, a number of seconds was expected")
        for name in ("max_frame", "max_line"):
            value = getattr(self.settings.limits, name)
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                found.append(f"{name} is {value!r}, a number of bytes was expected")
        return found

    def _wrong_texts(self, roots: Any, env: Any) -> list[str]:
        named = [(name, getattr(self, name)) for name in (*self.texts, "pass_env", "logging_settings")]
        found = [
            f"{name} has {value!r}, a text was expected"
            for name, values in ((self.root_name, roots), *named)
            for value in several(values)
            if not isinstance(value, (str, os.PathLike))
        ]
        if env is not None and not isinstance(env, Mapping):
            # Never a value: this is where secrets are, and nothing has told Airflow to mask them.
            found.append(f"env is a {type(env).__name__}, names with their values were expected")
        for name, value in self.env.items():
            if not isinstance(value, str):
                found.append(
                    f"env has a value of type {type(value).__name__} for {name}, a text was expected"
                )
        return found

    # -- hooks of Airflow's next version, as far as they are known

    def _read_task_handler_candidate(self, path: Any, rel_path: Any = None, **kwargs: Any) -> Any:
        """Return the metadata of a candidate artifact, or None where it is not one."""
        return self.read_bundle(Path(path))

    def _build_task_handler_command(self, path: Any, **kwargs: Any) -> tuple[list[str], str | None]:
        """Return the command for an artifact that Airflow has chosen itself, and the schema it speaks."""
        bundle = self.read_bundle(Path(path))
        if bundle is None:
            raise CoordinatorMisconfigured(f"{path} is not a bundle of {type(self).__name__}")
        return [str(part) for part in self.command(bundle)], bundle.metadata.schema_version
