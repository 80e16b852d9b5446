"""The one loop that reads for all waiting requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import ContextVar
from itertools import pairwise

import pytest
from tests.unit.triggers.virtual_time import run

from airflow_handoff.triggers.polling import Pace, Poller, poller

PACE = Pace(shortest=3.0, longest=30.0, per_second=8.0)


def now() -> float:
    """Return the running loop's virtual time."""
    return asyncio.get_running_loop().time()


class Ledger:
    """Every read of every request, in order."""

    def __init__(self) -> None:
        self.reads: list[tuple[float, str]] = []

    def times(self, name: str | None = None) -> list[float]:
        """Return when reads (of one request) began."""
        return [at for at, who in self.reads if name in (None, who)]

    def counts(self) -> Counter[str]:
        """Return how often each request was read."""
        return Counter(who for _, who in self.reads)


class ScriptedRequest:
    """A request that is answered at a set time, takes a while to read, and can fail."""

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        *,
        answered_at: float | None = None,
        deadline: float | None = None,
        takes: float = 0.0,
        broken_until: float = 0.0,
    ) -> None:
        self.ledger, self.name, self.takes = ledger, name, takes
        self.answered_at, self.deadline, self.broken_until = answered_at, deadline, broken_until
        self.interrupted = 0
        self.failures: list[int] = []
        self.heard_in: list[str] = []

    def seconds_left(self) -> float | None:
        """Return what is left of the deadline."""
        return None if self.deadline is None else self.deadline - now()

    async def read(self) -> str | None:
        """Answer as scripted."""
        self.ledger.reads.append((now(), self.name))
        try:
            await asyncio.sleep(self.takes)
        except asyncio.CancelledError:
            self.interrupted += 1
            raise
        if now() < self.broken_until:
            raise ConnectionError("the server is away")
        if self.answered_at is not None and self.answered_at <= now():
            return "answered"
        return "timed out" if self.deadline is not None and self.deadline <= now() else None

    def read_failed(self, error: Exception, failures: int) -> None:
        """Remember what was heard, and in whose name."""
        self.failures.append(failures)
        self.heard_in.append(WHO.get())


WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


async def waiting_for(seconds: float, *requests: ScriptedRequest, pace: Pace = PACE) -> None:
    """Wait for requests for a while, then give up."""
    shared = Poller(pace, now)
    tasks = [asyncio.create_task(shared.wait(request)) for request in requests]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_the_pace_is_a_fifteenth_of_the_age_between_its_bounds() -> None:
    """Often soon after asking, seldom later."""
    assert [PACE.interval(age) for age in (0, 45, 90, 180, 86_400)] == [3.0, 3.0, 6.0, 12.0, 30.0]


def test_failures_slow_the_pace_down_to_its_longest() -> None:
    """Each failed read doubles the pause, and no pause grows without end."""
    assert [PACE.interval(0, failures) for failures in (0, 1, 2, 3, 4, 5000)] == [3, 6, 12, 24, 30, 30]


def test_a_longest_below_the_shortest_is_taken_as_the_shortest() -> None:
    """A poke_interval above poke_interval_max still means what it says."""
    assert Pace(shortest=60.0, longest=30.0).interval(10_000) == 60.0


def test_many_requests_stay_below_the_rate() -> None:
    """200 waiting requests are read no more than eight times in any second."""
    ledger = Ledger()
    run(waiting_for(120, *(ScriptedRequest(ledger, f"r{n}") for n in range(200))))
    times = ledger.times()
    assert all(later - earlier >= 1 / 8 - 1e-9 for earlier, later in pairwise(times))
    assert len(times) == pytest.approx(8 * 120, rel=0.02)


def test_many_requests_are_read_fairly() -> None:
    """Nobody is read twice as often as anybody else of the same age."""
    ledger = Ledger()
    run(waiting_for(600, *(ScriptedRequest(ledger, f"r{n}") for n in range(200))))
    counts = ledger.counts()
    assert len(counts) == 200
    assert max(counts.values()) <= 2 * min(counts.values())


def test_a_young_request_is_not_held_up_by_many_old_ones() -> None:
    """A fresh request among 200 that have waited for an hour is read within a few of its intervals."""
    ledger = Ledger()

    async def scene() -> float:
        shared = Poller(PACE, now)
        old = [asyncio.create_task(shared.wait(ScriptedRequest(ledger, f"old{n}"))) for n in range(400)]
        await asyncio.sleep(3600)
        asked = now()
        await shared.wait(ScriptedRequest(ledger, "young", answered_at=asked))
        for task in old:
            task.cancel()
        return now() - asked

    assert run(scene()) < 3 * PACE.shortest


def test_requests_that_were_asked_together_do_not_stay_together() -> None:
    """Jitter: after some minutes, ten requests that began as one are spread."""
    ledger = Ledger()
    run(waiting_for(600, *(ScriptedRequest(ledger, f"r{n}") for n in range(10)), pace=Pace(per_second=1e9)))
    last = sorted(ledger.times(f"r{n}")[-1] for n in range(10))
    assert last[-1] - last[0] > 3


def test_an_answer_is_noticed_at_the_young_pace() -> None:
    """An answer 30 s after the park is noticed within one short interval."""
    ledger = Ledger()

    async def scene() -> float:
        answered = now() + 30
        await Poller(PACE, now).wait(ScriptedRequest(ledger, "r", answered_at=answered))
        return now() - answered

    assert run(scene()) <= 3.6


