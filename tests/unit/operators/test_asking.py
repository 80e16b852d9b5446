"""Reading what a Dag author wrote."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, Param
from hypothesis import given
from hypothesis import strategies as st

from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.hitl.question import Respondent
from airflow_handoff.operators.asking import check_literals, is_literal, key, people, question, texts, timeout


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("a", True),
        ("{{ a }}", False),
        ("{% if a %}b{% endif %}", False),
        (["a", "{{ b }}"], False),
        ({"id": "{{ a }}"}, False),
        ([{"id": "1", "name": "ada"}], True),
        (timedelta(1), True),
        (None, True),
        (5, True),
        (object(), False),
    ],
)
def test_only_what_is_final_is_checked_at_parse(value: Any, literal: bool) -> None:
    """Templates and everything that is resolved later are left for the run."""
    assert is_literal(value) is literal


def test_a_dag_param_is_resolved_later() -> None:
    """Airflow's own references are no literals, however deep."""
    with DAG("d", params={"x": Param(1)}) as dag:
        assert not is_literal([dag.param("x")])


def test_what_is_missing_or_templated_is_not_checked() -> None:
    """A mapped operator hands in only what it has."""
    check_literals({}, {})
    check_literals({"options": "{{ a }}", "defaults": ["b"], "response_timeout": "{{ c }}"}, {})
    with pytest.raises(InvalidQuestion, match="empty"):
        check_literals({"options": None}, {})


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("a", ["a"]),
        (["a", "b"], ["a", "b"]),
        ([["a", "b"], "c"], ["a", "b", "c"]),
        (5, ["5"]),
        ([True], ["True"]),
    ],
)
def test_texts_are_read_from_what_a_template_may_become(value: Any, read: list[str]) -> None:
    """A native template turns text into numbers, and an element into a list."""
    assert texts(value) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, ()),
        ("ada", (Respondent(id="ada", name="ada"),)),
        ({"id": 7, "name": "ada"}, (Respondent(id="7", name="ada"),)),
        (
            [{"id": "7", "name": "ada"}, "ben"],
            (Respondent(id="7", name="ada"), Respondent(id="ben", name="ben")),
        ),
    ],
)
def test_people_may_be_one_or_several(value: Any, read: tuple[Respondent, ...]) -> None:
    """Mappings and ids."""
    assert people(value) == read


@pytest.mark.parametrize(
    "value",
    [
        [{"x": 1}],
        [None],
        [["ada"]],
        object(),
        "",
        [""],
        {"id": "", "name": ""},
        "[{'id': '7', 'name': 'ada'}]",
    ],
)
def test_people_that_are_none_are_refused(value: Any) -> None:
    """The message says what is expected."""
    with pytest.raises(InvalidQuestion, match="assigned_users"):
        people(value)


@pytest.mark.parametrize("value", ["", "soon", timedelta(0), -1, [], "0", "²"])
def test_timeouts_that_are_none_are_refused(value: Any) -> None:
    """A timeout is positive."""
    with pytest.raises(InvalidQuestion, match="response_timeout"):
        timeout(value)


@given(st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=3000)))
def test_a_timeout_keeps_its_value(value: timedelta) -> None:
    """As timedelta, as seconds and as the ISO text that an XCom may hold."""
    from pydantic import TypeAdapter

    assert timeout(value) == value
    assert timeout(TypeAdapter(timedelta).dump_json(value).decode().strip('"')) == value
    assert abs(timeout(value.total_seconds()) - value) <= timedelta(milliseconds=1)  # type: ignore[operator]


@pytest.mark.parametrize("value", ["", "a/b", "a\n", "x" * 251, None, 5])
def test_keys_that_cannot_stand_in_an_address_are_refused(value: Any) -> None:
    """The approve route has the key in its path."""
    with pytest.raises(InvalidQuestion, match="approval_key"):
        key(value)


def test_a_rendered_question_that_cannot_be_asked_is_told_in_full() -> None:
    """All problems at once, and a text in place of a list gets a hint."""
    asked: dict[str, Any] = {
        "subject": "s",
        "body": None,
        "multiple": False,
        "form": {},
        "assigned_users": None,
        "defaults": None,
    }
    with pytest.raises(InvalidQuestion, match=r"empty.*subset"):
        question(**{**asked, "options": [], "defaults": ["a"]})
    with pytest.raises(InvalidQuestion, match="render_template_as_native_obj"):
        question(**{**asked, "options": "['a', 'b']"})
    with pytest.raises(InvalidQuestion, match="subject"):
        question(**{**asked, "options": ["a"], "subject": None})
    assert question(**{**asked, "options": (1, "b"), "subject": 5}).options == ("1", "b")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("subject", "a\0b"),
        ("body", "half a pair \ud800"),
        ("options", ["a\0"]),
        ("assigned_users", {"id": "7", "name": "a\0"}),
    ],
)
def test_text_that_no_database_takes_is_told_before_anybody_is_asked(part: str, value: Any) -> None:
    """A draft out of another task may hold such characters; the api-server's error would not say where."""
    asked: dict[str, Any] = {
        "subject": "s",
        "body": None,
        "options": ["a"],
        "defaults": None,
        "multiple": False,
        "form": {},
        "assigned_users": None,
    }
    with pytest.raises(InvalidQuestion, match=f'"{part}" has'):
        question(**{**asked, part: value})


@pytest.mark.parametrize("value", [timedelta.max, 999_999_999 * 86_400, True, "P99999999D"])
def test_a_timeout_beyond_the_calendar_is_no_timeout(value: Any) -> None:
    """It would fail the task when the deadline is worked out, though the Dag parsed."""
    with pytest.raises(InvalidQuestion, match="response_timeout"):
        timeout(value)
