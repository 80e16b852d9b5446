"""Asking a person in the middle of a function."""

from __future__ import annotations

from airflow_handoff_sdk.errors import HumanTimeout, SdkError
from airflow_handoff_sdk.jsonsafe import check, revive
from airflow_handoff_sdk.outcomes import Park, iso_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Sequence

    from airflow_handoff_sdk.outcomes import Duration

#: The dispatch key of a task that waits for an answer.
ASKED = "handoff_sdk.ask_human"
_ANSWERS = "handoff_sdk_answers"
_SUBJECT = "handoff_sdk_subject"
_RESUME = "handoff_sdk_resume"


class Answer:
    """What a person answered, or the defaults where nobody did in time."""

    __slots__ = ("chosen_options", "params_input", "responded_at", "responded_by", "timedout")

    def __init__(self, event: dict[str, Any]) -> None:
        self.chosen_options: list[str] = list(event.get("chosen_options") or ())
        self.params_input: dict[str, Any] = dict(event.get("params_input") or {})
        self.responded_at: datetime | None = revive(event.get("responded_at"))
        self.responded_by: dict[str, str] | None = event.get("responded_by_user")
        self.timedout = bool(event.get("timedout"))

    @property
    def choice(self) -> str:
        """The first chosen option; empty where none was chosen."""
        return self.chosen_options[0] if self.chosen_options else ""


class Replay:
    """The answers that this attempt has had so far, and how many of them were handed out again."""

    def __init__(self, next_method: str | None, next_kwargs: dict[str, Any] | None) -> None:
        self.answers: list[dict[str, Any]] = []
        self.used = 0
        #: The function that asked and what it was given, where it is one that resumed a deferral.
        self.asker: tuple[str, dict[str, Any]] | None = None
        if next_method == ASKED and isinstance(next_kwargs, dict):
            self.answers = list(next_kwargs.get(_ANSWERS) or ())
            event = next_kwargs.get("event") or {}
            self.answers.append({"subject": next_kwargs.get(_SUBJECT), "event": event})
            if _RESUME in next_kwargs:
                self.asker = (next_kwargs[_RESUME]["name"], next_kwargs[_RESUME]["kwargs"])

    def next(self, subject: str) -> dict[str, Any] | None:
        """Return the event of the next answer, ``None`` where this question is new."""
        if self.used >= len(self.answers):
            return None
        answer = self.answers[self.used]
        if answer["subject"] != subject:
            raise SdkError(
                f"question {self.used + 1} was {answer['subject']!r} and is now {subject!r}: a function that "
                "asks must ask the same questions in the same order each time it runs"
            )
        self.used += 1
        return answer["event"]  # type: ignore[no-any-return]


def ask_human(
    subject: str,
    options: Sequence[str] = ("OK",),
    *,
    body: str | None = None,
    defaults: Sequence[str] | None = None,
    multiple: bool = False,
    params: dict[str, Any] | None = None,
    assigned_users: Sequence[dict[str, str]] | None = None,
    timeout: Duration | None = None,
) -> Answer:
    """Ask a person and return the answer.

    The process ends while the question waits. When the answer is there the function runs again from its
    start, in a new process, and this call returns. So keep what comes before it cheap and repeatable.
    A function that resumed a deferral runs again with the same event.

    :param options: one or more, each once.
    :param defaults: options that count as chosen at the timeout.
    :param multiple: allow more than one option.
    :param params: a form: names to values, or to ``{"value": ..., "schema": {...}, "description": ...}``.
    :param assigned_users: ``{"id": ..., "name": ...}`` of those who may answer; everybody without it.
    :param timeout: seconds or a ``timedelta``.
    :raises HumanTimeout: after the timeout, where there are no defaults. It is a decision and no fault: the
        task fails for good unless the function catches it or the retry policy says otherwise.
    :raises ValueError: for no options, one that is there twice, or defaults that nobody could choose.
    """
    from airflow_handoff_sdk.context import current_context
    from airflow_handoff_sdk.requests import UNSET, AwaitInputTask, CreateHITLDetailPayload

    context = current_context()
    replay = context.replay
    event = replay.next(subject)
    if event is not None:
        if event.get("error"):
            raise HumanTimeout(f"{subject!r}: {event['error']}")
        return Answer(event)
    _check_options(list(options), list(defaults or ()), multiple)
    context.request(
        CreateHITLDetailPayload(
            ti_id=context.ti_id,
            options=list(options),
            subject=subject,
            body=body,
            defaults=UNSET if defaults is None else list(defaults),
            multiple=multiple,
            params=check(form(params or {}), "params"),
            assigned_users=[dict(user) for user in assigned_users or ()],  # type: ignore[misc]
        )
    )
    kept: dict[str, Any] = {_ANSWERS: replay.answers, _SUBJECT: subject}
    if context.next_method is not None and context.next_method != ASKED:
        kept[_RESUME] = {"name": context.next_method, "kwargs": context.next_kwargs or {}}
    raise Park(
        AwaitInputTask(
            next_method=ASKED,
            next_kwargs=kept,
            timeout=UNSET if timeout is None else iso_duration(timeout),
        )
    )


def _check_options(options: list[str], defaults: list[str], multiple: bool) -> None:
    if not options or len(set(options)) < len(options):
        raise ValueError(f"a question needs options, each of them once, and has {options!r}")
    strangers = [option for option in defaults if option not in options]
    if strangers or (len(defaults) > 1 and not multiple):
        raise ValueError(
            f"the defaults {defaults!r} are no choice among {options!r} with multiple={multiple}"
        )


def form(params: dict[str, Any]) -> dict[str, Any]:
    """Return the form's fields in the long shape that Airflow's page reads."""
    fields = {}
    for name, given in params.items():
        long = isinstance(given, dict) and "schema" in given
        field = dict(given) if long else {"value": given, "schema": {}}
        fields[name] = {"value": None, "description": None, **field}
    return fields
