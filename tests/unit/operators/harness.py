"""Run an operator through Airflow's own task runner; only the supervisor's end of the channel is a double."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import structlog
from airflow.sdk.api.datamodels._generated import DagRun, TIRunContext
from airflow.sdk.execution_time import comms, task_runner

from airflow_handoff.compat.versions import HAS_AWAITING_INPUT, installed_airflow

SINCE_32 = (installed_airflow() or (0, 0)) >= (3, 2)
WHEN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
PARKED = "awaiting_input" if HAS_AWAITING_INPUT else "deferred"
RUN_ID = "manual__1"
ADA = {"id": "1", "name": "ada"}


@dataclass
class SupervisorDouble:
    """Answers like the supervisor, keeps XComs and remembers every message in order.

    :param counts: how many task instances there are, by task id; by ``(task id, map index)`` where asked so.
    """

    counts: dict[Any, int] = field(default_factory=dict)
    xcoms: dict[tuple[str, int, str], Any] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)

    def send(self, msg: Any) -> Any:
        """Take one message of the task."""
        self.messages.append(msg)
        answer = getattr(self, f"_{type(msg).__name__}", None)
        return answer(msg) if answer else None

    def _SetXCom(self, msg: Any) -> None:
        index = -1 if msg.map_index is None else msg.map_index
        self.xcoms[msg.task_id, index, msg.key] = json.loads(json.dumps(msg.value))

    def _GetXCom(self, msg: Any) -> Any:
        index = -1 if msg.map_index is None else msg.map_index
        return comms.XComResult(key=msg.key, value=self.xcoms.get((msg.task_id, index, msg.key)))

    def _GetXComSequenceSlice(self, msg: Any) -> Any:
        found = [
            v for (task, _, key), v in sorted(self.xcoms.items()) if (task, key) == (msg.task_id, msg.key)
        ]
        return comms.XComSequenceSliceResult(root=found)

    def _GetTICount(self, msg: Any) -> Any:
        if msg.states:
            return comms.TICount(count=0)
        if msg.map_index is not None:
            return comms.TICount(count=sum(self.counts.get((t, msg.map_index), 0) for t in msg.task_ids))
        return comms.TICount(count=sum(self.counts.get(task, 1) for task in msg.task_ids))

    def of(self, kind: str) -> list[Any]:
        """The messages of one type, in order."""
        return [message for message in self.messages if type(message).__name__ == kind]

    @property
    def row(self) -> Any:
        """The last row that was written."""
        return self.of("CreateHITLDetailPayload")[-1]

    def xcom(self, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        """A pushed value, its serialization undone."""
        return _plain(self.xcoms.get((task_id, map_index, key)))


@dataclass
class Outcome:
    """What the task runner made of one process of the task."""

    state: str
    message: Any
    error: BaseException | None
    task: Any

    @property
    def handoff(self) -> dict[str, Any]:
        """The state that the task was parked with."""
        kwargs = json.loads(self.message.model_dump_json())["next_kwargs"]
        return _plain(kwargs)["handoff"]  # type: ignore[no-any-return]

    @property
    def timeout(self) -> float | None:
        """Seconds that the task is to be parked for."""
        if HAS_AWAITING_INPUT:
            return None if self.message.timeout is None else self.message.timeout.total_seconds()
        until = self.message.trigger_kwargs["timeout_datetime"]
        until = _plain(until)
        if isinstance(until, (int, float)):
            until = datetime.fromtimestamp(until, timezone.utc)
        return None if until is None else (until - datetime.now(timezone.utc)).total_seconds()


class Driver:
    """Starts a task, resumes it with an answer, and tells how it ended."""

    def __init__(self, supervisor: SupervisorDouble) -> None:
        self.supervisor = supervisor
        self.ti_id = uuid.uuid4()

    def start(self, task: Any, *, map_index: int = -1, conf: dict[str, Any] | None = None) -> Outcome:
        """Run the task from its beginning."""
        return self._run(task, map_index, conf=conf)

    def resume(self, task: Any, parked: Outcome, event: dict[str, Any], *, map_index: int = -1) -> Outcome:
        """Run the task on, with what it was parked with and an event."""
        kwargs = {"handoff": parked.handoff, "event": event} if parked.state == PARKED else {"event": event}
        return self.resume_with(task, kwargs, map_index=map_index)

    def resume_with(
        self, task: Any, kwargs: dict[str, Any], *, map_index: int = -1, method: str = "execute_complete"
    ) -> Outcome:
        """Run the task on with just these resume kwargs, stored the way this Airflow stores them."""
        if SINCE_32:
            from airflow.sdk.serde import serialize

            stored = serialize(kwargs)
        else:
            from airflow.serialization.serialized_objects import BaseSerialization

            stored = BaseSerialization.serialize(kwargs)
        return self._run(task, map_index, next_method=method, next_kwargs=json.loads(json.dumps(stored)))

    def answer(
        self, task: Any, *options: str, map_index: int = -1, parked: Outcome | None = None, **params: Any
    ) -> Outcome:
        """Start the task unless it is parked already, and resume it with a person's answer."""
        parked = parked or self.start(task, map_index=map_index)
        assert parked.state == PARKED, (parked.state, parked.error)
        return self.resume(task, parked, event(*options, **params), map_index=map_index)

    def _run(self, task: Any, map_index: int, *, conf: Any = None, **resume: Any) -> Outcome:
        run = DagRun.model_validate(
            {
                "dag_id": task.dag_id,
                "run_id": RUN_ID,
                "logical_date": WHEN,
                "data_interval_start": WHEN,
                "data_interval_end": WHEN,
                "run_after": WHEN,
                "start_date": WHEN,
                "end_date": None,
                "run_type": "manual",
                "state": "running",
                "conf": conf,
                "consumed_asset_events": [],
                **({"partition_key": None} if "partition_key" in DagRun.model_fields else {}),
            }
        )
        ti = task_runner.RuntimeTaskInstance.model_construct(
            id=self.ti_id,
            task_id=task.task_id,
            dag_id=task.dag_id,
            run_id=RUN_ID,
            try_number=1,
            map_index=map_index,
            max_tries=task.retries,
            task=task,
            bundle_instance=SimpleNamespace(name="tests", version=None),
            start_date=WHEN,
            is_mapped=task.is_mapped,
            hostname="localhost",
            dag_version_id=uuid.uuid4(),
            context_carrier={},
        )
        ti._ti_context_from_server = TIRunContext.model_validate(
            {"dag_run": run, "max_tries": task.retries, "should_retry": task.retries > 0, **resume}
        )
        log = structlog.get_logger("task")
        context = ti.get_template_context()
        state, message, error = task_runner.run(ti, context, log)
        task_runner.finalize(ti, state, context, log, error)
        return Outcome(str(getattr(state, "value", state)), message, error, ti.task)


