"""What the middleware makes of the page's request for a question, and what it leaves alone."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_handoff.server import prefill, seen
from airflow_handoff.server.standing import Standing

ASKED_AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
QUESTION = {
    "task_instance": {"dag_id": "d", "dag_run_id": "r+1", "task_id": "g.ask", "map_index": -1, "id": "ti-2"},
    "created_at": "2026-01-01T00:00:00Z",
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
    compressed: bool = False,
) -> tuple[dict[str, Any], Any, list[str]]:
    """Send one request through the middleware; return the response's start, body and what Airflow saw."""
    seen_headers: list[str] = []
    sent: list[Any] = []

    async def airflow(scope: Any, receive: Any, send: Any) -> None:
        seen_headers.extend(name.decode() for name, _ in scope["headers"])
        raw = json.dumps(body).encode()
        raw = gzip.compress(raw) if compressed else raw
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())]
        headers += [(b"content-encoding", b"gzip")] if compressed else []
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
    whole = b"".join(message["body"] for message in sent[1:])
    if dict(sent[0]["headers"]).get(b"content-encoding") == b"gzip":
        whole = gzip.decompress(whole)
    return sent[0], json.loads(whole), seen_headers


def open_request(ti_id: str = "ti-2", asked_at: datetime = ASKED_AT, state: Any = True) -> Any:
    """Return what the door knows of the question."""
    record = SimpleNamespace(ti_id=ti_id, try_number=2, row=SimpleNamespace(created_at=asked_at))
    return SimpleNamespace(record=record, state=state, digest="abc", standing=Standing.OPEN)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Make every question one of ours; a test may put in another request, or none."""
    requests = [open_request()]

    async def ours(details: list[Any]) -> Any:
        places = [place for place in map(seen.place_of, details) if place]
        return {place: requests[0] for place in places if requests}

    monkeypatch.setattr(prefill, "_ours", ours)
    monkeypatch.setattr(prefill, "_guarded", lambda: True)
    return requests


@pytest.mark.parametrize("compressed", [False, True])
def test_the_page_of_the_task_gets_the_link_s_values(compressed: bool) -> None:
    """The value has the field's type, and the length fits the new body."""
    start, body, _ = ask(compressed=compressed)
    assert body["params"]["amount"]["value"] == 12
    assert dict(start["headers"])[b"content-length"] == str(len(json.dumps(body))).encode()
    assert b"content-encoding" not in dict(start["headers"])


def test_case_stale_tab_the_page_is_given_what_it_shows(known: list[Any]) -> None:
    """A hidden field names attempt and question; one that shows an older question names nothing open."""
    plain = PAGE.partition("?")[0]
    field = ask(referer=plain)[1]["params"][seen.FIELD]
    assert (field["value"], field["schema"]["const"]) == ("ti-2:abc", "ti-2:abc")
    assert seen.expectation(field["value"]) == {"ti_id": "ti-2", "digest": "abc"}
    for other in (open_request("ti-3"), open_request(asked_at=datetime(2026, 1, 2, tzinfo=timezone.utc))):
        known[:] = [other]
        value = ask(referer=plain)[1]["params"][seen.FIELD]["value"]
        assert seen.expectation(value) == {"ti_id": "", "digest": None}
    # Asked, not parked yet: the digest is not known, the attempt is.
    known[:] = [open_request(state=None)]
    assert seen.expectation(ask(referer=plain)[1]["params"][seen.FIELD]["value"])["digest"] is None


@pytest.mark.parametrize(("try_number", "value"), [(2, "ti-2:abc"), (1, seen.NOTHING)])
def test_case_stale_tab_on_the_page_of_one_try(try_number: int, value: str) -> None:
    """Airflow describes one try without an id: its number says which it is."""
    task = {name: part for name, part in QUESTION["task_instance"].items() if name != "id"}
    body = {**QUESTION, "task_instance": {**task, "try_number": try_number}}
    path = f"{API}/tries/{try_number}"
    assert ask(path, PAGE, body=body)[1]["params"][seen.FIELD]["value"] == value


def test_case_stale_tab_in_a_list_from_which_one_can_answer() -> None:
    """Airflow 3.3 lists questions and answers them in one place."""
    page = {"hitl_details": [QUESTION, {**QUESTION, "response_received": True}], "total_entries": 2}
    body = ask("/api/v2/dags/~/dagRuns/~/hitlDetails", "http://host/required_actions", body=page)[1]
    assert [seen.FIELD in detail["params"] for detail in body["hitl_details"]] == [True, False]


def test_nothing_is_hidden_in_the_form_where_no_door_takes_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With guard_airflow_api off the field would reach the task."""
    monkeypatch.setattr(prefill, "_guarded", lambda: False)
    assert seen.FIELD not in ask()[1]["params"]


@pytest.mark.parametrize("prefix", ["", "/airflow/prod"])
def test_a_mapped_task_below_a_path_and_one_of_its_tries(prefix: str) -> None:
    """The map index and the path of base_url are understood, and so is the route that names a try."""
    path = f"{prefix}/api/v2/dags/d/dagRuns/r/taskInstances/ask/3/hitlDetails/tries/1"
    page = f"https://host{prefix}/dags/d/runs/r/tasks/ask/mapped/3/required_actions?amount=12"
    task = {**QUESTION["task_instance"], "dag_run_id": "r", "task_id": "ask", "map_index": 3}
    body = {**QUESTION, "task_instance": task}
    assert ask(path, page, body=body)[1]["params"]["amount"]["value"] == 12


@pytest.mark.parametrize(
    "request_",
    [
        {"referer": None},
        {"referer": PAGE.partition("?")[0]},
        {"referer": "http://host/api/v2/docs"},
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
    _, body, headers = ask(**request_)
    if isinstance(body, dict) and isinstance(body.get("params"), dict):
        body["params"].pop(seen.FIELD, None)
    assert body == request_.get("body", QUESTION)
    assert "accept-encoding" in headers


@pytest.mark.parametrize("compressed", [False, True])
def test_a_question_that_is_not_ours_passes_as_it_is(known: list[Any], compressed: bool) -> None:
    """A standard operator's page gets Airflow's own bytes, compressed or not."""
    known.clear()
    start, body, _ = ask(compressed=compressed)
    assert body == QUESTION
    assert (b"content-encoding" in dict(start["headers"])) is compressed


@pytest.mark.parametrize("headers", [[], [(b"referer", b"http://host/api/v2/docs")], [(b"accept", b"*/*")]])
def test_a_program_is_given_no_hidden_field(headers: list[tuple[bytes, bytes]]) -> None:
    """Only what a browser's page asks for is worked on."""
    assert not seen.from_a_page(headers)
    assert seen.from_a_page([*headers, (b"Sec-Fetch-Site", b"same-origin")])
