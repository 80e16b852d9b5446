"""What becomes of answers under load, on PostgreSQL.

::

    python benchmarks/answers.py resume            # 3.1 and 3.2: answer to end of the resumed task, 200 tasks
    python benchmarks/answers.py settle            # 3.3: answers the moment a row appears, LocalExecutor
    python benchmarks/answers.py settle --executor CeleryExecutor

``resume`` has the standard provider beside it; both count what was lost. Exit code 1 when an answer of ours
was lost, a task resumed twice, a triggerer died, or the median bar was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.system.stack import Stack  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "answers.json"
DAGS = ROOT / "tests" / "system" / "dags"
KINDS = {"handoff": "server_many", "standard": "server_stock_many"}
#: Seconds from answer to the end of the resumed task.
BAR = 1.5


def say(text: str) -> None:
    """Print one line at once."""
    print(text, flush=True)


@contextmanager
def airflow(version: str, count: int, executor: str = "LocalExecutor") -> Iterator[Stack]:
    """Run an Airflow with *count* mapped requests of each kind."""
    os.environ.pop("HANDOFF_TEST_MANY", None)
    env = {"HANDOFF_TEST_MANY": str(count), "AIRFLOW__CORE__MAX_MAP_LENGTH": "2048"}
    with Stack(version, DAGS, database="postgresql", executor=executor, env=env, verbose=say) as stack:
        yield stack


def instances(stack: Stack, dag_id: str, run_id: str) -> list[dict[str, Any]]:
    """Return the mapped task instances of a run."""
    found: list[dict[str, Any]] = []
    while True:
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        page = stack.client().get(path, params={"limit": 100, "offset": len(found)}).json()
        found += page["task_instances"]
        if len(found) >= page["total_entries"]:
            return [task for task in found if task["map_index"] >= 0]


def park(stack: Stack, dag_id: str, count: int) -> str:
    """Trigger a run and wait until all of its requests are parked."""
    run_id = stack.trigger(dag_id)

    def parked() -> bool:
        states = [task["state"] for task in instances(stack, dag_id, run_id)]
        return states == [stack.parked_state] * count

    stack.until(f"{count} parked", parked, timeout=900, every=2)
    return run_id


def delays(stack: Stack, dag_id: str, run_id: str, count: int) -> list[float]:
    """Answer one after the other; return the seconds from each answer to the end of its task."""
    answered: dict[int, datetime] = {}
    for index in range(count):
        reply = stack.answer(dag_id, run_id, "choose", "a", map_index=index)
        if reply.status_code != 200:
            say(f"{dag_id}[{index}]: {reply.status_code} {reply.text[:200]}")
            continue
        answered[index] = datetime.fromisoformat(reply.json()["responded_at"])
        time.sleep(0.5)
    stack.wait_run(dag_id, run_id, timeout=900)
    return [
        (datetime.fromisoformat(task["end_date"]) - answered[task["map_index"]]).total_seconds()
        for task in instances(stack, dag_id, run_id)
        if task["state"] == "success" and task["map_index"] in answered
    ]


def starts(stack: Stack, dag_id: str, run_id: str, count: int) -> list[int]:
    """Return how many processes each task had: one that parked and one that resumed."""
    logs = (stack.task_log(dag_id, run_id, "choose", map_index=index) for index in range(count))
    return [log.count("DAG bundles loaded") for log in logs]


def measure_resume(version: str, count: int) -> dict[str, Any]:
    """Measure answer to end on 3.1 or 3.2."""
    result: dict[str, Any] = {
        "part": "resume",
        "airflow": version,
        "executor": "LocalExecutor",
        "count": count,
    }
    good = True
    with airflow(version, count) as stack:
        pids = dict(stack.pids)
        runs = {kind: park(stack, dag_id, count) for kind, dag_id in KINDS.items()}
        time.sleep(14)
        for kind, dag_id in KINDS.items():
            found = delays(stack, dag_id, runs[kind], count)
            median = statistics.median(found)
            figures = f"median {median:.2f} s, max {max(found):.2f} s"
            say(f"{version} {kind}: {len(found)} of {count} resumed, {figures}")
            seconds = {"median_s": round(median, 3), "max_s": round(max(found), 3)}
            result[kind] = {"resumed": len(found), **seconds}
            if kind == "handoff":
                twice = [n for n in starts(stack, dag_id, runs[kind], count) if n != 2]
                alive = stack.pids == pids and not _dead(stack)
                say(f"{version} {kind}: resumed twice or never {len(twice)}, components alive {alive}")
                result[kind] |= {"resumed_twice": len(twice), "all_components_alive": alive}
                good = len(found) == count and median < BAR and not twice and alive
    return {**result, "good": good}


def _dead(stack: Stack) -> bool:
    log = (stack.home / "triggerer.log").read_text(errors="replace")
    return "Response read out of order" in log


def measure_settle(version: str, executor: str, count: int) -> dict[str, Any]:
    """Answer every request from before its row appears; count what was lost."""
    lost: dict[str, int] = {}
    result: dict[str, Any] = {"part": "settle", "airflow": version, "executor": executor, "count": count}
    with airflow(version, count, executor) as stack:
        for kind, dag_id in KINDS.items():
            run_id = stack.trigger(dag_id)

            def one(index: int, dag_id: str = dag_id, run_id: str = run_id) -> int:
                while True:
                    status = stack.answer(dag_id, run_id, "choose", "a", map_index=index).status_code
                    if status not in (404, 425):
                        return status
                    time.sleep(0.03)

            with ThreadPoolExecutor(count) as pool:
                taken = list(pool.map(one, range(count))).count(200)

            def still(dag_id: str = dag_id, run_id: str = run_id) -> bool:
                found = {task["state"] for task in instances(stack, dag_id, run_id)}
                return found <= {"success", "failed", "awaiting_input", "deferred"}

            # A stock task that was answered before it parked may wait for ever: the run need not end.
            stack.until("the run to stand still", still, timeout=600)
            ended = [task["state"] for task in instances(stack, dag_id, run_id)].count("success")
            lost[kind] = count - ended
            result[kind] = {"got_200": taken, "lost": count - ended}
            say(f"{version} {executor} {kind}: {taken} of {count} got 200, {count - ended} were lost")
    return {**result, "good": lost["handoff"] == 0}


def keep(results: list[dict[str, Any]]) -> None:
    """Put results in the place of those of the same part, Airflow and executor."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    found = {_key(result): result for result in [*kept, *results]}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([found[key] for key in sorted(found)], indent=2) + "\n")


def _key(result: dict[str, Any]) -> tuple[str, str, str]:
    return result["part"], result["airflow"], result["executor"]


def main() -> int:
    """Run the wanted part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["resume", "settle"])
    parser.add_argument("--versions", nargs="+", default=None)
    parser.add_argument("--executor", default="LocalExecutor")
    parser.add_argument("--count", type=int, default=None)
    asked = parser.parse_args()
    if asked.part == "resume":
        results = [measure_resume(v, asked.count or 200) for v in asked.versions or ["3.1", "3.2"]]
    else:
        results = [measure_settle(v, asked.executor, asked.count or 30) for v in asked.versions or ["3.3"]]
    if asked.count is None:  # a short run is no measurement
        keep(results)
    good = all(result["good"] for result in results)
    say(json.dumps({"good": good}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
