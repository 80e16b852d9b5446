"""The middleware alone: what it must not touch, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_handoff.server import guard as guard_module
from airflow_handoff.server.guard import Guard
from airflow_handoff.server.inner import JUDGED

PATCH = "/api/v2/dags/d/dagRuns/r/taskInstances/t/-1/hitlDetails"


class Recorder:
    """An application that keeps what it was handed and echoes the body in chunks."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    async def __call__(self, scope, receive, send):
        """Answer."""
        self.calls.append((scope, receive, send))
        if scope["type"] != "http":
            return
        message = await receive()
        await send(
            {"type": "http.response.start", "status": 207, "headers": [(b"x-a", b"1"), (b"x-a", b"2")]}
        )
        await send({"type": "http.response.body", "body": message["body"], "more_body": True})
        await send({"type": "http.response.body", "body": b"\x00end"})


def _scope(method: str, path: str, **rest) -> dict:
    return {"type": "http", "method": method, "path": path, "root_path": "", "headers": [], **rest}


async def _receive() -> dict:
    return {"type": "http.request", "body": b"\xff\x00raw", "more_body": False}


async def _run(app, scope) -> list[dict]:
    sent: list[dict] = []

    async def send(message):
        sent.append(message)

    await app(scope, _receive, send)
    return sent


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v2/dags"),
        ("GET", PATCH),
        ("POST", PATCH),
        ("PATCH", "/api/v2/dags/d"),
        ("PATCH", PATCH + "/"),
        ("PATCH", "/api/v2/dags/d/dagRuns/r/taskInstances/t/x/hitlDetails"),
        ("GET", "/execution/hitlDetails/1"),
        ("PATCH", "/execution/hitlDetails/1"),
    ],
)
async def test_everything_else_passes_byte_for_byte(method, path):
    """The same scope, the same channels, the same messages."""
    bare, behind = Recorder(), Recorder()
    guard = Guard(behind)
    guard._on = True
    scope = _scope(method, path)
    kept = dict(scope)
    assert await _run(guard, scope) == await _run(bare, scope)
    assert behind.calls[0][0] is scope
    assert behind.calls[0][1] is _receive
    assert scope == kept


@pytest.mark.asyncio
async def test_websockets_and_lifespan_pass():
    """They have no method and no answer."""
    behind = Recorder()
    for kind in ("websocket", "lifespan"):
        await Guard(behind)({"type": kind}, _receive, None)
    assert [call[0]["type"] for call in behind.calls] == ["websocket", "lifespan"]


@pytest.mark.asyncio
async def test_a_task_that_is_not_ours_passes_byte_for_byte(monkeypatch):
    """Only its place was looked up."""

    async def not_ours(place):
        assert place == ("d", "r", "t", -1)
        return False

    monkeypatch.setattr(guard_module, "_is_ours", not_ours)
    behind = Recorder()
    guard = Guard(behind)
    guard._on = True
    scope = _scope("PATCH", PATCH)
    await _run(guard, scope)
    assert behind.calls[0][0] is scope
    assert behind.calls[0][1] is _receive


@pytest.mark.asyncio
@pytest.mark.parametrize("reason", ["judged", "off"])
async def test_a_judged_call_and_the_kill_switch_pass_without_a_look(monkeypatch, reason):
    """Recursion is prevented by a scope flag, which no client can set."""

    async def looked(place):
        raise AssertionError("nothing to look up")

    monkeypatch.setattr(guard_module, "_is_ours", looked)
    behind = Recorder()
    guard = Guard(behind)
    guard._on = reason != "off"
    await _run(guard, _scope("PATCH", PATCH, **({JUDGED: True} if reason == "judged" else {})))
    assert len(behind.calls) == 1


@pytest.mark.asyncio
async def test_a_header_does_not_open_the_guard(monkeypatch):
    """What a client sends never counts as judged."""
    looked = []

    async def look(place):
        looked.append(place)
        return False

    monkeypatch.setattr(guard_module, "_is_ours", look)
    guard = Guard(Recorder())
    guard._on = True
    await _run(guard, _scope("PATCH", PATCH) | {"headers": [(JUDGED.encode(), b"1")]})
    assert looked


@pytest.mark.asyncio
async def test_an_unreadable_request_is_refused_not_let_through(monkeypatch):
    """Unjudged, the answer could kill the task: 503, and the request stays open."""

    async def broken(place):
        raise RuntimeError("no database")

    monkeypatch.setattr(guard_module, "_is_ours", broken)
    behind = Recorder()
    guard = Guard(behind)
    guard._on = True
    sent = await _run(guard, _scope("PATCH", PATCH))
    assert sent[0]["status"] == 503
    assert not behind.calls


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("", "/api/v2/x", "/api/v2/x"),
        ("/airflow/prod", "/airflow/prod/api/v2/x", "/api/v2/x"),
        ("/airflow/prod", "/api/v2/x", "/api/v2/x"),
        ("/airflow", "/airflowish/x", "/airflowish/x"),
    ],
)
def test_the_path_of_the_base_url_is_taken_off(root, path, expected):
    """A proxy may have taken it off before."""
    assert guard_module._inner_path({"path": path, "root_path": root}) == expected


def test_loading_the_plugin_imports_nothing_heavy():
    """Every Airflow process loads it: no FastAPI, no SQLAlchemy models, no rooms of ours but this one."""
    code = (
        "import airflow.plugins_manager, sys; before = set(sys.modules); "
        "import airflow_handoff.server.plugin; "
        "print(*sorted(m for m in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {m for m in loaded if not m.startswith("airflow_handoff")} == set()
    ours = {m.removeprefix("airflow_handoff.server") for m in loaded if m.startswith("airflow_handoff.")}
    assert ours <= {"", ".plugin", ".guard", ".prefill"}


@pytest.mark.asyncio
async def test_what_does_not_concern_the_middleware_costs_less_than_a_fifth_of_a_millisecond():
    """Both of them, at the median; benchmarks/guard.py measures it closely."""
    import statistics
    import time

    from airflow_handoff.server.prefill import Prefill

    async def nothing(scope=None, receive=None, send=None):
        pass

    target = Prefill(Guard(nothing))
    scope = {"type": "http", "method": "GET", "path": "/api/v2/dags", "root_path": "", "headers": []}
    times = []
    for _ in range(2_000):
        start = time.perf_counter()
        await target(scope, nothing, nothing)
        times.append(time.perf_counter() - start)
    assert statistics.median(times) < 0.0002
