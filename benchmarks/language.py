"""Our coordinators beside the stock ones: ``make bench-language``.

Both sides run the same programs in turn; medians of pairs are compared. Exits 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from language_sides import SIDES, make_bundles  # noqa: E402  -- beside this script

#: What is measured: its unit, the bar for ours divided by stock, and whether less is better.
RATIOS = {
    "launch": ("s from the call to user code", 1.1, True),
    "logs": ("log lines/s", 0.9, False),
    "trips": ("round trips/s", 0.9, False),
    "memory": ("MB peak for a 100 MB XCom", 1.05, True),
    "bundles_index": ("s to find one of 2,000 bundles, with the index", 0.15, True),
    "bundles_cold": ("s to find one of 2,000 bundles, without the index", 1.1, True),
}


def side(*arguments: Any, **environment: str) -> Any:
    """Run one measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(HERE / "language_sides.py"), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(pairs: int, folder: Path, only: list[str]) -> dict[str, dict[str, list[float]]]:
    """Run every scenario."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in ("launch", "logs", "trips"):
        if not only or name in only:
            found[name] = side(name, pairs)
    if not only or "tail" in only:
        found["tail"] = side("tail", 100)
    if not only or "memory" in only:
        found["memory"] = {which: [] for which in SIDES}
        for number in range(pairs):
            for which in SIDES if number % 2 else SIDES[::-1]:
                work = folder / f"memory_{number}_{which}"
                work.mkdir()
                found["memory"][which].append(side("memory", which, work))
    if not only or "bundles" in only:
        root = folder / "bundles"
        root.mkdir()
        make_bundles(root, 2000)
        for name in ("bundles_index", "bundles_cold"):
            found[name] = {which: [] for which in SIDES}
            for number in range(pairs):
                for which in SIDES if number % 2 else SIDES[::-1]:
                    cache = folder / (f"cache_{number}" if name == "bundles_cold" else "cache")
                    if name == "bundles_index" and not cache.exists():
                        side("bundles", "ours", root, XDG_CACHE_HOME=str(cache))
                    found[name][which].append(side("bundles", which, root, XDG_CACHE_HOME=str(cache)))
    return found


def judge(found: dict[str, dict[str, list[float]]]) -> bool:
    """Print what was found and whether every bar is met."""
    good = True
    for name, values in found.items():
        ours, stock = (statistics.median(values[which]) for which in SIDES)
        if name == "tail":
            ordered = sorted(values["ours"])
            worst = sorted(values["stock"])
            met = ordered[int(len(ordered) * 0.99) - 1] <= 0.5 and ordered[-1] <= 1
            print(
                f"{'ok  ' if met else 'MISS'} tail: {len(ordered)} tasks, process end to task end: ours p99 "
                f"{ordered[int(len(ordered) * 0.99) - 1]:.3f} s, max {ordered[-1]:.3f} s (bars 0.5 and 1 s); "
                f"stock p99 {worst[int(len(worst) * 0.99) - 1]:.3f} s, max {worst[-1]:.3f} s"
            )
        else:
            unit, bar, less = RATIOS[name]
            ratio = ours / stock
            met = ratio <= bar if less else ratio >= bar
            print(
                f"{'ok  ' if met else 'MISS'} {name}: ours {ours:.4g}, stock {stock:.4g} {unit}; "
                f"ratio {ratio:.3f} (bar {'<=' if less else '>='} {bar}), {len(values['ours'])} pairs"
            )
        good = good and met
    return good


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("only", nargs="*", help="launch, tail, logs, trips, memory, bundles")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ.setdefault("AIRFLOW_HOME", name)
        return 0 if judge(measure(options.pairs, Path(name), options.only)) else 1


if __name__ == "__main__":
    sys.exit(main())
