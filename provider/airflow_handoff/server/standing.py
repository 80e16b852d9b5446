"""Where a request stands: read from its rows, pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from pydantic import ValidationError

from airflow_handoff.compat.records import PARKED_STATES, RequestRecord
from airflow_handoff.exceptions import HandoffError, UnknownStateVersion
from airflow_handoff.hitl.question import FormField, Question, Respondent
from airflow_handoff.hitl.state import RequestState

_OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
#: On the way back from a park: an answer, a timeout or a timer is being worked on.
_RESUMING = frozenset({"scheduled", "queued", "running"})

#: A scheduler without a heartbeat for so long reads nothing any more; a new one knows of no old process.
DEAD_AFTER = timedelta(seconds=30)
#: Seconds between two looks at the scheduler's heartbeat.
LOOK_AGAIN = 0.5


class Standing(Enum):
    """What an answer would meet now."""

    OPEN = "open"
    BUSY = "busy"
    ANSWERED = "answered"
    NOT_ASKED = "not asked"
    OVER = "over"


class UnreadableState(HandoffError):
    """The resume kwargs of a task of ours do not say what it asks."""


@dataclass(frozen=True)
class OpenRequest:
    """A record with what this package knows about it.

    :param state: from the resume kwargs; ``None`` where another operator parked the task, or nothing did yet.
    """

    record: RequestRecord
    state: RequestState | None

    @classmethod
    def of(cls, record: RequestRecord) -> OpenRequest:
        """Read the state that travels in the resume kwargs.

        :raises UnknownStateVersion: if a newer version of this package parked the task.
        :raises UnreadableState: if something else is under our key.
        """
        try:
            return cls(record, RequestState.from_kwargs(record.next_kwargs))
        except UnknownStateVersion:
            raise
        except ValueError as error:
            # Only where it is wrong: what was asked is for those who may read the request.
            raise UnreadableState(
                f"What {record.task_id} was parked with cannot be read ({_places(error)}): "
                "clear the task to ask again."
            ) from None

    @classmethod
    def leniently(cls, record: RequestRecord) -> OpenRequest:
        """Read the state, or take the record as another operator's where its version is unknown here."""
        try:
            return cls.of(record)
        except HandoffError:
            return cls(record, None)

    @property
    def standing(self) -> Standing:
        """What an answer would meet now."""
        record, row = self.record, self.record.row
        if record.state in _OVER:
            return Standing.OVER
        if row is None:
            return Standing.NOT_ASKED
        if record.state in PARKED_STATES:
            return Standing.OPEN if row.responded_at is None else Standing.ANSWERED
        if self.state is not None and record.state in _RESUMING:
            return Standing.BUSY if row.responded_at is None else Standing.ANSWERED
        if record.state == "running" and _written_by_this_attempt(record):
            return Standing.BUSY if row.responded_at is None else Standing.ANSWERED
        return Standing.NOT_ASKED

    def settled_in(self, now: datetime, settle: timedelta) -> float:
        """Return the seconds after which to look again whether an answer is safe; 0 if it is.

        The scheduler fails a task that it queues again before it has read that the first process ended. The
        process ends within *settle* of the park; then the scheduler that queued it has to come by once.
        """
        parked = self.record.updated_at
        if parked is None or not settle:
            return 0.0
        young = (parked + settle - now).total_seconds()
        if young > 0:
            return young
        seen = self.record.scheduler_seen_at
        if seen is None or now - seen > DEAD_AFTER or seen >= parked + settle * 7 / 8:
            return 0.0
        return LOOK_AGAIN

    def same_question_as(self, other: OpenRequest) -> bool:
        """Say whether both were asked by the same attempt and are not a later round."""
        # Every upsert of a question moves created_at; a park that only sets a timer does not.
        mine, theirs = self.record, other.record
        asked = (mine.row and mine.row.created_at), (theirs.row and theirs.row.created_at)
        return mine.ti_id == theirs.ti_id and asked[0] == asked[1]

    @property
    def digest(self) -> str:
        """Digest of the question that is open, as its reader sees it."""
        return (self.state.digest or self.state.question.digest) if self.state else self.question.digest

    @property
    def question(self) -> Question:
        """The question: of the resume kwargs, else as Airflow's row has it."""
        if self.state is not None:
            return self.state.question
        row = self.record.row
        if row is None:
            raise LookupError(f"{self.record.task_id} has not asked anything yet")
        return Question(
            subject=row.subject,
            body=row.body,
            options=row.options,
            multiple=row.multiple,
            form={name: _field(name, value) for name, value in row.params.items()},
            assigned_users=tuple(Respondent.of(person) for person in row.assignees),
        )


def _places(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return type(error).__name__
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, item['loc'][:3]))}: {item['type']}" for item in found[:3])


def _field(name: str, stored: object) -> FormField:
    """Read a form field of another operator: its own rules are left to Airflow."""
    value = stored.get("value") if isinstance(stored, dict) else stored
    return FormField(name=name, schema={}, has_default=True, value=value)


def _written_by_this_attempt(record: RequestRecord) -> bool:
    """A row that is older than the attempt was left by the one before it."""
    row = record.row
    return row is not None and (record.queued_at is None or row.created_at >= record.queued_at)
