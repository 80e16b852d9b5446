"""What is asked of a person and what comes back: plain, frozen values that travel as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import jsonschema
import pydantic.dataclasses
from pydantic import BaseModel, ConfigDict, Field, field_validator

#: Keys that Airflow's serialization gives a meaning to; anywhere in a value they make it unreadable.
SERIALIZATION_KEYS = frozenset(
    {"__classname__", "__version__", "__data__", "__id__", "__cache__", "__type", "__source", "__var"}
)
#: Names that Airflow's page and our doors use beside the form fields.
RESERVED_FIELDS = frozenset({"_options", "map_index", "comment", "handoff:seen"})
#: The name under which a comment travels beside the form fields.
COMMENT = "comment"
#: The name under which a page says which question it has shown.
SEEN = "handoff:seen"
MAX_DEPTH = 32
#: What MessagePack holds; Airflow's supervisors hand every answer over in it and die of a larger number.
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1


class Respondent(BaseModel):
    """A person who may answer, or who did.

    :param id: the id that the auth manager knows, as text.
    :param name: the name to show; the id where there is none.
    """

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    id: str
    name: str

    @classmethod
    def of(cls, value: Respondent | Mapping[str, Any] | str | int) -> Respondent:
        """Read a person from what Airflow or a Dag author hands over: a mapping, or only an id.

        :raises pydantic.ValidationError: if there is neither an id nor a name.
        """
        if isinstance(value, Respondent):
            return value
        if isinstance(value, Mapping):
            person = value.get("id", value.get("name"))
            return cls.model_validate({"id": person, "name": value.get("name", person)})
        return cls.model_validate({"id": value, "name": value})

    def is_one_of(self, people: Iterable[Respondent]) -> bool:
        """Say whether this person is among *people*, by id or by name, compared as text."""
        # An auth manager may leave a name empty: that is nobody's name.
        mine = {self.id, self.name} - {""}
        return any(mine & {other.id, other.name} for other in people)


@pydantic.dataclasses.dataclass(frozen=True)
class FormField:
    """One field of the form.

    :param name: the key of its value in the answer.
    :param schema: JSON schema that a value has to satisfy; empty means any JSON value.
    :param description: shown beside the field.
    :param has_default: whether *value* stands in for a missing value; a field without one is required.
    :param value: the default.
    """

    name: str
    schema: dict[str, Any] = Field(default_factory=dict)
    description: str | None = None
    has_default: bool = False
    value: Any = None


class Question(BaseModel):
    """Everything a person sees and may answer.

    :param subject: the headline.
    :param body: details as Markdown.
    :param options: what can be chosen, in the order it is shown.
    :param multiple: whether more than one option may be chosen.
    :param form: the fields to fill in, by name.
    :param assigned_users: who may answer; empty means everybody whom Airflow lets answer.
    """

    model_config = ConfigDict(frozen=True)

    subject: str
    body: str | None = None
    options: tuple[str, ...]
    multiple: bool = False
    form: dict[str, FormField] = Field(default_factory=dict)
    assigned_users: tuple[Respondent, ...] = ()

    @field_validator("assigned_users", mode="before")
    @classmethod
    def _people(cls, value: Any) -> Any:
        return tuple(Respondent.of(person) for person in value or ())

    @property
    def digest(self) -> str:
        """SHA-256 in hex over the canonical JSON of the question: what was seen when it was answered."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class Answer(BaseModel):
    """What a person answered.

    :param chosen_options: in the order of choosing.
    :param params_input: values of the form fields.
    :param respondent: who answered; ``None`` for a default that was applied on timeout.
    :param responded_at: when, with time zone.
    :param comment: free text beside the form.
    :param door: where the answer came in, for example ``page`` or ``cli``.
    """

    model_config = ConfigDict(frozen=True)

    chosen_options: tuple[str, ...]
    params_input: dict[str, Any] = Field(default_factory=dict)
    respondent: Respondent | None = None
    responded_at: datetime | None = None
    comment: str | None = None
    door: str | None = None

    @field_validator("respondent", mode="before")
    @classmethod
    def _person(cls, value: Any) -> Any:
        return value if value is None else Respondent.of(value)


