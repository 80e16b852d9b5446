"""What waiting for people costs and how fast an answer is acted on, beside the standard provider.

Both operators are measured in the same Airflow, in turn, in one run::

    python benchmarks/hitl.py            # everything, about 25 minutes
    python benchmarks/hitl.py --quick    # fewer and shorter windows: tells that it runs, not how it stands

Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.system.stack import Stack  # noqa: E402

DAGS = Path(os.environ.get("HANDOFF_BENCH_DAGS", ROOT / "benchmarks" / "dags"))
RESULTS = ROOT / "benchmarks" / "results" / "hitl.json"
KINDS = ("standard", "handoff")


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param pairs: CPU windows of each kind.
    :param window: seconds of each CPU window.
    :param waiting: requests that wait during it.
    :param answers: answers of each kind for each latency figure.
    """

    pairs: int = 3
    window: float = 120.0
    waiting: int = 200
    answers: int = 20


@dataclass(frozen=True)
class Figure:
    """One line of the result: medians, their ratio, the bar, and every sample."""

    name: str
    airflow: str
    unit: str
    standard: float
    handoff: float
    ratio: float
    bar: float
    samples: dict[str, list[float]]

    @property
    def held(self) -> bool:
        """Tell whether the bar is held."""
        return self.ratio <= self.bar


def figure(name: str, airflow: str, unit: str, bar: float, samples: dict[str, list[float]]) -> Figure:
    """Summarise the samples of both kinds."""
    standard, handoff = (statistics.median(samples[kind]) for kind in KINDS)
    rounded = {kind: [round(value, 3) for value in values] for kind, values in samples.items()}
    return Figure(
        name, airflow, unit, round(standard, 3), round(handoff, 3), round(handoff / standard, 3), bar, rounded
    )


def say(text: str) -> None:
    """Report progress without mixing it into the result."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


@contextmanager
def airflow(version: str, plan: Plan, **settings: str) -> Iterator[Stack]:
    """Run an Airflow on PostgreSQL with the benchmark's Dags.

    :param settings: more environment for its components.
    """
    env = {
        "HANDOFF_BENCH_WAITING": str(plan.waiting),
        "HANDOFF_BENCH_ANSWERS": str(plan.answers),
        "AIRFLOW__TRIGGERER__CAPACITY": "2000",
        **settings,
    }
    with Stack(version, DAGS, database="postgresql", env=env) as stack:
        yield stack


def until(what: str, probe: Callable[[], bool], timeout: float = 300.0) -> None:
    """Wait for a state of Airflow's."""
    deadline = time.monotonic() + timeout
    while not probe():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout:.0f} s still waiting for {what}")
        time.sleep(0.5)


def instances(stack: Stack, dag_id: str, run_id: str, task_id: str) -> list[dict[str, Any]]:
    """Return the mapped instances of a task, in the order of their index."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
    found: list[dict[str, Any]] = []
    while True:
        query = {"limit": 100, "offset": len(found)}
        body = stack.client().get(path, params=query).raise_for_status().json()
        found += body["task_instances"]
        if not body["task_instances"] or len(found) >= body["total_entries"]:
            return sorted((t for t in found if t["task_id"] == task_id), key=lambda t: t["map_index"])


def count(stack: Stack, dag_id: str, run_id: str, state: str) -> int:
    """Count the task instances of a run that are in a state."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
    answer = stack.client().get(path, params={"state": state, "limit": 1}).raise_for_status()
    return int(answer.json()["total_entries"])


def parked(stack: Stack, dag_id: str, expected: int) -> str:
    """Start a run and return its id when all of its requests wait."""
    run_id: str = stack.trigger(dag_id)
    until(
        f"{expected} waiting in {dag_id}",
        lambda: count(stack, dag_id, run_id, stack.parked_state) == expected,
    )
    return run_id


def end_run(stack: Stack, dag_id: str, run_id: str) -> None:
    """Mark a run failed and wait until nothing of it waits any more."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}"
    stack.client().patch(path, json={"state": "failed"}, timeout=120).raise_for_status()
    until(f"the end of {dag_id}", lambda: count(stack, dag_id, run_id, stack.parked_state) == 0)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time so far of a process and its living children."""
    process = psutil.Process(pid)
    times = [p.cpu_times() for p in [process, *process.children(recursive=True)]]
    return sum(t.user + t.system for t in times)


def measure_cpu(stack: Stack, plan: Plan) -> Figure:
    """Measure the triggerer's CPU time while many requests wait, both kinds in turn."""
    samples: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for pair in range(plan.pairs):
        for kind in KINDS if pair % 2 == 0 else reversed(KINDS):
            dag_id = f"bench_{kind}_many"
            run_id = parked(stack, dag_id, plan.waiting)
            time.sleep(5)  # the triggerer takes up what was parked last
            before = cpu_seconds(stack.pids["triggerer"])
            time.sleep(plan.window)
            samples[kind].append(cpu_seconds(stack.pids["triggerer"]) - before)
            say(f"pair {pair + 1}, {kind}: {samples[kind][-1]:.1f} CPU s in {plan.window:.0f} s")
            end_run(stack, dag_id, run_id)
            time.sleep(5)  # and drops what it no longer needs
    name = f"triggerer CPU over {plan.window:.0f} s, {plan.waiting} waiting"
    return figure(name, stack.version, "s", 0.25, samples)


