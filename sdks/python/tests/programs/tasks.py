"""One task for each thing that a task can do."""

import functools
import logging
import os
import sys
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import List, Optional

from airflow_handoff_sdk import (
    Fail,
    HumanTimeout,
    NotFound,
    Retry,
    Skip,
    SupervisorError,
    ask_human,
    current_context,
    defer,
    reschedule,
    task,
)

log = logging.getLogger("programs.tasks")
log.info("loading")


@task("dag")
def nothing():
    """Return nothing."""


@task("dag")
def numbers(ctx):
    log.info("numbers", extra={"rows": 3, "msg_id": "x"})
    return [1, 2, 3]


@task("dag")
def skips():
    raise Skip("no new files")


@task("dag")
def fails():
    raise Fail("the file is corrupt")


@task("dag")
def retries():
    raise Retry("busy", after=timedelta(seconds=90))


@task("dag")
def breaks():
    try:
        {}["key"]
    except KeyError as error:
        raise ValueError("broken ünd \udc80") from error


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@task("dag")
def raises_unspeakable():
    raise Unspeakable


@task("dag")
def retries_with_an_error():
    raise Retry(ValueError("busy"), after=5)


@task("dag")
def retries_never():
    raise Retry("busy", after=float("inf"))


@task("dag", retry_policy=lambda error, ctx: sys.exit(7))
def with_policy_that_exits():
    raise RuntimeError("broken")


@task("dag")
def defers_what_cannot_be_sent():
    defer("some.Trigger", resume="woken", kwargs={"path": "\udc80"})


@task("dag")
def defers_what_is_too_deep():
    deep = []
    for _ in range(300):
        deep = [deep]
    defer("some.Trigger", resume="woken", kwargs={"deep": deep})


@task("dag")
def closes_its_output():
    sys.stdout.close()
    reschedule(30)


@task("dag")
def exits():
    sys.exit(3)


def policy(error, ctx):
    if "later" in str(error):
        return Retry("policy says later", after=5)
    if "never" in str(error):
        return Fail("policy says never")
    if "odd" in str(error):
        return "odd"
    return None


@task("dag", "with_policy", retry_policy=policy)
def with_policy(word: str):
    raise RuntimeError(word)


@task("dag")
def defers():
    try:
        defer("some.Trigger", {"moment": 1}, resume="woken", kwargs={"a": 1}, timeout=2.5)
    except Exception:
        log.exception("a bare except must not see this")


@defers.resume("woken")
def woken(event, a, ctx):
    return [event, a, ctx.next_method]


@defers.resume("asks")
def woken_asks(event, a):
    first = ask_human("Go on?", ["yes", "no"])
    return [event, a, first.choice, ask_human("Really?", ["yes", "no"]).choice]


@task("dag")
def defers_bare():
    defer("some.Trigger", resume="missing")


@task("dag")
def reschedules():
    threading.Thread(target=threading.Event().wait).start()
    reschedule(30)


@task("dag")
def asks():
    first = ask_human("Publish?", ["yes", "no"], body="**now**", params={"why": "because"}, timeout=60)
    second = ask_human("Sure?", ["yes", "no"], defaults=["no"], assigned_users=[{"id": "1", "name": "Ada"}])
    return [first.choice, first.params_input, first.responded_at.isoformat(), second.choice, second.timedout]


@task("dag")
def asks_in_vain():
    try:
        ask_human("Anybody?", ["yes"])
    except HumanTimeout as error:
        return str(error)


@task("dag")
def asks_to_the_end():
    ask_human("Anybody?", ["yes"])


def ask_again(error, ctx):
    return Retry("ask again") if isinstance(error, HumanTimeout) else None


@task("dag", retry_policy=ask_again)
def asks_until_somebody_answers():
    ask_human("Anybody?", ["yes"])


