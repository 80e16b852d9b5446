"""What is turned away before anything is parsed: large bodies and NUL characters."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from airflow_handoff.server.inner import ASGIApp, Receive, Scope, Send

#: 64 KiB of form input, its envelope and a comment, also where a client writes every letter as an escape.
MAX_BODY_BYTES = 256 * 1024


class Limits:
    """Answer 413 for a body above the cap and 400 for an address that no database takes.

    :param app: the next application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            await _respond(send, 400, "The address has a NUL character.")
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            await _respond(send, 413, f"The body may have {MAX_BODY_BYTES} bytes.")
            return
        read = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY_BYTES:
                raise HTTPException(413, f"The body may have {MAX_BODY_BYTES} bytes.")
            return message

        await self.app(scope, counted, send)


async def _respond(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
