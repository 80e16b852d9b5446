"""What the middleware makes of the page's request for a question, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from airflow_handoff.server import prefill

QUESTION = {
    "response_received": False,
    "params": {"amount": {"value": 5, "description": None, "schema": {"type": "integer"}}},
}
API = "/api/v2/dags/d/dagRuns/r+1/taskInstances/g.ask/-1/hitlDetails"
PAGE = "http://host/dags/d/runs/r%2B1/tasks/g.ask/required_actions?amount=12"


def ask(
    path: str = API,
    referer: str | None = PAGE,
    *,
    status: int = 200,
    body: Any = QUESTION,
    method: str = "GET",
) -> tuple[dict[str, Any], Any, list[str]]:
    """Send one request through the middleware; return the response's start, body and what Airflow saw."""
    seen: list[str] = []
    sent: list[Any] = []

    async def airflow(scope: Any, receive: Any, send: Any) -> None:
        seen.extend(name.decode() for name, _ in scope["headers"])
        raw = json.dumps(body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": raw[:10], "more_body": True})
        await send({"type": "http.response.body", "body": raw[10:]})

    async def receive() -> Any:
        raise AssertionError("nothing is to be received")

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"accept-encoding", b"gzip")] + ([(b"referer", referer.encode())] if referer else [])
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    asyncio.run(prefill.Prefill(airflow)(scope, receive, send))
    return sent[0], json.loads(b"".join(message["body"] for message in sent[1:])), seen


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every question one of ours."""

    async def yes(scope: Any) -> bool:
        return True

    monkeypatch.setattr(prefill, "_is_ours", yes)


def test_the_page_of_the_task_gets_the_link_s_values() -> None:
    """The value has the field's type, and the length fits the new body."""
    start, body, seen = ask()
    assert body["params"]["amount"]["value"] == 12
    assert dict(start["headers"])[b"content-length"] == str(len(json.dumps(body))).encode()
    assert "accept-encoding" not in seen


@pytest.mark.parametrize("prefix", ["", "/airflow/prod"])
def test_a_mapped_task_below_a_path_and_one_of_its_tries(prefix: str) -> None:
    """The map index and the path of base_url are understood, and so is the route that names a try."""
    path = f"{prefix}/api/v2/dags/d/dagRuns/r/taskInstances/ask/3/hitlDetails/tries/1"
    page = f"https://host{prefix}/dags/d/runs/r/tasks/ask/mapped/3/required_actions?amount=12"
    assert ask(path, page)[1]["params"]["amount"]["value"] == 12


@pytest.mark.parametrize(
    "request_",
    [
        {"referer": None},
        {"referer": PAGE.partition("?")[0]},
        {"referer": PAGE.replace("g.ask", "other")},
        {"referer": PAGE.replace("/required_actions", "/mapped/0/required_actions")},
        {"referer": "http://host/required_actions?amount=12"},
        {"referer": "http://host/dags/d?amount=12"},
        {"referer": "http://[/dags/d?amount=12"},
        {"path": API.replace("-1", "--1")},
        {"path": "/api/v2/dags/d/dagRuns/r+1/hitlDetails"},
        {"method": "PATCH"},
        {"status": 404},
        {"body": {**QUESTION, "response_received": True}},
        {"body": {"detail": "no"}},
        {"body": []},
    ],
)
def test_everything_else_passes_as_it_is(request_: dict[str, Any]) -> None:
    """Other pages, other tasks, other routes, answered questions and errors are not touched."""
    assert ask(**request_)[1] == request_.get("body", QUESTION)


def test_a_question_that_is_not_ours_passes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A standard operator's page keeps Airflow's behaviour, compression included."""

    async def no(scope: Any) -> bool:
        return False

    monkeypatch.setattr(prefill, "_is_ours", no)
    _, body, seen = ask()
    assert body == QUESTION
    assert "accept-encoding" in seen
