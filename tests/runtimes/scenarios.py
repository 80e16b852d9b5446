"""The runtime of the system tests' Dags: what it does follows from the task's name."""

import datetime
import os
import subprocess
import sys
import time

from kit import ask, comm, context, get_xcom, say, set_xcom, succeed, ti


def at(seconds):
    """Return a time from now as RFC 3339."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(seconds=seconds)).isoformat()


def double():
    """Double the numbers of a Python task."""
    numbers = get_xcom("numbers")
    say("doubling", numbers=numbers)
    set_xcom([2 * n for n in numbers])
    sys.stdout.write("printed by the runtime\n")
    succeed()


def end(state):
    """Report a final state."""
    ask("TaskState", state=state, end_date=at(0))


def retry():
    """Ask for a retry once."""
    if ti["try_number"] == 1:
        ask("RetryTask", end_date=at(0), state="up_for_retry", retry_reason="the first try never works")
    else:
        set_xcom(ti["try_number"])
        succeed()


def reschedule():
    """Come back once."""
    if context["task_reschedule_count"] == 0:
        ask("RescheduleTask", reschedule_date=at(2), end_date=at(0), state="up_for_reschedule")
    else:
        set_xcom(context["task_reschedule_count"])
        succeed()


def defer():
    """Wait for a trigger and come back in another process."""
    if context["next_method"] is None:
        moment = datetime.datetime.now(datetime.timezone.utc).timestamp() + 2
        ask(
            "DeferTask",
            state="deferred",
            classpath="airflow.providers.standard.triggers.temporal.DateTimeTrigger",
            trigger_kwargs={"moment": {"__type": "datetime", "__var": moment}},
            next_method="after_the_wait",
            next_kwargs={"kept": [1, 2]},
        )
    else:
        set_xcom([context["next_method"], context["next_kwargs"]["kept"], "event" in context["next_kwargs"]])
        succeed()


def question():
    """Ask a person and come back with the answer."""
    if context["next_method"] is None:
        _, error = ask("CreateHITLDetailPayload", ti_id=ti["id"], subject="Ship it?", options=["yes", "no"])
        assert error is None, error
        ask("AwaitInputTask", state="awaiting_input", next_method="answered", next_kwargs={"kept": 3})
    else:
        set_xcom([context["next_kwargs"]["kept"], context["next_kwargs"]["event"]["chosen_options"]])
        succeed()


def linger():
    """Leave children of every kind about and stay."""
    children = [
        subprocess.Popen(["sleep", "600"]).pid,
        subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL).pid,
        os.getpid(),
    ]
    say(f"children: {' '.join(map(str, children))}.")
    time.sleep(600)


SCENES = {
    "double": double,
    "succeed": succeed,
    "fail": lambda: end("failed"),
    "skip": lambda: end("skipped"),
    "remove": lambda: end("removed"),
    "retry": retry,
    "reschedule": reschedule,
    "defer": defer,
    "question": question,
    "silent": lambda: None,
    "broken": lambda: comm.sendall(b"\0\0\0\0") or time.sleep(600),
}
SCENES.get(ti["task_id"], linger)()
