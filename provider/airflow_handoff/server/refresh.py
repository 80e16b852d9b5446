"""The stored question stays true: each upsert writes its question to the row before it is released.

Airflow keeps the first attempt's question for ever, so that after a clear, a retry or in a second round the
reader would see an old one. The task's own token has authorised the upsert; nothing else is needed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import MutableMapping
from datetime import datetime, timezone
from typing import Any

from starlette.concurrency import run_in_threadpool

from airflow_handoff.compat import answers
from airflow_handoff.server import assignees
from airflow_handoff.server.inner import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]


async def upsert(app: ASGIApp, ti_id: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Let *app* upsert a request, then make its row and the response say what this park asks.

    :param ti_id: the task instance as the path has it; Airflow checks it against the task's token.
    """
    began = datetime.now(timezone.utc)
    sent = bytearray()

    async def listen() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            sent.extend(message.get("body", b""))
        return message

    held: list[Message] = []
    body = bytearray()

    async def hold(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 201:
            held.append(message)
        elif held and message["type"] == "http.response.body":
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await _release(held[0], bytes(body), bytes(sent), ti_id, began, send)
        else:
            await send(message)

    await app(scope, listen, hold)


async def _release(start: Message, body: bytes, sent: bytes, ti_id: str, began: datetime, send: Send) -> None:
    try:
        question = json.loads(sent)
        written = await run_in_threadpool(answers.refresh_question, ti_id, question, began)
        stored = json.loads(body)
        body = json.dumps({name: written.get(name, value) for name, value in stored.items()}).encode()
        start["headers"] = [
            *((name, value) for name, value in start["headers"] if name.lower() != b"content-length"),
            (b"content-length", str(len(body)).encode()),
        ]
    except Exception:
        # The request is open and answerable; its reader may see an older wording.
        log.exception("The question of task instance %s could not be refreshed", ti_id)
    await send(start)
    await send({"type": "http.response.body", "body": body})
    try:
        await run_in_threadpool(assignees.note, ti_id, json.loads(sent))
    except Exception:
        log.exception("Whom task instance %s asks could not be looked up", ti_id)