@task("dag")
def asks_badly():
    said = []
    for options, defaults in (([], []), (["a", "a"], []), (["a"], ["b"]), (["a", "b"], ["a", "b"])):
        try:
            ask_human("Which?", options, defaults=defaults)
        except ValueError as error:
            said.append(str(error))
    return said


@task("dag")
def forks():
    child = os.fork()
    if not child:
        log.info("of the child")
        logging.shutdown()
        os._exit(0)
    os.waitpid(child, 0)
    log.info("of the parent")


@task("dag")
def emits_through_an_alias(ctx):
    ctx.assets.emit(name="a", alias="every", extra={"rows": 3})
    ctx.assets.emit(uri="s3://bucket/a", alias="every", partition_key="2026-11")


@dataclass
class Limits:
    low: int
    high: Optional[int] = None


@task("dag")
def typed(fromDate: datetime, limits: Limits, names: List[str], ratio: float = 0.5, *, ctx):
    return [type(fromDate).__name__, limits.low, names, ratio, ctx.task_id]


def logged(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        log.info("called")
        return function(*args, **kwargs)

    return call


@task("dag")
@logged
def wrapped(count: int, ctx: "Context", word: "str" = "x"):  # noqa: F821  -- as under TYPE_CHECKING
    return [count, ctx.task_id, word]


class Service:
    def method(self, count: int, ctx):
        return [count, ctx.task_id]


task("dag", "method")(Service().method)


@task("dag")
def everything(context):
    found = {
        "conf": context.conf,
        "xcom": context.xcom.pull("up", map_index=2),
        "all": context.xcom.pull_all("mapped"),
        "variable": context.variables.get("v"),
        "json": context.variables.get("j", deserialize_json=True),
        "default": context.variables.get("gone", "fallback"),
        "keys": context.variables.keys(),
        "host": context.connection("db").host,
        "extra": context.connection("db").extra_json(),
        "state": context.state.get("cursor"),
        "asset_state": context.asset_state(name="a").get("mark"),
        "events": context.assets.events(name="a", limit=1),
    }
    context.variables.set("v", {"n": 1}, serialize_json=True)
    context.variables.delete("old")
    context.state.set("cursor", 5, expires=60)
    context.state.delete("cursor")
    context.state.clear()
    context.asset_state(uri="s3://a").set("mark", 1)
    context.assets.emit(name="a", extra={"rows": 3})
    context.mask_secret("hunter2")
    context.set_map_index_label("label")
    context.skip_downstream(["down", ("mapped", 1)])
    context.xcom.push("more", {"x": 1})
    return found


@task("dag")
def raises_in_the_task():
    ctx = current_context()
    said = []
    try:
        ctx.variables.get("gone")
    except NotFound as error:
        said.append(error.error)
    try:
        ctx.request({"type": "TriggerDagRun", "dag_id": "x", "run_id": "y"})
    except SupervisorError as error:
        said.append(error.detail["status_code"])
    return said


@task("dag")
def not_json():
    return {"when": [datetime(2026, 1, 1)]}


@task("dag")
def many_threads(ctx):
    got = {}

    def ask(number):
        got[number] = ctx.variables.get(f"v{number}")

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return all(got[n] == f"value of v{n}" for n in range(8))


@task("dag")
def interrupted(ctx):
    import signal

    class TooLate(Exception):
        pass

    def stop(number, frame):
        raise TooLate

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        said = ctx.variables.get("slow")
    except TooLate:
        said = "interrupted"
    return [said, ctx.variables.get("next")]


@task("dag")
def logs():
    logging.getLogger("noisy.part").info("dropped")
    logging.getLogger("noisy.part").error("kept")
    logging.getLogger("quiet").debug("shown")
    log.debug("below")
    log.log(25, "between")
    log.critical("worst", extra={"target": "t", "self": 1, "odd": object, "nan": float("nan")})
    print("printed")
    import atexit

    atexit.register(log.warning, "late")


@task("dag")
def prints_without_end():
    sys.stdout.write("no newline")
