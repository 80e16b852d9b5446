"""How a request can end, and what of it outlives the task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from airflow_handoff.compat.errors import AirflowException, AirflowFailException
from airflow_handoff.compat.standard import HITLRejectException, HITLTimeoutError, HITLTriggerEventError
from airflow_handoff.exceptions import HandoffError
from airflow_handoff.hitl.question import SEEN, Answer
from airflow_handoff.hitl.state import Refusal, RequestState

#: The XCom under which every outcome is kept: metadata, votes and the answer.
OUTCOME_KEY = "handoff"
#: The XCom that keeps the refused answers of this try, for a resume that has lost its kwargs.
REFUSED_KEY = "handoff_refused"


class HumanRejected(HandoffError, AirflowFailException, HITLRejectException):
    """A person said no, and the Dag author wants the task to fail then: a decision, so it is not retried.

    :param approval_key: the gate.
    :param respondent: the name of who rejected, where known.
    """

    def __init__(self, approval_key: str, respondent: str | None = None) -> None:
        super().__init__(f"{respondent or 'Somebody'} rejected {approval_key!r}.")
        self.approval_key = approval_key
        self.respondent = respondent


class HumanTimeout(HandoffError, AirflowFailException, HITLTimeoutError):
    """Nobody answered in time and nothing stands in for an answer: not retried.

    :param approval_key: the gate.
    :param reason: what kept the defaults from standing in.
    """

    def __init__(self, approval_key: str, reason: str) -> None:
        super().__init__(f"The time to answer {approval_key!r} is up: {reason}")
        self.approval_key = approval_key
        self.reason = reason


class TooManyRefused(HandoffError, AirflowFailException):
    """So many answers were refused that asking again would not help; not retried.

    :param approval_key: the gate.
    :param refused: all of them.
    """

    def __init__(self, approval_key: str, refused: tuple[Refusal, ...]) -> None:
        lines = "\n".join(f"{number}. {refusal}" for number, refusal in enumerate(refused, 1))
        super().__init__(f"{len(refused)} answers to {approval_key!r} were refused:\n{lines}")
        self.approval_key = approval_key
        self.refused = refused


class RequestLost(HandoffError, HITLTriggerEventError):
    """The wait ended without an answer and without a timeout; a fault, so the task's retries apply."""


class SkipImpossible(HandoffError, AirflowException):
    """Tasks that a decision rules out could not be skipped; the task fails, so that they do not run.

    :param names: the tasks.
    :param found: how many of them exist.
    :param index: the map index of the decision.
    """

    def __init__(self, names: Sequence[str], found: int, index: int) -> None:
        super().__init__(
            f"The decision rules out {list(names)!r} at map index {index}, but Airflow has made only "
            f"{found} of {len(names)}: this task fails, so that none of them runs. Clear it to decide again."
        )
        self.names, self.found, self.index = tuple(names), found, index


def answer_from(event: Mapping[str, Any]) -> Answer:
    """Read the answer out of the event that resumes the task.

    :param event: ``params_input`` may come as JSON text: some values do not survive Airflow's serialization.
    """
    params = event.get("params_input") or {}
    fields = json.loads(params) if isinstance(params, str) else params
    return Answer(
        chosen_options=tuple(event.get("chosen_options") or ()),
        # The page may have come from an api-server that guards, and its answer gone to one that does not.
        params_input={name: value for name, value in fields.items() if name != SEEN},
        respondent=event.get("responded_by_user"),
        responded_at=_plain_time(event.get("responded_at")),
    )


def _plain_time(value: datetime | str | None) -> datetime | None:
    """Airflow 3.1 hands over times of another class; they would be stored as such."""
    if value is None:
        return None
    text = value if isinstance(value, str) else value.isoformat()
    read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)


def result(answer: Answer, *, timedout: bool) -> dict[str, Any]:
    """Return what the task returns: the standard operators' keys, ``timedout`` and a comment if any."""
    respondent = answer.respondent
    returned: dict[str, Any] = {
        "chosen_options": list(answer.chosen_options),
        "params_input": answer.params_input,
        "responded_at": answer.responded_at,
        "responded_by_user": respondent.model_dump() if respondent else None,
        "timedout": timedout,
    }
    return {**returned, "comment": answer.comment} if answer.comment else returned


def record(
    state: RequestState, outcome: str, code: str | None, answer: Answer | None, *, timedout: bool
) -> dict[str, Any]:
    """Return what is kept of a request: JSON values only.

    :param outcome: ``answered``, ``approved``, ``rejected``, ``branched``, ``timed_out`` or ``refused``.
    :param code: the name of the error that fails the task, if one does.
    :param timedout: whether the time was up; with an answer, that is the default.
    """
    return {
        "approval_key": state.approval_key,
        "kind": state.kind,
        "outcome": outcome,
        "code": code,
        "timedout": timedout,
        "answer": answer.model_dump(mode="json") if answer else None,
        "votes": [vote.model_dump(mode="json") for vote in state.votes],
        "digest": state.digest,
        "try_number": state.try_number,
    }
