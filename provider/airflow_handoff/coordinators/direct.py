"""The coordinator that starts no process on the worker: something that is there already does the work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from airflow_handoff.compat.coordinator import BadRequest, BaseCoordinator, TaskSupervisor
from airflow_handoff.exceptions import HandoffError
from airflow_handoff.wire.ending import settle
from airflow_handoff.wire.requests import Terminal


class RequestFailed(HandoffError):
    """A request that Airflow refused.

    :param reply: the error as a runtime would get it.
    """

    def __init__(self, reply: Mapping[str, Any]) -> None:
        super().__init__(f"Airflow refused the request: {reply.get('detail') or reply}")
        self.reply = reply


class RunningTask:
    """One attempt of a task, as :meth:`DirectCoordinator.run_task` sees it.

    :param supervisor: Airflow's side.
    :param details: the startup details: ``ti``, ``ti_context``, ``dag_rel_path`` and more.
    """

    def __init__(self, supervisor: TaskSupervisor, details: Mapping[str, Any]) -> None:
        self._supervisor = supervisor
        self.details = details

    @property
    def should_retry(self) -> bool:
        """Whether a failed attempt would be followed by another."""
        return self._supervisor.should_retry

    def ask(self, type_name: str, **fields: Any) -> dict[str, Any] | None:
        """Send one of the wire's requests and return the body of the reply.

        :raises RequestFailed: where Airflow does not fulfil it.
        """
        try:
            model = self._supervisor.parse({"type": type_name, **fields})
        except BadRequest as bad:
            raise RequestFailed({"detail": bad.reason}) from bad
        body, error = self._supervisor.answer(model, 0, None)
        if error is not None:
            raise RequestFailed(error)
        return body

    def log(self, text: str, level: int = 20, **fields: Any) -> None:
        """Write a line to the task log."""
        self._supervisor.emit(level, text, fields)

    def heartbeat(self) -> bool:
        """Keep the task alive; call it every few seconds.

        :returns: False where Airflow wants the task gone: stop the work and return.
        """
        if not self._supervisor.is_gone:
            self._supervisor.heartbeat()
        return not self._supervisor.is_gone


class DirectCoordinator(BaseCoordinator):
    """Runs a task by a method call; a subclass says what that does. Safe to use from many threads."""

    def run_task(self, task: RunningTask) -> Terminal:
        """Do the work and return how it ended, one of the wire's terminal messages.

        An exception fails the task, or retries it where a retry is left.
        """
        raise NotImplementedError(f"{type(self).__name__} must say what running a task is")

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
        """Run one task to its end."""
        supervisor = TaskSupervisor(
            what=what,
            client=client,
            logger=logger,
            subprocess_logs_to_stdout=subprocess_logs_to_stdout,
            pid=os.getpid(),
            schema_version=None,
            kill=lambda: None,
        )
        details = supervisor.begin(
            dag_rel_path=dag_rel_path, bundle_info=bundle_info, sentry_integration=sentry_integration
        )
        failure = self._attempt(supervisor, RunningTask(supervisor, details))
        code = 1 if failure else 0
        return self.ExecutionResult(code, supervisor.conclude(code, failure))

    def _attempt(self, supervisor: TaskSupervisor, task: RunningTask) -> str | None:
        try:
            report = self.run_task(task)
            _, body, note = settle(report, report.to_body(), should_retry=supervisor.should_retry)
            if note:
                supervisor.emit(30, note, {})
            if not supervisor.is_gone:
                task.ask(**{"type_name": body.pop("type"), **body})
        except Exception as error:
            at = datetime.now(tz=timezone.utc).isoformat()
            return f"{type(self).__name__} failed at {at}: {type(error).__name__}: {error}"
        return None
