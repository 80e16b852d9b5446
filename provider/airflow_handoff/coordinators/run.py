"""One run of one task: Airflow's supervisor, the wire's session and the hosted runtime, tied together."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_handoff.compat.coordinator import BadRequest, TaskSupervisor
from airflow_handoff.coordinators.launch import Launch
from airflow_handoff.exceptions import HandoffError, LaunchError
from airflow_handoff.process import Host, Phase
from airflow_handoff.wire.ending import describe_exit
from airflow_handoff.wire.logs import LogRecord
from airflow_handoff.wire.messages import InvalidMessage, parse_request, type_of
from airflow_handoff.wire.requests import TERMINAL, AwaitInputTask, DeferTask, RescheduleTask, RetryTask
from airflow_handoff.wire.session import RequestReceived, SupervisorSession
from airflow_handoff.wire.states import Limits, Violation
from airflow_handoff.wire.values import Request

_TERMINAL_TYPES = frozenset(cls.__name__ for cls in TERMINAL)
#: Seconds for which a task that parked may linger: its next process could already be on its way.
PARKED_LINGER = 2.0


class ForAirflow(Request, frozen=True, kw_only=True):
    """A request as Airflow's own model; the wire need not know its type.

    :param model: what Airflow's supervisor handles.
    """

    model: Any


@dataclass(frozen=True)
class RunSettings:
    """What a coordinator decides for all of its runs.

    :param startup_timeout: seconds until both channels must be connected.
    :param execution_timeout: seconds from the start of the task to its end; None for no limit.
    :param kill_grace: seconds between TERM and KILL.
    :param limits: of frames and lines, in bytes.
    """

    startup_timeout: float = 10.0
    execution_timeout: float | None = None
    kill_grace: float = 5.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Prepared:
    """A launch with everything that was decided about it.

    :param launch: None where there is nothing to launch, and ``failure`` says why.
    :param schema_version: what messages are translated to.
    :param environment: all that the runtime sees.
    :param notes: level and text of lines for the task log.
    :param failure: one line.
    """

    launch: Launch | None = None
    schema_version: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[tuple[int, str]] = ()
    failure: str | None = None


class TaskRun:
    """Runs one task to its end; used once, by one thread.

    :param settings: the coordinator's.
    :param prepare: finds what to launch; called while the guard process boots.
    :param task: Airflow's keyword arguments of ``execute_task``.
    """

    def __init__(
        self, settings: RunSettings, prepare: Callable[[], Prepared], task: Mapping[str, Any]
    ) -> None:
        self._settings = settings
        self._prepare = prepare
        self._task = task
        self._failure: str | None = None
        self._stopping = False
        self._signal: int | None = None
        self._deadline = self._linger = float("inf")
        self._heartbeat_due = 0.0
        self._limit = settings.execution_timeout

    def run(self) -> tuple[int, str]:
        """Return the exit code and the final state of the task.

        :raises Exception: where the API server refuses the start.
        """
        with self._listening_to_signals():
            try:
                self._host = Host(self, startup_timeout=self._settings.startup_timeout)
            except LaunchError as error:
                return self._fail_without_a_host(str(error))
            try:
                prepared = self._prepared()
                self._begin(prepared)
                self._loop()
            finally:
                self._host.close()
            return self._conclude()

    # -- beginning

    def _prepared(self) -> Prepared:
        try:
            return self._prepare()
        except HandoffError as error:
            return Prepared(failure=str(error))
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            return Prepared(
                failure=f"The coordinator could not prepare the task: {type(error).__name__}: {error}",
                notes=[(40, trace)],
            )

    def _supervise(self, pid: int, schema_version: str | None, kill: Callable[[], None]) -> TaskSupervisor:
        return TaskSupervisor(
            what=self._task["what"],
            client=self._task["client"],
            logger=self._task.get("logger"),
            subprocess_logs_to_stdout=bool(self._task.get("subprocess_logs_to_stdout")),
            pid=pid,
            schema_version=schema_version,
            kill=kill,
        )

    def _tell_of_the_start(self) -> dict[str, Any]:
        return self._supervisor.begin(
            dag_rel_path=self._task["dag_rel_path"],
            bundle_info=self._task["bundle_info"],
            sentry_integration=self._task.get("sentry_integration", ""),
        )

    def _fail_without_a_host(self, failure: str) -> tuple[int, str]:
        """Fail a task for which this worker has no process left: the task log says so, and Airflow hears."""
        self._supervisor = self._supervise(os.getpid(), None, lambda: None)
        self._tell_of_the_start()
        return 1, self._supervisor.conclude(1, failure)

    def _begin(self, prepared: Prepared) -> None:
        self._supervisor = self._supervise(self._host.pid, prepared.schema_version, self._kill_tree)
        self._session = SupervisorSession(limits=self._settings.limits, parse=self._parse)
        for level, text in prepared.notes:
            self._supervisor.emit(level, text, {})
        launch = prepared.launch
        if launch is not None:
            self._limit = launch.execution_timeout or self._limit
            # Not before the API server agreed would be later: the runtime boots while it is asked.
            command = [str(part) for part in launch.command]  # a language may well name a path
            directory = None if launch.directory is None else str(launch.directory)
            self._host.launch(command, dict(prepared.environment), directory)
        details = self._tell_of_the_start()
        if launch is None:
            self._failure = prepared.failure
            self._host.stop(0)
            return
        self._session.start(details)
        self._pump()

    # -- turning

    def _loop(self) -> None:
        host = self._host
        while host.phase is not Phase.ENDED:
            wait = min(self._deadline, self._linger, self._heartbeat_due) - time.monotonic()
            if (wait <= 0 or self._signal is not None) and host.phase in (Phase.BOOTING, Phase.RUNNING):
                self._watch()
                wait = 0.0
            host.step(wait)

    def _watch(self) -> None:
        if self._stopping:
            self._heartbeat_due = float("inf")
            self._signal = None
            return
        now = time.monotonic()
        if self._signal is not None:
            name = signal.Signals(self._signal).name
            self._stop(f"The worker was told to stop ({name}) while the task ran.")
        elif now >= self._deadline:
            self._deadline = float("inf")
            reason = f"The task ran past its execution_timeout of {self._limit:g} s and was stopped."
            self._session.break_off(reason)
            self._stop(reason)
        elif now >= self._linger:
            self._linger = float("inf")
            done = "had reported" if self._session.report is not None else "had closed its channel"
            self._supervisor.emit(30, f"The program still ran after it {done}, and was stopped.", {})
            self._stop(None)
        else:
            self._supervisor.heartbeat()
            self._heartbeat_due = now + max(self._supervisor.seconds_to_heartbeat, 0.1)

    def _stop(self, reason: str | None) -> None:
        self._stopping = True
        self._failure = self._failure or reason
        self._deadline = self._linger = float("inf")
        self._host.stop(self._settings.kill_grace)

    def _kill_tree(self) -> None:
        self._stop(None)
        while self._host.phase is not Phase.ENDED:
            self._host.step(1)

    @contextlib.contextmanager
    def _listening_to_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # Python delivers signals to the main thread only
            return

        def heed(number: int, frame: Any) -> None:
            self._signal = number
            with contextlib.suppress(AttributeError):  # before there is a host
                self._host.wake()

        before = {number: signal.signal(number, heed) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- the host's receiver

    def connected(self) -> None:
        """Start the task's clock."""
        if self._limit is not None:
            self._deadline = time.monotonic() + self._limit

    def comm(self, data: bytes) -> None:
        """Answer what the runtime asks."""
        for event in self._session.receive_comm(data):
            if isinstance(event, RequestReceived):
                self._answer(event)
            elif isinstance(event, Violation):
                self._stop(f"The program broke the wire: {event.reason}; it was stopped.")
        self._pump()
        if not data and self._session.report is None:
            self._linger = time.monotonic() + self._supervisor.overtime

    def logs(self, data: bytes) -> None:
        """Write the runtime's records to the task log."""
        self._write(self._session.receive_logs(data))

    def stdout(self, data: bytes) -> None:
        """Write what the program printed to the task log."""
        self._output("stdout", data)

    def stderr(self, data: bytes) -> None:
        """Write what the program printed to the task log."""
        self._output("stderr", data)

    def _output(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        self._write(self._session.receive_output(stream, data))

    def _write(self, records: Sequence[LogRecord]) -> None:
        emit = self._supervisor.emit
        for record in records:
            fields = dict(record.fields)
            if record.logger is not None:
                fields["logger"] = record.logger
            if record.timestamp is not None:
                fields["timestamp"] = record.timestamp
            if isinstance(fields.get("exception"), list):
                fields["error_detail"] = fields.pop("exception")
            emit(record.number, record.event, fields)

    # -- requests

    def _parse(self, body: Any) -> Request:
        name = type_of(body)
        try:
            model = self._supervisor.parse(body)
        except BadRequest as bad:
            raise InvalidMessage(name[:100], bad.reason, bad.status_code) from bad
        # What ends a task is settled by the session; everything else is Airflow's business alone.
        return parse_request(body) if name in _TERMINAL_TYPES else ForAirflow(model=model)

    def _answer(self, request: RequestReceived) -> None:
        if request.note:
            self._supervisor.emit(30, request.note, {})
        if isinstance(request.message, ForAirflow):
            model = request.message.model
        else:
            try:
                model = self._supervisor.parse(request.body)
            except BadRequest as bad:  # settled into something that this Airflow does not take
                error = {"type": "ErrorResponse", "error": "GENERIC_ERROR", "detail": {"message": bad.reason}}
                self._session.reply(request, error=error)
                return
        reply = self._supervisor.answer(model, request.id, request.carrier)
        self._session.reply(request, reply.body, reply.error)
        if request.terminal and self._session.report is not None:
            self._reported(request.message)

    def _reported(self, message: Any) -> None:
        self._deadline = float("inf")
        if isinstance(message, RetryTask) and message.retry_reason:
            self._supervisor.emit(20, f"To be tried again: {message.retry_reason}", {})
        parked = isinstance(message, (DeferTask, AwaitInputTask, RescheduleTask))
        self._linger = time.monotonic() + (PARKED_LINGER if parked else self._supervisor.overtime)

    def _pump(self) -> None:
        for data in self._session.data_to_send():
            self._host.send(data)

    # -- end

    def _conclude(self) -> tuple[int, str]:
        code = self._host.exit_code
        outcome = self._session.finish(code)
        failure = None
        if outcome.report is None:
            started = str(self._host.failure) if self._host.failure else None
            failure = self._failure or started or outcome.failure
        elif self._failure:  # after its report, which counts all the same
            self._supervisor.emit(30, self._failure, {})
        elif code and not self._stopping:
            text = (
                f"The program ended with {describe_exit(code)} after it had reported {outcome.report.state}."
            )
            self._supervisor.emit(30, text, {})
        state = self._supervisor.conclude(code, failure)
        reported_well = outcome.report is not None
        return (0 if reported_well and code is None else code if code is not None else 1), state
