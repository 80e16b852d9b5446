"""The log channel, both ways."""

from __future__ import annotations

import io
import json
import logging
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_handoff.wire.lines import Line, LineDecoder
from airflow_handoff.wire.log_writer import Threshold, encode_record
from airflow_handoff.wire.logs import (
    LEVELS,
    RESERVED,
    LogDecoder,
    LogRecord,
    OutputDecoder,
    nearest_level,
    parse_line,
)

NOON = datetime(2026, 11, 30, 12, 0, 0, 250000, tzinfo=timezone.utc)


def read(data: bytes, max_line: int = 1 << 20) -> list[LogRecord]:
    """Return the records of a whole channel."""
    decoder = LogDecoder(max_line)
    return [*decoder.feed(data), *decoder.end()]


def test_a_record_arrives_whole() -> None:
    """Event, level, logger, time and fields are what the program sent."""
    line = b'{"event":"hi","level":"warning","logger":"a.b","timestamp":"2026-11-30T12:00:00.25Z","n":[1]}\n'
    assert read(line) == [LogRecord("hi", "warning", "a.b", NOON, {"n": [1]})]
    assert read(line)[0].number == 30


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b'{"event":"x"}', LogRecord("x")),
        (b"[1]", LogRecord("[1]")),
        (b'"x"', LogRecord('"x"')),
        (b"not json", LogRecord("not json")),
        (b"", LogRecord("")),
        (b'{"event":"x"', LogRecord('{"event":"x"')),
        (b'{"event":"x","a":NaN}', LogRecord('{"event":"x","a":NaN}')),
        (b'{"event":"\xff"}', LogRecord('{"event":"\\xff"}')),
        (b'{"event":"\\ud800"}', LogRecord('{"event":"\\ud800"}')),
        (b'{"event":"x","level":["info"]}', LogRecord("x", fields={"level_": '["info"]'})),
        (b'{"event":"x","level":"loud"}', LogRecord("x", fields={"level_": "loud"})),
        (b'{"event":"x","level":true}', LogRecord("x", fields={"level_": "true"})),
        (b'{"event":"x","level":"info","timestamp":12}', LogRecord("x", fields={"timestamp_": "12"})),
        (b'{"event":"x","timestamp":"soon"}', LogRecord("x", fields={"timestamp_": "soon"})),
        (b'{"event":"x","logger":{"a":1}}', LogRecord("x", fields={"logger_": '{"a":1}'})),
        (b'{"event":{"a":1},"level":"error"}', LogRecord('{"a":1}', "error")),
        (b'{"event":null}', LogRecord("")),
        (
            b'{"event":"x","msg":1,"target":2,"self":3,"positional_args":[4],"exc_info":true}',
            LogRecord(
                "x", fields={"msg_": 1, "target_": 2, "self_": 3, "positional_args_": [4], "exc_info_": True}
            ),
        ),
        (b'{"event":"x","msg":1,"msg_":2}', LogRecord("x", fields={"msg_": 2, "msg__": 1})),
        (b'{"event":"x","level":[1],"level_":2}', LogRecord("x", fields={"level_": 2, "level__": "[1]"})),
    ],
)
def test_case_bad_log_line_keeps_every_line(line: bytes, record: LogRecord) -> None:
    """What is not understood is kept as text, beside all that is."""
    assert read(line + b"\n") == [record] or not line
    assert read(line + b"\r\n" + b'{"event":"next"}') == [record, LogRecord("next")]


HOSTILE = [
    json.dumps({"event": "%s %d {0}", "level": "info", key: value}).encode()
    for key in [*sorted(RESERVED), "exception", "error_detail", "stack", "ti_id", "filename", "lineno", "pid"]
    for value in ("text", 1, True, None, [1], {"a": 1})
]


