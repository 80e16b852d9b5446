"""The middleware that makes Airflow's page fill in what a link asks for.

Airflow 3.3's page reads the options out of a link and ignores the fields; 3.1's and 3.2's fill in only fields
that have no default. The browser names the page's address, query included, in the ``Referer`` of the page's
own request for the question: the values are put into that response, of our tasks only.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote, urlsplit

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Place = tuple[str, str, str, int]


class Prefill:
    """Root middleware: fills the fields that a link names into the page's copy of one of our questions.

    :param app: the next application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection; all but the page's request for a question passes unchanged."""
        query = ""
        if scope["type"] == "http" and scope["method"] == "GET" and "/hitlDetails" in scope["path"]:
            with contextlib.suppress(ValueError):  # no address that could be read
                query = _asked_for(scope)
        if not query or not await _is_ours(scope):
            await self.app(scope, receive, send)
            return
        # The response has to be readable here.
        headers = [pair for pair in scope["headers"] if pair[0].lower() != b"accept-encoding"]
        await self.app({**scope, "headers": headers}, receive, _Filling(send, query))


class _Filling:
    """Holds a successful JSON response, fills in the values, and sends it on."""

    def __init__(self, send: Send, query: str) -> None:
        self._send = send
        self._query = query
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            self._start = message
        elif self._start is not None and message["type"] == "http.response.body":
            self._body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await self._release(self._start)
        else:
            await self._send(message)

    async def _release(self, start: Message) -> None:
        body = bytes(self._body)
        try:
            body = filled(body, self._query)
        except Exception:
            log.exception("The fields that a link names could not be filled in; the page shows the defaults")
        kept = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        start["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def filled(body: bytes, query: str) -> bytes:
    """Return Airflow's description of a question with the values of a link's query.

    A question that is already answered stays as it is.
    """
    import json

    from airflow_handoff.hitl.links import prefilled

    detail = json.loads(body)
    if detail.get("response_received") or not isinstance(detail.get("params"), dict):
        return body
    detail["params"] = prefilled(detail["params"], query)
    return json.dumps(detail).encode()


def _asked_for(scope: Scope) -> str:
    """Return the query of the page that asks, if it is the page of the task that it asks for."""
    referer = next((value for name, value in scope["headers"] if name.lower() == b"referer"), b"")
    address = urlsplit(referer.decode("latin-1"))
    return address.query if address.query and _page(address.path) == _place(scope["path"]) else ""


def _page(path: str) -> Place | None:
    parts = path.split("/")
    if "dags" not in parts:
        return None
    parts = [unquote(part) for part in parts[len(parts) - 1 - parts[::-1].index("dags") :]]
    match parts:
        case ["dags", dag_id, "runs", run_id, "tasks", task_id, "required_actions"]:
            return dag_id, run_id, task_id, -1
        case ["dags", dag_id, "runs", run_id, "tasks", task_id, "mapped", index, "required_actions"]:
            return dag_id, run_id, task_id, int(index) if index.isdecimal() else -1
    return None


def _place(path: str) -> Place | None:
    parts = path.split("/api/v2/", 1)[-1].split("/")
    match parts:
        case ["dags", dag_id, "dagRuns", run_id, "taskInstances", task_id, index, "hitlDetails", *_]:
            return dag_id, run_id, task_id, int(index) if index.lstrip("-").isdecimal() else -1
    return None


async def _is_ours(scope: Scope) -> bool:
    from starlette.concurrency import run_in_threadpool

    from airflow_handoff.compat import records
    from airflow_handoff.server.answer import is_ours

    place = _place(scope["path"])

    def look() -> bool:
        record = None if place is None else records.read_request(*place)
        return record is not None and is_ours(record)

    try:
        return await run_in_threadpool(look)
    except Exception:
        log.exception("Whose question %s is could not be read; the page shows the defaults", place)
        return False
