"""Airflow's side of a coordinator: what a supervisor does for a task, without any process or socket.

Built on ``BaseCoordinator`` and ``ActivitySubprocess``. The names with an underscore are Airflow's private
ones; what is used of them is probed when this module is imported, so that a later Airflow which moved one is
met with a sentence and not with a traceback in a running task.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import inspect
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

from airflow_handoff.compat.versions import HAS_COORDINATORS, installed_airflow
from airflow_handoff.exceptions import EnvironmentUnfit

if not HAS_COORDINATORS:
    _found = installed_airflow()
    raise EnvironmentUnfit(
        "Coordinators need Apache Airflow 3.3 or later and "
        f"{'.'.join(map(str, _found)) if _found else 'none'} is installed: upgrade apache-airflow."
    )

import structlog
from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time import supervisor as _supervisor
from airflow.sdk.execution_time.comms import ErrorResponse, RetryTask
from airflow.sdk.execution_time.coordinator import BaseCoordinator
from airflow.sdk.execution_time.schema import get_schema_version_migrator
from airflow.sdk.execution_time.supervisor import ActivitySubprocess
from airflow.sdk.log import mask_secret, redact  # type: ignore[attr-defined]  # it is imported there
from opentelemetry import context as _trace_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic import BaseModel, ValidationError

__all__ = [
    "BadRequest",
    "BaseCoordinator",
    "Emit",
    "Reply",
    "TaskSupervisor",
    "known_schema_versions",
    "probe",
]

_worker_log = structlog.get_logger(logger_name="airflow_handoff.coordinators")
_SERVER_TERMINATED = "SERVER_TERMINATED"

#: What is used of Airflow's private interface: the owner, the method, the parameters it must take.
_EXPECTED: tuple[tuple[type, str, frozenset[str]], ...] = (
    (
        BaseCoordinator,
        "execute_task",
        frozenset({"what", "dag_rel_path", "bundle_info", "client", "logger", "subprocess_logs_to_stdout"}),
    ),
    (
        ActivitySubprocess,
        "_on_child_started",
        frozenset({"ti", "dag_rel_path", "bundle_info", "sentry_integration"}),
    ),
    (ActivitySubprocess, "_handle_request", frozenset({"msg", "log", "req_id"})),
    (ActivitySubprocess, "_send_terminal_state_msg", frozenset({"msg"})),
    (ActivitySubprocess, "_send_heartbeat_if_needed", frozenset()),
    (ActivitySubprocess, "_serialize_response", frozenset({"msg"})),
    (ActivitySubprocess, "_deserialize_request", frozenset({"body"})),
    (ActivitySubprocess, "_upload_logs", frozenset()),
    (ActivitySubprocess, "send_msg", frozenset({"msg", "request_id", "error"})),
    (ActivitySubprocess, "kill", frozenset({"signal_to_send", "force"})),
)


def probe(expected: Iterable[tuple[type, str, frozenset[str]]] = _EXPECTED) -> None:
    """Check that Airflow's supervisor still is what this module was written for.

    :raises EnvironmentUnfit: with one sentence that names what moved.
    """
    for owner, name, parameters in expected:
        method = getattr(owner, name, None)
        if method is None:
            what = "is gone"
        else:
            missing = parameters - set(inspect.signature(method).parameters)
            what = f"does not take {', '.join(sorted(missing))} any more" if missing else ""
        if what:
            version = ".".join(map(str, installed_airflow() or ()))
            raise EnvironmentUnfit(
                f"Airflow {version} has changed under the coordinators: {owner.__name__}.{name} {what}; "
                "upgrade airflow-provider-handoff to a release that knows it."
            )


probe()


class Reply(NamedTuple):
    """What the runtime is told: a body, or an error as the third element of the frame."""

    body: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class BadRequest(Exception):
    """A request that Airflow's own models do not take.

    :param reason: what was expected and what came.
    :param status_code: 400 for an unknown type, 422 for wrong fields.
    """

    def __init__(self, reason: str, status_code: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status_code = status_code


class _Process:
    """What Airflow's supervisor asks about its process: the pid that heartbeats name."""

    class ProcessNotFound(Exception):
        """Never raised."""

    def __init__(self, pid: int) -> None:
        self.pid = pid


