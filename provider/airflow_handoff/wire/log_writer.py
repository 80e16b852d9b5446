"""A runtime's half of the log channel: which records are sent, and their bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from airflow_handoff.wire.logs import LEVELS, LevelName, nearest_level

_OWN_KEYS = frozenset({"event", "level", "logger", "timestamp"})
_encode = msgspec.json.Encoder(enc_hook=repr, decimal_format="string").encode


def encode_record(
    event: str,
    level: LevelName = "info",
    *,
    logger: str | None = None,
    timestamp: datetime | None = None,
    fields: Mapping[str, Any] | None = None,
) -> bytes:
    """Return one line of the log channel, its newline included.

    A value that JSON cannot hold is sent as its ``repr``.

    :param timestamp: aware; left out where ``None``.
    :param fields: anything else; a key that the channel uses itself gets a ``_`` behind it.
    """
    record: dict[str, Any] = {"event": event, "level": level}
    if logger is not None:
        record["logger"] = logger
    if timestamp is not None:
        record["timestamp"] = timestamp
    for key, value in (fields or {}).items():
        record[f"{key}_" if key in _OWN_KEYS else str(key)] = value
    try:
        return _encode(record) + b"\n"
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _encode({key: _safe(value) for key, value in record.items()}) + b"\n"


def _safe(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class Threshold:
    """Which records a runtime sends.

    :param level: the least level, as a number.
    :param loggers: the least level below a logger's name; the longest name that fits counts.
    """

    level: int = LEVELS["info"]
    loggers: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Threshold:
        """Read ``AIRFLOW__LOGGING__LOGGING_LEVEL`` and ``AIRFLOW__LOGGING__NAMESPACE_LEVELS``.

        What cannot be read is passed over.
        """
        found = _number(environ.get("AIRFLOW__LOGGING__LOGGING_LEVEL", ""))
        loggers = {}
        for item in re.split(r"[\s,]+", environ.get("AIRFLOW__LOGGING__NAMESPACE_LEVELS", "")):
            name, equals, level = item.partition("=")
            number = _number(level)
            if name and equals and number is not None:
                loggers[name] = number
        return cls(LEVELS["info"] if found is None else found, loggers)

    def sends(self, level: LevelName | int, logger: str | None = None) -> bool:
        """Say whether a record of this level and logger is sent."""
        number = level if isinstance(level, int) else LEVELS[level]
        name = logger or ""
        while name:
            if name in self.loggers:
                return number >= self.loggers[name]
            name = name.rpartition(".")[0]
        return number >= self.level


def _number(text: str) -> int | None:
    if text.strip().lower() == "notset":
        return 0
    name = nearest_level(text)
    return None if name is None else LEVELS[name]
