"""An event loop whose clock jumps: hours of waiting pass at once, and always in the same way."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Waits for nothing; remembers how long the loop would have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return at once what is ready."""
        if timeout is None:
            raise AssertionError("everything waits and nothing would ever wake it")
        self.slept += max(timeout, 1e-6)  # real time never stands still either
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that never really sleeps."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return virtual seconds."""
        return 1000.0 + self._jumping.slept


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
