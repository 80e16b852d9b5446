"""The way of ``logging`` records into the task log."""

from __future__ import annotations

import json
import logging
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

_LEVELS = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))
_NUMBERS = {"critical": 50, "fatal": 50, "error": 40, "warning": 30, "warn": 30, "info": 20, "debug": 10}
_STANDARD = frozenset(
    [
        "name",
        "msg",
        "args",
        "levelname",
        "levelno",
        "pathname",
        "filename",
        "module",
        "exc_info",
        "exc_text",
        "stack_info",
        "lineno",
        "funcName",
        "created",
        "msecs",
        "relativeCreated",
        "thread",
        "threadName",
        "processName",
        "process",
        "taskName",
        "message",
        "asctime",
    ]
)
# Names that Airflow 3.3's own log reader uses for itself: as fields they would end the supervisor.
_TAKEN = frozenset(("event", "level", "logger", "timestamp", "msg", "target", "self", "positional_args"))


def thresholds(environ: dict[str, str]) -> tuple[int, dict[str, int]]:
    """Return the global threshold and those of single loggers, as Airflow set them.

    :param environ: ``AIRFLOW__LOGGING__LOGGING_LEVEL`` and ``AIRFLOW__LOGGING__NAMESPACE_LEVELS`` are read;
        what cannot be understood counts as not set.
    """
    overall = level_number(environ.get("AIRFLOW__LOGGING__LOGGING_LEVEL", ""))
    single = {}
    for item in environ.get("AIRFLOW__LOGGING__NAMESPACE_LEVELS", "").replace(",", " ").split():
        name, _, level = item.partition("=")
        number = level_number(level)
        if name and number is not None:
            single[name] = number
    return logging.INFO if overall is None else overall, single


def level_number(text: str) -> int | None:
    """Return the number of a level given by name or number; ``None`` where it is neither."""
    text = text.strip().lower()
    if text.isdecimal():
        return int(text)
    return 0 if text == "notset" else _NUMBERS.get(text)


def level_name(number: int) -> str:
    """Return the nearest level that Airflow knows."""
    for least, name in _LEVELS:
        if number >= least:
            return name
    return "debug"


class WireHandler(logging.Handler):
    """Sends each record as one JSON line; keeps what comes before there is a socket.

    A record that can no longer be sent goes to stderr, which the supervisor reads as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self.overall, self.single = thresholds(dict(os.environ))
        self._sock: socket.socket | None = None
        #: Lines on their way, each with how many bytes of it each call has sent.
        self._lines: list[tuple[bytes, list[int]]] = []
        self._sending = False
        self._ended = False
        self._pid = os.getpid()

    def connect(self, sock: socket.socket) -> None:
        """Send the kept records in their order, and everything from now on.

        :param sock: a connected stream socket; the handler owns it.
        """
        self.acquire()
        try:
            self._sock = sock
            self._send()
        finally:
            self.release()

    def wants(self, record: logging.LogRecord) -> bool:
        """Say whether a record reaches the threshold of its logger."""
        name = record.name
        while self.single:
            if name in self.single:
                return record.levelno >= self.single[name]
            name, dot, _ = name.rpartition(".")
            if not dot:
                break
        return record.levelno >= self.overall

    def emit(self, record: logging.LogRecord) -> None:
        """Send or keep one record."""
        try:
            if not self.wants(record):
                return
            line = to_line(record)
            if os.getpid() != self._pid:
                # A forked child's line on the same socket could end up inside of one of its parent's.
                _to_stderr(line)
                return
            self._lines.append((line, []))
            self._send()
        except Exception:  # a log record never fails the task
            self.handleError(record)

    def give_up(self) -> None:
        """Write to stderr what was kept and what still comes: there will be no socket."""
        self._ended = True
        self.flush()

    def flush(self) -> None:
        """Send what an interrupted record has left behind."""
        if os.getpid() != self._pid:
            return
        self.acquire()
        try:
            self._sending = False
            self._send()
        finally:
            self.release()

    def _send(self) -> None:
        """Send the lines in their order; a signal handler's own line follows the one that it interrupted."""
        if self._sending or (self._sock is None and not self._ended):
            return
        self._sending = True
        try:
            while self._lines:
                self._send_line(*self._lines[0])
                del self._lines[0]
        finally:
            self._sending = False

    def _send_line(self, line: bytes, sent: list[int]) -> None:
        sock = self._sock
        while sock is not None and sum(sent) < len(line):
            try:
                # One C call, in which no signal handler runs: what was sent is always counted.
                sent.extend(map(sock.send, (memoryview(line)[sum(sent) :],)))
            except OSError:
                self._sock = sock = None
                self._ended = True
        if sock is None:
            _to_stderr(line)


def _to_stderr(data: bytes) -> None:
    sys.stderr.write(data.decode("utf-8", "replace"))


def to_line(record: logging.LogRecord) -> bytes:
    """Return the JSON line of a record, its newline included."""
    whole = int(record.created)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    micros = int((record.created - whole) * 1000000)
    fields: dict[str, Any] = {
        "timestamp": f"{stamp}.{micros:06d}Z",
        "level": level_name(record.levelno),
        "logger": record.name,
        "event": record.getMessage(),
        "filename": record.filename,
        "lineno": record.lineno,
    }
    for key, value in record.__dict__.items():
        if key not in _STANDARD:
            fields[f"{key}_" if key in _TAKEN else key] = value
    if record.exc_info and record.exc_info[0] is not None:
        fields["exception"] = exception_chain(record.exc_info[1])
    if record.stack_info:
        fields["stack"] = record.stack_info
    return _dump(fields)


def _dump(fields: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = json.dumps({k: _plain(v) for k, v in fields.items()}, ensure_ascii=False)
    # A lone surrogate would make the line unreadable for the supervisor.
    return text.encode("utf-8", "replace") + b"\n"


def _plain(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return repr(value)
    return value


def exception_chain(error: BaseException | None) -> list[dict[str, Any]]:
    """Return an exception and its causes in the shape that Airflow's log page shows."""
    chain: list[dict[str, Any]] = []
    is_cause = False
    while error is not None and len(chain) < 20:
        frames = []
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            frames.append({"filename": code.co_filename, "lineno": trace.tb_lineno, "name": code.co_name})
            trace = trace.tb_next
        chain.append(
            {
                "exc_type": type(error).__name__,
                "exc_value": str(error),
                "exc_notes": list(getattr(error, "__notes__", ())),
                "syntax_error": None,
                "is_cause": is_cause,
                "frames": frames[-50:],
                "is_group": False,
                "exceptions": [],
            }
        )
        is_cause = error.__cause__ is not None
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain


def install() -> WireHandler:
    """Put the handler on the root logger, with Airflow's thresholds, and return it."""
    handler = WireHandler()
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(handler.overall)
    for name, level in handler.single.items():
        logging.getLogger(name).setLevel(level)
    return handler
