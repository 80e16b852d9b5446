"""A stub on a queue that leads nowhere says so in its own log."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

from airflow_handoff.compat import queues
from airflow_handoff.compat.versions import HAS_COORDINATORS
from airflow_handoff.server.plugin import HandoffPlugin, QueueListener


class Specs:
    """The hook as Airflow specifies it."""

    @pluggy.HookspecMarker("airflow")
    def on_task_instance_running(self, previous_state: object, task_instance: object) -> None:
        """A task starts."""


class _StubOperator:
    """Named as Airflow's."""

    queue = "jva"


@pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")
@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"java": "jdk", "node": "n"}, "its queue 'jva' to a coordinator; did you mean 'java'?"),
        ({"node": "n", "go": "g"}, "it leads the queues go, node"),
        ({}, "it is empty"),
    ],
)
def test_case_misspelt_queue(known: dict[str, str], words: str) -> None:
    """misspelt-queue: the key, the queue and the nearest valid name."""
    text = queues.explain("jva", known)
    assert "[sdk] queue_to_coordinator" in text
    assert words in text


@pytest.mark.skipif(HAS_COORDINATORS, reason="this Airflow has coordinators")
def test_an_older_airflow_is_named() -> None:
    """Before 3.3 no queue leads to a coordinator, and the line says what is needed."""
    assert "need Airflow 3.3" in queues.explain("java", {})


def test_only_stubs_are_spoken_of(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener writes one line for a stub and nothing for any other task."""
    monkeypatch.setattr(queues, "_queues", lambda: {"java": "jdk"})
    listener = QueueListener()
    with caplog.at_level(logging.INFO, logger="airflow.task"):
        queues.log.propagate, before = True, queues.log.propagate
        try:
            listener.on_task_instance_running(SimpleNamespace(task=SimpleNamespace(queue="jva")))
            assert caplog.records == []
            listener.on_task_instance_running(SimpleNamespace(task=_StubOperator()))
        finally:
            queues.log.propagate = before
    (record,) = caplog.records
    assert "runs as Python" in record.getMessage()


def test_the_plugin_brings_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's own listener manager calls the plugin's listener."""
    (listener,) = HandoffPlugin.listeners
    marked = pluggy.HookimplMarker("airflow")(lambda task_instance: None)
    assert type(listener.on_task_instance_running.airflow_impl) is type(marked.airflow_impl)
    manager = pluggy.PluginManager("airflow")
    manager.add_hookspecs(Specs())
    manager.register(listener)
    called = []
    monkeypatch.setattr(queues, "speak_up", called.append)
    manager.hook.on_task_instance_running(previous_state=None, task_instance="ti")
    assert called == ["ti"]


# -- a coordinator that cannot be made


class Strict:
    """A coordinator of somebody's own."""

    def __init__(self, *, jars_root: str) -> None:
        """Take one keyword."""

    def execute_task(self, **kwargs: object) -> None:
        """Run nothing."""


class NoCoordinator:
    """A class of another kind."""


@pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"classpath": "airflow_handoff.coordinators.JavaCordinator"},
            "there is no 'JavaCordinator'; did you mean 'airflow_handoff.coordinators.JavaCoordinator'?",
        ),
        (
            {"classpath": "airflow_handoff.coordinator.JavaCoordinator"},
            "No module named 'airflow_handoff.coordinator'); did you mean "
            "'airflow_handoff.coordinators.JavaCoordinator'?",
        ),
        ({"classpath": "JavaCoordinator"}, "which cannot be imported (ValueError: Empty module name)"),
        ({"classpath": f"{__name__}.NoCoordinator"}, "which is no coordinator: it has no execute_task"),
        (
            {"classpath": f"{__name__}.Strict", "kwargs": {"jar_root": "/jars"}},
            "which does not take 'jar_root'; did you mean 'jars_root'?",
        ),
        (
            {"classpath": f"{__name__}.Strict"},
            "its kwargs do not fit: missing a required argument: 'jars_root'",
        ),
    ],
)
def test_case_misspelt_queue_a_coordinator_that_cannot_be_made(spec: dict[str, Any], words: str) -> None:
    """misspelt-queue: the key, the classpath, the keyword, the nearest valid name."""
    text = queues.trouble("java", {"java": spec}) or ""
    assert text.startswith(f"[sdk] coordinators names {spec['classpath']!r} for 'java'")
    assert words in text


def test_a_key_that_names_no_coordinator() -> None:
    """The nearest of those that there are is named."""
    assert queues.trouble("jdk", {"jdk17": {}, "node": {}}) == (
        "[sdk] coordinators has no 'jdk'; did you mean 'jdk17'?"
    )


def test_nothing_is_said_of_a_coordinator_that_can_be_made() -> None:
    """What this cannot explain is left to Airflow's own words."""
    fine = {"classpath": f"{__name__}.Strict", "kwargs": {"jars_root": "/jars"}}
    assert queues.trouble("java", {"java": fine}) is None


FAILED = "Executor reported that the task instance finished."
TOLD = f"{FAILED} Extra info: a constructor raised"


@pytest.mark.parametrize(
    ("queue", "pid", "error", "written"),
    [
        ("java", None, FAILED, "of the queue 'java': [sdk] coordinators has no 'jdk'"),
        ("fine", None, TOLD, "of the queue 'fine': a constructor raised"),
        ("fine", None, FAILED, None),
        ("default", None, FAILED, None),
        ("java", 17, FAILED, None),
        ("java", None, ValueError("raised by the task"), None),
    ],
    ids=["seen", "told", "killed while it was queued", "another queue", "it ran", "in the task itself"],
)
def test_only_tasks_that_no_coordinator_took_are_spoken_for(
    queue: str, pid: int | None, error: Any, written: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler writes a log for a task that never started, and leaves every other log alone."""
    lines: list[str] = []
    fine = {"classpath": f"{__name__}.Strict", "kwargs": {"jars_root": "/jars"}}
    settings = {"queue_to_coordinator": {"java": "jdk", "fine": "ours"}, "coordinators": {"ours": fine}}
    monkeypatch.setattr(queues, "_setting", settings.__getitem__)
    monkeypatch.setattr(queues, "_write", lambda ti, text: lines.append(text))
    QueueListener().on_task_instance_failed(SimpleNamespace(queue=queue, pid=pid), error)
    assert len(lines) == (written is not None)
    assert written is None or written in lines[0]