def test_case_bad_log_line_cannot_hurt_airflows_own_logger() -> None:
    """Every record passes through the log chain that the real supervisor writes task logs with."""
    structlog = pytest.importorskip("structlog", reason="Airflow is what brings the log chain")
    from airflow.sdk.log import logging_processors

    sink = io.BytesIO()
    logger = structlog.wrap_logger(
        structlog.BytesLogger(sink),
        processors=logging_processors(json_output=True),
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        logger_name="task",
    ).bind()
    lines = [*HOSTILE, b"[1]", b"\xff\x00", b'{"event":"x","timestamp":12}', b'{"event":["x"],"level":{}}']
    for line in lines:
        (record,) = read(line)
        logger.log(record.number, record.event, logger=record.logger, **record.fields)
    written = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert len(written) == len(lines)
    assert [entry["event"] for entry in written][-4:] == ["[1]", "\\xff\x00", "x", '["x"]']


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("INFO", "info"), ("trace", "debug"), ("notset", "debug"), ("fatal", "critical"), ("WARN", "warning"),
        ("Severe", "error"), (" error ", "error"), (35, "error"), (34, "warning"),
        (0, "debug"), (99, "critical"), ("40", "error"), (21.5, "info"), (-5, "debug"),
        ("panic", "critical"), (True, None), (None, None),
        ([], None), ("quiet", None), ("9" * 400, None),
    ],
)  # fmt: skip
def test_case_log_levels_go_to_the_nearest(sent: Any, shown: str | None) -> None:
    """Names of other loggers and numbers have a nearest level; nothing else has."""
    assert nearest_level(sent) == shown
    (record,) = read(json.dumps({"event": "x", "level": sent}).encode())
    assert record.level == (shown or "info")


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("[main] INFO org.acme.Job - started", "info"),
        ("2026-11-30 12:00:00,123 WARN  Job - slow", "warning"),
        ("2026-11-30T12:00:00.123Z [worker-1] DEBUG x", "debug"),
        ("SEVERE: broken", "error"),
        ("[ERROR] no", "error"),
        ("FATAL", "critical"),
        ("Traceback (most recent call last):", "error"),
        ("INFORMATION is not a level here", "error"),
        ("the INFO comes later", "error"),
        ("", "error"),
    ],
)
def test_case_log_levels_of_printed_lines(line: str, level: str) -> None:
    """What a logger printed on stderr keeps its level; anything else there is an error."""
    decoder = OutputDecoder("stderr", "error")
    assert decoder.feed(line.encode() + b"\n") == [LogRecord(line, level, "task.stderr")]  # type: ignore[arg-type]


def test_printed_lines_keep_order_and_the_last_one_without_newline() -> None:
    """Output is lines, in order, the unfinished one at the end included."""
    decoder = OutputDecoder("stdout", "info")
    assert [record.event for record in decoder.feed(b"a\n\nb")] == ["a", ""]
    assert decoder.feed(b"c\xffd") == []
    assert decoder.end() == [LogRecord("bc\\xffd", "info", "task.stdout")]
    assert decoder.end() == []


