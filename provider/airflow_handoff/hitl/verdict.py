"""Judge an answer by the question it was given: pure, the same at every door and in the task."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

import jsonschema
import referencing
import referencing.exceptions

from airflow_handoff.hitl.question import COMMENT, Answer, FormField, Question, json_problems
from airflow_handoff.hitl.state import RequestState

MAX_INPUT_BYTES = 64 * 1024
MAX_COMMENT_CHARS = 4_096
#: Reasons are kept with the request and shown to people: what else is wrong can be said next time.
MAX_REASONS = 10

_FORMATS = jsonschema.FormatChecker()
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


@_FORMATS.checks("date-time")
def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    if not _RFC3339.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value[:19])
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Accepted:
    """The answer keeps every rule.

    :param answer: complete: missing optional fields are filled in, the comment has its own place.
    """

    answer: Answer


@dataclass(frozen=True)
class Refused:
    """The answer breaks a rule; the request stays open.

    :param reasons: one sentence for each rule that was broken, the first ten.
    :param allowed: what would have been accepted: ``options``, ``multiple`` and ``fields``.
    """

    reasons: tuple[str, ...]
    allowed: dict[str, Any]


Verdict = Accepted | Refused


def judge(state: RequestState, answer: Answer) -> Verdict:
    """Judge *answer* by the question, the form and the assignees of *state*.

    :param answer: as it came in; a comment may travel as ``params_input["comment"]``.
    """
    question = state.question
    fields = dict(answer.params_input)
    comment = fields.pop(COMMENT, None)
    if comment is None:
        comment = answer.comment
    found = chain(
        _respondent_reasons(question, answer),
        _option_reasons(question, answer.chosen_options),
        _comment_reasons(comment),
        _form_reasons(question.form, fields),
    )
    reasons = list(islice(found, MAX_REASONS))
    if next(found, None) is not None:
        reasons.append("more is wrong than is listed here.")
    if reasons:
        return Refused(tuple(reasons), allowed(question))
    complete = {name: fields.get(name, field.value) for name, field in question.form.items()}
    return Accepted(answer.model_copy(update={"params_input": complete, "comment": comment or None}))


def judge_defaults(state: RequestState) -> Verdict:
    """Judge the answer that a timeout would give: the defaults of the options and of the form.

    :returns: refused where there are no defaults or where a required field would stay empty.
    """
    if not state.defaults:
        return Refused(("nobody answered and there are no defaults.",), allowed(state.question))
    missing = [name for name, field in state.question.form.items() if not _stands_in(field)]
    if missing:
        return Refused((f"nobody filled in {_listed(missing)}.",), allowed(state.question))
    values = {name: field.value for name, field in state.question.form.items()}
    return Accepted(Answer(chosen_options=state.defaults, params_input=values))


def allowed(question: Question) -> dict[str, Any]:
    """Describe as JSON what *question* accepts."""
    fields = {
        name: {"required": not _stands_in(field), "schema": field.schema}
        for name, field in question.form.items()
    }
    return {"options": list(question.options), "multiple": question.multiple, "fields": fields}


def _respondent_reasons(question: Question, answer: Answer) -> Iterator[str]:
    people = question.assigned_users
    if people and answer.respondent and not answer.respondent.is_one_of(people):
        names = _listed([person.name for person in people])
        yield f"{answer.respondent.name!r} is not assigned: only {names} may answer."


def _option_reasons(question: Question, chosen: tuple[str, ...]) -> Iterator[str]:
    if not chosen:
        yield f"no option was chosen: choose from {_listed(question.options)}."
    unknown = [option for option in chosen if option not in question.options]
    if unknown:
        yield f"{_few(unknown)} was not offered: choose from {_listed(question.options)}."
    if len(set(chosen)) < len(chosen):
        yield "an option was chosen twice: choose each at most once."
    elif len(chosen) > 1 and not question.multiple:
        yield f"{len(chosen)} options were chosen: choose exactly one."


def _comment_reasons(comment: Any) -> Iterator[str]:
    if comment is None:
        return
    if not isinstance(comment, str):
        yield f'"comment" has to be a text, not a {type(comment).__name__}.'
    elif len(comment) > MAX_COMMENT_CHARS:
        yield f'"comment" has {len(comment)} characters: at most {MAX_COMMENT_CHARS} are allowed.'
    else:
        for problem in json_problems(comment):
            yield f'"comment" {problem}.'


def _form_reasons(form: Mapping[str, FormField], fields: Mapping[str, Any]) -> Iterator[str]:
    unusable = json_problems(fields)
    if unusable:
        yield from (f"the form input {problem}." for problem in unusable)
        return
    size = len(json.dumps(fields, ensure_ascii=False).encode())
    if size > MAX_INPUT_BYTES:
        yield f"the form input has {size} bytes as JSON: at most {MAX_INPUT_BYTES} are allowed."
        return
    unknown = [name for name in fields if name not in form]
    if unknown:
        names = f"the fields are {_listed(form)}" if form else "this request has no form"
        yield f"unknown field {_few(unknown)}: {names}."
    for name, field in form.items():
        if name in fields:
            yield from _value_reasons(field, fields[name])
        elif not _stands_in(field):
            yield f"field {name!r} is required."


def _stands_in(field: FormField) -> bool:
    """Say whether the default may stand in for a value; one that breaks its schema only starts the form."""
    return field.has_default and next(_value_reasons(field, field.value), None) is None


def _value_reasons(field: FormField, value: Any) -> Iterator[str]:
    validator = jsonschema.Draft202012Validator(
        field.schema, registry=referencing.Registry(), format_checker=_FORMATS
    )
    try:
        for error in validator.iter_errors(value):
            where = "".join(f"[{step!r}]" for step in error.absolute_path)
            yield f"field {field.name!r}{where}: {_shortened(error.message)}."
    except referencing.exceptions.Unresolvable as error:
        yield f"field {field.name!r} cannot be checked: its schema refers to {error.ref!r}, not found."
    except RecursionError:
        yield f"field {field.name!r} cannot be checked: its schema refers to itself without an end."


def _shortened(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


def _few(names: Sequence[str], most: int = 10) -> str:
    """List what a stranger sent: it is kept with the request, so it stays short."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(_shortened(repr(name), 100) for name in names[:most]) + more


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
