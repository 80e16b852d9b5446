"""A person holds up an Airflow run: an expense, live, from the question to the receipt that Node writes.

python scripts/demo.py            # asks y/n on a terminal; without one it answers Approve
python scripts/demo.py --keep     # leaves Airflow up until Ctrl-C and says how to log in
"""

from __future__ import annotations

import argparse
import json
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.system.node import NODE  # noqa: E402
from tests.system.rest import StackError  # noqa: E402
from tests.system.stack import Stack  # noqa: E402

from airflow_handoff.hitl.links import required_actions_url  # noqa: E402 - after the path is set

#: An answer sooner after the park can be fatal: the scheduler has not yet seen the first process end.
SETTLE = 8.5
APPROVE, REJECT = "Approve", "Reject"


@dataclass(frozen=True)
class Outcome:
    """The states in which a run and its tasks must end; ``*`` stands for every task that is not named."""

    run: str
    tasks: Mapping[str, str]


@dataclass(frozen=True)
class Demo:
    """What is shown, as data.

    :param files: what the Dag folder of the demo holds, relative to the project's root.
    :param question: the task that waits for a person.
    :param outcomes: how the run must end, for each answer.
    :param env: extra environment of its Airflow.
    """

    files: tuple[str, ...]
    dag_id: str
    question: str
    outcomes: Mapping[str, Outcome]
    env: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, Any] = field(default_factory=dict)


OUTCOMES = {
    APPROVE: Outcome("success", {"submit": "success", "manager_approval": "success", "*": "success"}),
    REJECT: Outcome("failed", {"submit": "success", "manager_approval": "failed", "*": "upstream_failed"}),
}
COORDINATORS = {
    "node": {
        "classpath": "airflow_handoff.coordinators.NodeCoordinator",
        "kwargs": {"bundles_root": [str(ROOT / "example_dags" / "node")], "node_executable": str(NODE)},
    }
}
DEMO = Demo(
    files=("example_dags/expense_receipt.py",),
    dag_id="expense_receipt",
    question="manager_approval",
    outcomes=OUTCOMES,
    env={
        "AIRFLOW__SDK__COORDINATORS": json.dumps(COORDINATORS),
        "AIRFLOW__SDK__QUEUE_TO_COORDINATOR": json.dumps({"node": "node"}),
    },
)
#: Versions before 3.3 have no coordinators: the same, in Python only.
PLAIN_DEMO = Demo(
    files=("example_dags/expense_approval.py",),
    dag_id="expense_approval",
    question="manager_approval",
    outcomes=OUTCOMES,
)


class Clock:
    """Prints lines with the seconds since the start, and remembers what each phase took."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.phases: list[tuple[str, float]] = []

    def say(self, line: str) -> None:
        """Print one progress line."""
        print(f"{time.monotonic() - self.started:6.1f} s  {line}", flush=True)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure one phase."""
        begun = time.monotonic()
        yield
        self.phases.append((name, time.monotonic() - begun))


class Progress:
    """Prints each change of a task's state once."""

    def __init__(self, stack: Stack, run_id: str, clock: Clock) -> None:
        self.stack, self.run_id, self.clock = stack, run_id, clock
        self.seen: dict[str, str | None] = {}

    def __call__(self) -> dict[str, str | None]:
        """Look, print what changed, and return all states."""
        for instance in self.stack.task_instances(DEMO.dag_id, self.run_id):
            name, state = instance["task_id"], instance["state"]
            if self.seen.get(name) != state and state is not None:
                self.clock.say(f"{name}: {state}")
            self.seen[name] = state
        return self.seen


def play(stack: Stack, clock: Clock) -> bool:
    """Trigger the run, put the question, carry the answer through; tell whether all ended as it must."""
    with clock.phase("trigger and park"):
        run_id = stack.trigger(DEMO.dag_id, DEMO.conf, "demo")
        clock.say(f"triggered {DEMO.dag_id}, run {run_id}")
        look = Progress(stack, run_id, clock)
        stack.until("the question", lambda: _parked(stack, look))
    parked = time.monotonic()
    (request,) = stack.hitl(DEMO.dag_id, run_id)
    with clock.phase("wait for the answer"):
        show(stack, run_id, request, clock)
        chosen = decide(stack, run_id, parked, clock)
    with clock.phase("answer to the end"):
        if chosen is not None:
            user = _respondent(stack, request)
            answer = stack.answer(DEMO.dag_id, run_id, DEMO.question, chosen, _form(request), user=user)
            if answer.status_code != 200:
                raise StackError(f"the answer was refused: {answer.status_code} {answer.text}")
            clock.say(f"{user} answered {chosen}")
        stack.until(
            "the end", lambda: look() and stack.run(DEMO.dag_id, run_id)["state"] in ("success", "failed")
        )
    return report(stack, run_id, clock)


def _parked(stack: Stack, look: Progress) -> bool:
    states = look()
    if "failed" in states.values():
        raise StackError(stack.describe(DEMO.dag_id, look.run_id))
    return states.get(DEMO.question) == stack.parked_state


def _respondent(stack: Stack, request: Mapping[str, Any]) -> str:
    assigned = [user["id"] for user in request.get("assigned_users") or ()]
    return next((name for name in assigned if name in stack.users), "manager")


