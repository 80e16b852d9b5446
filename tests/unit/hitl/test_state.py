"""The state of a waiting task in its resume kwargs."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from airflow_handoff.exceptions import UnknownStateVersion
from airflow_handoff.hitl.question import Answer, FormField, Question, Respondent
from airflow_handoff.hitl.state import HANDOFF_KEY, Refusal, RequestState, unwrapped

WHEN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
ADA = Respondent(id="1", name="ada")
STATE = RequestState(
    approval_key="release",
    kind="approval",
    question=Question(
        subject="Go?",
        options=("Approve", "Reject"),
        form={"why": FormField("why", {"type": "string"})},
        assigned_users=(ADA,),
    ),
    defaults=("Reject",),
    policy={"reject": "any"},
    votes=(Answer(chosen_options=("Approve",), respondent=ADA, responded_at=WHEN),),
    refused=(Refusal(reasons=("no option was chosen.",), respondent=ADA, at=WHEN),),
    level=1,
    deadline=WHEN,
    digest="d" * 64,
    try_number=2,
    ti_id="0199",
)


def old_envelope(value: Any) -> Any:
    """Wrap dictionaries the way Airflow 3.1 stores them."""
    if isinstance(value, dict):
        return {"__type": "dict", "__var": {key: old_envelope(item) for key, item in value.items()}}
    return [old_envelope(item) for item in value] if isinstance(value, list) else value


def test_the_state_survives_the_database() -> None:
    """Every field comes back as it was parked."""
    kwargs = json.loads(json.dumps(STATE.to_kwargs()))
    assert list(kwargs) == [HANDOFF_KEY]
    assert RequestState.from_kwargs({**kwargs, "event": {"chosen_options": []}}) == STATE


def test_the_state_is_read_through_the_envelopes_of_both_serializations() -> None:
    """The api-server reads the stored form, which differs between Airflow versions."""
    kwargs = STATE.to_kwargs()
    assert RequestState.from_kwargs(old_envelope(kwargs)) == STATE
    wrapped = {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, {"a": 2}]}
    assert unwrapped({"x": wrapped}) == {"x": [1, {"a": 2}]}


@pytest.mark.parametrize(
    "stored",
    [
        {
            "__classname__": "datetime.datetime",
            "__version__": 2,
            "__data__": {
                "timestamp": 1767225600.25,
                "tz": {"__classname__": "builtins.tuple", "__data__": []},
            },
        },
        {
            "__classname__": "pendulum.datetime.DateTime",
            "__version__": 2,
            "__data__": {"timestamp": 1767225600.25},
        },
        {"__type": "datetime", "__var": 1767225600.25},
    ],
)
def test_a_time_comes_out_of_its_envelope_as_text(stored: dict[str, Any]) -> None:
    """The result of a run whose last task is a gate has the time of the answer as everybody writes it."""
    assert unwrapped({"responded_at": stored}) == {"responded_at": "2026-01-01T00:00:00.250000+00:00"}


@pytest.mark.parametrize("kwargs", [None, {}, {"event": {}}, {"handoff": None}, {"handoff": "x"}])
def test_a_task_parked_by_somebody_else_has_no_state(kwargs: dict[str, Any] | None) -> None:
    """Without the key Airflow's plain rules apply."""
    assert RequestState.from_kwargs(kwargs) is None


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_newer_state_is_named_instead_of_guessed(version: object) -> None:
    """A downgrade tells what to upgrade."""
    kwargs = STATE.to_kwargs()
    kwargs[HANDOFF_KEY]["version"] = version
    with pytest.raises(UnknownStateVersion, match="upgrade"):
        RequestState.from_kwargs(kwargs)


def test_a_refusal_reads_as_one_line() -> None:
    """The list of refusals that fails a task at last can be read by a person."""
    assert str(STATE.refused[0]) == "ada at 2026-03-01T12:00:00+00:00: no option was chosen."
    assert str(Refusal(reasons=("a.", "b."))) == "somebody: a. b."


def test_a_ti_id_may_come_as_uuid() -> None:
    """Airflow versions differ in the type of a task instance's id."""
    import uuid

    ti_id = uuid.uuid4()
    state = RequestState.model_validate({**STATE.model_dump(), "ti_id": ti_id})
    assert state.ti_id == str(ti_id)
