"""Frames: bytes in, payloads out."""

from __future__ import annotations

import datetime
import enum
import itertools
import math
import tracemalloc
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.vectors import MALFORMED, WELL_FORMED, Vector

from airflow_handoff.wire.frames import (
    LARGEST_FRAME,
    Frame,
    FrameDecoder,
    FrameViolation,
    UnencodableFrame,
    decode_payload,
    encode_frame,
)

UTC = datetime.timezone.utc


def noted(value: Any) -> Any:
    """Write a value as the vectors' JSON does: keys as texts, and NaN equal to itself."""
    if isinstance(value, dict):
        return {str(key): noted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [noted(item) for item in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("vector", WELL_FORMED, ids=lambda vector: vector.name)
def test_captured_frames_decode_and_encode_to_the_same_value(vector: Vector) -> None:
    """What Airflow and its runtimes really sent is read as captured and survives being written again."""
    (frame,) = FrameDecoder().feed(vector.frame)
    content = decode_payload(frame)
    assert noted(content) == noted(vector.decoded)
    (again,) = FrameDecoder().feed(encode_frame(content))
    assert noted(decode_payload(again)) == noted(vector.decoded)
    assert repr(decode_payload(again)) == repr(content)


@pytest.mark.parametrize("vector", MALFORMED, ids=lambda vector: vector.name)
def test_case_broken_frame_names_offset_and_reason(vector: Vector) -> None:
    """A captured malformed frame is a violation at its own offset, after the good frame in front of it."""
    good = encode_frame([1, {"type": "GetVariable", "key": "k"}])
    decoder = FrameDecoder()
    seen: list[Any] = []
    with pytest.raises(FrameViolation) as caught:
        seen.extend(map(decode_payload, decoder.feed(bytes(good) + vector.frame)))
    assert [content[0] for content in seen] == [1]
    assert caught.value.offset == len(good)
    assert str(len(good)) in str(caught.value)


@pytest.mark.parametrize("length", [0, 1025, LARGEST_FRAME])
def test_a_length_of_zero_or_above_the_cap_stays_a_violation(length: int) -> None:
    """Once the stream is out of step, every later byte meets the same violation."""
    decoder = FrameDecoder(max_frame=1024)
    with pytest.raises(FrameViolation) as first:
        list(decoder.feed(length.to_bytes(4, "big") + b"x"))
    with pytest.raises(FrameViolation) as second:
        list(decoder.feed(b"more"))
    assert first.value is second.value
    assert not first.value.in_sync


def test_memory_grows_with_bytes_received_and_not_with_the_claim() -> None:
    """A claim of half a gigabyte with three bytes behind it costs next to nothing."""
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        list(decoder.feed((512 * 1024 * 1024).to_bytes(4, "big") + b"abc"))
        with pytest.raises(FrameViolation):
            decode_payload(Frame(0, b"\xdd\xff\xff\xff\xff"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    assert decoder.pending == 4 + 3


def test_a_large_frame_is_held_once() -> None:
    """Collecting a frame of 20 MB keeps one copy of it and not two."""
    data = bytes(encode_frame([0, {"v": "x" * 20_000_000}]))
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        frames = [
            frame
            for start in range(0, len(data), 65536)
            for frame in decoder.feed(memoryview(data)[start : start + 65536])
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(frames) == 1
    assert peak < 1.3 * len(data)


@settings(deadline=None, max_examples=60)
@given(
    bodies=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 1500), max_size=12),
)
def test_frames_come_out_the_same_wherever_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    """Frames and their offsets do not depend on how the bytes arrived."""
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    decoder = FrameDecoder()
    frames = [f for a, b in itertools.pairwise(edges) for f in decoder.feed(stream[a:b])]
    assert [bytes(frame.payload) for frame in frames] == bodies
    offsets = [sum(len(body) + 4 for body in bodies[:index]) for index in range(len(bodies))]
    assert [frame.offset for frame in frames] == offsets
    decoder.end()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(number=st.integers(-(2**63), 2**63 - 1), body=st.dictionaries(st.text(), json_values, max_size=4))
def test_any_json_body_survives_the_frame(number: int, body: dict[str, Any]) -> None:
    """Ids are echoed and bodies arrive as sent."""
    (frame,) = FrameDecoder().feed(encode_frame([number, body, None]))
    assert decode_payload(frame) == [number, body, None]


@settings(deadline=None, max_examples=300)
@given(payload=st.binary(min_size=1, max_size=200))
def test_any_payload_is_an_array_or_a_violation(payload: bytes) -> None:
    """No payload raises anything but the one error that says what is wrong with it."""
    found = attempt(payload)
    if isinstance(found, FrameViolation):
        assert found.offset == 7
        assert found.in_sync
    else:
        assert type(found[0]) is int


def attempt(payload: bytes) -> list[Any] | FrameViolation:
    """Return what a payload decodes to, or the violation."""
    try:
        return decode_payload(Frame(7, payload))
    except FrameViolation as violation:
        return violation


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\xc1", "not MessagePack"),
        (b"\x81\xa1a\x01", "an array was expected and a map came"),
        (b"\x92\xa1a\x80", "an integer id was expected and a text came"),
        (b"\x92\xc3\x80", "an integer id was expected and a boolean came"),
        (b"\x91\x01", "an array of two or three was expected and one of 1 came"),
        (b"\xc0", "an array was expected and nil came"),
        (b"\x91" * 100_000 + b"\x01", "not MessagePack"),
        (b"\x92\x01\xc7\x0c\xff" + b"\xff" * 12, "not MessagePack"),
    ],
)
def test_a_violation_says_what_was_expected_and_what_came(payload: bytes, reason: str) -> None:
    """The reason can be read by whoever wrote the runtime."""
    with pytest.raises(FrameViolation, match=reason):
        decode_payload(Frame(0, payload))


def test_a_stream_that_ends_inside_a_frame_is_a_violation() -> None:
    """The end says how much was announced and how much came."""
    decoder = FrameDecoder()
    list(decoder.feed(b"\x00\x00\x00\x09abc"))
    with pytest.raises(FrameViolation, match="9 bytes were announced, 3 bytes came"):
        decoder.end()
    half = FrameDecoder()
    list(half.feed(b"\x00\x00"))
    with pytest.raises(FrameViolation, match="unfinished length, 2 bytes came"):
        half.end()


def test_encoding_an_oversize_frame_is_the_senders_error() -> None:
    """The cap holds for what is written, too, and the exact limit still fits."""
    fits = encode_frame([0, "x" * 90], max_frame=94)
    assert len(fits) == 4 + 94
    with pytest.raises(UnencodableFrame, match="at most 93 bytes, this one would hold 94"):
        encode_frame([0, "x" * 90], max_frame=93)


class Text(str):
    """A text of a subclass."""


class Number(int):
    """A number of a subclass."""


class Moment(datetime.datetime):
    """A time of a subclass."""


class Span(datetime.timedelta):
    """A duration of a subclass."""


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (Text("t"), "t"),
        (Number(7), 7),
        (Moment(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        (Moment(2026, 1, 2), "2026-01-02T00:00:00"),
        (Span(seconds=90), "PT90S"),
        (Colour.RED, "red"),
        (PurePosixPath("/a/b"), "/a/b"),
        ({1, 2}, [1, 2]),
        (range(3), [0, 1, 2]),
    ],
)
def test_what_airflows_models_hold_can_be_sent(sent: Any, arrives: Any) -> None:
    """Subclasses of builtins and other Python values arrive in MessagePack's own types."""
    (frame,) = FrameDecoder().feed(encode_frame([0, {"v": sent}]))
    assert decode_payload(frame)[1]["v"] == arrives


@pytest.mark.parametrize("value", [object(), 2**70, "\ud800", lambda: None])
def test_what_cannot_be_sent_is_one_error(value: Any) -> None:
    """Nothing else than the documented error comes out of the encoder."""
    with pytest.raises(UnencodableFrame, match="only what MessagePack can hold"):
        encode_frame([0, {"v": value}])