#: Writes one record to the task log: level number, text, fields.
Emit = Callable[[int, str, Mapping[str, Any]], None]


class TaskSupervisor(ActivitySubprocess):
    """One attempt of one task, as the API server sees it: start, requests, heartbeats, end, logs.

    :param what: the task instance.
    :param client: Airflow's API client.
    :param logger: the task log; standard output where None.
    :param pid: the process that the API server is told about.
    :param schema_version: what the runtime is served; None or Airflow's own leave messages as they are.
    :param kill: ends the runtime and its tree before it returns.
    """

    def __init__(
        self,
        *,
        what: Any,
        client: Any,
        logger: Any,
        subprocess_logs_to_stdout: bool,
        pid: int,
        schema_version: str | None,
        kill: Callable[[], None],
    ) -> None:
        super().__init__(
            id=what.id,
            pid=pid,
            process=_Process(pid),  # type: ignore[arg-type]  # only its pid is used here
            process_log=logger or structlog.get_logger(logger_name="task").bind(),
            start_time=time.monotonic(),
            stdin=None,  # type: ignore[arg-type]  # what it would carry goes through send_msg
            client=client,
            subprocess_schema_version=None if schema_version == newest_schema_version() else schema_version,
            subprocess_logs_to_stdout=subprocess_logs_to_stdout,
        )
        self.selector.close()  # every supervisor makes one; ours is the host's
        self._what = what
        self._kill_tree = kill
        self._reply: Reply | None = None
        self.emit = _emitter(self._loggers())

    # -- start

    def begin(self, *, dag_rel_path: Any, bundle_info: Any, sentry_integration: str) -> dict[str, Any]:
        """Tell the API server that the task runs; return the body of the startup details.

        :raises Exception: where the API server refuses; the tree was killed before.
        """
        self._reply = None
        self._on_child_started(
            ti=self._what,
            dag_rel_path=dag_rel_path,
            bundle_info=bundle_info,
            sentry_integration=sentry_integration,
        )
        self._last_heartbeat_attempt = time.monotonic()  # the start was as good as one
        reply = self._reply
        return dict(reply.body or {}) if reply else {}

    @property
    def should_retry(self) -> bool:
        """Whether a failed attempt would be followed by another."""
        return bool(self._should_retry)

    # -- requests

    def parse(self, body: Mapping[str, Any]) -> Any:
        """Return Airflow's model of a request.

        :raises BadRequest: for what the model does not take.
        """
        sent = dict(body)
        if sent.get("type") == "CreateHITLDetailPayload":
            # Optional in the schema, and refused by the API server where they are null.
            sent.update(params=sent.get("params") or {}, assigned_users=sent.get("assigned_users") or [])
        try:
            return self.decoder.validate_python(self._deserialize_request(sent))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            unknown = first["type"].startswith("union_tag")
            where = ".".join(str(part) for part in first["loc"])
            raise BadRequest(
                f"{where}: {first['msg']}" if where else first["msg"], 400 if unknown else 422
            ) from error
        except Exception as error:  # the translator knows no such type
            raise BadRequest(str(error), 400) from error

    def answer(self, model: Any, request_id: int, carrier: Mapping[str, str] | None) -> Reply:
        """Do what a request asks for and return the reply; whatever happens, there is one."""
        self._reply = None
        if type(model) is RetryTask and model.retry_reason:
            model = model.model_copy(update={"retry_reason": str(redact(model.retry_reason))})
        token = _trace_context.attach(_propagator.extract(carrier)) if carrier else None
        try:
            self._handle_request(model, _worker_log, request_id)
        except ServerResponseError as error:
            detail = _detail(error)
            _worker_log.error("API server error", status_code=error.response.status_code, detail=detail)
            return _failure(str(error), error.response.status_code, detail)
        except Exception as error:
            _worker_log.exception("A request of the task could not be fulfilled", request_id=request_id)
            return _failure(f"{type(error).__name__}: {error}", None)
        finally:
            if token is not None:
                _trace_context.detach(token)
        if self._reply is None:
            return _failure(f"Airflow gave no reply to {type(model).__name__}", 501)
        return self._reply

    def send_msg(
        self, msg: BaseModel | None, request_id: int, error: ErrorResponse | None = None, **dump_opts: Any
    ) -> None:
        """Keep what Airflow wants to send; the session sends it."""
        if msg is not None:
            _mask_structured(msg)
            self._reply = Reply(body=self._serialize_response(msg, **dump_opts))
        else:
            self._reply = Reply(error=self._serialize_response(error) if error is not None else None)

    def _send_new_log_fd(self, req_id: int) -> None:
        self._reply = _failure("file descriptors cannot travel over TCP", 400)

    # -- meanwhile

    @property
    def seconds_to_heartbeat(self) -> float:
        """How long the caller may wait before :meth:`heartbeat`."""
        return max(0.0, self._last_heartbeat_attempt + _supervisor.MIN_HEARTBEAT_INTERVAL - time.monotonic())

    def heartbeat(self) -> None:
        """Send a heartbeat where one is due; kills the tree where the API server wants the task gone."""
        self._send_heartbeat_if_needed()  # type: ignore[no-untyped-call]

    def kill(self, signal_to_send: Any = None, escalation_delay: float = 5.0, force: bool = False) -> None:
        """End the runtime with its whole tree."""
        self._kill_tree()

    @property
    def overtime(self) -> float:
        """Seconds for which a task may go on after it has reported."""
        return float(_supervisor.TASK_OVERTIME_THRESHOLD)

    @property
    def is_gone(self) -> bool:
        """Whether the API server said that the task should not run any more."""
        return bool(self._terminal_state == _SERVER_TERMINATED)

    # -- end

    def conclude(self, exit_code: int | None, failure: str | None) -> str:
        """Make the API server know how the task ended, upload the logs and return the final state.

        :param failure: why there is no terminal message, else None.
        """
        self._exit_code = 1 if exit_code is None else exit_code
        try:
            return self._settle(failure)
        finally:
            self._upload_logs()  # type: ignore[no-untyped-call]

    def _settle(self, failure: str | None) -> str:
        if self.is_gone:
            return _SERVER_TERMINATED
        pending = self._pending_terminal_state_msg
        if pending is not None and self._terminal_state is None:
            # The call failed on the way: the runtime was told so, and may have given up on it.
            try:
                self._send_terminal_state_msg(pending)
            except Exception as error:
                failure = f"Airflow did not accept the task's result: {_reason(error)}"
                self._pending_terminal_state_msg = None
        if self._terminal_state is None:
            return self._fail(failure or "The task ended without a result.")
        state = str(getattr(self._terminal_state, "value", self._terminal_state))
        if state not in _supervisor.STATES_SENT_DIRECTLY:
            self._deliver(lambda: self._finish(state))
        return state

    def _fail(self, failure: str) -> str:
        self.emit(40, failure, {})
        if self.should_retry:
            # Masked as the line above was on its way: it may repeat what the program printed.
            reason = str(redact(failure))[:500]
            message = RetryTask(end_date=datetime.now(tz=timezone.utc), retry_reason=reason)
            if self._deliver(lambda: self._send_terminal_state_msg(message)):
                return "up_for_retry"
        self._deliver(lambda: self._finish("failed"))
        return "failed"

    def _finish(self, state: str) -> None:
        self.client.task_instances.finish(
            id=self.id,
            state=state,
            when=datetime.now(tz=timezone.utc),
            rendered_map_index=self._rendered_map_index,
        )

    def _deliver(self, call: Callable[[], None]) -> bool:
        try:
            call()
        except Exception as error:
            # Cleared or marked by somebody meanwhile, or the server is away: the scheduler settles it.
            _worker_log.warning("The task's state was not taken", ti_id=str(self.id), reason=_reason(error))
            return False
        return True

    # -- logs

    def _loggers(self) -> tuple[Any, ...]:
        from airflow.sdk._shared.logging.structlog import reconfigure_logger

        return tuple(
            reconfigure_logger(logger, structlog.processors.CallsiteParameterAdder, level_override=0)
            for logger in self._get_target_loggers()
        )


