"""The version switch."""

from __future__ import annotations

import signal
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_handoff.compat import park as park_module
from airflow_handoff.compat.errors import TaskDeferred
from airflow_handoff.compat.park import execution_timeout_paused, park, unusable_answer
from airflow_handoff.compat.versions import HAS_AWAITING_INPUT


class Deferred(Exception):
    """What the operator's double raises instead of deferring."""


def parked(monkeypatch: pytest.MonkeyPatch, *, awaiting: bool) -> tuple[BaseException, list[str]]:
    """Park once, on one side of the switch."""
    made: list[str] = []

    def defer(**arguments: Any) -> None:
        raise Deferred(arguments)

    def trigger() -> Any:
        made.append("trigger")
        return "the trigger"

    monkeypatch.setattr(park_module, "HAS_AWAITING_INPUT", awaiting)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 -- the two sides raise different things
        park(
            SimpleNamespace(defer=defer),  # type: ignore[arg-type]
            trigger=trigger,
            method_name="execute_complete",
            kwargs={"handoff": {}},
            timeout=timedelta(seconds=5),
        )
    return caught.value, made


def test_a_task_defers_where_there_is_no_state_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger keeps the time: a timeout of defer itself would fail the task."""
    raised, made = parked(monkeypatch, awaiting=False)
    assert made == ["trigger"]
    assert raised.args[0] == {
        "trigger": "the trigger",
        "method_name": "execute_complete",
        "kwargs": {"handoff": {}},
    }


@pytest.mark.skipif(not HAS_AWAITING_INPUT, reason="this Airflow has no state awaiting_input")
def test_a_task_awaits_input_without_a_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    """No trigger is even made."""
    raised, made = parked(monkeypatch, awaiting=True)
    assert made == []
    assert type(raised).__name__ == "TaskAwaitingInput"
    assert vars(raised) == {
        "method_name": "execute_complete",
        "kwargs": {"handoff": {}},
        "timeout": timedelta(seconds=5),
    }
    assert not isinstance(raised, (Exception, TaskDeferred))


@pytest.mark.parametrize(
    ("method", "kwargs", "found"),
    [
        ("__fail__", {"error": "the event payload could not be serialized (x)"}, True),
        ("__fail__", {"error": "its stored next_kwargs could not be decoded"}, False),
        ("__fail__", {"error": "Trigger failure", "traceback": []}, False),
        ("__fail__", None, False),
        ("execute_complete", {"error": "the event payload could not be serialized"}, False),
    ],
)
def test_only_an_unusable_answer_is_recognised(
    method: str, kwargs: dict[str, Any] | None, found: bool
) -> None:
    """Other ways to fail a waiting task stay failures."""
    assert bool(unusable_answer(method, kwargs)) is found


@pytest.mark.skipif(not HAS_AWAITING_INPUT, reason="earlier versions do not resume tasks this way")
def test_airflow_still_words_an_unusable_answer_as_we_expect() -> None:
    """The words are Airflow's: if they change, a bad answer would fail the task."""
    import inspect

    from airflow.models import trigger

    assert park_module._UNUSABLE in inspect.getsource(trigger.handle_event_submit.dispatch(object))


def test_the_clock_goes_on_with_what_was_left() -> None:
    """Time spent inside is not counted, and somebody else's use of the alarm is undone."""
    struck: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: struck.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with execution_timeout_paused():
            assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                pass
        assert not struck
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.2
        end = time.monotonic() + 5
        while not struck and time.monotonic() < end:
            signal.sigtimedwait([], 0.05)
        assert struck
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_without_a_clock_none_is_started() -> None:
    """A task without execution_timeout gets none."""
    with execution_timeout_paused():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
