"""A foreign task that no coordinator runs says so in its own log.

Airflow runs a task of an unknown queue as Python, where a stub fails without a word about queues. Of a
coordinator that it cannot make it tells the worker's log only, before the task has one: there the scheduler
writes the line, to the place where the task's log would be.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

log = logging.getLogger("airflow.task")


def speak_up(task_instance: Any) -> None:
    """Write one line where the task that is about to run in this process is a stub."""
    task = getattr(task_instance, "task", None)
    if type(task).__name__ in ("_StubOperator", "StubOperator"):
        log.error(explain(str(getattr(task, "queue", None) or "default"), _queues()))


def _queues() -> Mapping[str, Any]:
    return _setting("queue_to_coordinator")


def _setting(name: str) -> Mapping[str, Any]:
    from airflow.configuration import conf

    try:
        found = conf.getjson("sdk", name, fallback={})
    except Exception:
        return {}
    return found if isinstance(found, Mapping) else {}


def explain(queue: str, queues: Mapping[str, Any]) -> str:
    """Say why a stub runs as Python and what to do.

    :param queue: the task's.
    :param queues: what ``[sdk] queue_to_coordinator`` holds.
    """
    from airflow_handoff.compat.versions import HAS_COORDINATORS

    if not HAS_COORDINATORS:
        return "This stub runs as Python and will fail: tasks in other languages need Airflow 3.3 or later."
    near = difflib.get_close_matches(queue, list(queues), n=1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif queues:
        hint = f"it leads the queues {', '.join(sorted(queues))}"
    else:
        hint = "it is empty"
    return (
        f"This stub runs as Python and will fail: [sdk] queue_to_coordinator does not lead "
        f"its queue {queue!r} to a coordinator; {hint}"
    )


# -- a coordinator that cannot be made

#: What a misspelt classpath may have meant.
_KNOWN = tuple(
    f"{module}.{name}"
    for module, names in (
        (
            "airflow_handoff.coordinators",
            ("ExecutableCoordinator", "JavaCoordinator", "NodeCoordinator", "PythonCoordinator"),
        ),
        ("airflow.sdk.coordinators.executable", ("ExecutableCoordinator",)),
        ("airflow.sdk.coordinators.java", ("JavaCoordinator",)),
        ("airflow.sdk.coordinators.node", ("NodeCoordinator",)),
    )
    for name in names
)
_TOLD = "Extra info: "


def speak_for(task_instance: Any, error: Any) -> None:
    """Write the log of a task that the scheduler fails because no coordinator ever started it.

    :param error: what the scheduler says, with the worker's exception where the executor passes it on.
    """
    queue = str(getattr(task_instance, "queue", None) or "default")
    started = getattr(task_instance, "pid", None) is not None
    if started or not isinstance(error, str):  # an exception comes from the task's own process
        return
    key = _queues().get(queue)
    if key is None:
        return
    reason = trouble(str(key), _setting("coordinators")) or error.partition(_TOLD)[2]
    if not reason:  # killed while it was queued, say
        return
    _write(task_instance, f"No coordinator could take this task of the queue {queue!r}: {reason}")


def trouble(key: str, coordinators: Mapping[str, Any]) -> str | None:
    """Say why Airflow cannot make a coordinator, with the nearest valid name; None where nothing is seen.

    :param key: what ``[sdk] queue_to_coordinator`` leads to.
    :param coordinators: what ``[sdk] coordinators`` holds.
    """
    spec = coordinators.get(key)
    if not isinstance(spec, Mapping):
        return f"[sdk] coordinators has no {key!r}{_near(key, coordinators)}"
    classpath = str(spec.get("classpath", ""))
    where = f"[sdk] coordinators names {classpath!r} for {key!r}"
    module_name, _, name = classpath.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        return (
            f"{where}, which cannot be imported ({type(error).__name__}: {error}){_near(classpath, _KNOWN)}"
        )
    try:
        cls = getattr(module, name)
    except AttributeError:
        offered = [f"{module_name}.{other}" for other in dir(module) if other[0] != "_"]
        return f"{where}, and there is no {name!r}{_near(classpath, [*_KNOWN, *offered])}"
    if not hasattr(cls, "execute_task"):
        return f"{where}, which is no coordinator: it has no execute_task"
    kwargs = spec.get("kwargs") or {}
    takes = inspect.signature(cls).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        for given in kwargs:
            if given not in takes:
                return f"{where}, which does not take {given!r}{_near(given, takes)}"
    try:
        inspect.signature(cls).bind(**kwargs)
    except TypeError as error:
        return f"{where}, and its kwargs do not fit: {error}"
    return None


def _near(wrong: str, valid: Any) -> str:
    found = difflib.get_close_matches(wrong, [str(one) for one in valid], n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _write(task_instance: Any, text: str) -> None:
    """Add a line to a task's log file, where the log of a task that started would be."""
    from airflow.sdk.log import init_log_file
    from airflow.utils.log.file_task_handler import FileTaskHandler
    from sqlalchemy.orm import object_session

    handler = FileTaskHandler("")
    path = handler._render_filename(
        task_instance, task_instance.try_number, session=object_session(task_instance)
    )
    now = datetime.now(tz=timezone.utc).isoformat()
    line = {"timestamp": now, "level": "error", "event": text, "logger": log.name}
    with init_log_file(path).open("a") as file:
        file.write(json.dumps(line) + "\n")
