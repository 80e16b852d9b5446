"""Where a request stands, read from its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from airflow_handoff.compat.records import RequestRecord, RequestRow
from airflow_handoff.hitl.question import Question
from airflow_handoff.hitl.state import RequestState
from airflow_handoff.server.standing import LOOK_AGAIN, OpenRequest, Standing, UnreadableState

NOW = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
SETTLE = timedelta(seconds=8)
QUESTION = Question(subject="s", options=("a", "b"))
STATE = RequestState(approval_key="k", kind="hitl", question=QUESTION, digest=QUESTION.digest)


def ago(seconds: float) -> datetime:
    """Return a moment before now."""
    return NOW - timedelta(seconds=seconds)


ROW = RequestRow("s", None, ("a", "b"), False, {}, (), ago(60), None, None, (), {})
PARKED = RequestRecord(
    "d", "r", "t", -1, "id-1", 1, "deferred", ago(60), ago(90), STATE.to_kwargs(), None, ROW, ago(1)
)
ANSWERED = replace(ROW, responded_at=ago(1))


@pytest.mark.parametrize("state", ["deferred", "awaiting_input"])
def test_a_parked_request_is_open_until_it_is_answered(state):
    """Both names of the parked state count."""
    assert OpenRequest.of(replace(PARKED, state=state)).standing is Standing.OPEN
    assert OpenRequest.of(replace(PARKED, state=state, row=ANSWERED)).standing is Standing.ANSWERED


@pytest.mark.parametrize("state", ["scheduled", "queued", "running"])
def test_a_resuming_task_may_park_again(state):
    """A timer is being worked on: the answer waits; once answered it is answered."""
    assert OpenRequest.of(replace(PARKED, state=state)).standing is Standing.BUSY
    assert OpenRequest.of(replace(PARKED, state=state, row=ANSWERED)).standing is Standing.ANSWERED


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "running", "up_for_retry", "restarting"])
def test_a_row_of_an_earlier_attempt_is_not_asked_yet(state):
    """A clear or a retry has taken the resume kwargs; the row is older than the new attempt."""
    cleared = replace(PARKED, state=state, next_kwargs=None, queued_at=ago(10))
    assert OpenRequest.of(cleared).standing is Standing.NOT_ASKED


def test_a_row_of_this_attempt_is_there_and_the_task_still_runs():
    """The moment between the upsert and the park."""
    running = replace(PARKED, state="running", next_kwargs=None, queued_at=ago(61))
    assert OpenRequest.of(running).standing is Standing.BUSY
    assert OpenRequest.of(replace(running, row=ANSWERED)).standing is Standing.ANSWERED


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "upstream_failed", "removed"])
def test_a_finished_task_waits_for_nobody(state):
    """Marked by hand, timed out or decided."""
    assert OpenRequest.of(replace(PARKED, state=state)).standing is Standing.OVER


def test_without_a_row_nothing_was_asked():
    """The notifiers may be running."""
    assert OpenRequest.of(replace(PARKED, state="running", row=None)).standing is Standing.NOT_ASKED


def test_a_park_settles_with_age():
    """A young park is answered when it is old enough."""
    assert OpenRequest.of(replace(PARKED, updated_at=ago(3))).settled_in(NOW, SETTLE) == 5.0
    assert OpenRequest.of(PARKED).settled_in(NOW, SETTLE) == 0.0


def test_a_park_settles_only_after_the_scheduler_came_by():
    """A scheduler that lags has not read the end of the first process yet, however old the park."""
    old = replace(PARKED, updated_at=ago(20))
    assert OpenRequest.of(replace(old, scheduler_seen_at=ago(15))).settled_in(NOW, SETTLE) == LOOK_AGAIN
    assert OpenRequest.of(replace(old, scheduler_seen_at=ago(12))).settled_in(NOW, SETTLE) == 0.0


@pytest.mark.parametrize("seen", [None, ago(31)])
def test_a_scheduler_that_is_gone_is_not_waited_for(seen):
    """Its successor knows nothing of the old process."""
    old = replace(PARKED, updated_at=ago(20), scheduler_seen_at=seen)
    assert OpenRequest.of(old).settled_in(NOW, SETTLE) == 0.0


def test_a_settle_time_of_zero_holds_nothing():
    """For who knows what they do."""
    assert OpenRequest.of(replace(PARKED, updated_at=NOW)).settled_in(NOW, timedelta(0)) == 0.0


def test_a_later_round_is_another_question():
    """A new attempt or a new upsert is; a park that only moves a timer is not."""
    first = OpenRequest.of(PARKED)
    assert first.same_question_as(OpenRequest.of(replace(PARKED, updated_at=NOW)))
    assert not first.same_question_as(OpenRequest.of(replace(PARKED, ti_id="id-2")))
    later = replace(PARKED, row=replace(ROW, created_at=NOW))
    assert not first.same_question_as(OpenRequest.of(later))


def test_the_question_of_another_operator_is_read_from_its_row():
    """Its form's rules are Airflow's business."""
    row = replace(ROW, params={"n": {"value": 5, "schema": {"type": "integer"}}}, assignees=({"id": "1"},))
    request = OpenRequest.of(replace(PARKED, next_kwargs=None, row=row))
    assert request.state is None
    assert request.question.form["n"].schema == {}
    assert request.question.assigned_users[0].id == "1"


def test_a_state_that_is_no_state_is_said_to_be_unreadable():
    """Not a fault of the api-server; a list shows the request without it."""
    broken = replace(PARKED, next_kwargs={"handoff": {"version": 1, "question": 7}})
    with pytest.raises(UnreadableState, match="clear the task"):
        OpenRequest.of(broken)
    assert OpenRequest.leniently(broken).state is None


def test_an_unreadable_state_is_told_without_what_it_asks():
    """The message goes to logs and to callers: it names the place, not the words of the question."""
    secret = {"version": 1, "approval_key": "k", "kind": "hitl", "question": {"subject": ["top secret"]}}
    with pytest.raises(UnreadableState, match=r"question\.subject") as caught:
        OpenRequest.of(replace(PARKED, next_kwargs={"handoff": secret}))
    assert "top secret" not in str(caught.value)
    assert caught.value.__cause__ is None
