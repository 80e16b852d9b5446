"""The form of a request: from a task's ``params`` to fields, and from fields to what Airflow's page reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from airflow_handoff.compat.params import has_default
from airflow_handoff.compat.structure import ParamsDict
from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.hitl.question import COMMENT, FormField
from airflow_handoff.hitl.verdict import MAX_COMMENT_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMENT_FIELD = {
    "value": None,
    "description": "An optional comment; it is kept with the answer.",
    "schema": {
        "type": ["null", "string"],
        "title": "Comment",
        "format": "multiline",
        "maxLength": MAX_COMMENT_CHARS,
    },
    "source": "task",
}


def form_fields(params: Mapping[str, Param]) -> dict[str, FormField]:
    """Read the fields out of the task's own params; a param without a default is a required field.

    :raises InvalidQuestion: if a name is no text.
    """
    if wrong := [name for name in params if not isinstance(name, str)]:
        raise InvalidQuestion(f"the names of params have to be texts, not {wrong!r}.")
    return {
        name: FormField(
            name=name,
            schema=dict(param.schema),
            description=param.description,
            has_default=has_default(param),
            value=param.value if has_default(param) else None,
        )
        for name, param in params.items()
    }


def template_params(fields: Iterable[FormField]) -> ParamsDict:
    """Return the defaults as ``params`` for templates.

    Without their schemas: Airflow would check them before the task has asked anybody, and would refuse to
    start a task whose field is still to be filled in.
    """
    return ParamsDict({field.name: Param(field.value) for field in fields if field.has_default})


def row_params(fields: Iterable[FormField], *, comment: bool) -> dict[str, dict[str, Any]]:
    """Return the form as Airflow's page wants it.

    :param comment: whether the page offers a field for a comment, too.
    """
    row: dict[str, dict[str, Any]] = {
        field.name: {
            "value": field.value,
            "description": field.description,
            "schema": field.schema,
            "source": "task",
        }
        for field in fields
    }
    if comment:
        row[COMMENT] = dict(_COMMENT_FIELD)
    return row