_propagator = TraceContextTextMapPropagator()


def _emitter(loggers: tuple[Any, ...]) -> Emit:
    def emit(level: int, event: str, fields: Mapping[str, Any]) -> None:
        for logger in loggers:
            try:
                logger.log(level, event, **fields)
            except Exception:
                # Fields that cannot be logged; or a full disk, a closed file, which must not end the task.
                with contextlib.suppress(Exception):
                    logger.log(level, "%s", f"{event} {dict(fields)!r}")

    return emit


def _failure(message: str, status_code: int | None, detail: Any = None) -> Reply:
    """Return an error in the form in which Airflow reports its API server's."""
    body: dict[str, Any] = {"status_code": status_code, "message": message}
    if detail is not None:
        body["detail"] = detail
    return Reply(error=ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=body).model_dump())


def _detail(error: ServerResponseError) -> Any:
    try:
        return error.response.json()
    except Exception:
        return getattr(error, "detail", None)


def _reason(error: Exception) -> str:
    detail = getattr(error, "detail", None)
    return f"{error} ({detail})" if detail else f"{type(error).__name__}: {error}"


def _mask_structured(message: BaseModel) -> None:
    """Mask the sensitive values *inside* what a task fetches; Airflow masks the texts as a whole."""
    name = _STRUCTURED.get(type(message).__name__)
    text = getattr(message, name) if name else None
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return
    try:
        inside = json.loads(text)
    except ValueError:
        return
    mask_secret(inside, getattr(message, "key", None))


