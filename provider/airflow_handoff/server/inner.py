"""Call Airflow's own routes in process, with the caller's credentials."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Scope key of a call that has passed our door: the guard lets it through.
JUDGED = "airflow_handoff.judged"
#: Scope key under which the middleware leaves the way into Airflow for our own routes.
AIRFLOW = "airflow_handoff.airflow"

_CREDENTIALS = frozenset({b"authorization", b"cookie", b"host", b"user-agent", b"x-forwarded-for"})
# Set by routing on the way to our own route; Airflow's router has to start from a clean scope.
_ROUTED = frozenset({"router", "route", "endpoint", "path_params"})


@dataclass(frozen=True)
class Reply:
    """A complete HTTP response."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """Return the body as JSON, ``None`` where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True)
class Airflow:
    """The way into Airflow's routes from one request.

    :param app: everything behind our middleware.
    :param root_path: the path of ``[api] base_url``.
    :param scope: of the request whose credentials are used.
    """

    app: ASGIApp
    root_path: str
    scope: Scope = field(repr=False)

    async def call(
        self, method: str, *path: str, query: bytes = b"", payload: Any = None, judged: bool = False
    ) -> Reply:
        """Call one route below ``/api/v2`` as the caller.

        :param path: its segments, unencoded.
        :param payload: sent as JSON; ``None`` sends no body.
        :param judged: whether the door has judged this call.
        """
        body = b"" if payload is None else json.dumps(payload).encode()
        scope = self._scope(method, path, query, body, judged)
        collected = _Collector(body)
        try:
            await self.app(scope, collected.receive, collected.send)
        except Exception:
            log.exception("Airflow's own route failed: %s %s", method, scope["path"])
            return Reply(500, (), b"")
        return collected.reply()

    def _scope(
        self, method: str, path: tuple[str, ...], query: bytes, body: bytes, judged: bool
    ) -> dict[str, Any]:
        headers = [(name, value) for name, value in self.scope["headers"] if name.lower() in _CREDENTIALS]
        headers.append((b"accept", b"application/json"))
        if body:
            headers.append((b"content-type", b"application/json"))
            headers.append((b"content-length", str(len(body)).encode()))
        kept = {
            key: value
            for key, value in self.scope.items()
            if key not in _ROUTED and not key.startswith("fastapi")
        }
        whole = "/".join([f"{self.root_path}/api/v2", *path])
        return {
            **kept,
            "method": method,
            "path": whole,
            "raw_path": quote(whole, safe="/~:@!$&'()*+,;=").encode(),
            "root_path": self.root_path,
            "query_string": query,
            "headers": headers,
            JUDGED: judged,
        }


class _Collector:
    """Feeds one body and keeps what comes back."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._status = 500
        self._headers: tuple[tuple[bytes, bytes], ...] = ()
        self._chunks: list[bytes] = []
        self._complete = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        if self._body is None:
            # A disconnect before the end would cancel a streamed response.
            await self._complete.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = tuple((bytes(name), bytes(value)) for name, value in message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._complete.set()

    def reply(self) -> Reply:
        return Reply(self._status, self._headers, b"".join(self._chunks))
