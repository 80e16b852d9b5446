"""Judging an answer by its question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_handoff.hitl.question import SERIALIZATION_KEYS, Answer, FormField, Question, Respondent
from airflow_handoff.hitl.state import RequestState
from airflow_handoff.hitl.verdict import (
    MAX_COMMENT_CHARS,
    MAX_INPUT_BYTES,
    Accepted,
    Refused,
    judge,
    judge_defaults,
)

COUNT = FormField("count", {"type": "integer", "minimum": 3}, None, True, 5)
NOTE = FormField("note", {"type": "string"})


def state(*fields: FormField, defaults: tuple[str, ...] | None = None, **question: Any) -> RequestState:
    """A waiting request with options a and b, and these fields."""
    values = {"subject": "s", "options": ("a", "b"), "form": {field.name: field for field in fields}}
    return RequestState(
        approval_key="k", kind="hitl", question=Question(**{**values, **question}), defaults=defaults
    )


def answer(*options: str, **params: Any) -> Answer:
    """An answer with these options and form values."""
    return Answer(chosen_options=options, params_input=params)


def reasons(verdict: object) -> str:
    """The text of a refusal."""
    assert isinstance(verdict, Refused), verdict
    return " ".join(verdict.reasons)


def test_a_valid_answer_is_completed_from_the_defaults() -> None:
    """Missing optional fields are filled in; the rest stays as given."""
    verdict = judge(state(COUNT, NOTE), answer("a", note="x"))
    assert isinstance(verdict, Accepted)
    assert verdict.answer.params_input == {"count": 5, "note": "x"}
    assert verdict.answer.chosen_options == ("a",)


@pytest.mark.parametrize(
    ("options", "word"),
    [((), "no option"), (("z",), "'z' was not offered"), (("a", "b"), "exactly one"), (("a", "a"), "twice")],
)
def test_options_are_judged(options: tuple[str, ...], word: str) -> None:
    """An empty, foreign, repeated or surplus choice is refused with what is allowed."""
    verdict = judge(state(), answer(*options))
    assert word in reasons(verdict)
    assert isinstance(verdict, Refused)
    assert verdict.allowed == {"options": ["a", "b"], "multiple": False, "fields": {}}


def test_several_options_where_several_are_allowed() -> None:
    """The order of choosing is kept."""
    verdict = judge(state(multiple=True), answer("b", "a"))
    assert isinstance(verdict, Accepted)
    assert verdict.answer.chosen_options == ("b", "a")


def test_case_late_validation() -> None:
    """A value that breaks its schema is refused with the field's name."""
    assert "'count': 1 is less than the minimum of 3" in reasons(judge(state(COUNT), answer("a", count=1)))


def test_case_required_field() -> None:
    """A field without a default has to be filled in, and the refusal says which."""
    verdict = judge(state(NOTE), answer("a"))
    assert "'note' is required" in reasons(verdict)
    assert isinstance(verdict, Refused)
    assert verdict.allowed["fields"] == {"note": {"required": True, "schema": {"type": "string"}}}


def test_case_unknown_keys() -> None:
    """An unknown key is refused with the names that are allowed."""
    assert "'zzz': the fields are 'note'" in reasons(judge(state(NOTE), answer("a", note="x", zzz=1)))
    assert "no form" in reasons(judge(state(), answer("a", zzz=1)))


@pytest.mark.parametrize("key", ["_options", "map_index", *sorted(SERIALIZATION_KEYS)])
def test_case_reserved_keys(key: str) -> None:
    """Keys with a meaning to Airflow are refused at the top."""
    assert key in reasons(judge(state(), answer("a", **{key: "x"})))


@given(st.sampled_from(sorted(SERIALIZATION_KEYS)))
def test_case_reserved_keys_at_any_depth(key: str) -> None:
    """A schema that allows any object does not let a serialization key through."""
    free = FormField("data", {"type": "object"})
    assert key in reasons(judge(state(free), answer("a", data={"x": [{key: 1}]})))