def test_case_long_line_is_cut_in_linear_time() -> None:
    """A line of 50 MB in small pieces becomes one record with a mark, and the line behind it is whole."""
    size = 50 * 1024 * 1024
    head = b'{"level":"error","event":"'
    piece = b"x" * 65536
    decoder = LogDecoder(max_line=1000)
    began = time.perf_counter()
    records = decoder.feed(head)
    for _ in range(size // len(piece)):
        records += decoder.feed(piece)
    records += decoder.feed(b'"}\n{"event":"next"}\nno newline')
    took = time.perf_counter() - began
    records += decoder.end()
    total = len(head) + size + 2
    assert [record.level for record in records] == ["error", "info", "info"]
    assert records[0].event == (head + b"x" * 974).decode() + f"... [cut: {total - 1000} more bytes]"
    assert [record.event for record in records[1:]] == ["next", "no newline"]
    # Far above what a linear scan takes, far below what rescanning does.
    assert took < 60


def test_case_long_line_without_newline_is_not_held() -> None:
    """Memory is bounded by the cap however much comes."""
    decoder = LineDecoder(max_line=10)
    for _ in range(1000):
        assert decoder.feed(b"y" * 1000) == []
    assert decoder.end() == [Line(b"y" * 10, 999_990)]


@settings(deadline=None, max_examples=100)
@given(
    lines=st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), min_size=1, max_size=8),
    cut=st.integers(1, 17),
    cap=st.integers(1, 30),
)
def test_lines_do_not_depend_on_how_they_arrived(lines: list[bytes], cut: int, cap: int) -> None:
    """Each line is one record, its head kept and the rest counted, wherever the stream is cut."""
    stream = b"\n".join(lines)
    decoder = LineDecoder(cap)
    found = [
        line for start in range(0, len(stream), cut) for line in decoder.feed(stream[start : start + cut])
    ]
    found += decoder.end()
    expected = [
        Line(line[:cap], len(line) - cap) if len(line) > cap else Line(line.removesuffix(b"\r"))
        for line in lines
    ]
    if expected[-1] == Line(b"") and not lines[-1]:
        expected.pop()
    assert found == expected


@settings(deadline=None, max_examples=300)
@given(data=st.binary(max_size=80) | st.text(max_size=40).map(str.encode))
def test_any_line_becomes_a_record_that_can_be_written(data: bytes) -> None:
    """No line raises, and whatever comes out can be encoded as UTF-8."""
    record = parse_line(Line(data))
    record.event.encode()
    assert record.level in LEVELS
    assert RESERVED.isdisjoint(record.fields)


# -- the writing side -------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(
    event=st.text(),
    level=st.sampled_from(sorted(LEVELS)),
    fields=st.dictionaries(
        st.text(min_size=1).filter(lambda key: not {key, key.rstrip("_")} & RESERVED), values
    ),
)
def test_what_is_written_is_read_back(event: str, level: Any, fields: dict[str, Any]) -> None:
    """A record survives the channel."""
    line = encode_record(event, level, logger="a", timestamp=NOON, fields=fields)
    assert line.count(b"\n") == 1
    assert read(line) == [LogRecord(event, level, "a", NOON, fields)]


class Odd:
    """A value that JSON has no form for."""

    def __repr__(self) -> str:
        return "<odd>"


def test_what_json_cannot_hold_is_written_as_text() -> None:
    """A runtime never loses a record because of a value in it."""
    fields = {"odd": Odd(), "nan": float("nan"), "span": timedelta(seconds=1), "event": "e", 1: 2}
    (record,) = read(encode_record("x", fields=fields))  # type: ignore[arg-type]
    assert record.fields == {"odd": "<odd>", "nan": None, "span": "PT1S", "event_": "e", "1": 2}
    (record,) = read(encode_record("\ud800", fields={"a": "\ud800", "b": 1}))
    assert (record.event, record.fields) == ("\\ud800", {"a": "\\ud800", "b": "1"})
    loop: list[Any] = []
    loop.append(loop)
    assert len(read(encode_record("x", fields={"loop": loop}))) == 1


def test_a_runtime_filters_by_logger() -> None:
    """The longest name that fits decides, and the global level where none does."""
    threshold = Threshold.from_environ(
        {
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "a=debug, a.b=error\n c=NOTSET bad =info d=loud",
        }
    )
    assert threshold == Threshold(30, {"a": 10, "a.b": 40, "c": 0})
    asked = [
        ("info", None),
        ("warning", "x"),
        ("debug", "a.z"),
        ("warning", "a.b.c"),
        ("error", "a.b"),
        (5, "c"),
    ]
    assert [threshold.sends(level, name) for level, name in asked] == [  # type: ignore[arg-type]
        False, True, True, False, True, True,
    ]  # fmt: skip
    assert Threshold.from_environ({}) == Threshold(20, {})
