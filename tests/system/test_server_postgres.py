"""Many answers at once, on PostgreSQL, with several workers behind an address with a path."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.system.stack import ROOT, Stack

#: Requests of ours that park together; on the first versions 200 resumes in all.
MANY = {"3.1": 100, "3.2": 100, "3.3": 30}
#: Requests of the standard provider beside them: enough for a median.
STOCK = {"3.1": 16, "3.2": 16, "3.3": 30}


class PathStack(Stack):
    """An Airflow whose base_url has a path."""

    def _environment(self) -> dict[str, str]:
        self.url = f"{self.url}/airflow/prod"
        return super()._environment()


@pytest.fixture(scope="module")
def busy(airflow_version: str) -> Iterator[Stack]:
    """PostgreSQL, two api-server workers, a path in the address."""
    many = {"HANDOFF_TEST_MANY": MANY, "HANDOFF_TEST_STOCK_MANY": STOCK}
    env = {"AIRFLOW__API__WORKERS": "2", **{name: str(of[airflow_version]) for name, of in many.items()}}
    dags = ROOT / "tests" / "system" / "dags"
    with PathStack(airflow_version, dags, database="postgresql", env=env) as running:
        yield running


def states(stack: Stack, dag_id: str, run_id: str) -> list[str | None]:
    """Return the states of a mapped task's instances."""
    return [t["state"] for t in stack.task_instances(dag_id, run_id) if t["map_index"] >= 0]


def answer_at_once(stack: Stack, dag_id: str, run_id: str) -> list[int]:
    """Answer each instance from before its row appears; return the final statuses."""
    stack.client()

    def one(index: int) -> int:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            status = stack.answer(dag_id, run_id, "choose", "a", map_index=index).status_code
            if status not in (404, 425):
                return status
            time.sleep(0.03)
        return 0

    count = MANY[stack.version]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.versions("3.3")
def test_no_answer_is_lost_that_comes_the_moment_the_row_appears(busy: Stack, record_property: Any) -> None:
    """Thirty of them through Airflow's own API with the guard: all taken, none fatal; stock beside it."""
    count = MANY[busy.version]
    ours = busy.trigger("server_many")
    assert answer_at_once(busy, "server_many", ours) == [200] * count
    busy.wait_run("server_many", ours, {"success"})
    assert states(busy, "server_many", ours) == ["success"] * count

    stock = busy.trigger("server_stock_many")
    answer_at_once(busy, "server_stock_many", stock)

    # A stock task that was answered before it parked may wait for ever: the run need not end.
    def still() -> bool:
        return set(states(busy, "server_stock_many", stock)) <= {"success", "failed", "awaiting_input"}

    busy.until("the stock run to stand still", still, timeout=300)
    lost = [state for state in states(busy, "server_stock_many", stock) if state != "success"]
    record_property("lost_by_the_standard_provider", len(lost))
    sys.stderr.write(f"\nanswers lost: ours 0 of {count}, standard provider {len(lost)} of {count}\n")


