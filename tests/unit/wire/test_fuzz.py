"""Inputs nobody would send, by the ten thousand: every one ends in an event, none in an exception.

``HANDOFF_FUZZ_INPUTS`` and ``HANDOFF_FUZZ_SEED`` set how many there are and which.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from tests.unit.wire.vectors import ALL, VECTORS, read

from airflow_handoff.wire.frames import encode_frame
from airflow_handoff.wire.logs import LEVELS, RESERVED
from airflow_handoff.wire.requests import TERMINAL
from airflow_handoff.wire.session import RequestReceived, RequestRefused, SupervisorSession
from airflow_handoff.wire.states import Limits, State, Violation

INPUTS = int(os.environ.get("HANDOFF_FUZZ_INPUTS", "100000"))
SEED = int(os.environ.get("HANDOFF_FUZZ_SEED", "20261130"))
FRAMES = [vector.frame for vector in ALL if vector.from_task]
STARTUP: dict[str, Any] = read(VECTORS / "StartupDetails.json")[0].decoded[1]
LINES = [
    b'{"event":"x","level":"info"}', b'{"event":"x"}', b"[1]", b'{"event":"x","level":["info"]}',
    b'{"event":"x","level":"info","timestamp":12}', b'{"msg":1,"target":2,"self":3}', b"text", b"",
    b'{"event":"%s","level":"WARN","logger":"a.b","timestamp":"2026-11-30T12:00:00Z","positional_args":[1]}',
]  # fmt: skip


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with one random thing done to them."""
    kind = rng.randrange(8)
    at = rng.randrange(len(data) + 1)
    if kind == 0:
        return data
    if kind == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data[:at]
    if kind == 3:
        return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
    if kind == 4:
        end = rng.randrange(at, len(data) + 1)
        return data[:at] + data[end:]
    if kind == 5:
        return data + data[:at]
    if kind == 6:
        return rng.randbytes(rng.randrange(1, 40))
    # The framing stays whole, so that the fault is inside.
    body = bytearray(data[4:] or b"x")
    body[rng.randrange(len(body))] = rng.randrange(256)
    return len(body).to_bytes(4, "big") + bytes(body)


def converse(rng: random.Random, data: bytes) -> None:
    """Let a session hear one input, answer what it asks, and end; check what must always hold."""
    session = SupervisorSession(
        should_retry=rng.random() < 0.5,
        terminal=rng.choice(["final", "provisional"]),
        on_violation=rng.choice(["end", "record"]),
        limits=Limits(max_frame=1 << 20),
    )
    session.start(STARTUP)
    written = session.data_to_send()
    middle = rng.randrange(len(data) + 1)
    events = session.receive_comm(data[:middle]) if middle else []
    events += session.receive_comm(data[middle:]) if middle < len(data) else []
    for event in events:
        if isinstance(event, RequestReceived) and event in session.open_requests:
            session.reply(event, error={"type": "ErrorResponse"} if rng.random() < 0.3 else None)
    events += session.receive_comm(b"")
    written += session.data_to_send()
    outcome = session.finish(0)
    assert not session.open_requests
    assert session.state in (State.BROKEN, State.ENDED)
    assert (outcome.report is None) == (outcome.failure is not None)
    if outcome.report is not None:
        assert isinstance(outcome.report, TERMINAL)
    if session.state is not State.BROKEN:
        asked = [event for event in events if isinstance(event, (RequestReceived, RequestRefused))]
        assert len(written) == 1 + len(asked), "each request has exactly one reply"
    else:
        assert isinstance(events[-1], Violation)


def test_case_broken_frame_fuzzed() -> None:
    """Mutated captured frames never raise, never leave a request open, and always have an outcome."""
    rng = random.Random(SEED)
    for number in range(INPUTS // 2):
        data = b"".join(mutate(rng, rng.choice(FRAMES)) for _ in range(rng.choice((1, 1, 2))))
        try:
            converse(rng, data)
        except Exception as error:
            pytest.fail(f"input {number} of seed {SEED}, {data.hex()}: {error!r}")


def test_case_bad_log_line_fuzzed() -> None:
    """Mutated log lines never raise, are never lost, and never carry a reserved key."""
    rng = random.Random(SEED + 1)
    session = SupervisorSession(limits=Limits(max_line=200))
    for number in range(INPUTS // 2):
        line = mutate(rng, rng.choice(LINES))
        data = line + b"\n"
        try:
            records = session.receive_logs(data[:3]) + session.receive_logs(data[3:])
        except Exception as error:
            pytest.fail(f"input {number} of seed {SEED}, {data!r}: {error!r}")
        assert len(records) == data.count(b"\n")
        for record in records:
            record.event.encode()
            assert record.level in LEVELS
            assert RESERVED.isdisjoint(record.fields)


def test_a_body_of_random_values_is_always_answered() -> None:
    """Whatever a well-formed frame holds, there is exactly one event for it."""
    rng = random.Random(SEED + 2)
    session = SupervisorSession(terminal="provisional")
    session.start(STARTUP)
    session.data_to_send()
    names = ["GetXCom", "SetXCom", "DeferTask", "MaskSecret", "SkipDownstreamTasks", "TriggerDagRun", 7, None]
    for number in range(INPUTS // 50):
        body = {
            "type": rng.choice(names),
            **{key: anything(rng, 3) for key in ("key", "value", "tasks", "conf")},
        }
        (event,) = session.receive_comm(encode_frame([number, body, anything(rng, 1)]))
        if isinstance(event, RequestReceived) and event in session.open_requests:
            session.reply(event, {"type": "XComResult", "value": anything(rng, 3)})
        assert len(session.data_to_send()) == 1


def anything(rng: random.Random, depth: int) -> Any:
    """Return a random value that MessagePack can hold."""
    kind = rng.randrange(8 if depth else 6)
    simple = [None, True, rng.randrange(-(2**40), 2**40), rng.random(), "t" * rng.randrange(4), b"\xff"]
    if kind < 6:
        return simple[kind]
    if kind == 6:
        return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(["a", "b", 1, "type"]): anything(rng, depth - 1) for _ in range(rng.randrange(4))}