def park_both(stack: Stack, plan: Plan) -> dict[str, str]:
    """Park a batch of each kind together."""
    runs: dict[str, str] = {kind: stack.trigger(f"bench_{kind}_few") for kind in KINDS}
    for kind, run_id in runs.items():
        dag_id = f"bench_{kind}_few"
        until(
            f"{plan.answers} waiting in {dag_id}",
            lambda d=dag_id, r=run_id: count(stack, d, r, stack.parked_state) == plan.answers,
        )
    return runs


def answer_all(stack: Stack, plan: Plan, runs: dict[str, str], apart: float) -> None:
    """Answer both batches in turn, spread over time so that no poll's phase decides."""
    body = {"chosen_options": ["go on"], "params_input": {}}
    for index in range(plan.answers):
        for kind in KINDS if index % 2 == 0 else reversed(KINDS):
            run = f"/api/v2/dags/bench_{kind}_few/dagRuns/{runs[kind]}"
            path = f"{run}/taskInstances/one.ask/{index}/hitlDetails"
            stack.client().patch(path, json=body).raise_for_status()
        time.sleep(apart)


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two of Airflow's timestamps."""
    first, last = (datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (earlier, later))
    return (last - first).total_seconds()


def answered_at(stack: Stack, dag_id: str, run_id: str) -> dict[int, str]:
    """Return when each mapped request was answered."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/hitlDetails"
    body = stack.client().get(path, params={"limit": 100}).raise_for_status().json()
    return {d["task_instance"]["map_index"]: d["responded_at"] for d in body["hitl_details"]}


def latencies(
    stack: Stack, plan: Plan, *, after: float, task_id: str, column: str, apart: float
) -> dict[str, list[float]]:
    """Park both kinds together, answer them and return the seconds from each answer to a timestamp."""
    runs = park_both(stack, plan)
    time.sleep(after)
    answer_all(stack, plan, runs, apart)
    samples: dict[str, list[float]] = {}
    for kind, run_id in runs.items():
        dag_id = f"bench_{kind}_few"
        stack.wait_run(dag_id, run_id, {"success"}, timeout=300)
        answered = answered_at(stack, dag_id, run_id)
        samples[kind] = [
            seconds_between(answered[t["map_index"]], t[column])
            for t in instances(stack, dag_id, run_id, task_id)
        ]
        say(f"{kind}: median {statistics.median(samples[kind]):.2f} s of {len(samples[kind])} answers")
    return samples


def measure_resume(stack: Stack, plan: Plan) -> Figure:
    """Measure how long a trigger takes to notice an answer given 30 s after the park."""
    samples = latencies(stack, plan, after=30, task_id="one.ask", column="scheduled_when", apart=1.0)
    return figure("answer to resumed, 30 s after the park", stack.version, "s", 1.1, samples)


def measure_downstream(stack: Stack, plan: Plan) -> Figure:
    """Measure from an answer given 10 s after the park to the start of the next task."""
    samples = latencies(stack, plan, after=10, task_id="one.after", column="start_date", apart=2.0)
    return figure("answer to downstream start", stack.version, "s", 1.15, samples)


def versions_of(version: str) -> dict[str, str]:
    """Return the exact versions of what was measured."""
    site = next((ROOT / f".venv-{version}").glob("lib/python*/site-packages"))
    names = ("apache_airflow_core", "apache_airflow_task_sdk", "apache_airflow_providers_standard")
    return {name: path.name.split("-")[1] for name in names for path in site.glob(f"{name}-*.dist-info")}


def table(figures: list[Figure]) -> str:
    """Render the result."""
    lines = [
        f"{'what':<44} {'Airflow':<8} {'standard':>9} {'handoff':>9} {'ratio':>6} {'bar':>5}",
        *(
            f"{f.name:<44} {f.airflow:<8} {f.standard:>7.2f} {f.unit} {f.handoff:>7.2f} {f.unit} "
            f"{f.ratio:>6.2f} {f.bar:>5.2f} {'held' if f.held else 'MISSED'}"
            for f in figures
        ),
    ]
    return "\n".join(lines)


def run(plan: Plan, parts: list[str]) -> list[Figure]:
    """Measure the wanted parts."""
    figures: list[Figure] = []
    if "cpu" in parts or "resume" in parts:
        # The door would resume tasks at once; what is measured is the trigger alone.
        with airflow("3.2", plan, AIRFLOW__HANDOFF__GUARD_AIRFLOW_API="False") as stack:
            if "resume" in parts:
                figures.append(measure_resume(stack, plan))
            if "cpu" in parts:
                figures.append(measure_cpu(stack, plan))
    if "downstream" in parts:
        with airflow("3.3", plan) as stack:
            figures.append(measure_downstream(stack, plan))
    return figures


def main() -> int:
    """Measure, print and keep the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quick", action="store_true", help="one short window, few answers; nothing is kept")
    parser.add_argument("--only", action="append", choices=["cpu", "resume", "downstream"], help="one part")
    arguments = parser.parse_args()
    plan = Plan(pairs=1, window=30.0, waiting=60, answers=6) if arguments.quick else Plan()
    figures = run(plan, arguments.only or ["cpu", "resume", "downstream"])
    result = {
        "plan": asdict(plan),
        "versions": {version: versions_of(version) for version in ("3.2", "3.3")},
        "figures": [{**asdict(f), "held": f.held} for f in figures],
    }
    if not arguments.quick and not arguments.only:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if arguments.json else table(figures))
    return 0 if all(f.held for f in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