_STRUCTURED = {"ConnectionResult": "extra", "VariableResult": "value"}


@functools.cache
def newest_schema_version() -> str:
    """Return the supervisor schema that this Airflow itself speaks.

    Read from a file: the translator behind :func:`known_schema_versions` takes most of a second to import.
    """
    try:
        schema = importlib.resources.files("airflow.sdk.execution_time.schema") / "schema.json"
        return str(json.loads(schema.read_bytes())["api_version"])
    except (OSError, ValueError, KeyError, ModuleNotFoundError):
        return max(_translatable())


def _translatable() -> tuple[str, ...]:
    return tuple(str(version) for version in get_schema_version_migrator()._version_values)


def known_schema_versions(spoken: str | None = None) -> tuple[str, ...]:
    """Return the supervisor schemas that this Airflow can translate, newest first.

    :param spoken: what a runtime speaks; schemas that cannot matter to it may be left out.
    """
    newest = newest_schema_version()
    if spoken is None or spoken >= newest:
        return (newest,)
    return tuple(sorted(_translatable(), reverse=True))


def logging_environment(settings: Iterable[str] = ()) -> dict[str, str]:
    """Return Airflow's logging settings as environment variables for a runtime.

    :param settings: names of further settings of the section ``[logging]``; one that is not set is left out.
    """
    values = {
        "logging_level": conf.get("logging", "logging_level", fallback="INFO"),
        "namespace_levels": conf.get("logging", "namespace_levels", fallback=""),
    }
    for name in settings:
        found = conf.get("logging", name, fallback=None)
        if found is not None:
            values[name] = found
    return {f"AIRFLOW__LOGGING__{name.upper()}": str(value) for name, value in values.items()}


def host_environment() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ
