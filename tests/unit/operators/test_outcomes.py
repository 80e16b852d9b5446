"""What outlives a request."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from airflow_handoff.hitl.question import Answer, Question, Respondent
from airflow_handoff.hitl.state import RequestState
from airflow_handoff.operators.outcomes import answer_from, record, result

WHEN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
ADA = Respondent(id="1", name="ada")


@pytest.mark.parametrize("value", [WHEN, WHEN.isoformat(), "2026-03-01T12:00:00Z", "2026-03-01T12:00:00"])
def test_times_are_read_in_every_form(value: Any) -> None:
    """Airflow versions differ in how an event carries them."""
    read = answer_from({"chosen_options": ["a"], "responded_at": value}).responded_at
    assert read == WHEN
    assert type(read) is datetime


def test_times_of_another_class_become_plain() -> None:
    """Airflow 3.1 hands over pendulum's."""
    pendulum = pytest.importorskip("pendulum")
    read = answer_from({"responded_at": pendulum.datetime(2026, 3, 1, 12)}).responded_at
    assert type(read) is datetime
    assert read == WHEN


def test_an_empty_event_is_an_empty_answer() -> None:
    """Judging it is the verdict's work."""
    assert answer_from({}) == Answer(chosen_options=())


@pytest.mark.parametrize("as_text", [False, True])
def test_case_stale_tab_the_pages_hidden_field_is_no_field_of_the_form(as_text: bool) -> None:
    """Where the api-server that took the answer has no door, the field is still in it."""
    fields = {"n": 5, "handoff:seen": "0198:abc"}
    read = answer_from({"chosen_options": ["a"], "params_input": json.dumps(fields) if as_text else fields})
    assert read.params_input == {"n": 5}


def test_the_result_has_a_comment_only_where_there_is_one() -> None:
    """The standard keys stay the only ones otherwise."""
    answer = Answer(chosen_options=("a",), respondent=ADA, responded_at=WHEN)
    assert "comment" not in result(answer, timedout=False)
    assert result(answer.model_copy(update={"comment": "c"}), timedout=False)["comment"] == "c"


def test_the_record_is_json() -> None:
    """The api-server reads it as it lies in the database."""
    state = RequestState(
        approval_key="k",
        kind="approval",
        question=Question(subject="s", options=("a",)),
        votes=(Answer(chosen_options=("a",), respondent=ADA, responded_at=WHEN),),
    )
    kept = record(state, "approved", None, state.votes[0], timedout=False)
    assert json.loads(json.dumps(kept)) == kept
    assert kept["votes"] == [kept["answer"]]
