"""The log channel both ways: bytes to records, and records to bytes.

One JSON object per line. Every line becomes a record: what is not understood is kept as text, and a line
above the cap is cut with a mark that says how much is missing.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Literal

import msgspec

from airflow_handoff.wire.lines import DEFAULT_MAX_LINE, Line, LineDecoder

__all__ = [
    "DEFAULT_MAX_LINE",
    "LEVELS",
    "RESERVED",
    "LevelName",
    "LogDecoder",
    "LogRecord",
    "OutputDecoder",
    "nearest_level",
    "parse_line",
]

LevelName = Literal["debug", "info", "warning", "error", "critical"]

#: The levels that Airflow shows, with their numbers.
LEVELS: dict[LevelName, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

#: Keys that loggers' own parameters or log processors take; a field of this name gets a ``_`` behind it.
RESERVED = frozenset(
    {
        "_from_structlog", "_logger", "_name", "_record", "args", "event", "exc_info", "level", "logger",
        "method_name", "msg", "positional_args", "self", "stack_info", "target", "timestamp",
    }
)  # fmt: skip

_NAMES: dict[LevelName, str] = {
    "debug": "debug notset all trace verbose silly fine finer finest config dbg",
    "info": "info information informational notice log success http",
    "warning": "warning warn wrn",
    "error": "error err severe exception",
    "critical": "critical fatal crit alert emergency emerg panic dpanic",
}
_ALIASES: dict[str, LevelName] = {alias: level for level, names in _NAMES.items() for alias in names.split()}


class LogRecord(msgspec.Struct, frozen=True):
    """One line of a log.

    :param event: the text.
    :param level: the nearest level that Airflow shows.
    :param logger: the name the program gave, where it gave one.
    :param timestamp: aware; ``None`` where the line had none that could be read.
    :param fields: everything else, safe to pass as keyword arguments to a structlog logger.
    """

    event: str
    level: LevelName = "info"
    logger: str | None = None
    timestamp: datetime | None = None
    fields: dict[str, Any] = {}  # msgspec copies it

    @property
    def number(self) -> int:
        """The level as a number, 10 to 50."""
        return LEVELS[self.level]


def nearest_level(value: Any) -> LevelName | None:
    """Return the level that is nearest to a name or a number, or ``None`` where the value is neither.

    Of two that are equally near it is the graver one.
    """
    if isinstance(value, str):
        name = _ALIASES.get(value.strip().lower())
        if name is not None or not _NUMBER.fullmatch(value):
            return name
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return min(reversed(LEVELS), key=lambda name: abs(LEVELS[name] - value))
    return None


_NUMBER = re.compile(r"-?\d{1,9}")
_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder(enc_hook=repr).encode
_LEVEL_OF_CUT = re.compile(rb'"level"\s*:\s*"?(\w{1,20})')


def parse_line(line: Line) -> LogRecord:
    """Read one line of the log channel; whatever it holds, a record comes out."""
    data, missing = line
    if missing:
        return _cut(line)
    try:
        fields = _decode_json(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return LogRecord(line.text())
    if type(fields) is not dict:
        return LogRecord(line.text())
    event = fields.pop("event", "")
    sent_level = fields.pop("level", None)
    sent_time = fields.pop("timestamp", None)
    logger = fields.pop("logger", None)
    if fields and not RESERVED.isdisjoint(fields):
        for key in RESERVED & fields.keys():
            fields[_free_name(key, fields)] = fields.pop(key)
    level: LevelName | None = _ALIASES.get(sent_level) if type(sent_level) is str else None
    if level is None:
        level = nearest_level(sent_level)
        if level is None:
            level = "info"
            _keep(fields, "level", sent_level)
    time = None
    if sent_time is not None:
        time = _time(sent_time)
        if time is None:
            _keep(fields, "timestamp", sent_time)
    if logger is not None and type(logger) is not str:
        _keep(fields, "logger", logger)
        logger = None
    return LogRecord(event if type(event) is str else _as_text(event), level, logger, time, fields)


def _cut(line: Line) -> LogRecord:
    found = _LEVEL_OF_CUT.search(line.data, 0, 4096)
    level = nearest_level(found[1].decode("ascii", "replace")) if found else None
    return LogRecord(line.text(), level or "info")


def _free_name(name: str, taken: dict[str, Any]) -> str:
    name += "_"
    while name in taken:
        name += "_"
    return name


def _keep(fields: dict[str, Any], name: str, value: Any) -> None:
    """Keep a value that was not understood, as text."""
    if value is not None:
        fields[_free_name(name, fields)] = _as_text(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else _encode_json(value).decode()


def _time(value: Any) -> datetime | None:
    if type(value) is not str:
        return None
    try:
        time = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        try:
            # Wider than RFC 3339 from Python 3.11 on, which still is ISO 8601.
            time = datetime.fromisoformat(value)
        except ValueError:
            return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


class LogDecoder:
    """Turn the bytes of the log channel into records.

    :param max_line: how many bytes of a line are kept.
    """

    def __init__(self, max_line: int = DEFAULT_MAX_LINE) -> None:
        self._lines = LineDecoder(max_line)

    def feed(self, data: bytes | bytearray | memoryview) -> list[LogRecord]:
        """Take bytes as they come and return a record for each line that they complete."""
        return [parse_line(line) for line in self._lines.feed(data)]

    def end(self) -> list[LogRecord]:
        """Return the record of the last line where it had no newline."""
        return [parse_line(line) for line in self._lines.end()]


# A level in capitals at the head of a line, after at most a date, a time and one bracketed name: what SLF4J,
# java.util.logging, Go and most shell scripts print.
_MARKED = re.compile(
    r"(?:\d[\d:.,/TZ+-]{0,40}\s+){0,2}(?:\[[^\]]{1,80}\]\s+)?\[?"
    r"(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL|CONFIG|FINE|FINER|FINEST)\b[\]:]?(?=\s|$)"
)


class OutputDecoder:
    """Turn what a program prints into records.

    A line that begins with a level in capitals, as many loggers print it, gets that level.

    :param stream: ``stdout`` or ``stderr``; the records' logger is ``task.<stream>``.
    :param level: of lines that name none.
    :param max_line: how many bytes of a line are kept.
    """

    def __init__(self, stream: str, level: LevelName, max_line: int = DEFAULT_MAX_LINE) -> None:
        self._lines = LineDecoder(max_line)
        self._logger = f"task.{stream}"
        self._level = level

    def feed(self, data: bytes | bytearray | memoryview) -> list[LogRecord]:
        """Take bytes as they come and return a record for each line that they complete."""
        return [self._record(line) for line in self._lines.feed(data)]

    def end(self) -> list[LogRecord]:
        """Return the record of the last line where it had no newline."""
        return [self._record(line) for line in self._lines.end()]

    def _record(self, line: Line) -> LogRecord:
        text = line.text()
        marked = _MARKED.match(text)
        level = nearest_level(marked[1]) if marked else None
        return LogRecord(text, level or self._level, self._logger)
