"""Operations against a scripted api-server, driven by both clients."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.unit.client.scripted_server import ScriptedServer, detail

from airflow_handoff.client import calls
from airflow_handoff.client.client import AsyncHandoffClient, HandoffClient
from airflow_handoff.client.errors import (
    AnswerRejected,
    InvalidUse,
    NotAllowed,
    NotAuthenticated,
    NotOpen,
    NotSettled,
    RequestNotFound,
    RunFailed,
    RunInterrupted,
    ServerUnreachable,
    WaitTimedOut,
)

ANSWER = "/api/v2/dags/expenses/dagRuns/run-1/taskInstances/review/-1/hitlDetails"


@pytest.fixture
def server() -> ScriptedServer:
    """Return a server with one open request."""
    return ScriptedServer(detail())


@pytest.fixture
def client(server: ScriptedServer) -> HandoffClient:
    """Return a client of the scripted server."""
    return HandoffClient("http://airflow.test/prod", "token", transport=httpx.MockTransport(server))


def test_pages_beyond_one_hundred_are_followed(server: ScriptedServer, client: HandoffClient) -> None:
    """All of 250 requests are listed, in three calls."""
    server.details = [detail(map_index=index) for index in range(250)]
    assert [request.ref.map_index for request in client.pending()] == list(range(250))
    assert len([call for call in server.calls if call.url.path.endswith("hitlDetails")]) == 3


def test_a_request_answered_between_two_pages_hides_no_other(
    server: ScriptedServer, client: HandoffClient
) -> None:
    """Rows that leave the list move the rest forward; the next page starts as much earlier."""
    server.details = [detail(map_index=index) for index in range(250)]
    taken = iter((0, 1, 2))

    def answered_elsewhere() -> None:
        for index in [i for i, _ in zip(taken, range(1), strict=False)]:
            server.details[index]["response_received"] = True

    server.after_page = answered_elsewhere
    assert {request.ref.map_index for request in client.pending()} >= set(range(3, 250))


def test_only_what_can_be_answered_is_pending(server: ScriptedServer, client: HandoffClient) -> None:
    """A row whose task no longer waits is left out: an answer would get 409."""
    server.details = [
        detail("a", state="failed"),
        detail("b", state="deferred"),
        detail("c", state="running"),
    ]
    assert [request.ref.task_id for request in client.pending()] == ["b"]


def test_mine_is_what_names_me_by_id_or_name_or_nobody(server: ScriptedServer, client: HandoffClient) -> None:
    """An id and a name both match (case respondent-ids); a request for others is left out."""
    server.details = [detail("a", assigned=("ada",)), detail("b", assigned=("grace",)), detail("c")]
    assert [r.ref.task_id for r in client.pending(user="ada")] == ["a", "c"]
    assert [r.ref.task_id for r in client.pending(user="Grace")] == ["b", "c"]


def test_an_answer_carries_options_fields_and_comment(server: ScriptedServer, client: HandoffClient) -> None:
    """The comment travels as the form field of that name, below the server's path, with the token."""
    server.script("PATCH", f"/prod{ANSWER}", httpx.Response(200, json={"chosen_options": ["Approve"]}))
    client.answer("expenses/run-1/review", "Approve", {"amount": 7}, "fine")
    assert server.bodies == [
        {"chosen_options": ["Approve"], "params_input": {"amount": 7, "comment": "fine"}}
    ]
    assert server.calls[0].headers["authorization"] == "Bearer token"


HANDOFF = "/prod/handoff/v1/dags/expenses/runs/run-1/requests/review"


def test_case_stale_tab_an_answer_says_what_was_read(server: ScriptedServer, client: HandoffClient) -> None:
    """Attempt and digest travel in a header; without the plugin the attempt alone."""
    known = {**detail(), "handoff": {"digest": "abc", "warnings": ["nobody is called ada"]}}
    server.script("GET", HANDOFF, httpx.Response(200, json=known))
    server.script("PATCH", f"/prod{ANSWER}", httpx.Response(200, json={}))
    client.answer("expenses/run-1/review", "Approve", try_number=1, digest="abc")
    assert server.calls[-1].headers["handoff-seen"] == "review--1:abc"
    assert client.show("expenses/run-1/review").warnings == ("nobody is called ada",)
    server.script("GET", HANDOFF, httpx.Response(200, text="<html>"))
    server.script("GET", f"/prod{ANSWER}", httpx.Response(200, json=detail()))
    client.answer("expenses/run-1/review", "Approve")
    assert server.calls[-1].headers["handoff-seen"] == "review--1:"


