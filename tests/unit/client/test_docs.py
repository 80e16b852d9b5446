"""The client's page says what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
from click.testing import CliRunner
from tests.unit.client.scripted_server import ScriptedServer

from airflow_handoff import cli as root
from airflow_handoff.client import cli
from airflow_handoff.client.client import HandoffClient

PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the page's code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_python_example_approves_at_each_gate_and_returns_the_result() -> None:
    """The block runs as written against a scripted server."""
    server = ScriptedServer()
    path = "/handoff/v1/dags/expense_approval/runs/run-1"
    gate = {"approval_key": "manager_approval"}
    server.script(
        "POST", "/api/v2/dags/expense_approval/dagRuns", httpx.Response(200, json={"dag_run_id": "run-1"})
    )
    server.script(
        "GET",
        path,
        httpx.Response(200, json={"status": "Interrupted", "interrupts": [gate]}),
        httpx.Response(200, json={"status": "Completed", "result": {"post": 120}}),
    )
    server.script("POST", f"{path}/approve/manager_approval", httpx.Response(200, json={}))
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(code, "docs/client.md", "exec"), names)
    client = HandoffClient("http://airflow.test", "t", transport=httpx.MockTransport(server))
    assert names["pay"](client, 120)["result"] == {"post": 120}  # type: ignore[operator]
    assert server.bodies == [
        {"conf": {"amount": 120}, "logical_date": None},
        {"approved": True, "data": {}},
    ]


def test_every_command_of_the_page_exists() -> None:
    """Each command named in the table has help."""
    for name in set(re.findall(r"`handoff ([a-z]+)", PAGE)):
        assert CliRunner().invoke(root.handoff, [name, "--help"]).exit_code == 0, name


def test_the_exit_codes_of_the_page_are_those_of_the_help() -> None:
    """Both lists have the same codes."""
    assert re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE) == re.findall(
        r"^  (\d)", cli.EXIT_CODES, re.MULTILINE
    )


def test_the_mcp_configuration_is_json() -> None:
    """The block loads as written and starts a command that exists."""
    (block,) = blocks("json")
    server = json.loads(block)["mcpServers"]["handoff"]
    assert server["command"] == "handoff"
    assert server["args"][0] in root.COMMANDS
