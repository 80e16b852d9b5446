"""The triggerer's channel to its supervisor, on each Airflow version's own message classes."""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime, timezone
from typing import Any

import pytest
from airflow.sdk.api.datamodels._generated import HITLDetailResponse, HITLUser
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse

from airflow_handoff.compat.trigger import AlreadyAnswered, RequestGone, read_answer, record_default

TI_ID = uuid.UUID("01900000-0000-7000-8000-000000000001")
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


class AwaitableChannel:
    """Answers every message with one response or error; has no blocking way at all."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.asked: list[Any] = []

    async def asend(self, message: Any) -> Any:
        """Take a message and give the outcome."""
        self.asked.append(message)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class BlockingChannel:
    """Only knows the blocking way, as dag.test of 3.1 and 3.2 does; tells which thread it was called in."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.in_event_loop: bool | None = None

    def send(self, message: Any) -> Any:
        """Take a message and give the outcome."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.in_event_loop = False
        else:
            self.in_event_loop = True
        return self.outcome


def answered() -> HITLDetailResponse:
    """Make the response for an answered request."""
    return HITLDetailResponse(
        response_received=True,
        responded_by_user=HITLUser(id="alice", name="Alice"),
        responded_at=NOW,
        chosen_options=["yes"],
        params_input={"n": 1},
    )


def api_error(status: int) -> AirflowRuntimeError:
    """Make the error that a refused call comes back as."""
    return AirflowRuntimeError(
        ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": status, "message": "no"})
    )


def through(channel: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a channel in the place of the supervisor's."""
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", channel, raising=False)
    return channel


def test_an_answer_is_read_as_plain_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back holds no Airflow object that an event could not carry."""
    channel = through(AwaitableChannel(answered()), monkeypatch)
    stored = asyncio.run(read_answer(TI_ID))
    assert stored is not None
    assert (stored.chosen_options, stored.params_input, stored.responded_at) == (["yes"], {"n": 1}, NOW)
    assert stored.responded_by_user == {"id": "alice", "name": "Alice"}
    assert channel.asked[0].ti_id == TI_ID


def test_no_answer_yet_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pending request is no error."""
    pending = HITLDetailResponse(response_received=False, responded_at=None, chosen_options=None)
    through(AwaitableChannel(pending), monkeypatch)
    assert asyncio.run(read_answer(TI_ID)) is None


def test_a_default_is_recorded_with_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message to the execution API names options and values."""
    channel = through(AwaitableChannel(answered()), monkeypatch)
    asyncio.run(record_default(TI_ID, ("no",), {"n": 7}))
    assert (channel.asked[0].chosen_options, channel.asked[0].params_input) == (["no"], {"n": 7})


@pytest.mark.parametrize(("status", "error"), [(404, RequestGone), (409, AlreadyAnswered)])
def test_refusals_have_names(monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]) -> None:
    """What the trigger has to tell apart are types, not status codes."""
    through(AwaitableChannel(api_error(status)), monkeypatch)
    with pytest.raises(error):
        asyncio.run(record_default(TI_ID, ["no"], {}))


def test_other_errors_pass_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is down is for the loop to retry."""
    through(AwaitableChannel(api_error(503)), monkeypatch)
    with pytest.raises(AirflowRuntimeError):
        asyncio.run(read_answer(TI_ID))


def test_a_channel_without_an_awaitable_way_never_blocks_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The blocking call runs in a thread."""
    channel = through(BlockingChannel(answered()), monkeypatch)
    assert asyncio.run(read_answer(TI_ID)) is not None
    assert channel.in_event_loop is False


def test_the_triggerer_s_real_channel_is_awaitable() -> None:
    """On every version the channel has the awaitable way, so polls need no thread."""
    from airflow.jobs.triggerer_job_runner import TriggerCommsDecoder

    assert asyncio.iscoroutinefunction(TriggerCommsDecoder.asend)
