"""Typed messages, against captured frames and against the schema that Airflow installs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.vectors import WELL_FORMED, Vector

from airflow_handoff.compat.versions import HAS_COORDINATORS
from airflow_handoff.wire.messages import (
    REQUESTS,
    RESPONSES,
    SCHEMA_VERSION,
    InvalidMessage,
    not_json,
    parse_request,
    parse_response,
)
from airflow_handoff.wire.requests import AwaitInputTask, DeferTask, GetVariable, SetXCom
from airflow_handoff.wire.values import Message

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)


def bodies(vector: Vector) -> list[Any]:
    """Return the bodies of a frame that must be typed messages."""
    if vector.from_task:
        return [vector.decoded[1]]
    return [part for part in vector.decoded[1:] if part is not None]


@pytest.mark.parametrize("vector", WELL_FORMED, ids=lambda vector: vector.name)
def test_captured_messages_keep_their_values(vector: Vector) -> None:
    """A typed message holds every value of the captured map, and typing what it becomes changes nothing."""
    parse = parse_request if vector.from_task else parse_response
    for body in bodies(vector):
        try:
            message = parse(body)
        except InvalidMessage:
            assert vector.from_task, "whatever a supervisor sent must be understood"
            assert airflow_refuses(body)
            continue
        again = parse(message.to_body())
        assert again == message
        assert type(message).__name__ == body["type"]
        assert set(body) - set(message.to_body()) <= {"zzz"}, "only what the schema does not know is left out"
        assert parse({**message.to_body(), **body}) == message


def airflow_refuses(body: Any) -> bool:
    """Say whether a captured request is one of those that Airflow itself does not take."""
    if not isinstance(body, dict) or body.get("type") not in REQUESTS:
        return True
    known_faults = {
        "GetVariable": lambda: not isinstance(body["key"], str),
        "RetryTask": lambda: "zzz" in body,
        "TaskState": lambda: body["state"] == "success",
        "SetXCom": lambda: body["key"] in {"kik"} or not_json(body["value"]),
    }
    return bool(known_faults[body["type"]]())


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 400, "a map with the key `type` was expected and nil came"),
        ([1], 400, "a map with the key `type` was expected and list came"),
        ({"x": 1}, 400, "`type` must be a text"),
        ({"type": ["GetXCom"]}, 400, "`type` must be a text and list came"),
        ({"type": "NoSuchThing"}, 400, "no message of this type is known in schema 2026-06-16"),
        ({"type": "VariableResult", "key": "k", "value": "v"}, 400, "no message of this type"),
        ({"type": "GetVariable"}, 422, "missing required field `key`"),
        ({"type": "GetVariable", "key": 7}, 422, r"Expected `str`, got `int` - at `\$.key`"),
        ({"type": "RescheduleTask", "end_date": NOW, "reschedule_date": NOW, "zzz": 1}, 422, "zzz"),
        ({"type": "TaskState", "state": "success"}, 422, "success"),
        ({"type": "SucceedTask", "end_date": "2026-11-30T10:00:00"}, 422, "timezone"),
        ({"type": "SucceedTask", "end_date": float("nan")}, 422, "end_date"),
        ({"type": "GetPrevSuccessfulDagRun", "ti_id": "no-uuid"}, 422, "UUID"),
    ],
)
def test_case_unknown_request_says_what_is_wrong(body: Any, status: int, reason: str) -> None:
    """An unknown type is a 400 and a broken field a 422, each with its reason."""
    with pytest.raises(InvalidMessage, match=reason) as caught:
        parse_request(body)
    assert caught.value.status_code == status


def test_fields_of_a_newer_schema_are_ignored() -> None:
    """A runtime may send more than this schema knows where the message does not forbid it."""
    assert parse_request({"type": "GetVariable", "key": "k", "since": 2027}) == GetVariable(key="k")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"x", r"\$.value: JSON was expected and bytes came"),
        ({"a": [1, {"b": NOW}]}, "JSON was expected and datetime came"),
        ({1: 2}, "keys must be texts and int came"),
        ([[float("nan")]], "a finite number was expected and nan came"),
        (float("-inf"), "a finite number was expected and -inf came"),
    ],
)
def test_an_xcom_must_be_json(value: Any, reason: str) -> None:
    """What Airflow would not answer is refused with the place of the fault."""
    body = {
        "type": "SetXCom", "key": "k", "dag_id": "d", "run_id": "r", "task_id": "t", "value": value,
    }  # fmt: skip
    with pytest.raises(InvalidMessage, match=reason):
        parse_request(body)


def test_json_of_any_depth_is_checked_without_recursion() -> None:
    """Depth is the peer's choice and must not exhaust the stack."""
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert not_json(deep) is None
    assert not_json([deep, b"x"]) is not None


def test_an_xcom_value_is_not_copied() -> None:
    """A large value is held once."""
    value = [{"a": 1}]
    request = parse_request(
        {"type": "SetXCom", "key": "k", "dag_id": "d", "run_id": "r", "task_id": "t", "value": value}
    )
    assert isinstance(request, SetXCom)
    assert request.value is value


