"""The address of a request on Airflow's own page."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_handoff.hitl.links import prefilled, required_actions_url

BASE = "https://host/airflow/prod/"
RUN = "manual__2026-01-01T00:00:00+00:00"


def url(base: str = BASE, **kwargs: Any) -> str:
    """Build a link to the task ``group.ask`` of the Dag ``expenses``."""
    return required_actions_url(base, dag_id="expenses", run_id=RUN, task_id="group.ask", **kwargs)


def page_options(link: str) -> Any:
    """Read the options as Airflow's page does: URLSearchParams, then decodeURIComponent, then JSON."""
    return json.loads(unquote(parse_qs(urlsplit(link).query)["_options"][0], errors="strict"))


def test_case_links() -> None:
    """The path is kept, ids are encoded, a mapped task has its own route, options are JSON."""
    link = url(map_index=3, options=["a b"])
    assert link == (
        "https://host/airflow/prod/dags/expenses/runs/manual__2026-01-01T00%3A00%3A00%2B00%3A00"
        "/tasks/group.ask/mapped/3/required_actions?_options=%5B%22a%20b%22%5D"
    )


def test_an_unmapped_task_has_no_mapped_route_and_no_query() -> None:
    """Nothing to preselect means a clean address."""
    assert url("http://localhost:8080").endswith("/tasks/group.ask/required_actions")


def test_query_and_fragment_of_the_base_are_dropped() -> None:
    """Only scheme, host and path of the base are of use."""
    assert url("https://host/a?x=1#y") == url("https://host/a/")


@pytest.mark.parametrize("base", ["", "host/airflow", "/airflow", "ftp://host", "javascript:alert(1)"])
def test_a_base_that_no_browser_can_open_is_refused(base: str) -> None:
    """A relative or foreign address would give a dead link in a message nobody can edit any more."""
    with pytest.raises(ValueError, match="absolute http"):
        url(base)


def test_ids_with_reserved_characters_stay_one_path_segment() -> None:
    """Slash, question mark and hash in an id do not change the route."""
    link = required_actions_url(BASE, dag_id="d", run_id="a/b?c#d e", task_id="t")
    assert "/runs/a%2Fb%3Fc%23d%20e/tasks/" in link


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_every_option_survives_the_page_s_two_decodings(options: list[str]) -> None:
    """Percent signs, quotes, plus signs and any script arrive as they were."""
    assert page_options(url(options=options)) == options


def test_one_option_may_be_a_plain_string() -> None:
    """The standard operator takes both forms."""
    assert page_options(url(options="100 %")) == ["100 %"]


def test_fields_travel_as_text_and_come_back_by_their_schema() -> None:
    """What a link asks for is what the form shows, type included."""
    values: dict[str, Any] = {
        "code": "007",
        "amount": 12.5,
        "urgent": False,
        "tags": ["a", "b&c"],
        "detail": {"k": "v=1"},
        "nothing": None,
    }
    types = {"code": "string", "amount": "number", "urgent": "boolean", "tags": "array", "detail": "object"}
    fields = {
        name: {"value": None, "description": None, "schema": {"type": types.get(name, "string")}}
        for name in values
    }
    filled = prefilled(fields, urlsplit(url(params_input=values)).query)
    assert {name: field["value"] for name, field in filled.items()} == values


def test_prefilling_ignores_what_is_no_field() -> None:
    """Other query keys, options included, never become fields, and bare values are left alone."""
    fields = {"a": {"value": 1, "description": None, "schema": {}}, "bare": 5}
    assert prefilled(fields, "_options=%5B%5D&zzz=1&bare=6") == fields


def test_prefilling_takes_an_enum_value_as_it_is_written() -> None:
    """A choice "1" of an untyped enum stays the text that was offered."""
    fields = {"a": {"value": None, "schema": {"enum": ["1", "2"]}}}
    assert prefilled(fields, "a=1")["a"]["value"] == "1"


def test_prefilling_keeps_text_that_is_no_json() -> None:
    """A broken value is shown to the person, who can correct it."""
    fields = {"a": {"value": None, "schema": {"type": "integer"}}}
    assert prefilled(fields, "a=ten")["a"]["value"] == "ten"


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999"])
def test_prefilling_gives_the_page_nothing_that_is_no_json(text: str) -> None:
    """Python reads such numbers; the page, which has to read them back, would stay empty."""
    fields = {"a": {"value": None, "schema": {"type": "number"}}}
    assert prefilled(fields, f"a={text}")["a"]["value"] == text