@pytest.mark.parametrize(
    "pin", [{"try_number": 2}, {"digest": "other"}, {"try_number": 1, "digest": "other"}]
)
def test_case_stale_tab_another_question_is_not_answered(
    server: ScriptedServer, client: HandoffClient, pin: dict[str, Any]
) -> None:
    """What was meant is not open: nothing is sent, and the way to the open one is said."""
    server.script("GET", HANDOFF, httpx.Response(200, json={**detail(), "handoff": {"digest": "abc"}}))
    with pytest.raises(NotOpen, match="handoff show expenses/run-1/review"):
        client.answer("expenses/run-1/review", "Approve", **pin)
    assert not server.bodies


def test_a_redirect_and_a_busy_proxy_are_told_apart(server: ScriptedServer, client: HandoffClient) -> None:
    """A login page is no refused answer; 429 asks for patience."""
    moved = httpx.Response(302, headers={"location": "https://sso.test/login"})
    server.script("PATCH", f"/prod{ANSWER}", moved)
    with pytest.raises(ServerUnreachable, match=r"sso\.test/login"):
        client.answer("expenses/run-1/review", "Approve")
    busy = httpx.Response(429, json={}, headers={"retry-after": "0"})
    server.script("PATCH", f"/prod{ANSWER}", busy, httpx.Response(200, json={"ok": True}))
    assert client.answer("expenses/run-1/review", "Approve") == {"ok": True}


def test_an_answer_without_a_reply_may_have_been_taken() -> None:
    """The server holds an answer and writes it later: to answer again would be wrong advice."""

    def hold(request: httpx.Request) -> httpx.Response:
        if request.method == "PATCH":
            raise httpx.ReadTimeout("timed out")
        return httpx.Response(200, json=detail())

    client = HandoffClient("http://airflow.test", "t", transport=httpx.MockTransport(hold))
    with client, pytest.raises(ServerUnreachable, match="may have been taken"):
        client.answer("expenses/run-1/review", "Approve")


def test_ids_are_percent_encoded(server: ScriptedServer, client: HandoffClient) -> None:
    """A run id with a plus and colons, and a grouped task id, reach the server as they are."""
    with pytest.raises(RequestNotFound):
        client.show("d/manual__2026-01-01T00:00:00+00:00/g.t/3")
    assert server.calls[-1].url.raw_path == (
        b"/prod/api/v2/dags/d/dagRuns/manual__2026-01-01T00%3A00%3A00%2B00%3A00/taskInstances/g.t/3/hitlDetails"
    )


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (400, {"detail": "not offered"}, AnswerRejected, "not offered"),
        (400, {"detail": {"reasons": ["a", "b"]}}, AnswerRejected, "a; b"),
        (422, {"detail": [{"loc": ["body", "x"], "msg": "missing"}]}, AnswerRejected, "body.x: missing"),
        (401, {"detail": "Not authenticated"}, NotAuthenticated, "handoff login"),
        (403, {"detail": "not a respondent"}, NotAllowed, "not a respondent"),
        (409, {"detail": "answered"}, NotOpen, "answered"),
        (500, "<html>", ServerUnreachable, "HTTP 500"),
    ],
)
def test_each_status_is_an_error_of_its_kind(
    server: ScriptedServer, client: HandoffClient, status: int, body: Any, error: type[Exception], says: str
) -> None:
    """What the server said is in the message, whatever shape its detail has."""
    response = httpx.Response(status, **({"json": body} if not isinstance(body, str) else {"text": body}))
    server.script("PATCH", f"/prod{ANSWER}", response)
    with pytest.raises(error, match=says):
        client.answer("expenses/run-1/review", "Approve")


def test_an_answer_is_sent_again_while_it_is_too_early(server: ScriptedServer, client: HandoffClient) -> None:
    """425 with Retry-After means that the same answer is right a moment later."""
    early = httpx.Response(425, json={"detail": "still runs"}, headers={"retry-after": "0"})
    server.script("PATCH", f"/prod{ANSWER}", early, early, httpx.Response(200, json={"ok": True}))
    assert client.answer("expenses/run-1/review", "Approve") == {"ok": True}
    assert len(server.bodies) == 3


def test_patience_with_an_early_answer_has_an_end() -> None:
    """The operation gives up with what the server said, not in an endless loop."""
    now = [0.0]
    operation = calls.decide("run-1", "review", True, patience=10, clock=lambda: now[0])
    early = calls.Reply(425, {"detail": "still runs"}, retry_after=4)
    steps: list[object] = []

    def drive() -> None:
        step = operation.send(None)
        while True:
            steps.append(step)
            pause = isinstance(step, calls.Pause)
            now[0] += step.seconds if isinstance(step, calls.Pause) else 0
            step = operation.send(None if pause else early)

    with pytest.raises(NotSettled, match="still runs"):
        drive()
    assert steps.count(calls.Pause(4)) == 2


