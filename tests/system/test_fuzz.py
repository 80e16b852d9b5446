"""Whatever a program sends: the supervisor side raises nothing, answers or ends it, and leaves nobody."""

from __future__ import annotations

import contextlib
import json
import os
import random
import uuid
from pathlib import Path
from typing import Any

import httpx
import msgpack
import psutil
import pytest
import structlog

from tests.unit.coordinators.conftest import FakeApi, Stage

#: Inputs in process; one in a thousand more goes through a real program.
INPUTS = int(os.environ.get("HANDOFF_FUZZ", "100000"))
SEED = int(os.environ.get("HANDOFF_FUZZ_SEED", "20261130"))
VECTORS = Path(__file__).parents[1] / "vectors"

LINES = [
    b'{"event":"x","level":"info","timestamp":"2026-11-30T10:00:00Z","logger":"a.b","n":1}',
    b'{"event":"x","level":["info"],"msg":1,"target":2,"self":3,"positional_args":[4],"exc_info":true}',
    b'{"event":{"a":[1,2]},"level":12,"timestamp":12,"exception":[{"exc_type":"E"}],"stack":"s"}',
    b"[main] INFO org.example - text",
    b"[1]",
]


def captured() -> list[bytes]:
    """Real frames that tasks have sent, terminal ones among them."""
    found = []
    for path in sorted(VECTORS.glob("[A-Za-z]*.json")):
        entries = json.loads(path.read_text())
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, dict) and "hex" in entry and entry.get("direction") != "supervisor->task":
                found.append(bytes.fromhex(entry["hex"]))
    return found


def any_value(chance: random.Random, depth: int = 0) -> Any:
    """Some value of MessagePack."""
    kinds = 12 if depth < 4 else 9
    kind = chance.randrange(kinds)
    simple = [
        None,
        True,
        chance.randrange(-(2**40), 2**40),
        chance.random() * 10 ** chance.randrange(300),
        float(chance.choice(["nan", "inf", "-inf"])),
        "".join(chr(chance.randrange(1, 0x2FFF)) for _ in range(chance.randrange(20))),
        chance.randbytes(chance.randrange(20)),
        msgpack.ExtType(chance.randrange(128), chance.randbytes(chance.randrange(20))),
        chance.choice(["type", "SucceedTask", "GetXCom", "TaskState", "value", "\ud7ff", "dag_id"]),
    ]
    if kind < 9:
        return simple[kind]
    size = chance.randrange(5)
    if kind == 9:
        return [any_value(chance, depth + 1) for _ in range(size)]
    return {
        chance.choice(["type", "key", "value", "state", 1, b"b"]): any_value(chance, depth + 1)
        for _ in range(size)
    }


def with_length(payload: bytes) -> bytes:
    """Put the length in front."""
    return len(payload).to_bytes(4, "big") + payload


