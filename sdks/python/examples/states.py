"""One task for each state a task can end in, and for what it can do on the way."""

from __future__ import annotations

import atexit
import logging
import platform
from datetime import datetime, timedelta, timezone

from airflow_handoff_sdk import Fail, HumanTimeout, Retry, Skip, ask_human, defer, reschedule, task

DAG = "sdks_python"
TRIGGER = "airflow.providers.standard.triggers.temporal.DateTimeTrigger"
log = logging.getLogger(__name__)
log.info("before the task is known")


@task(DAG)
def succeed(ctx):
    """Use a variable, the task's own state and a log with a field."""
    atexit.register(log.info, "after the task has ended")
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
        reschedule(datetime.now(timezone.utc) + timedelta(seconds=10))
    return [ctx.try_number, ctx.reschedule_count]


@task(DAG, "defer")
def defer_once():
    """Wait for a trigger without a process."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=10)
    defer(TRIGGER, {"moment": moment}, resume="woken", kwargs={"kept": [1, 2]})


@defer_once.resume("woken")
def woken(event, kept):
    """Go on when the trigger has fired; it says at which moment."""
    return [kept, isinstance(event, datetime)]


@task(DAG)
def ask():
    """Ask a person."""
    answer = ask_human("Publish?", ["yes", "no"], body="The **report** is ready.", params={"reason": "none"})
    log.info("chosen: %s", answer.choice)
    return [answer.choice, answer.params_input, answer.responded_by["name"]]


@task(DAG)
def interview():
    """Ask twice: the second question depends on the first answer."""
    first = ask_human("Which colour?", ["red", "blue"])
    second = ask_human(f"Really {first.choice}?", ["yes", "no"])
    return [first.choice, second.choice]


@task(DAG)
def defer_then_ask():
    """Wait for a moment before anybody is asked."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=10)
    defer(TRIGGER, {"moment": moment}, resume="ready", kwargs={"kept": [7]})


@defer_then_ask.resume("ready")
def ready(event, kept):
    """Ask in the function that resumed; the answer comes back to it."""
    answer = ask_human("Now?", ["yes", "no"])
    return [kept, isinstance(event, datetime), answer.choice]


@task(DAG)
def unanswered():
    """Ask, and go on without an answer."""
    try:
        return ask_human("Anybody?", timeout=12).choice
    except HumanTimeout:
        return "nobody answered"


@task(DAG)
def listed():
    """Return a list that a mapped task expands over."""
    return [1, 2, 3]


@task(DAG)
def emit(ctx):
    """Make an asset event."""
    ctx.assets.emit(name=f"{DAG}_report", extra={"rows": 3})


@task(DAG)
def emit_alias(ctx):
    """Make an asset event through an alias."""
    ctx.assets.emit(name=f"{DAG}_report", alias=f"{DAG}_alias", extra={"rows": 4})


@task(DAG)
def reach(ctx):
    """Use what has a type or a moment: JSON, expiry, the time and the alias of asset events."""
    limit = ctx.conf["limit"]
    ctx.variables.set(f"{DAG}_json", {"limit": limit + 1}, serialize_json=True)
    kept = ctx.variables.get(f"{DAG}_json", deserialize_json=True)
    extra = ctx.connection("sdks_db").extra_json()
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    long_ago = datetime(1970, 1, 1, tzinfo=timezone.utc)
    ctx.state.set("until", 5, expires=tomorrow)
    report, events = {"name": f"{DAG}_report"}, ctx.assets.events
    ctx.asset_state(**report).set("before", 1)
    ctx.asset_state(**report).clear()
    counts = [
        min(len(events(alias=f"{DAG}_alias")), 1),
        len(events(**report, after=long_ago, before=tomorrow, limit=1, ascending=False)),
        len(events(**report, after=tomorrow)),
        len(events(**report, before=long_ago)),
    ]
    limits = [limit, kept["limit"], extra["a"]]
    stored = [ctx.state.get("until"), ctx.asset_state(**report).get("before")]
    return [limits, stored, counts, ctx.variables.get(f"{DAG}_gone", None, deserialize_json=True)]


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