def event(*options: str, user: Any = ADA, timedout: bool = False, **params: Any) -> dict[str, Any]:
    """The event of an answer, as Airflow builds it."""
    return {
        "chosen_options": list(options),
        "params_input": params,
        "responded_at": WHEN,
        "responded_by_user": user,
        "timedout": timedout,
    }


TIMEOUT = {"error": "The response timeout has passed.", "error_type": "timeout"}


def _plain(value: Any) -> Any:
    """Undo either of Airflow's serializations."""
    if isinstance(value, dict) and "__type" in value:
        from airflow.serialization.serialized_objects import BaseSerialization

        return BaseSerialization.deserialize(value)
    if SINCE_32:
        from airflow.sdk.serde import deserialize
    else:
        from airflow.serialization.serde import deserialize
    return deserialize(value)


@contextlib.contextmanager
def supervised(**counts: int) -> Iterator[Driver]:
    """Put the double in the supervisor's place."""
    double = SupervisorDouble(counts=dict(counts))
    before = getattr(task_runner, "SUPERVISOR_COMMS", None)
    task_runner.SUPERVISOR_COMMS = double  # type: ignore[assignment]
    try:
        yield Driver(double)
    finally:
        if before is None:
            del task_runner.SUPERVISOR_COMMS
        else:
            task_runner.SUPERVISOR_COMMS = before
