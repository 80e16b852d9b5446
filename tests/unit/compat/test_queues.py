"""A stub on a queue that leads nowhere says so in its own log."""

from __future__ import annotations

import logging
from types import SimpleNamespace

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
