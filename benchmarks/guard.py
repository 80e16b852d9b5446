"""What the guard costs a request that it does not concern: milliseconds, behind it and without it.

Exit code 1 when the difference of the medians is above the bar.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from typing import Any

from airflow_handoff.server.guard import Guard

#: Milliseconds.
BAR = 0.2
REQUESTS = 20_000
SCOPE = {
    "type": "http",
    "method": "GET",
    "path": "/api/v2/dags/some_dag/dagRuns/some_run/taskInstances",
    "raw_path": b"/api/v2/dags/some_dag/dagRuns/some_run/taskInstances",
    "root_path": "",
    "query_string": b"",
    "headers": [],
}


async def nothing(scope: Any = None, receive: Any = None, send: Any = None) -> None:
    """Serve a request, receive or send by doing nothing."""


async def median(target: Any) -> float:
    """Return the median time of one request in milliseconds."""
    times = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        await target(dict(SCOPE), nothing, nothing)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


async def measure() -> dict[str, float]:
    """Measure both, interleaved."""
    guard = Guard(nothing)
    guard._on = True  # as the lifespan's start does where `[handoff] guard_airflow_api` says so
    await median(guard)
    rounds = [(await median(nothing), await median(guard)) for _ in range(5)]
    without, behind = (statistics.median(column) for column in zip(*rounds, strict=True))
    return {"without_ms": without, "behind_ms": behind, "cost_ms": behind - without, "bar_ms": BAR}


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    figures = asyncio.run(measure())
    if parser.parse_args().json:
        print(json.dumps(figures, indent=2))
    else:
        print("  ".join(f"{name} {value:.5f}" for name, value in figures.items()))
    return 0 if figures["cost_ms"] <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
