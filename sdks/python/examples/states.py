"""One task for each state a task can end in, and for what it can do on the way."""

from __future__ import annotations

import logging
import platform
from datetime import datetime, timedelta, timezone

from airflow_handoff_sdk import Fail, Retry, Skip, ask_human, defer, reschedule, task

DAG = "sdks_python"
log = logging.getLogger(__name__)


@task(DAG)
def succeed(ctx):
    """Use a variable, the task's own state and a log with a field."""
    log.info("running in Python %s", platform.python_version(), extra={"attempt": ctx.try_number})
    ctx.variables.set(f"{DAG}_note", "written by the task")
    ctx.state.set("cursor", {"page": 3})
    return [ctx.variables.get(f"{DAG}_note"), ctx.state.get("cursor"), ctx.xcom.pull("numbers")]


@task(DAG)
def fail():
    """Fail although a retry is left."""
    raise Fail("the file is corrupt")


@task(DAG)
def skip():
    """Skip."""
    raise Skip("no new files")


@task(DAG)
def retry(ctx):
    """Fail once; the second try must not see the first one's XCom."""
    if ctx.try_number == 1:
        ctx.xcom.push("draft", "of the first try")
        raise RuntimeError("the first try never works")
    return [ctx.try_number, ctx.xcom.pull(key="draft")]


@task(DAG, "reschedule")
def reschedule_once(ctx):
    """Come back ten seconds later, as the same try."""
    if ctx.reschedule_count == 0:
        reschedule(10)
    return [ctx.try_number, ctx.reschedule_count]


@task(DAG, "defer")
def defer_once():
    """Wait for a trigger without a process."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=10)
    trigger = "airflow.providers.standard.triggers.temporal.DateTimeTrigger"
    defer(trigger, {"moment": moment}, resume="woken", kwargs={"kept": [1, 2]})


@defer_once.resume("woken")
def woken(event, kept):
    """Go on when the trigger has fired."""
    return [kept, event is not None]


@task(DAG)
def ask():
    """Ask a person."""
    answer = ask_human("Publish?", ["yes", "no"], body="The **report** is ready.", params={"reason": "none"})
    log.info("chosen: %s", answer.choice)
    return [answer.choice, answer.params_input, answer.responded_by["name"]]


@task(DAG)
def listed():
    """Return a list that a mapped task expands over."""
    return [1, 2, 3]


@task(DAG)
def emit(ctx):
    """Make an asset event."""
    ctx.assets.emit(name=f"{DAG}_report", extra={"rows": 3})


def policy(error, ctx):
    """Give a server that is away three seconds, whatever the Dag says."""
    return Retry("the policy says so", after=3) if isinstance(error, ConnectionError) else None


@task(DAG, retry_policy=policy)
def everything(ctx):
    """Retry twice before its time, then read and write what Airflow keeps."""
    if ctx.try_number == 1:
        raise Retry("too early", after=3)
    if ctx.try_number == 2:
        raise ConnectionError("the server is away")
    logging.getLogger("noisy.part").warning("below its threshold")
    logging.getLogger("quiet").debug("above its threshold")
    db = ctx.connection("sdks_db")
    log.info("the password is %s", db.password)
    ctx.variables.set(f"{DAG}_old", "soon gone")
    ctx.variables.delete(f"{DAG}_old")
    marks = ctx.asset_state(name=f"{DAG}_report")
    marks.set("seen", {"rows": 3})
    events = ctx.assets.events(name=f"{DAG}_report")
    return [
        ctx.try_number,
        [db.host, db.extra_json()],
        ctx.variables.get(f"{DAG}_old", "gone"),
        marks.get("seen"),
        [event["extra"]["rows"] for event in events][-1:],
    ]