def test_input_is_capped() -> None:
    """One byte more than 64 KiB of JSON is refused, the cap itself is not."""
    room = MAX_INPUT_BYTES - len('{"note": ""}')
    assert isinstance(judge(state(NOTE), answer("a", note="x" * room)), Accepted)
    assert "at most 65536" in reasons(judge(state(NOTE), answer("a", note="x" * (room + 1))))
    assert "at most 65536" in reasons(judge(state(NOTE), answer("a", note="é" * (room // 2 + 1))))


def test_a_comment_is_lifted_out_of_the_form() -> None:
    """A comment may always travel beside the fields and never stays among them."""
    verdict = judge(state(NOTE), answer("a", note="x", comment="looks good"))
    assert isinstance(verdict, Accepted)
    assert verdict.answer.comment == "looks good"
    assert verdict.answer.params_input == {"note": "x"}


@pytest.mark.parametrize("comment", [None, ""])
def test_an_empty_comment_is_none(comment: str | None) -> None:
    """Airflow's page sends an empty field; that is no comment."""
    verdict = judge(state(), answer("a", comment=comment))
    assert isinstance(verdict, Accepted)
    assert verdict.answer.comment is None


@pytest.mark.parametrize("comment", [5, ["x"], "x" * (MAX_COMMENT_CHARS + 1), "a\0"])
def test_a_comment_has_rules_too(comment: object) -> None:
    """It has to be a text of limited length."""
    assert '"comment"' in reasons(judge(state(), answer("a", comment=comment)))


def test_only_assignees_may_answer() -> None:
    """An answer by somebody else is refused; a match by name is enough."""
    asked = state(assigned_users=("ada",))
    ada, eve = (Respondent(id=str(n), name=name) for n, name in enumerate(("ada", "eve")))
    assert isinstance(judge(asked, Answer(chosen_options=("a",), respondent=ada)), Accepted)
    assert "only 'ada'" in reasons(judge(asked, Answer(chosen_options=("a",), respondent=eve)))


def test_every_broken_rule_is_told_at_once() -> None:
    """A respondent does not have to find the rules one by one."""
    text = reasons(judge(state(COUNT, NOTE), answer("z", count="x", zzz=1)))
    for word in ("'z'", "'zzz'", "'count'", "'note'"):
        assert word in text


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ("2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05.25+01:00", True),
        ("2026-13-02T03:04:05Z", False),
        ("2026-01-02", False),
        ("tomorrow", False),
    ],
)
def test_date_times_are_checked(value: str, good: bool) -> None:
    """The format of a date-time is part of the schema, whatever else is installed."""
    field = FormField("when", {"type": "string", "format": "date-time"})
    assert isinstance(judge(state(field), answer("a", when=value)), Accepted) is good


def test_a_schema_never_fetches_anything() -> None:
    """A reference that leads out of the schema is refused, not downloaded."""
    field = FormField("x", {"$ref": "http://127.0.0.1:9/schema.json"})
    assert "127.0.0.1:9" in reasons(judge(state(field), answer("a", x=1)))


def test_defaults_answer_for_nobody() -> None:
    """On timeout the Dag author's defaults are the answer and there is no respondent."""
    verdict = judge_defaults(state(COUNT, defaults=("a",)))
    assert verdict == Accepted(Answer(chosen_options=("a",), params_input={"count": 5}))


def test_case_timeout_means_approve() -> None:
    """Without written defaults, or with a required field left empty, a timeout answers nothing."""
    assert "no defaults" in reasons(judge_defaults(state()))
    assert "'note'" in reasons(judge_defaults(state(NOTE, defaults=("a",))))


@pytest.mark.parametrize(
    ("schema", "value"),
    [({"$ref": "#"}, 1), ({"type": "number", "multipleOf": 0.5}, 10**400), ({"type": "integer"}, 2**64)],
)
def test_what_the_schema_library_chokes_on_is_refused(schema: dict[str, Any], value: int) -> None:
    """An endless schema or an enormous number is a refusal, not a fault of the door."""
    assert reasons(judge(state(FormField("n", schema)), answer("a", n=value)))


def test_a_refusal_stays_short_whatever_came_in() -> None:
    """It is kept with the request and repeated in logs: twenty of them must not fill a database."""
    many = {f"{number}{'x' * 300}": 1 for number in range(100)}
    text = reasons(judge(state(), answer("y" * 100_000, *many, **many)))
    assert "and 91 more" in text
    assert "and 90 more" in text
    assert len(text) < 5_000


@pytest.mark.parametrize(
    "field",
    [
        FormField("n", {"type": "string", "minLength": 3}, None, True, ""),
        FormField("n", {"type": "string"}, None, True, None),
    ],
)
def test_a_default_that_breaks_its_own_schema_stands_in_for_nothing(field: FormField) -> None:
    """It is where the form starts: leaving the field out is refused, and a timeout does not return it."""
    waiting = state(field, defaults=("a",))
    assert "'n' is required" in reasons(judge(waiting, answer("a")))
    assert "'n'" in reasons(judge_defaults(waiting))
    assert isinstance(judge(waiting, answer("a", n="abc")), Accepted)


@given(
    st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text()),
)
def test_judging_never_raises(options: list[str], params: dict[str, str]) -> None:
    """Whatever comes in, the result is a verdict."""
    assert isinstance(judge(state(COUNT), answer(*options, **params)), (Accepted, Refused))


def test_the_list_of_reasons_is_bounded_whatever_came_in() -> None:
    """A value with a fault in each of its thousands of items is refused in a few sentences, at once."""
    form = {
        "xs": FormField(name="xs", schema={"type": "array", "items": {"type": "string"}}, has_default=False)
    }
    question = Question(subject="s", options=("a",), form=form)
    state = RequestState(approval_key="k", kind="hitl", question=question)
    verdict = judge(state, Answer(chosen_options=("a",), params_input={"xs": [1] * 16_000}))
    assert isinstance(verdict, Refused)
    assert len(verdict.reasons) == 11
    assert sum(map(len, verdict.reasons)) < 4_000
    assert verdict.reasons[-1] == "more is wrong than is listed here."


def test_no_option_is_no_default() -> None:
    """An empty list of defaults does not let a timeout pass as an answer."""
    state = RequestState(
        approval_key="k", kind="hitl", question=Question(subject="s", options=("a",)), defaults=()
    )
    assert isinstance(judge_defaults(state), Refused)