def test_durations_are_read_as_iso_8601() -> None:
    """Airflow's notation of a timeout, and of a trigger's timeout, is understood both ways."""
    waits = parse_request({"type": "AwaitInputTask", "next_method": "go", "timeout": "PT1H30M"})
    assert waits == AwaitInputTask(next_method="go", timeout=timedelta(minutes=90))
    defers = parse_request(
        {"type": "DeferTask", "classpath": "a.B", "next_method": "go", "trigger_timeout": "P1DT5S"}
    )
    assert isinstance(defers, DeferTask)
    assert defers.trigger_timeout == timedelta(days=1, seconds=5)


@settings(deadline=None, max_examples=200)
@given(
    name=st.sampled_from(sorted(REQUESTS)),
    noise=st.dictionaries(
        st.sampled_from(
            ["key", "dag_id", "run_id", "task_id", "ti_id", "state", "end_date", "value", "name"]
        ),
        st.one_of(
            st.none(), st.integers(), st.text(max_size=5), st.binary(max_size=3), st.lists(st.integers())
        ),
    ),
)
def test_any_body_is_a_message_or_invalid(name: str, noise: dict[str, Any]) -> None:
    """No body raises anything but the one error that says what is wrong with it."""
    found = attempt({"type": name, **noise})
    if isinstance(found, InvalidMessage):
        assert found.type_name == name
    else:
        assert isinstance(found, REQUESTS[name])


def attempt(body: Any) -> Message | InvalidMessage:
    """Return the message that a body is, or what is wrong with it."""
    try:
        return parse_request(body)
    except InvalidMessage as invalid:
        return invalid


# -- the installed schema ---------------------------------------------------------------------------------

needs_schema = pytest.mark.skipif(
    not HAS_COORDINATORS, reason="Airflow installs the supervisor schema from 3.3 on"
)


def render(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    """Write a JSON schema as one short text, so that two writers of the same type agree."""
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        if "properties" in defs[name]:
            return name
        return render(defs[name], defs)
    if "anyOf" in schema:
        parts = sorted({part for item in schema["anyOf"] for part in render(item, defs).split("|")})
        return "any" if "any" in parts else "|".join(parts)
    if "const" in schema:
        return repr([schema["const"]])
    if "enum" in schema:
        return repr(sorted(schema["enum"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list[{render(schema['items'], defs) if schema.get('items') else 'any'}]"
    if kind == "object":
        return f"map[{render(schema.get('additionalProperties', {}), defs)}]"
    return f"{kind}:{schema['format']}" if schema.get("format") else kind


def ours() -> dict[str, Any]:
    """Return the JSON schemas of our classes, those nested in messages included."""
    _, defs = msgspec.json.schema_components([*REQUESTS.values(), *RESPONSES.values()])
    return defs


def installed() -> dict[str, Any]:
    """Return the schema that Airflow brings."""
    return json.loads(files("airflow.sdk.execution_time.schema").joinpath("schema.json").read_text())


@needs_schema
def test_the_schema_version_is_the_installed_one() -> None:
    """The date in our module is the date of the file."""
    assert installed()["api_version"] == SCHEMA_VERSION


@needs_schema
def test_our_messages_are_airflows_messages() -> None:
    """Neither side knows a message that the other does not."""
    from airflow.sdk.execution_time.comms import ToSupervisor, ToTask

    names = [{cls.__name__ for cls in get_args(get_args(union)[0])} for union in (ToSupervisor, ToTask)]
    assert [set(REQUESTS), set(RESPONSES)] == names


@needs_schema
@pytest.mark.parametrize("name", sorted(ours()))
def test_our_class_has_airflows_fields(name: str) -> None:
    """Each field has the same name, the same type, the same default and the same need to be there."""
    theirs, mine = installed()["$defs"], ours()
    expected, found = theirs[name], mine[name]
    assert set(found["properties"]) == set(expected["properties"])
    # The type key is how a message is known; Airflow's schema gives it a default.
    needed = [set(schema.get("required", ())) - {"type"} for schema in (found, expected)]
    assert needed[0] == needed[1] - ({"type"} if name in {*REQUESTS, *RESPONSES} else set())
    assert found.get("additionalProperties") == expected.get("additionalProperties")
    for field, schema in expected["properties"].items():
        left, right = render(found["properties"][field], mine), render(schema, theirs)
        if "default" not in schema and field not in expected.get("required", ()):
            left = left.replace("|null", "")  # absent there, null on the wire
        assert left.replace("list[any]", "list").replace("|any", "") == right.replace(
            "list[any]", "list"
        ).replace("|any", ""), field
        if "default" in schema and field != "type":
            assert found["properties"][field]["default"] == schema["default"], field


def test_every_message_is_a_frozen_value() -> None:
    """A message that was handed out cannot change behind the session's back."""
    for cls in [*REQUESTS.values(), *RESPONSES.values()]:
        assert issubclass(cls, Message)
        assert cls.__struct_config__.frozen
