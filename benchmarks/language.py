"""Our coordinators beside the stock ones: ``make bench-language``.

Both sides run the same programs in turn; medians of pairs are compared. Exits 1 where a bar is missed.
A whole run is kept in ``results/language.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from language_sides import SIDES, make_bundles  # noqa: E402  -- beside this script

RESULTS = HERE / "results" / "language.json"
#: Seconds from the end of a process to the end of its task.
TAIL = {"p99": 0.5, "max": 1.0}
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


def quantile(values: list[float], share: float) -> float:
    """The value below which a share of all lie."""
    ordered = sorted(values)
    return ordered[max(int(len(ordered) * share) - 1, 0)]


def judge(found: dict[str, dict[str, list[float]]]) -> list[dict[str, Any]]:
    """Compare medians, and the tail with its limits."""
    figures = []
    for name, values in found.items():
        figure: dict[str, Any] = {"name": name, "pairs": len(values["ours"])}
        if name == "tail":
            figure["unit"] = "s from the end of the process to the end of the task"
            for which in SIDES:
                figure[which] = {
                    "median": round(statistics.median(values[which]), 4),
                    "p99": round(quantile(values[which], 0.99), 4),
                    "max": round(max(values[which]), 4),
                }
            figure["bar"] = TAIL
            figure["met"] = all(figure["ours"][key] <= bar for key, bar in TAIL.items())
        else:
            unit, bar, less = RATIOS[name]
            medians = {which: statistics.median(values[which]) for which in SIDES}
            ratio = medians["ours"] / medians["stock"]
            figure |= {"unit": unit, **{which: float(f"{value:.4g}") for which, value in medians.items()}}
            figure |= {"ratio": round(ratio, 3), "bar": f"{'<=' if less else '>='} {bar}"}
            figure["met"] = ratio <= bar if less else ratio >= bar
        figures.append(figure)
    return figures


def line(figure: dict[str, Any]) -> str:
    """One figure for people."""
    shown = "ok  " if figure["met"] else "MISS"
    if figure["name"] == "tail":
        sides = "; ".join(
            f"{which} p99 {figure[which]['p99']:.3f} s, max {figure[which]['max']:.3f} s" for which in SIDES
        )
        bars = f"p99 {TAIL['p99']} s, max {TAIL['max']} s"
        return f"{shown} tail: {figure['pairs']} tasks, {figure['unit']}: {sides} (bars {bars})"
    return (
        f"{shown} {figure['name']}: ours {figure['ours']}, stock {figure['stock']} {figure['unit']}; "
        f"ratio {figure['ratio']} (bar {figure['bar']}), {figure['pairs']} pairs"
    )


def versions() -> dict[str, str]:
    """What was measured."""
    names = ("apache-airflow-core", "apache-airflow-task-sdk", "msgpack", "psutil")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def main() -> int:
    """Measure, judge, and keep a whole run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("only", nargs="*", help="launch, tail, logs, trips, memory, bundles")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ.setdefault("AIRFLOW_HOME", name)
        figures = judge(measure(options.pairs, Path(name), options.only))
    result = {"versions": versions(), "figures": figures}
    if not options.only:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if options.json else "\n".join(map(line, figures)))
    return 0 if all(figure["met"] for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
