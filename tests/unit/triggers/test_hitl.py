"""The trigger: what it tells the task, and that it neither loses nor repeats an answer."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.unit.triggers.virtual_time import run

from airflow_handoff.compat import trigger as channel
from airflow_handoff.compat.trigger import AlreadyAnswered, RequestGone, StoredAnswer
from airflow_handoff.triggers import hitl
from airflow_handoff.triggers.hitl import HITLTrigger

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
TI_ID = uuid.UUID("01900000-0000-7000-8000-000000000001")
ALICE = {"id": "alice", "name": "Alice"}


class Row:
    """A request's row behind the execution API, with the API's rules."""

    def __init__(self) -> None:
        self.stored: StoredAnswer | None = None
        self.exists = True
        self.reads = 0
        self.writes = 0
        self.before_write: Callable[[], None] = lambda: None
        self.before_read: Callable[[], None] = lambda: None

    def answer(self, *options: str, user: dict[str, str] | None = ALICE, **params: Any) -> None:
        """Store an answer, as Airflow does when somebody responds."""
        self.stored = StoredAnswer(list(options), params, clock(), user)

    async def read_answer(self, ti_id: uuid.UUID) -> StoredAnswer | None:
        """Read the row."""
        self.reads += 1
        self.before_read()
        if not self.exists:
            raise RequestGone("there is no request")
        return self.stored

    async def record_default(
        self, ti_id: uuid.UUID, options: list[str], params: dict[str, Any]
    ) -> StoredAnswer | None:
        """Write a default, unless somebody was faster."""
        self.before_write()
        if self.stored is not None:
            raise AlreadyAnswered("already answered")
        self.writes += 1
        self.answer(*options, user=None, **params)
        return self.stored


def clock() -> datetime:
    """Return the wall-clock time that goes with the loop's virtual time."""
    return START + timedelta(seconds=asyncio.get_running_loop().time() - 1000)


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Iterator[Row]:
    """Put a row behind the trigger's channel, and virtual time before its eyes."""
    stored = Row()
    monkeypatch.setattr(channel, "read_answer", stored.read_answer)
    monkeypatch.setattr(channel, "record_default", stored.record_default)
    monkeypatch.setattr(hitl, "_utcnow", clock)
    return stored


def a_trigger(**kwargs: Any) -> HITLTrigger:
    """Make a trigger as the operators do."""
    return HITLTrigger(ti_id=TI_ID, options=["yes", "no"], **kwargs)


async def event_of(trigger: HITLTrigger) -> dict[str, Any]:
    """Return the payload of the trigger's only event."""
    events = [event async for event in trigger.run()]
    assert len(events) == 1
    payload: dict[str, Any] = events[0].payload
    return payload


def answered_after(row: Row, seconds: float, trigger: HITLTrigger, **answer: Any) -> dict[str, Any]:
    """Run the trigger and answer its request in the meantime."""

    async def scene() -> dict[str, Any]:
        asyncio.get_running_loop().call_later(seconds, lambda: row.answer("yes", **answer))
        return await event_of(trigger)

    return run(scene())


def test_an_answer_becomes_one_event_with_the_standard_keys(row: Row) -> None:
    """The event is the same that Airflow 3.3's scheduler hands over."""
    event = answered_after(row, 40, a_trigger(), amount=5)
    assert event == {
        "chosen_options": ["yes"],
        "params_input": {"amount": 5},
        "responded_at": START + timedelta(seconds=40),
        "responded_by_user": ALICE,
        "timedout": False,
    } | {"responded_at": event["responded_at"]}
    assert abs(event["responded_at"] - (START + timedelta(seconds=40))) < timedelta(seconds=1)


def test_the_answer_is_not_judged(row: Row) -> None:
    """An option that was never offered reaches the operator, which re-opens the request and says why."""

    async def scene() -> dict[str, Any]:
        row.answer("maybe", zzz=1)
        return await event_of(a_trigger())

    assert run(scene())["chosen_options"] == ["maybe"]


def test_case_reserved_keys(row: Row) -> None:
    """Form input that Airflow cannot serialize travels as text, so that the operator can refuse it."""

    async def scene() -> dict[str, Any]:
        row.answer("yes", data={"__classname__": "x"})
        return await event_of(a_trigger())

    assert run(scene())["params_input"] == '{"data": {"__classname__": "x"}}'


