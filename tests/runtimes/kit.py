"""A runtime in Python, for tests: connects, reads the startup details, and offers ``ask`` and ``log``.

It is the head of a script and imports no package of ours: it shares no code with what it tests, so that a
fault there cannot hide itself here.
"""

import json
import os  # noqa: F401  # what scripts behind this head use
import signal  # noqa: F401
import socket
import struct
import subprocess  # noqa: F401
import sys
import time  # noqa: F401

import msgpack


def door(which):
    """Connect to one of the two doors."""
    host, port = next(a for a in sys.argv if a.startswith(f"--{which}=")).split("=")[1].split(":")
    return socket.create_connection((host, int(port)))


def frame(content):
    """Encode one frame."""
    data = msgpack.packb(content)
    return struct.pack(">I", len(data)) + data


def exactly(n):
    """Read so many bytes."""
    data = bytearray()
    while len(data) < n:
        more = comm.recv(min(n - len(data), 1 << 20))
        if not more:
            sys.exit("the channel ended")
        data += more
    return bytes(data)


def read():
    """Read one frame."""
    return msgpack.unpackb(exactly(struct.unpack(">I", exactly(4))[0]), timestamp=3, strict_map_key=False)


numbers = iter(range(1, 1 << 30))


def ask(type, **body):
    """Send a request and return the body and the error of its answer."""
    number = next(numbers)
    comm.sendall(frame([number, {"type": type, **body}]))
    answer = read()
    assert answer[0] == number, (answer, number)
    return answer[1], answer[2]


def log(line):
    """Write one raw line to the log channel."""
    logs.sendall((line if isinstance(line, bytes) else line.encode()) + b"\n")


def say(event, level="info", **fields):
    """Write one record to the log channel."""
    log(json.dumps({"event": event, "level": level, **fields}))


NOW = "2026-11-30T10:00:00Z"


def succeed(**more):
    """Report success."""
    return ask("SucceedTask", end_date=NOW, state="success", task_outlets=[], outlet_events=[], **more)


def get_xcom(task_id, key="return_value"):
    """Return another task's XCom of this run."""
    where = {"dag_id": ti["dag_id"], "run_id": ti["run_id"], "task_id": task_id, "map_index": None}
    return ask("GetXCom", key=key, **where)[0]["value"]


def set_xcom(value, key="return_value"):
    """Push an XCom of this task."""
    where = {name: ti[name] for name in ("dag_id", "run_id", "task_id")}
    return ask("SetXCom", key=key, value=value, map_index=ti["map_index"], **where)


comm, logs = door("comm"), door("logs")
details = read()[1]
ti = details["ti"]
context = details["ti_context"]
