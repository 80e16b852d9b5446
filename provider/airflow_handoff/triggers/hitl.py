"""The trigger that waits for a person where Airflow has no state for it (Airflow 3.1 and 3.2).

Keyword-compatible with the standard provider's ``HITLTrigger``, with the same events. All triggers of a
triggerer share one bounded loop, so that many waiting tasks cost little.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from airflow_handoff.compat.versions import require_airflow

require_airflow("airflow_handoff.triggers.hitl")

from airflow.triggers.base import BaseTrigger, TriggerEvent  # noqa: E402

from airflow_handoff.compat import trigger as channel  # noqa: E402
from airflow_handoff.hitl.question import json_problems  # noqa: E402
from airflow_handoff.triggers.polling import Pace, poller  # noqa: E402

log = logging.getLogger(__name__)

_GONE_LIMIT = 10


def configured_pace() -> Pace:
    """Return the pace of this triggerer as ``[handoff]`` configures it.

    A setting that is no number is told and not taken: it must not fail every task that waits.
    """
    from airflow.configuration import conf

    def read(name: str, default: float) -> float:
        try:
            value = float(conf.getfloat("handoff", name, fallback=default))
            if not 0 < value < float("inf"):
                raise ValueError(f"[handoff] {name} is {value}, not a positive number.")
            return value
        except Exception as error:
            log.error("%s It is taken to be %s.", error, default)
            return default

    default = Pace()
    return Pace(
        shortest=read("poke_interval", default.shortest),
        longest=read("poke_interval_max", default.longest),
        per_second=max(read("poke_rate", default.per_second), 0.01),
    )


def _utcnow() -> datetime:
    return datetime.now(timezone.utc)


@dataclass
class _Question:
    """One waiting request, as the poll loop sees it."""

    ti_id: UUID
    defaults: list[str] | None
    params_input: dict[str, Any]
    timeout_datetime: datetime | None
    gone: int = field(default=0, init=False)

    def seconds_left(self) -> float | None:
        """Return the seconds until the response timeout."""
        if self.timeout_datetime is None:
            return None
        return (self.timeout_datetime - _utcnow()).total_seconds()

    async def read(self) -> dict[str, Any] | None:
        """Look for the answer; past the timeout, an answer that is there still wins over the default."""
        left = self.seconds_left()
        try:
            stored = await channel.read_answer(self.ti_id)
            self.gone = 0
        except channel.RequestGone as error:
            # A cleared task's trigger is cancelled within seconds; the row can be gone before that.
            self.gone += 1
            if self.gone < _GONE_LIMIT:
                raise
            return {"error": str(error), "error_type": "unknown"}
        if stored is not None:
            return _answered(stored)
        if left is None or left > 0:
            return None
        return await self._time_out()

    async def _time_out(self) -> dict[str, Any] | None:
        if self.defaults is None:
            return {
                "error": "The response timeout has passed and nobody has answered.",
                "error_type": "timeout",
            }
        try:
            stored = await channel.record_default(self.ti_id, self.defaults, self.params_input)
        except channel.AlreadyAnswered:
            stored = await channel.read_answer(self.ti_id)
        return None if stored is None else _answered(stored)

    def read_failed(self, error: Exception, failures: int) -> None:
        """Say once that reading fails; it goes on at a slower pace."""
        if failures == 1:
            log.warning("Could not look for an answer, will go on trying: %s", error)


def _answered(stored: channel.StoredAnswer) -> dict[str, Any]:
    params: Any = stored.params_input
    if json_problems(params):
        # Airflow's serialization would choke on it for ever; the operator reads text and refuses it.
        params = json.dumps(params)
    return {
        "chosen_options": stored.chosen_options,
        "params_input": params,
        "responded_at": stored.responded_at,
        "responded_by_user": stored.responded_by_user,
        # Nobody's answer is the timeout's default, also when an earlier run of this trigger recorded it.
        "timedout": stored.responded_by_user is None,
    }


class HITLTrigger(BaseTrigger):
    """Waits until a request is answered or its time is up; does not judge the answer.

    :param ti_id: the task instance whose request it is.
    :param options: as asked; kept for compatibility.
    :param params: the form's fields; their values go with the default.
    :param defaults: the options to choose on timeout; ``None`` makes a timeout an error event.
    :param multiple: as asked; kept for compatibility.
    :param timeout_datetime: when to stop waiting; ``None`` waits for ever. Naive times are UTC.
    :param poke_interval: seconds between two reads of a young request; ``[handoff] poke_interval`` where
        left out.
    """

    def __init__(
        self,
        *,
        ti_id: UUID | str,
        options: Sequence[str] = (),
        params: dict[str, Any] | None = None,
        defaults: Sequence[str] | None = None,
        multiple: bool = False,
        timeout_datetime: datetime | None = None,
        poke_interval: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.ti_id = ti_id if isinstance(ti_id, UUID) else UUID(str(ti_id))
        self.options = list(options)
        self.params = dict(params or {})
        self.defaults = None if defaults is None else list(defaults)
        self.multiple = multiple
        if timeout_datetime is not None and timeout_datetime.tzinfo is None:
            timeout_datetime = timeout_datetime.replace(tzinfo=timezone.utc)
        self.timeout_datetime = timeout_datetime
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, all of them in Airflow's serializable types."""
        return (
            "airflow_handoff.triggers.hitl.HITLTrigger",
            {
                "ti_id": self.ti_id,
                "options": self.options,
                "params": self.params,
                "defaults": self.defaults,
                "multiple": self.multiple,
                "timeout_datetime": self.timeout_datetime,
                "poke_interval": self.poke_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait in the triggerer's shared loop and yield one event."""
        question = _Question(
            self.ti_id,
            self.defaults,
            {name: _default_of(value) for name, value in self.params.items()},
            self.timeout_datetime,
        )
        event = await poller(configured_pace).wait(question, shortest=self.poke_interval)
        log.info("%s", _summary(event))
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]


def _default_of(field_: Any) -> Any:
    described = isinstance(field_, dict) and {"value", "description", "schema"} <= field_.keys()
    return field_["value"] if described else field_


def _summary(event: dict[str, Any]) -> str:
    if "error" in event:
        return f"Stopped waiting: {event['error']}"
    if event["timedout"]:
        return f"The response timeout has passed; going on with the default {event['chosen_options']}"
    return f"Answered by {event['responded_by_user']['name']} with {event['chosen_options']}"