def test_case_deadline_race(row: Row) -> None:
    """An answer at 9.9 s of a 10 s timeout wins over the default, though it is read after the deadline."""
    trigger = a_trigger(defaults=["no"], timeout_datetime=START + timedelta(seconds=10))
    event = answered_after(row, 9.9, trigger)
    assert (event["chosen_options"], event["timedout"], row.writes) == (["yes"], False, 0)


def test_case_deadline_race_between_the_last_look_and_the_default(row: Row) -> None:
    """A person who answers while the default is being written wins, or is told 409."""
    trigger = a_trigger(defaults=["no"], timeout_datetime=START + timedelta(seconds=10))

    async def scene() -> dict[str, Any]:
        row.before_write = lambda: row.answer("yes")
        return await event_of(trigger)

    event = run(scene())
    assert (event["chosen_options"], event["responded_by_user"], event["timedout"]) == (["yes"], ALICE, False)


def test_a_timeout_applies_the_default_with_the_form_s_values(row: Row) -> None:
    """The default is recorded in nobody's name, with the values the form showed."""
    params = {"n": {"value": 7, "description": "how many", "schema": {"type": "integer"}}, "bare": "x"}
    trigger = a_trigger(defaults=["no"], params=params, timeout_datetime=START + timedelta(seconds=10))
    event = run(event_of(trigger))
    assert event["chosen_options"] == ["no"]
    assert event["params_input"] == {"n": 7, "bare": "x"}
    assert (event["responded_by_user"], event["timedout"]) == (None, True)


def test_case_default_replayed(row: Row) -> None:
    """A triggerer that died after it wrote the default resumes with it, and nobody has responded."""
    trigger = a_trigger(defaults=["no"], timeout_datetime=START - timedelta(hours=1))

    async def scene() -> dict[str, Any]:
        row.answer("no", user=None)
        return await event_of(trigger)

    event = run(scene())
    assert (event["chosen_options"], event["timedout"], row.writes) == (["no"], True, 0)


def test_a_timeout_without_default_is_an_error_event(row: Row) -> None:
    """The task hears of the timeout and nothing is written to the row."""
    event = run(event_of(a_trigger(timeout_datetime=START + timedelta(seconds=10))))
    assert event["error_type"] == "timeout"
    assert (row.stored, row.writes) == (None, 0)


def test_a_default_is_never_applied_without_a_look_at_the_row(row: Row) -> None:
    """While the API is away at the deadline, nothing is decided; the answer that was there still counts."""
    trigger = a_trigger(defaults=["no"], timeout_datetime=START + timedelta(seconds=10))

    def away() -> None:
        if clock() < START + timedelta(seconds=60):
            raise ConnectionError("away")

    row.before_read = away
    event = answered_after(row, 9, trigger)
    assert (event["chosen_options"], event["timedout"]) == (["yes"], False)


@pytest.mark.parametrize("die_after", [0.0, 3.0, 9.5, 10.5, 30.0])
def test_a_restart_at_any_point_loses_and_repeats_nothing(row: Row, die_after: float) -> None:
    """The trigger is killed and made again from its serialized form; the answer comes out once."""
    first = a_trigger(defaults=["no"], timeout_datetime=START + timedelta(seconds=10))

    async def scene() -> list[dict[str, Any]]:
        asyncio.get_running_loop().call_later(9.9, lambda: row.stored or row.answer("yes"))
        events: list[dict[str, Any]] = []
        dying = asyncio.create_task(event_of(first))
        done, _ = await asyncio.wait({dying}, timeout=die_after)
        events += [task.result() for task in done]
        if not done:
            dying.cancel()
            await asyncio.wait({dying})
            _, kwargs = first.serialize()
            events.append(await event_of(HITLTrigger(**kwargs)))
        return events

    (event,) = run(scene())
    assert (event["chosen_options"], event["responded_by_user"], row.writes) == (["yes"], ALICE, 0)