def _form(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's fields with the values that they come with."""
    fields = request.get("params") or {}
    return {name: field["value"] for name, field in fields.items() if field.get("value") is not None}


def show(stack: Stack, run_id: str, request: Mapping[str, Any], clock: Clock) -> None:
    """Print the question, the page's link, and the commands that answer it."""
    user = _respondent(stack, request)
    link = required_actions_url(stack.url, dag_id=DEMO.dag_id, run_id=run_id, task_id=DEMO.question)
    path = f"/api/v2/dags/{DEMO.dag_id}/dagRuns/{run_id}/taskInstances/{DEMO.question}/-1/hitlDetails"
    clock.say("the run waits for a person, holding no worker slot\n")
    print(f"  {request['subject']}")
    for line in (request.get("body") or "").splitlines():
        print(f"    {line}")
    print(f"  options: {', '.join(request['options'])}")
    for name, value in _form(request).items():
        print(f"  form:    {name}, here {value!r}")
    print()
    print(f"  page:    {link}\n           log in as {user}, password {stack.passwords[user]}")
    print("  command:")
    body = json.dumps({"chosen_options": [APPROVE], "params_input": _form(request)})
    token = stack.client(user).headers["Authorization"].split()[1]
    print(f"    export HANDOFF_URL={stack.url} HANDOFF_TOKEN={token}")
    print(f"    .venv/bin/handoff approve {run_id} {DEMO.question}")
    print("  or with curl:")
    headers = "-H \"Authorization: Bearer $HANDOFF_TOKEN\" -H 'Content-Type: application/json'"
    print(f"    curl -X PATCH {headers} -d '{body}' \"$HANDOFF_URL{path}\"\n", flush=True)


def decide(stack: Stack, run_id: str, parked: float, clock: Clock) -> str | None:
    """Return what to answer, or ``None`` where somebody has answered on the page or by command.

    On a terminal the person at it is asked; without one the answer is Approve.
    """
    chosen = None if sys.stdin.isatty() else APPROVE
    if chosen is None:
        print(f"  {APPROVE}? [y/n] ", end="", flush=True)
    else:
        clock.say(f"no terminal: answering {APPROVE} once the request has settled")
    while chosen is None or time.monotonic() - parked < SETTLE:
        stack.check()
        if stack.hitl(DEMO.dag_id, run_id)[0]["response_received"]:
            clock.say("answered elsewhere")
            return None
        if chosen is None:
            chosen = _typed()
        else:
            time.sleep(0.5)
    return chosen


def _typed() -> str | None:
    """Return the answer that was typed within half a second, if any."""
    if not select.select([sys.stdin], [], [], 0.5)[0]:
        return None
    line = sys.stdin.readline()
    if not line:  # the terminal was closed
        raise KeyboardInterrupt
    word = line.strip().lower()
    if word in ("y", "yes"):
        return APPROVE
    if word in ("n", "no"):
        return REJECT
    print("  y or n? ", end="", flush=True)
    return None


def report(stack: Stack, run_id: str, clock: Clock) -> bool:
    """Print the table of tasks and the outcome, and tell whether it is the expected one."""
    instances = stack.task_instances(DEMO.dag_id, run_id)
    answered = stack.hitl(DEMO.dag_id, run_id)[0]
    chosen = (answered.get("chosen_options") or ["nothing"])[0]
    expected = DEMO.outcomes.get(chosen, Outcome("answered", {}))
    state = stack.run(DEMO.dag_id, run_id)["state"]
    width = max(len(i["task_id"]) for i in instances)
    print(f"\n  {'task':<{width}}  {'state':<10}  seconds")
    good = state == expected.run
    for instance in sorted(instances, key=lambda i: i["start_date"] or i["end_date"] or ""):
        name = instance["task_id"]
        want = expected.tasks.get(name, expected.tasks.get("*"))
        as_expected = instance["state"] == want
        good = good and as_expected
        note = "" if as_expected else f"  expected {want}"
        print(f"  {name:<{width}}  {instance['state'] or '-':<10}  {instance['duration'] or 0:7.1f}{note}")
    by = (answered.get("responded_by_user") or {}).get("name", "nobody")
    print(f"\n  {by} chose {chosen}; the run ended: {state}")
    if not good:
        print(f"\nNOT as expected:\n{stack.describe(DEMO.dag_id, run_id)}", file=sys.stderr)
    return good


def keep(stack: Stack) -> None:
    """Leave Airflow up until Ctrl-C."""
    print(f"\nAirflow stays up: {stack.url}")
    for name, role in stack.users.items():
        print(f"  {name:<10} {role:<8} password {stack.passwords[name]}")
    print("Ctrl-C ends it.", flush=True)
    while True:
        stack.check()
        time.sleep(1)


def main() -> int:
    """Run the demo and return the exit code."""
    global DEMO
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave Airflow up until Ctrl-C")
    parser.add_argument("--version", default="3.3", choices=("3.1", "3.2", "3.3"), help="the Airflow version")
    options = parser.parse_args()
    # SIGINT too: a shell that starts us in the background has it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if options.version != "3.3":
        DEMO = PLAIN_DEMO
    elif not NODE.exists():
        print("the demo failed: its Node is not installed; run `make venv`", file=sys.stderr)
        return 1
    clock = Clock()
    folder = Path(tempfile.mkdtemp(prefix="handoff-demo-"))
    try:
        for name in DEMO.files:
            shutil.copy(ROOT / name, folder)
        begun = time.monotonic()
        users = {"admin": "admin", "manager": "user", "accounting": "user"}
        with Stack(options.version, folder, users=users, env=DEMO.env, verbose=clock.say) as stack:
            clock.phases.append(("start Airflow", time.monotonic() - begun))
            clock.say(f"Airflow {options.version} is up at {stack.url}: {', '.join(stack.component_names)}")
            good = play(stack, clock)
            if options.keep:
                keep(stack)
    except KeyboardInterrupt:
        print("\nstopped; no process is left", flush=True)
        return 130
    except StackError as error:
        print(f"\nthe demo failed: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("  " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in clock.phases))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
