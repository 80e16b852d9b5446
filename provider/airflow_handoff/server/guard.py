"""The middleware around Airflow's api-server: sends answers to our tasks through the door, all else on.

It is imported wherever Airflow loads plugins, so what is heavy is imported with the first request that needs
it, in the api-server.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_UPSERT = "/execution/hitlDetails/"
_OURS = "/handoff/"


class Guard:
    """Root middleware: hands on every request unchanged but three kinds.

    * ``PATCH /api/v2/.../hitlDetails`` of one of our tasks goes through the door.
    * ``POST /execution/hitlDetails/{ti_id}``: the question of this park is written to the row.
    * Requests to our own routes are shown the way into Airflow's.

    :param app: the next application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._on: bool | None = None
        self._doors: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        method: str = scope["method"]
        if method == "PATCH" and path.endswith("/hitlDetails"):
            await self._answer(scope, receive, send)
        elif method == "POST" and _UPSERT in path:
            await self._upsert(scope, receive, send)
        elif _OURS in path and _inner_path(scope).startswith(_OURS):
            await self.app(self._with_way_in(scope), receive, send)
        else:
            await self.app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        from airflow_handoff.server import inner

        place = None if scope.get(inner.JUDGED) or not self._is_on() else _place(_inner_path(scope))
        if place is None:
            await self.app(scope, receive, send)
            return
        try:
            ours = await _is_ours(place)
        except Exception as error:
            # Whose task it is cannot be told: an answer that was let through unjudged could kill it.
            log.exception("The guard could not read the request of %s", place)
            await _respond(send, 503, _unreadable(error))
            return
        if not ours:
            await self.app(scope, receive, send)
            return
        if self._doors is None:
            from airflow_handoff.server.api import airflow_doors

            self._doors = airflow_doors()
        await self._doors(self._with_way_in(scope), receive, send)

    async def _upsert(self, scope: Scope, receive: Receive, send: Send) -> None:
        from airflow_handoff.server.refresh import upsert

        ti_id = _inner_path(scope).removeprefix(_UPSERT)
        if "/" in ti_id or not _inner_path(scope).startswith(_UPSERT):
            await self.app(scope, receive, send)
            return
        await upsert(self.app, ti_id, scope, receive, send)

    def _with_way_in(self, scope: Scope) -> Scope:
        from airflow_handoff.server import inner

        way = inner.Airflow(self.app, scope.get("root_path", ""), scope)
        return {**scope, inner.AIRFLOW: way}

    def _is_on(self) -> bool:
        if self._on is None:
            from airflow_handoff.compat.apiserver import switch

            self._on = switch("guard_airflow_api", True)
        return self._on


def _inner_path(scope: Scope) -> str:
    """Return the path behind the path of ``[api] base_url``, as Starlette's router sees it."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :]
    return path


def _place(path: str) -> tuple[str, str, str, int] | None:
    """Read Dag, run, task and map index out of the path of Airflow's answer route."""
    parts = path.split("/")
    names = parts[1:4] + parts[5:6] + parts[7:8] + parts[10:]
    if len(parts) != 11 or names != ["api", "v2", "dags", "dagRuns", "taskInstances", "hitlDetails"]:
        return None
    try:
        # As lenient as Airflow's own route: "0.0" and "+0" are 0 there too.
        map_index = float(parts[9].replace("_", ""))
    except ValueError:
        return None
    if not abs(map_index) < 2**31:  # nor is there such a task instance
        return None
    return parts[4], parts[6], parts[8], int(map_index) if map_index == map_index // 1 else -1


async def _is_ours(place: tuple[str, str, str, int]) -> bool:
    from starlette.concurrency import run_in_threadpool

    from airflow_handoff.compat import records
    from airflow_handoff.server.answer import is_ours

    def look() -> bool:
        record = records.read_request(*place)
        return record is not None and is_ours(record)

    return await run_in_threadpool(look)


def _unreadable(error: Exception) -> str:
    from airflow_handoff.exceptions import HandoffError

    return str(error) if isinstance(error, HandoffError) else "The request cannot be read now: try again."


async def _respond(send: Send, status: int, detail: str) -> None:
    import json

    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