def test_of_fifty_answers_at_once_exactly_one_is_taken(busy: Stack) -> None:
    """Through both doors and two workers, with token and cookie, below a path; the rest gets 409.

    The one that got 200 is the result.
    """
    run_id = busy.trigger("server_choice")
    busy.wait_tasks("server_choice", run_id, {"choose": busy.parked_state})
    people = ("admin", "alice", "bob", "carol")
    clients = [busy.client(user) for user in people] + [_by_cookie(busy, user) for user in people]
    patch = f"/api/v2/dags/server_choice/dagRuns/{run_id}/taskInstances/choose/-1/hitlDetails"
    route = f"/handoff/v1/dags/server_choice/runs/{run_id}/answer/choose"
    bad = {"chosen_options": ["a"], "params_input": {"zzz": 1}}
    # Airflow itself would take it: both workers have the guard, whoever calls, and in whichever way.
    assert {client.patch(patch, json=bad).status_code for client in clients * 3} == {400}
    gate = threading.Barrier(50)

    def one(number: int) -> tuple[int, str, str]:
        option, client, user = "ab"[number // 2 % 2], clients[number % 8], people[number % 4]
        gate.wait()
        # Both doors for each of them: eight callers, then the other door.
        if (number + number // 8) % 2:
            reply = client.post(route, json={"options": [option]})
        else:
            reply = client.patch(patch, json={"chosen_options": [option], "params_input": {}})
        return reply.status_code, option, user

    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(one, range(50)))
    assert sorted(status for status, _, _ in replies) == [200, *[409] * 49]
    (taken,) = [reply for reply in replies if reply[0] == 200]
    busy.wait_run("server_choice", run_id, {"success"})
    result = busy.xcom("server_choice", run_id, "choose")
    assert (result["chosen_options"], result["responded_by_user"]["name"]) == ([taken[1]], taken[2])


def _by_cookie(stack: Stack, user: str) -> httpx.Client:
    """Return a client that is logged in as a browser is."""
    bearer = stack.client(user)
    token = bearer.headers["authorization"].removeprefix("Bearer ")
    return httpx.Client(base_url=bearer.base_url, cookies={"_token": token}, timeout=60, trust_env=False)


@pytest.mark.versions("3.1", "3.2")
def test_an_answered_task_resumes_at_once(busy: Stack, record_property: Any) -> None:
    """Answers ten seconds after the park, the standard provider beside: sooner, once, nobody dies.

    The two versions together resume 200 tasks; ``benchmarks/answers.py`` holds the delay to its bar.
    """
    counts = {"server_many": MANY[busy.version], "server_stock_many": STOCK[busy.version]}
    pids = dict(busy.pids)
    runs = {dag_id: busy.trigger(dag_id) for dag_id in counts}
    for dag_id, run_id in runs.items():
        busy.until(
            f"{dag_id} to park",
            lambda dag_id=dag_id, run_id=run_id: (
                states(busy, dag_id, run_id) == ["deferred"] * counts[dag_id]
            ),
            timeout=300,
        )
    time.sleep(12)
    delays = {dag_id: _delays(busy, dag_id, run_id, counts[dag_id]) for dag_id, run_id in runs.items()}
    medians = {dag_id: statistics.median(found) for dag_id, found in delays.items()}
    sys.stderr.write(f"\nanswer to resumed task, median: {medians}\n")
    record_property("medians", medians)
    assert medians["server_many"] < medians["server_stock_many"]
    assert busy.pids == pids
    busy.check()
    assert "read out of order" not in (busy.home / "triggerer.log").read_text(errors="replace")
    assert states(busy, "server_many", runs["server_many"]) == ["success"] * counts["server_many"]
    for index in range(counts["server_many"]):
        log = busy.task_log("server_many", runs["server_many"], "choose", map_index=index)
        assert log.count("DAG bundles loaded") == 2, f"one park and one resume:\n{log}"


def _delays(stack: Stack, dag_id: str, run_id: str, count: int) -> list[float]:
    """Answer one after the other; return the seconds from the answer to the start of the resumed process."""
    answered: list[datetime] = []
    for index in range(count):
        reply = stack.answer(dag_id, run_id, "choose", "a", map_index=index)
        assert reply.status_code == 200, reply.text
        answered.append(datetime.fromisoformat(reply.json()["responded_at"]))
        time.sleep(0.5)
    stack.wait_run(dag_id, run_id, {"success"})
    return [
        (_resumed_at(stack, dag_id, run_id, index) - when).total_seconds()
        for index, when in enumerate(answered)
    ]


def _resumed_at(stack: Stack, dag_id: str, run_id: str, index: int) -> datetime:
    """Return when the second process of a task began."""
    answer = stack.client().get(
        f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/choose/logs/1",
        params={"map_index": index, "full_content": True},
        headers={"Accept": "application/json"},
    )
    began = [
        record for record in answer.json()["content"] if "DAG bundles loaded" in str(record.get("event"))
    ]
    assert len(began) == 2, began
    return max(datetime.fromisoformat(record["timestamp"]) for record in began)
