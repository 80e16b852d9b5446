"""The MCP server, spoken to by an MCP client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from tests.unit.client.scripted_server import detail

PATCHES: list[dict[str, Any]] = []


class _Airflow(BaseHTTPRequestHandler):
    """Lists one open request and takes answers, except one."""

    def do_GET(self) -> None:
        """List, or show."""
        one = detail()
        listed = {"hitl_details": [one], "total_entries": 1}
        self._send(200, one if "review" in self.path else listed)

    def do_PATCH(self) -> None:
        """Take an answer."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        PATCHES.append(body)
        if body["chosen_options"] == ["Maybe"]:
            self._send(400, {"detail": "'Maybe' was not offered"})
        else:
            self._send(200, {"chosen_options": body["chosen_options"]})

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    """Serve a scripted Airflow on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Airflow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def converse(url: str, *options: str, calls: list[tuple[str, dict[str, Any]]]) -> tuple[set[str], list[Any]]:
    """Start ``handoff mcp``, list its tools, and call some of them."""

    async def session() -> tuple[set[str], list[Any]]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "airflow_handoff.cli", "mcp", *options],
            env={**os.environ, "HANDOFF_URL": url, "HANDOFF_TOKEN": "t"},
        )
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            names = {tool.name for tool in (await client.list_tools()).tools}
            return names, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(session())


def test_an_agent_reads_but_does_not_answer_unless_allowed(url: str) -> None:
    """Without --allow-answer the tool is not there, and calling it by name does nothing."""
    PATCHES.clear()
    forbidden = ("answer_request", {"request": "expenses/run-1/review", "options": ["Approve"]})
    names, (pending, refused) = converse(url, calls=[("pending_requests", {}), forbidden])
    assert names == {"pending_requests", "show_request"}
    assert "expenses/run-1/review" in pending.content[0].text
    assert refused.is_error
    assert PATCHES == []


def test_an_agent_that_may_answer_is_told_why_an_answer_was_refused(url: str) -> None:
    """A refused answer comes back as a tool error with the server's sentence; a good one is sent once."""
    PATCHES.clear()
    question = {"request": "expenses/run-1/review"}
    _, (shown, refused, taken) = converse(
        url,
        "--allow-answer",
        calls=[
            ("show_request", question),
            ("answer_request", {**question, "options": ["Maybe"]}),
            ("answer_request", {**question, "options": ["Approve"], "comment": "ok"}),
        ],
    )
    assert "Pay the invoice?" in shown.content[0].text
    assert refused.is_error
    assert "'Maybe' was not offered" in refused.content[0].text
    assert not taken.is_error
    assert PATCHES[-1] == {"chosen_options": ["Approve"], "params_input": {"comment": "ok"}}
    assert len(PATCHES) == 2
