"""Serve pending requests to an AI agent, as tools of the Model Context Protocol over stdin and stdout.

Read-only unless told otherwise: an agent that may answer acts with the token's rights, so ``--allow-answer``
is a decision of the person who starts the server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from airflow_handoff import __version__
from airflow_handoff.client import profile
from airflow_handoff.client.cli import client_of, connecting, entry
from airflow_handoff.client.client import HandoffClient
from airflow_handoff.client.errors import ClientError, InvalidUse

INSTALL = "the MCP server needs the extra `mcp`: run `pip install 'airflow-provider-handoff[client,mcp]'`"


def build(client: HandoffClient, *, allow_answer: bool) -> Any:
    """Build the server with its tools.

    :param allow_answer: also offer ``answer_request``.
    :raises InvalidUse: where the ``mcp`` package is not installed.
    """
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ImportError:
        raise InvalidUse(INSTALL) from None
    server = MCPServer(
        "handoff",
        instructions="Requests of Apache Airflow runs that wait for a decision.",
        version=__version__,
        log_level="WARNING",
    )
    reads = ToolAnnotations(readOnlyHint=True)

    @contextmanager
    def told() -> Iterator[None]:
        # The agent gets the sentence; anything else would be logged with a traceback.
        try:
            yield
        except ClientError as error:
            raise ToolError(str(error)) from None

    @server.tool(annotations=reads)
    def pending_requests(dag_id: str = "~", run_id: str = "~") -> list[dict[str, Any]]:
        """List the requests that wait for an answer, oldest first. ``~`` means any."""
        with told():
            return [
                entry(request, client.base_url) for request in client.pending(dag_id=dag_id, run_id=run_id)
            ]

    @server.tool(annotations=reads)
    def show_request(request: str, try_number: int | None = None) -> dict[str, Any]:
        """Show one request (dag/run/task or dag/run/task/map_index): question, form, and answer if any."""
        with told():
            return entry(client.show(request, try_number), client.base_url)

    if allow_answer:

        @server.tool(
            annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=True, idempotentHint=False)
        )
        def answer_request(
            request: str,
            options: list[str],
            fields: dict[str, Any] | None = None,
            comment: str | None = None,
            try_number: int | None = None,
            digest: str | None = None,
        ) -> dict[str, Any]:
            """Answer one request with its options, form fields and a comment. Cannot be undone.

            Give the try_number and digest of the question that you read: another one is then not answered.
            """
            with told():
                return client.answer(request, options, fields, comment, try_number=try_number, digest=digest)

    return server


@click.command(
    epilog="""\b
Examples:
  handoff mcp
  handoff mcp --allow-answer --profile reviewer
"""
)
@click.option("--allow-answer", is_flag=True, help="Also offer the tool that answers; default: read-only.")
@click.option("--list-tools", is_flag=True, help="Print the tools as JSON and exit.")
@click.option("--json", "as_json", is_flag=True, help="JSON; --list-tools prints nothing else anyway.")
@connecting
def mcp(connection: profile.Connection, *, allow_answer: bool, list_tools: bool, as_json: bool) -> None:
    """Serve pending, show and answer as MCP tools over standard input and output."""
    with client_of(connection) as client:
        server = build(client, allow_answer=allow_answer)
        if list_tools:
            tools = asyncio.run(server.list_tools())
            click.echo(
                json.dumps([{"name": tool.name, "description": tool.description} for tool in tools], indent=2)
            )
            return
        server.run("stdio")
