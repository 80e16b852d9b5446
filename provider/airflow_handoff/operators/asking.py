"""What a Dag author wrote about a request.

Checked when the Dag is parsed as far as it is literal, and read for good when the templates are rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from pydantic import TypeAdapter, ValidationError

from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.hitl.question import (
    FormField,
    Question,
    Respondent,
    default_problems,
    form_problems,
    json_problems,
    option_problems,
)

_TIMEDELTA: TypeAdapter[timedelta] = TypeAdapter(timedelta)
_PLAIN = (str, int, float, timedelta, type(None))
_MAX_KEY = 250
#: A deadline moves on by what notifiers take, and with the time of the run.
_SPARE = timedelta(days=36_500)
_NOBODY = Respondent(id="", name="")
_OPENING = ("[", "{", "(")


def is_literal(value: Any) -> bool:
    """Say whether *value* is final already: no template, nothing that is resolved when the task runs."""
    if isinstance(value, str):
        return not any(mark in value for mark in ("{{", "{%", "{#"))
    if isinstance(value, Mapping):
        return all(is_literal(item) for item in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_literal(item) for item in value)
    return isinstance(value, _PLAIN)


def check_literals(arguments: Mapping[str, Any], form: Mapping[str, FormField]) -> None:
    """Check what can be checked of an operator's arguments when the Dag is parsed.

    :param arguments: by the operator's argument names; those that are missing are not checked.
    :raises InvalidQuestion: with one sentence for each problem.
    """
    known = {name: value for name, value in arguments.items() if is_literal(value)}
    problems = form_problems(form)
    options = known.get("options")
    if isinstance(options, (list, tuple)):
        problems += option_problems(options)
        if known.get("defaults") is not None:
            problems += default_problems(texts(known["defaults"]), options, bool(known.get("multiple")))
    elif "options" in known:
        problems.append(_not_a_list("options", options))
    for name, read in (("assigned_users", people), ("response_timeout", timeout), ("approval_key", key)):
        if known.get(name) is not None:
            problems += _complaint(read, known[name])
    raise_problems(problems)


def _complaint(read: Any, value: Any) -> list[str]:
    try:
        read(value)
    except InvalidQuestion as error:
        return [str(error)]
    return []


def raise_problems(problems: Sequence[str]) -> None:
    """Raise if there is any problem.

    :raises InvalidQuestion: with all of them.
    """
    if problems:
        raise InvalidQuestion(" ".join(problems))


def question(
    *,
    subject: Any,
    body: Any,
    options: Any,
    defaults: Sequence[str] | None,
    multiple: bool,
    form: Mapping[str, FormField],
    assigned_users: Any,
) -> Question:
    """Put the question together from rendered arguments.

    :raises InvalidQuestion: if it cannot be asked.
    """
    if isinstance(options, (str, Mapping)) or not isinstance(options, Iterable):
        raise InvalidQuestion(_not_a_list("options", options))
    offered = texts(options)
    raise_problems(
        [
            *option_problems(offered),
            *default_problems(defaults, offered, multiple),
            *form_problems(form),
            *(['"subject" is missing: give a text.'] if subject is None else []),
        ]
    )
    asked = Question(
        subject=str(subject),
        body=None if body is None else str(body),
        options=tuple(offered),
        multiple=multiple,
        form=dict(form),
        assigned_users=people(assigned_users),
    )
    values = asked.model_dump(exclude={"form"})
    raise_problems([f'"{name}" {problem}.' for name in values for problem in json_problems(values[name])])
    return asked


def texts(value: Any) -> list[str]:
    """Read a text or a list of texts; a list within a list, as a template may render to, is flattened.

    Numbers become text: a native template may have made them out of it.
    """
    items = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    flat: list[str] = []
    for item in items:
        if isinstance(item, (list, tuple)):
            flat += texts(item)
        else:
            flat.append(str(item) if isinstance(item, (int, float)) else item)
    return flat


def people(value: Any) -> tuple[Respondent, ...]:
    """Read the assignees: one or several, each a mapping with ``id`` and ``name``, or only an id.

    :raises InvalidQuestion: if one of them is neither.
    """
    if value is None:
        return ()
    several = [value] if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable) else list(value)
    try:
        read = tuple(Respondent.of(person) for person in several)
    except ValidationError:
        read = (_NOBODY,)
    # A template renders a list to a text, and a value that is missing to an empty one: nobody has such an id.
    if any(not (person.id or person.name) or person.id[:1] in _OPENING for person in read):
        raise InvalidQuestion(
            f'"assigned_users" has to be one or several of {{"id": ..., "name": ...}}, not {value!r}: '
            "for people out of a template use an XComArg or a Dag with render_template_as_native_obj=True."
        )
    return read


def timeout(value: Any) -> timedelta | None:
    """Read a timeout: a ``timedelta``, seconds as number or text, or an ISO 8601 duration.

    :raises InvalidQuestion: if it is none of these or not positive.
    """
    if value is None:
        return None
    try:
        read = _TIMEDELTA.validate_python(float(value) if _is_number(value) else value)
        if isinstance(value, bool):
            raise OverflowError
        datetime.now(timezone.utc) + read + _SPARE
    except (ValidationError, OverflowError):
        raise InvalidQuestion(f'"response_timeout" has to be a timedelta, not {value!r}.') from None
    if read <= timedelta(0):
        raise InvalidQuestion(f'"response_timeout" has to be positive, not {value!r}.')
    return read


def key(value: Any) -> str:
    """Read an approval key: a text that can stand in an address.

    :raises InvalidQuestion: if it cannot.
    """
    if isinstance(value, str) and 0 < len(value) <= _MAX_KEY and "/" not in value and value.isprintable():
        return value
    raise InvalidQuestion(
        f'"approval_key" has to be a text of 1 to {_MAX_KEY} printable characters without "/", not {value!r}.'
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.strip().replace(".", "", 1).isdecimal()


def _not_a_list(name: str, value: Any) -> str:
    if not value:
        return f'"{name}" cannot be empty: give at least one text.'
    return (
        f'"{name}" has to be a list of texts, not {value!r}: for a list out of a template use an XComArg or '
        "a Dag with render_template_as_native_obj=True."
    )
