"""The middleware that makes Airflow's page fill in what a link asks for, and say what it has shown.

Airflow 3.3's page reads the options out of a link and ignores the fields; 3.1's and 3.2's fill in only fields
that have no default. The browser names the page's address, query included, in the ``Referer`` of the page's
own request for the question: the values are put into that response, of our tasks only.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from airflow_handoff.server.standing import OpenRequest

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Place = tuple[str, str, str, int]


class Prefill:
    """Root middleware: works on the page's copy of our open questions, on nothing else.

    * A field that a link names is filled in.
    * A hidden field says which question is shown; see :mod:`airflow_handoff.server.seen`.

    :param app: the next application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection; all but a page's request for questions passes unchanged."""
        asks = scope["type"] == "http" and scope["method"] == "GET" and "/hitlDetails" in scope["path"]
        if not asks or not _from_a_page(scope):
            await self.app(scope, receive, send)
            return
        query = ""
        with contextlib.suppress(ValueError):  # no address that could be read
            query = _asked_for(scope)
        await self.app(scope, receive, _Filling(send, query))


class _Filling:
    """Holds a successful JSON response, works on our questions in it, and sends it on."""

    def __init__(self, send: Send, query: str) -> None:
        self._send = send
        self._query = query
        self._held: list[Message] = []

    async def __call__(self, message: Message) -> None:
        starts = message["type"] == "http.response.start" and message["status"] == 200
        if not starts and not self._held:
            await self._send(message)
            return
        self._held.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            await self._release()

    async def _release(self) -> None:
        start, *parts = self._held
        try:
            raw = b"".join(part.get("body", b"") for part in parts)
            body = await _worked_on(_readable(raw, start["headers"]), self._query)
        except Exception:
            log.exception("The page's copy of a question stays as Airflow made it")
            body = None
        if body is not None:
            kept = [pair for pair in start["headers"] if pair[0].lower() not in _OF_THE_BODY]
            start["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
            parts = [{"type": "http.response.body", "body": body}]
        for message in (start, *parts):
            await self._send(message)


_OF_THE_BODY = (b"content-length", b"content-encoding")


def _readable(body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the body as Airflow wrote it before it was compressed."""
    import gzip

    encoding = next((value for name, value in headers if name.lower() == b"content-encoding"), b"")
    return gzip.decompress(body) if encoding == b"gzip" else body


async def _worked_on(body: bytes, query: str) -> bytes | None:
    """Return Airflow's description of one question or a list of them, the fields of ours filled in.

    :returns: ``None`` where there is nothing to change.
    """
    import json

    from airflow_handoff.server import seen

    content = json.loads(body)
    details = content.get("hitl_details", [content]) if isinstance(content, dict) else []
    ours = await _ours([detail for detail in details if not detail.get("response_received")])
    if not ours:
        return None
    # A list knows no link.
    if query and details == [content] and seen.place_of(content) in ours:
        content = filled(content, query)
        details = [content]
    if _guarded():
        seen.add(details, ours)
    return json.dumps(content).encode()


def filled(detail: dict[str, Any], query: str) -> dict[str, Any]:
    """Return Airflow's description of a question with the values of a link's query.

    A question that is already answered stays as it is.
    """
    from airflow_handoff.hitl.links import prefilled

    if detail.get("response_received") or not isinstance(detail.get("params"), dict):
        return detail
    return {**detail, "params": prefilled(detail["params"], query)}


def _from_a_page(scope: Scope) -> bool:
    from airflow_handoff.server import seen

    return seen.from_a_page(scope["headers"])


def _guarded() -> bool:
    """Say whether the door takes the hidden field out again."""
    from airflow_handoff.compat.apiserver import switch

    return switch("guard_airflow_api", True)


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


async def _ours(details: list[Any]) -> dict[Any, OpenRequest]:
    """Return our requests among Airflow's descriptions, by place; read after Airflow read them."""
    from starlette.concurrency import run_in_threadpool

    from airflow_handoff.compat import records
    from airflow_handoff.exceptions import HandoffError
    from airflow_handoff.server import seen
    from airflow_handoff.server.answer import is_ours
    from airflow_handoff.server.standing import OpenRequest

    places = [place for place in map(seen.place_of, details) if place is not None]

    def look() -> dict[Any, OpenRequest]:
        found = {}
        for record in records.read_requests(places):
            with contextlib.suppress(HandoffError):  # which its task and the door will tell
                if is_ours(record):
                    place = (record.dag_id, record.run_id, record.task_id, record.map_index)
                    found[place] = OpenRequest.of(record)
        return found

    return await run_in_threadpool(look)
