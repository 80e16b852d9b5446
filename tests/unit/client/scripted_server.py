"""A scripted api-server: the few routes a client calls, over an in-memory list of requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx


def detail(
    task_id: str = "review",
    *,
    dag_id: str = "expenses",
    run_id: str = "run-1",
    map_index: int = -1,
    state: str = "awaiting_input",
    created_at: str = "2026-01-01T00:00:00Z",
    assigned: tuple[str, ...] = (),
    received: bool = False,
    options: tuple[str, ...] = ("Approve", "Reject"),
) -> dict[str, Any]:
    """Return one entry as Airflow lists it."""
    return {
        "task_instance": {
            "id": f"{task_id}-{map_index}",
            "dag_id": dag_id,
            "dag_run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "state": state,
            "try_number": 1,
        },
        "options": list(options),
        "subject": "Pay the invoice?",
        "body": None,
        "defaults": None,
        "multiple": False,
        "params": {"amount": {"value": 5, "description": "in euros", "schema": {"type": "integer"}}},
        "assigned_users": [{"id": user, "name": user.title()} for user in assigned],
        "created_at": created_at,
        "response_received": received,
        "chosen_options": ["Approve"] if received else None,
        "params_input": {},
        "responded_at": "2026-01-01T01:00:00Z" if received else None,
        "responded_by_user": {"id": "ada", "name": "Ada"} if received else None,
    }


class ScriptedServer:
    """Answers a client's calls from lists; every call is kept in ``calls``."""

    def __init__(self, *details: dict[str, Any]) -> None:
        self.details = list(details)
        self.calls: list[httpx.Request] = []
        self.scripted: dict[tuple[str, str], list[httpx.Response]] = {}
        self.after_page: Callable[[], None] = lambda: None

    def script(self, method: str, path: str, *responses: httpx.Response) -> None:
        """Let the next calls of a path get these responses, the last one for ever."""
        self.scripted[method, path] = list(responses)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Serve one request."""
        self.calls.append(request)
        key = (request.method, request.url.path)
        if waiting := self.scripted.get(key):
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if request.method == "GET" and request.url.path.endswith("/dagRuns/~/hitlDetails"):
            return self._page(request)
        return httpx.Response(404, json={"detail": f"nothing at {request.url.path}"})

    def _page(self, request: httpx.Request) -> httpx.Response:
        wanted = request.url.params.get("response_received") == "true"
        listed = [entry for entry in self.details if entry["response_received"] == wanted]
        offset, limit = int(request.url.params["offset"]), int(request.url.params["limit"])
        page = httpx.Response(
            200, json={"hitl_details": listed[offset : offset + limit], "total_entries": len(listed)}
        )
        self.after_page()
        return page

    @property
    def bodies(self) -> list[Any]:
        """Decoded bodies of the calls that had one."""
        return [json.loads(call.content) for call in self.calls if call.content]
