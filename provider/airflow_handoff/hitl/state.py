"""What a waiting task remembers: one versioned dictionary in the resume kwargs of every park."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from airflow_handoff.exceptions import UnknownStateVersion
from airflow_handoff.hitl.question import Answer, Question, Respondent

HANDOFF_KEY = "handoff"
STATE_VERSION = 1
#: After so many refused answers the task stops asking.
MAX_REFUSED = 20

Kind = Literal["hitl", "entry", "branch", "approval"]


class Refusal(BaseModel):
    """An answer that reached the task and was refused there.

    :param reasons: one sentence for each rule that was broken.
    :param chosen_options: what was chosen.
    :param respondent: who answered, where known.
    :param at: when it was answered.
    """

    model_config = ConfigDict(frozen=True)

    reasons: tuple[str, ...]
    chosen_options: tuple[str, ...] = ()
    respondent: Respondent | None = None
    at: datetime | None = None

    def __str__(self) -> str:
        who = self.respondent.name if self.respondent else "somebody"
        when = f" at {self.at.isoformat(timespec='seconds')}" if self.at else ""
        return f"{who}{when}: {' '.join(self.reasons)}"


class RequestState(BaseModel):
    """The state of one request between two rounds.

    :param approval_key: the stable name of the gate within its Dag.
    :param kind: which operator asks.
    :param question: what this park shows.
    :param defaults: options that are taken on timeout; ``None`` means that a timeout fails the task.
    :param policy: who decides and how; ``None`` means that the first valid answer decides.
    :param votes: answers that were counted so far.
    :param refused: answers that were refused so far in this try.
    :param level: the step of an escalation, from 0.
    :param deadline: when the timeout strikes; ``None`` means never.
    :param digest: digest of *question* when it was written to the row.
    :param try_number: the attempt that asks, from 1.
    :param ti_id: the task instance's id of this attempt.
    """

    model_config = ConfigDict(frozen=True)

    version: int = STATE_VERSION
    approval_key: str
    kind: Kind
    question: Question
    defaults: tuple[str, ...] | None = None
    policy: dict[str, Any] | None = None
    votes: tuple[Answer, ...] = ()
    refused: tuple[Refusal, ...] = ()
    level: int = 0
    deadline: datetime | None = None
    digest: str = ""
    try_number: int = 1
    ti_id: str | None = None

    @field_validator("ti_id", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return value if value is None else str(value)

    def to_kwargs(self) -> dict[str, Any]:
        """Return the resume kwargs: JSON values only, under the key ``handoff``."""
        return {HANDOFF_KEY: self.model_dump(mode="json")}

    @classmethod
    def from_kwargs(cls, next_kwargs: Mapping[str, Any] | None) -> RequestState | None:
        """Read the state from resume kwargs, as a task gets them or as they lie in Airflow's database.

        :returns: ``None`` where the key is missing: the task was not parked by this package.
        :raises UnknownStateVersion: if a newer version of this package parked the task.
        """
        kwargs = unwrapped(next_kwargs)
        if not isinstance(kwargs, Mapping) or not isinstance(raw := kwargs.get(HANDOFF_KEY), Mapping):
            return None
        version = raw.get("version")
        if not isinstance(version, int) or version > STATE_VERSION:
            raise UnknownStateVersion(version, STATE_VERSION)
        return cls.model_validate(raw)


def unwrapped(value: Any) -> Any:
    """Take off the envelopes of Airflow's two serializations; a time becomes RFC 3339 text."""
    if isinstance(value, Mapping):
        if set(value) == {"__type", "__var"}:
            return _told(value["__type"], unwrapped(value["__var"]))
        if "__classname__" in value and "__data__" in value:
            return _told(value["__classname__"], unwrapped(value["__data__"]))
        return {key: unwrapped(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [unwrapped(item) for item in value]
    return value


def _told(kind: Any, value: Any) -> Any:
    seconds = value.get("timestamp") if isinstance(value, Mapping) else value
    if str(kind).lower().endswith("datetime") and isinstance(seconds, (int, float)):
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
    return value