def test_case_cancel_is_not_approve(row: Row) -> None:
    """A trigger that is cancelled while it reads an answer yields no event."""

    async def scene() -> list[Any]:
        events: list[Any] = []

        async def consume() -> None:
            async for event in a_trigger().run():
                events.append(event)

        task = asyncio.create_task(consume())
        await asyncio.sleep(5)
        task.cancel()
        row.answer("yes")
        await asyncio.wait({task})
        await asyncio.sleep(120)
        return events

    assert run(scene()) == []


def test_a_row_that_is_gone_for_a_moment_is_no_end(row: Row) -> None:
    """A clear removes the row before it cancels the trigger: that must not fail the task."""

    async def scene() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        row.exists = False
        loop.call_later(20, lambda: setattr(row, "exists", True))
        loop.call_later(30, lambda: row.answer("yes"))
        return await event_of(a_trigger())

    assert run(scene())["chosen_options"] == ["yes"]


def test_a_row_that_stays_gone_ends_the_wait_with_an_error(row: Row) -> None:
    """A task whose request was deleted would otherwise wait for ever, even with a default."""
    row.exists = False
    event = run(event_of(a_trigger(defaults=["no"], timeout_datetime=START + timedelta(seconds=1))))
    assert event["error_type"] == "unknown"
    assert "no request" in event["error"]


def test_failing_reads_are_logged_once(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    """An outage of an hour is one line in the task log."""

    def away() -> None:
        if clock() < START + timedelta(hours=1):
            raise ConnectionError("the server is away")

    row.before_read = away
    with caplog.at_level(logging.INFO, "airflow_handoff.triggers.hitl"):
        answered_after(row, 1, a_trigger())
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == [
        "Could not look for an answer, will go on trying: the server is away"
    ]


def test_the_trigger_takes_what_the_standard_one_serializes(row: Row) -> None:
    """A row that was parked by the standard operator can be moved over by its path alone."""
    standard = pytest.importorskip("airflow.providers.standard.triggers.hitl").HITLTrigger
    params = {"n": {"value": 7, "description": None, "schema": {"type": "integer"}}}
    _, kwargs = standard(
        ti_id=TI_ID, options=["yes"], params=params, defaults=["yes"], timeout_datetime=START
    ).serialize()
    assert run(event_of(HITLTrigger(**kwargs)))["params_input"] == {"n": 7}


def test_the_serialized_form_survives_airflow_s_own_encoding() -> None:
    """What is written to the trigger row makes an equal trigger."""
    serde = pytest.importorskip("airflow.serialization.serialized_objects").BaseSerialization
    params = {"n": {"value": 7, "description": None, "schema": {"type": "integer"}}}
    trigger = a_trigger(params=params, defaults=["no"], timeout_datetime=START, poke_interval=2.5)
    path, kwargs = trigger.serialize()
    assert path == "airflow_handoff.triggers.hitl.HITLTrigger"
    restored = HITLTrigger(**serde.deserialize(serde.serialize(kwargs)))
    assert restored.serialize() == (path, kwargs)


def test_unknown_keywords_and_naive_times_are_tolerated() -> None:
    """A later version's argument does not strand the requests of an earlier triggerer."""
    trigger = a_trigger(timeout_datetime=datetime(2026, 1, 1), something_new=1)
    assert trigger.timeout_datetime == START


def test_the_pace_is_configurable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three settings of the section reach the loop; the rate can never be zero."""
    monkeypatch.setenv("AIRFLOW__HANDOFF__POKE_INTERVAL", "7")
    monkeypatch.setenv("AIRFLOW__HANDOFF__POKE_INTERVAL_MAX", "70")
    monkeypatch.setenv("AIRFLOW__HANDOFF__POKE_RATE", "0")
    pace = hitl.configured_pace()
    assert (pace.shortest, pace.longest) == (7.0, 70.0)
    assert pace.per_second > 0


@pytest.mark.parametrize("value", ["often", "nan", "inf", "-1"])
def test_a_setting_that_is_no_number_fails_no_waiting_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    """The default is taken instead, and the log names the setting."""
    monkeypatch.setenv("AIRFLOW__HANDOFF__POKE_INTERVAL", value)
    pace = hitl.configured_pace()
    assert pace.shortest == hitl.Pace().shortest
    assert "poke_interval" in caplog.text