def test_waiting_for_a_run_stops_at_a_person(server: ScriptedServer, client: HandoffClient) -> None:
    """RunInterrupted carries the run and the key, so that the caller can approve and wait again."""
    path = "/prod/handoff/v1/dags/expenses/runs/run-1"
    gate = {"approval_key": "manager", "kind": "approval"}
    server.script(
        "GET",
        path,
        httpx.Response(200, json={"status": "Running"}),
        httpx.Response(200, json={"status": "Interrupted", "interrupts": [gate]}),
        httpx.Response(200, json={"status": "Completed", "result": {"post": 1}}),
    )
    with pytest.raises(RunInterrupted) as caught:
        client.wait("run-1", "expenses", every=0)
    assert (caught.value.run_id, caught.value.approval_key) == ("run-1", "manager")
    assert client.wait("run-1", "expenses")["result"] == {"post": 1}


def test_waiting_for_a_run_that_fails_says_why(server: ScriptedServer, client: HandoffClient) -> None:
    """The decision's code is an attribute."""
    body = {"status": "Failed", "error": {"code": "HumanRejected"}}
    server.script("GET", "/prod/handoff/v1/runs/run-1", httpx.Response(200, json=body))
    with pytest.raises(RunFailed) as caught:
        client.wait("run-1")
    assert caught.value.code == "HumanRejected"


def test_waiting_ends_after_its_timeout(server: ScriptedServer, client: HandoffClient) -> None:
    """A run that goes on is reported as such."""
    server.script("GET", "/prod/handoff/v1/runs/run-1", httpx.Response(200, json={"status": "Running"}))
    with pytest.raises(WaitTimedOut, match="still Running"):
        client.wait("run-1", timeout=0, every=0.01)


def test_no_server_is_one_sentence() -> None:
    """A refused connection names the server and asks the obvious."""

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    client = HandoffClient("http://airflow.test", "t", transport=httpx.MockTransport(refuse))
    with pytest.raises(ServerUnreachable, match=r"no reply from http://airflow\.test: refused"):
        client.pending()


def test_the_asynchronous_client_does_the_same(server: ScriptedServer) -> None:
    """Both clients drive the same operations."""
    server.script("POST", "/api/v2/dags/expenses/dagRuns", httpx.Response(200, json={"dag_run_id": "run-9"}))
    server.script("POST", "/handoff/v1/runs/run-9/approve/manager", httpx.Response(200, json={"ok": True}))

    async def story() -> tuple[str, int, dict[str, Any]]:
        transport = httpx.MockTransport(server)
        async with AsyncHandoffClient("http://airflow.test", "t", transport=transport) as client:
            run = await client.trigger("expenses", {"amount": 7})
            return run, len(await client.pending()), await client.approve(run, "manager", comment="ok")

    assert asyncio.run(story()) == ("run-9", 1, {"ok": True})
    assert server.bodies[-1] == {"approved": True, "data": {}, "comment": "ok"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"dags": ["a", "b"]}, "--dag-id"),
        ({"map_indexes": [0]}, "--map-index"),
        ({"task_ids": []}, "task id"),
    ],
)
def test_an_address_of_several_gates_is_no_lost_race(
    server: ScriptedServer, client: HandoffClient, body: dict[str, Any], says: str
) -> None:
    """The request is open: a script must not take it for answered."""
    path = "/prod/handoff/v1/runs/run-1/approve/gate"
    server.script("POST", path, httpx.Response(409, json={"detail": "which?", **body}))
    with pytest.raises(InvalidUse, match=says):
        client.approve("run-1", "gate")
    wrong = {"detail": [{"loc": ["query", "map_index"], "msg": "too small"}]}
    server.script("POST", path, httpx.Response(422, json=wrong))
    with pytest.raises(InvalidUse, match="too small"):
        client.approve("run-1", "gate")


def test_a_filter_that_airflow_does_not_take_is_a_wrong_command_line(
    server: ScriptedServer, client: HandoffClient
) -> None:
    """Nothing was answered, so nothing was refused."""
    for path in ("/prod/handoff/v1/requests", "/prod/api/v2/dags/~/dagRuns/~/hitlDetails"):
        server.script("GET", path, httpx.Response(400, json={"detail": "no such order"}))
    with pytest.raises(InvalidUse, match="no such order"):
        client.pending(order_by="nonsense")
