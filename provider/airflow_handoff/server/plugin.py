"""What Airflow loads through the ``airflow.plugins`` entry point, in every process: nothing heavy."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_handoff.server.guard import ASGIApp, Guard, Receive, Scope, Send
from airflow_handoff.server.prefill import Prefill


class LazyApp:
    """The routes below ``/handoff``, built with the first request."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection."""
        if self._app is None:
            from airflow_handoff.server.api import build

            self._app = build()
        await self._app(scope, receive, send)


class QueueListener:
    """Airflow's listener of tasks that run as Python or never start; it loads what it does when called."""

    def on_task_instance_running(self, task_instance: Any) -> None:
        """Let a foreign task that runs as Python say so."""
        from airflow_handoff.compat.queues import speak_up

        speak_up(task_instance)

    def on_task_instance_failed(self, task_instance: Any, error: Any) -> None:
        """Let a foreign task that no coordinator took say so, from the scheduler."""
        from airflow_handoff.compat.queues import speak_for

        speak_for(task_instance, error)

    # What Airflow's marker of listener methods leaves on a function; the marker itself would import pluggy.
    on_task_instance_running.airflow_impl = {}  # type: ignore[attr-defined]  # noqa: RUF012
    on_task_instance_failed.airflow_impl = {}  # type: ignore[attr-defined]  # noqa: RUF012


class HandoffPlugin(AirflowPlugin):
    """Adds the routes and the middleware to the api-server, and a listener to the workers."""

    name = "handoff"
    listeners: list[Any] = [QueueListener()]  # noqa: RUF012 - Airflow's way
    fastapi_apps: list[Any] = [{"name": "handoff", "url_prefix": "/handoff", "app": LazyApp()}]  # noqa: RUF012 - Airflow's way
    fastapi_root_middlewares: list[Any] = [  # noqa: RUF012 - Airflow's way
        {"name": "handoff", "middleware": Guard, "args": [], "kwargs": {}},
        {"name": "handoff-prefill", "middleware": Prefill, "args": [], "kwargs": {}},
    ]