class Inputs:
    """An endless supply of frames and lines, good, nearly good and bad."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.frames = captured()

    def flip(self, data: bytes, times: int) -> bytes:
        """Change some bytes."""
        changed = bytearray(data)
        for _ in range(times):
            if changed:
                changed[self.chance.randrange(len(changed))] = self.chance.randrange(256)
        return bytes(changed)

    def frame(self) -> bytes:
        """Some bytes for the comm channel."""
        chance = self.chance
        good = chance.choice(self.frames)
        kind = chance.randrange(10)
        if kind < 3:
            return good
        if kind < 6:  # the length stays right, so that what is inside is what counts
            return with_length(self.flip(good[4:], chance.randrange(1, 6)))
        if kind == 6:
            return with_length(msgpack.packb([chance.randrange(100), any_value(chance), any_value(chance)]))
        if kind == 7:
            body = msgpack.unpackb(good[4:], strict_map_key=False, timestamp=0)
            if isinstance(body, list) and len(body) > 1 and isinstance(body[1], dict) and body[1]:
                body[1][chance.choice(list(body[1]))] = any_value(chance)
            return with_length(msgpack.packb(body))
        if kind == 8:
            return self.flip(good, chance.randrange(1, 4))
        return chance.randbytes(chance.randrange(1, 60))

    def line(self) -> bytes:
        """Some bytes for the log channel."""
        chance = self.chance
        data = chance.choice(LINES)
        kind = chance.randrange(4)
        if kind == 1:
            data = self.flip(data, chance.randrange(1, 6))
        elif kind == 2:
            value = msgpack.unpackb(msgpack.packb(any_value(chance)), strict_map_key=False)
            data = json.dumps({"event": "v", "level": repr(value)[:9], "v": repr(value)}).encode()
        elif kind == 3:
            data = chance.randbytes(chance.randrange(80))
        return data + (b"\n" if chance.random() < 0.9 else b"")


class StillHost:
    """A host whose runtime is this test: keeps what it is told."""

    pid = 4711

    def __init__(self) -> None:
        self.sent = 0
        self.stops = 0

    def launch(self, *arguments: Any) -> None:
        """Start nothing."""

    def send(self, data: bytes) -> None:
        """Count a frame."""
        self.sent += 1

    def stop(self, grace: float) -> None:
        """Count a stop."""
        self.stops += 1


def started(folder: Path) -> tuple[Any, StillHost]:
    """A run whose program is connected."""
    from airflow.sdk.api.client import Client
    from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance
    from airflow.sdk.execution_time.supervisor import _configure_logging

    from airflow_handoff.coordinators.launch import Launch
    from airflow_handoff.coordinators.run import Prepared, RunSettings, TaskRun

    api = FakeApi(variables={"v": "1"}, xcoms={"return_value": [1]}, should_retry=True)
    client = Client(base_url="http://api.invalid", token="", transport=httpx.MockTransport(api))
    ti = TaskInstance(
        id=uuid.uuid4(), task_id="t", dag_id="d", run_id="r", try_number=1, dag_version_id=uuid.uuid4()
    )
    logger, file = _configure_logging(str(folder / "fuzz.log"), client)
    task = {
        "what": ti, "dag_rel_path": "x.py", "bundle_info": BundleInfo(name="b"), "client": client,
        "logger": logger, "subprocess_logs_to_stdout": False,
    }  # fmt: skip
    run = TaskRun(RunSettings(), lambda: Prepared(), task)
    host = StillHost()
    run._host = host  # type: ignore[assignment]
    run._begin(Prepared(launch=Launch(command=["x"])))
    run.connected()
    run.file = file  # type: ignore[attr-defined]
    return run, host


def drop(*_: Any) -> Any:
    """Drop what the worker's own log would say of every bad request."""
    raise structlog.DropEvent


def test_no_input_harms_the_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each complete request has its reply, each violation ends the program once, and nothing is raised."""
    from airflow_handoff.compat import coordinator

    quiet = structlog.wrap_logger(structlog.ReturnLogger(), processors=[drop])
    monkeypatch.setattr(coordinator, "_worker_log", quiet)
    inputs = Inputs(SEED)
    broken = answered = waiting = 0
    run, host = started(tmp_path)
    try:
        for number in range(INPUTS):
            kind = inputs.chance.randrange(4)
            if kind == 0:
                run.logs(inputs.line())
            elif kind == 1:
                (run.stdout if inputs.chance.random() < 0.5 else run.stderr)(inputs.line())
            else:
                run.comm(inputs.frame())
                assert run._session.open_requests == (), number
                waiting = waiting + 1 if run._session._frames.pending else 0
                if waiting > 3:  # for the rest of a frame that claims hundreds of megabytes
                    run.comm(b"")
                    waiting = 0
            if host.stops or run._session.report is not None:
                broken += bool(host.stops)
                assert host.stops <= 1, number
                answered += host.sent
                run.comm(b"")
                run.logs(b"")
                run._supervisor.emit(20, "alive", {})
                run.file.close()
                (tmp_path / "fuzz.log").unlink()
                run, host = started(tmp_path)
    finally:
        run.file.close()
    assert broken > INPUTS / 1000
    assert answered > INPUTS / 10


def orphans(before: set[int]) -> list[psutil.Process]:
    """Return the live processes below this one that are neither in *before* nor children of one there.

    An Airflow that another test keeps running starts workers of its own at any time.
    """
    left = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if not before & {child.pid, child.ppid()} and child.status() != psutil.STATUS_ZOMBIE:
                left.append(child)
    return left


@pytest.mark.parametrize("share", range(4))
def test_no_program_outlives_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    """Real programs send the same, with a child beside them: every task ends in a state, with its tree."""
    inputs = Inputs(SEED + 1 + share)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    for _ in range(max(1, INPUTS // 4000)):
        stage = Stage(tmp_path, monkeypatch)
        sent = b"".join(inputs.frame() for _ in range(5))
        said = b"".join(inputs.line() for _ in range(5))
        result = stage.script(
            f"""
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            logs.sendall({said!r}); sys.stdout.buffer.write({said!r}); sys.stdout.flush()
            comm.sendall({sent!r}); comm.shutdown(socket.SHUT_WR)
            while comm.recv(65536): pass
            """,
            kill_grace=0.2,
        )
        assert result.state is not None
        assert orphans(before) == []