def test_a_deadline_is_met_though_the_next_read_would_be_later() -> None:
    """A timeout is acted on when it comes, not at the end of a long pause."""
    ledger = Ledger()

    async def scene() -> tuple[str, float]:
        deadline = now() + 3601
        outcome = await Poller(PACE, now).wait(ScriptedRequest(ledger, "r", deadline=deadline))
        return outcome, now() - deadline

    outcome, late = run(scene())
    assert outcome == "timed out"
    assert late < 0.2


def test_a_deadline_goes_before_what_is_only_due() -> None:
    """With more waiting than the rate allows, the request whose time is up is read next."""
    ledger = Ledger()

    async def scene() -> float:
        shared = Poller(PACE, now)
        crowd = [asyncio.create_task(shared.wait(ScriptedRequest(ledger, f"c{n}"))) for n in range(500)]
        deadline = now() + 60
        await shared.wait(ScriptedRequest(ledger, "r", deadline=deadline))
        for task in crowd:
            task.cancel()
        return now() - deadline

    assert run(scene()) < 0.5


def test_a_failing_read_at_the_deadline_does_not_starve_the_others() -> None:
    """A request whose time is up and that cannot be read waits for its turn like everybody."""
    ledger = Ledger()
    broken = ScriptedRequest(ledger, "broken", deadline=1001.0, broken_until=1e9)
    run(waiting_for(120, broken, *(ScriptedRequest(ledger, f"r{n}") for n in range(20))))
    assert ledger.counts()["broken"] < 12
    assert min(ledger.counts()[f"r{n}"] for n in range(20)) > 10


def test_a_failing_read_is_retried_with_growing_pauses_and_told_each_time_with_its_number() -> None:
    """An outage of the server costs nobody an answer."""
    ledger = Ledger()

    async def scene() -> str:
        request = ScriptedRequest(ledger, "r", answered_at=now(), broken_until=now() + 100)
        outcome = await Poller(PACE, now).wait(request)
        assert request.failures == list(range(1, len(request.failures) + 1))
        return outcome

    assert run(scene()) == "answered"
    pauses = [later - earlier for earlier, later in pairwise(ledger.times())]
    assert pauses[1] > 1.5 * pauses[0]
    assert max(pauses) <= 36.1


def test_a_failure_is_heard_in_the_context_of_its_own_request() -> None:
    """Log lines about a request carry its task's name, not that of whoever started the loop."""
    ledger = Ledger()
    first = ScriptedRequest(ledger, "first", broken_until=1e9)
    second = ScriptedRequest(ledger, "second", broken_until=1e9)

    async def scene() -> None:
        shared = Poller(PACE, now)

        async def wait(request: ScriptedRequest) -> None:
            WHO.set(request.name)
            await shared.wait(request)

        tasks = [asyncio.create_task(wait(request)) for request in (first, second)]
        await asyncio.sleep(60)
        for task in tasks:
            task.cancel()

    run(scene())
    assert set(first.heard_in) == {"first"}
    assert set(second.heard_in) == {"second"}


def test_cancelling_a_wait_never_interrupts_its_read() -> None:
    """A read cut short would leave its reply to be taken for somebody else's."""
    ledger = Ledger()

    async def scene() -> ScriptedRequest:
        shared = Poller(PACE, now)
        doomed = ScriptedRequest(ledger, "doomed", takes=5.0, answered_at=0.0)
        task = asyncio.create_task(shared.wait(doomed))
        while not ledger.times("doomed"):
            await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await shared.wait(ScriptedRequest(ledger, "next", answered_at=0.0)) == "answered"
        return doomed

    assert run(scene()).interrupted == 0


def test_the_loop_ends_when_nobody_waits_and_starts_again() -> None:
    """An idle triggerer does nothing at all."""
    ledger = Ledger()

    async def scene() -> None:
        shared = Poller(PACE, now)
        for name in ("one", "two"):
            assert await shared.wait(ScriptedRequest(ledger, name, answered_at=0.0)) == "answered"
            await asyncio.sleep(60)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    run(scene())


def test_nobody_is_forgotten_when_the_loop_is_killed() -> None:
    """Whatever cancels the loop's own task, those who wait are read again."""
    ledger = Ledger()

    async def scene() -> str:
        shared = Poller(PACE, now)
        task = asyncio.create_task(shared.wait(ScriptedRequest(ledger, "r", answered_at=now() + 20)))
        await asyncio.sleep(10)
        (loop_task,) = (each for each in asyncio.all_tasks() if each.get_name() == "handoff-poller")
        loop_task.cancel()
        return await task

    assert run(scene()) == "answered"


def test_a_request_s_own_interval_overrides_the_configured_one() -> None:
    """poke_interval of one trigger concerns that trigger only."""
    ledger = Ledger()

    async def scene() -> None:
        shared = Poller(PACE, now)
        tasks = [
            asyncio.create_task(shared.wait(ScriptedRequest(ledger, "hasty"), shortest=1.0)),
            asyncio.create_task(shared.wait(ScriptedRequest(ledger, "usual"))),
        ]
        await asyncio.sleep(15)
        for task in tasks:
            task.cancel()

    run(scene())
    assert ledger.counts()["hasty"] > 1.5 * ledger.counts()["usual"]


def test_all_triggers_of_a_loop_share_one_poller_and_other_loops_have_their_own() -> None:
    """The rate is bounded for the process, which has one loop."""

    async def both() -> tuple[Poller, Poller]:
        return poller(lambda: PACE), poller(lambda: PACE)

    first, second = run(both())
    assert first is second
    assert run(both())[0] is not first