def option_problems(options: Sequence[Any]) -> list[str]:
    """List, one sentence each, what keeps *options* from being offered."""
    if not options:
        return ['"options" cannot be empty: give at least one text.']
    wrong = [option for option in options if not isinstance(option, str) or not option]
    if wrong:
        return [f'"options" has to be a list of non-empty texts; these are not: {wrong!r}.']
    for problem in json_problems(list(options)):
        return [f'"options" {problem}.']
    repeated = sorted({option for option in options if list(options).count(option) > 1})
    return [f'"options" repeats {repeated!r}: give each option once.'] if repeated else []


def default_problems(defaults: Sequence[Any] | None, options: Sequence[str], multiple: bool) -> list[str]:
    """List what keeps *defaults* from standing in for an answer."""
    if defaults is None:
        return []
    problems = []
    unknown = [default for default in defaults if default not in options]
    if unknown:
        problems.append(
            f"defaults {list(defaults)!r} should be a subset of options {list(options)!r}, not {unknown!r}."
        )
    if not multiple and len(defaults) > 1:
        problems.append('More than one defaults given when "multiple" is set to False.')
    return problems


def form_problems(form: Mapping[str, FormField]) -> list[str]:
    """List what keeps *form* from being shown: reserved names, broken schemas, defaults that are no JSON."""
    return [problem for name, field in form.items() for problem in _field_problems(name, field)]


def _field_problems(name: str, field: FormField) -> Iterator[str]:
    if name in RESERVED_FIELDS or name in SERIALIZATION_KEYS:
        yield f'"{name}" is not allowed in params: Airflow or the form uses it. Rename the field.'
    try:
        jsonschema.Draft202012Validator.check_schema(field.schema)
    except jsonschema.SchemaError as error:
        yield f"the schema of field {name!r} is no JSON schema: {error.message}."
    for what, value in (("schema", field.schema), ("default", field.value)):
        for problem in json_problems(value):
            yield f"the {what} of field {name!r} {problem}."


def json_problems(value: Any) -> list[str]:
    """List what keeps *value* from travelling as JSON through Airflow's database and serialization."""
    found: dict[str, None] = {}
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > MAX_DEPTH:
            found[f"is nested deeper than {MAX_DEPTH} levels"] = None
        elif isinstance(item, Mapping):
            found.update(dict.fromkeys(_key_problems(item)))
            pending.extend((child, depth + 1) for child in item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend((child, depth + 1) for child in item)
        elif problem := _scalar_problem(item):
            found[problem] = None
    return list(found)


def _key_problems(item: Mapping[Any, Any]) -> Iterator[str]:
    for key in item:
        if key in SERIALIZATION_KEYS:
            yield f"uses the key {key!r}, which Airflow's serialization reserves"
        elif not isinstance(key, str):
            yield f"has the key {key!r}, which is not a text"
        elif problem := _scalar_problem(key):
            yield problem


def _scalar_problem(item: Any) -> str | None:
    if isinstance(item, str):
        if "\0" in item:
            return "has a NUL character, which databases refuse"
        if any("\ud800" <= char <= "\udfff" for char in item):
            return "has half a surrogate pair, which is no text"
        return None
    if isinstance(item, int) and not SMALLEST_INTEGER <= item <= LARGEST_INTEGER:
        return "has a whole number of more than 64 bits, which Airflow cannot hand to a task"
    if item is None or isinstance(item, (bool, int)):
        return None
    if isinstance(item, float):
        return None if item - item == 0 else f"has the number {item}, which JSON does not know"
    return f"has a {type(item).__name__}, which JSON does not know"
