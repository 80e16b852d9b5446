"""One loop that reads on behalf of everything that waits in an event loop, at a bounded rate.

A read costs a triggerer far more than waiting does, so the number of reads a second is what has to be
bounded, not the number of waiting requests. Whoever has waited longest *for its pace* is read next: a young
request is read often, an old one seldom, and when there are more than the rate allows all slow down alike.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
_Result = TypeVar("_Result", covariant=True)

_GROWTH = 15.0
_JITTER = 0.2


@dataclass(frozen=True)
class Pace:
    """How often to read.

    :param shortest: seconds between two reads of a request that was asked just now.
    :param longest: seconds between two reads of one that has waited long; in between, a fifteenth of its age.
    :param per_second: reads a second at most, for all waiting requests together.
    """

    shortest: float = 3.0
    longest: float = 30.0
    per_second: float = 6.0

    def interval(self, age: float, failures: int = 0) -> float:
        """Return the seconds between two reads.

        :param age: seconds for which this process has been waiting.
        :param failures: failed reads since the last good one; each doubles the shortest interval.
        """
        shortest = max(self.shortest * 2.0 ** min(failures, 16), 0.0)
        return min(max(shortest, age / _GROWTH), max(self.longest, self.shortest))


class Request(Protocol[_Result]):
    """What can be waited for."""

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, negative after it, or ``None`` where there is none."""

    async def read(self) -> _Result | None:
        """Look once, and return the outcome or ``None`` to go on waiting."""

    def read_failed(self, error: Exception, failures: int) -> None:
        """Hear that a read raised; it is tried again."""


@dataclass(eq=False)
class _Waiting(Generic[T]):
    request: Request[T]
    outcome: asyncio.Future[T]
    context: Context
    pace: Pace
    since: float
    last: float
    failures: int = 0
    spread: float = field(default_factory=lambda: random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311
    interval: float = field(init=False)
    deadline: float | None = field(init=False)

    def __post_init__(self) -> None:
        self.plan(self.since)
        left = self.request.seconds_left()
        self.deadline = None if left is None else self.since + left

    def plan(self, now: float) -> None:
        """Set what lies ahead; after a read, a deadline that has passed is not urgent twice."""
        self.interval = max(self.pace.interval(now - self.since, self.failures) * self.spread, 1e-3)
        # Asked again each time: the deadline is wall-clock time.
        left = self.request.seconds_left()
        self.deadline = now + left if left is not None and left > 0 else None

    def due(self) -> float:
        due = self.last + self.interval
        return due if self.deadline is None else min(due, self.deadline)

    def urgency(self, now: float) -> float:
        if self.deadline is not None and self.deadline <= now:
            return float("inf")
        return (now - self.last) / self.interval


class Poller:
    """Reads for all requests that wait in one event loop; runs only while there are any.

    :param pace: how often to read.
    :param clock: seconds, monotonic.
    """

    def __init__(self, pace: Pace, clock: Callable[[], float]) -> None:
        self._pace = pace
        self._clock = clock
        self._waiting: set[_Waiting[Any]] = set()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._not_before = clock()

    async def wait(self, request: Request[T], *, shortest: float | None = None) -> T:
        """Return the outcome of a request as soon as a read brings one.

        Cancelling the wait never interrupts a read: the loop owns it, and its result is dropped.

        :param shortest: seconds; overrides the pace's for this request.
        """
        now = self._clock()
        pace = self._pace if shortest is None else replace(self._pace, shortest=shortest)
        waiting: _Waiting[T] = _Waiting(
            request,
            asyncio.get_running_loop().create_future(),
            copy_context(),
            pace,
            since=now,
            # The first read comes somewhere within the first interval, so that a restart is no stampede.
            last=now - random.uniform(0.2, 1.0) * pace.shortest,  # noqa: S311
        )
        self._waiting.add(waiting)
        self._changed.set()
        self._ensure_running()
        try:
            return await waiting.outcome
        finally:
            self._waiting.discard(waiting)
            self._changed.set()

    def _ensure_running(self) -> None:
        if self._waiting and (self._task is None or self._task.done()):
            # An empty context: the loop serves many tasks and must not log in the name of the first.
            self._task = Context().run(self._start)
            self._task.add_done_callback(self._ended)

    def _start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._run(), name="handoff-poller")

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Whatever ended the loop, nobody who still waits is forgotten.
        loop = asyncio.get_running_loop()
        if self._waiting and not loop.is_closed():
            loop.call_later(1.0, self._ensure_running)

    async def _run(self) -> None:
        while self._waiting:
            now = self._clock()
            self._changed.clear()
            if now < self._not_before:
                await asyncio.sleep(self._not_before - now)
                continue
            first = max(self._waiting, key=lambda waiting: waiting.urgency(now))
            if first.urgency(now) >= 1:
                self._not_before = now + 1.0 / self._pace.per_second
                await self._read(first)
            else:
                await self._sleep(min(waiting.due() for waiting in self._waiting) - now)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except asyncio.TimeoutError:  # the builtin one only from Python 3.11 on
            return

    async def _read(self, waiting: _Waiting[Any]) -> None:
        try:
            outcome = await waiting.request.read()
        except Exception as error:
            waiting.failures += 1
            waiting.context.run(waiting.request.read_failed, error, waiting.failures)
        else:
            waiting.failures = 0
            if outcome is not None and not waiting.outcome.done():
                waiting.outcome.set_result(outcome)
                self._waiting.discard(waiting)
        waiting.last = self._clock()
        waiting.plan(waiting.last)


_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, Poller] = WeakKeyDictionary()


def poller(pace: Callable[[], Pace]) -> Poller:
    """Return the running event loop's one poller.

    :param pace: asked once, when the loop's first request waits.
    """
    loop = asyncio.get_running_loop()
    if loop not in _pollers:
        _pollers[loop] = Poller(pace(), loop.time)
    return _pollers[loop]
