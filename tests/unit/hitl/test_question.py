"""The values of a question and an answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_handoff.hitl.question import (
    SERIALIZATION_KEYS,
    Answer,
    FormField,
    Question,
    Respondent,
    default_problems,
    form_problems,
    json_problems,
    option_problems,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("abc"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def question(**changes: object) -> Question:
    """A question with two options, changed as told."""
    values: dict[str, object] = {"subject": "Go?", "options": ("yes", "no")}
    return Question.model_validate({**values, **changes})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"id": "7", "name": "Ada"}, Respondent(id="7", name="Ada")),
        ({"id": 7, "name": "Ada"}, Respondent(id="7", name="Ada")),
        ({"name": "Ada"}, Respondent(id="Ada", name="Ada")),
        ({"id": "7"}, Respondent(id="7", name="7")),
        ("Ada", Respondent(id="Ada", name="Ada")),
        (7, Respondent(id="7", name="7")),
    ],
)
def test_people_are_read_from_what_auth_managers_and_dag_authors_write(
    value: object, expected: Respondent
) -> None:
    """An id may be a number and a person may be known by name only."""
    assert Respondent.of(value) == expected  # type: ignore[arg-type]


def test_case_respondent_ids() -> None:
    """A person matches an assignee on id or name, compared as text."""
    assigned = (
        Respondent.of({"id": 7, "name": "ada"}),
        Respondent.of({"id": "ben@example.com", "name": "Ben"}),
    )
    assert Respondent.of({"id": "7", "name": "Ada L."}).is_one_of(assigned)
    assert Respondent.of({"id": "2", "name": "ben@example.com"}).is_one_of(assigned)
    assert not Respondent.of({"id": "8", "name": "eve"}).is_one_of(assigned)


def test_an_empty_name_is_nobody_s() -> None:
    """Two people whose names are both unknown are not the same person."""
    assert not Respondent(id="8", name="").is_one_of((Respondent(id="7", name=""),))


def test_the_digest_depends_on_every_part_of_the_question() -> None:
    """Two questions that a person could tell apart have different digests."""
    variants = [
        question(),
        question(subject="Stop?"),
        question(body="because"),
        question(options=("no", "yes")),
        question(multiple=True),
        question(form={"a": FormField(name="a")}),
        question(form={"a": FormField(name="a", has_default=True)}),
        question(assigned_users=("ada",)),
    ]
    assert len({variant.digest for variant in variants}) == len(variants)
    assert question().digest == question().digest
    assert len(question().digest) == 64


def test_a_question_survives_json() -> None:
    """What travels in the resume kwargs comes back equal, with the same digest."""
    before = question(form={"a": FormField("a", {"type": "integer"}, "A", True, 5)}, assigned_users=("ada",))
    after = Question.model_validate(json.loads(json.dumps(before.model_dump(mode="json"))))
    assert after == before
    assert after.digest == before.digest


def test_values_are_frozen() -> None:
    """A question that was asked cannot be changed by accident."""
    with pytest.raises(ValueError, match="frozen"):
        question().subject = "other"
    with pytest.raises(ValueError, match="frozen"):
        Answer(chosen_options=("yes",)).comment = "other"


@pytest.mark.parametrize(
    ("options", "word"),
    [([], "empty"), (["a", ""], "non-empty"), (["a", 1], "non-empty"), (["a", "b", "a"], "repeats")],
)
def test_options_that_cannot_be_offered(options: list[object], word: str) -> None:
    """Each problem of the options is told in one sentence."""
    (problem,) = option_problems(options)
    assert word in problem


def test_good_options_and_defaults_have_no_problem() -> None:
    """Nothing is reported for a question that can be asked."""
    assert option_problems(["a", "b"]) == []
    assert default_problems(None, ["a"], False) == []
    assert default_problems(["a"], ["a", "b"], False) == []
    assert default_problems(["a", "b"], ["a", "b"], True) == []


def test_defaults_have_to_be_offered_and_as_many_as_may_be_chosen() -> None:
    """Unknown defaults and too many defaults are told apart."""
    assert "subset" in default_problems(["z"], ["a"], False)[0]
    assert "More than one" in default_problems(["a", "b"], ["a", "b"], False)[0]


@pytest.mark.parametrize(
    "name", ["_options", "map_index", "comment", "handoff:seen", *sorted(SERIALIZATION_KEYS)]
)
def test_reserved_names_cannot_be_fields(name: str) -> None:
    """Names that Airflow or the form use are refused when the Dag is parsed."""
    assert name in form_problems({name: FormField(name)})[0]


@pytest.mark.parametrize(
    ("field", "word"),
    [
        (FormField("a", {"type": "integr"}), "no JSON schema"),
        (FormField("a", {"x": {"__classname__": "y"}}), "reserves"),
        (FormField("a", {}, None, True, [{"__type": 1}]), "reserves"),
        (FormField("a", {}, None, True, float("nan")), "does not know"),
        (FormField("a", {}, None, True, {1: 2}), "not a text"),
    ],
)
def test_fields_that_cannot_be_shown(field: FormField, word: str) -> None:
    """A broken schema and a default that is no JSON are reported with the field's name."""
    (problem,) = form_problems({"a": field})
    assert word in problem
    assert "'a'" in problem


@given(JSON)
def test_plain_json_has_no_problem(value: object) -> None:
    """Whatever JSON can say travels, as long as no reserved key is in it."""
    assert json_problems(value) == []


@given(JSON, st.sampled_from(sorted(SERIALIZATION_KEYS)), JSON)
def test_a_reserved_key_is_found_at_any_depth(inner: object, key: str, outer: object) -> None:
    """A serialization key cannot hide below lists and dictionaries."""
    assert any(key in problem for problem in json_problems([outer, {"a": [{key: inner}]}]))


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_a_database_refuses(text: str) -> None:
    """NUL characters and half surrogates would fail the task when its result is stored."""
    assert json_problems({"a": text})
    assert json_problems({text: "a"})


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
def test_a_number_that_the_supervisor_cannot_encode_is_refused(number: int) -> None:
    """Airflow hands answers to tasks in MessagePack: a larger number ends the supervisor, not the request."""
    assert json_problems({"n": [number]})


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), True, 1e300])
def test_a_number_that_the_supervisor_encodes_is_fine(number: float) -> None:
    """The bounds themselves are allowed."""
    assert json_problems({"n": number}) == []


def test_very_deep_input_is_refused_without_recursion() -> None:
    """Depth is limited before anything recursive looks at the value."""
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert json_problems(value) == ["is nested deeper than 32 levels"]
