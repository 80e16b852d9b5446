"""A scripted supervisor: starts the real program, answers what the test says, records what it saw."""

from __future__ import annotations

import copy
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path

from airflow_handoff_sdk.msgpack import packb, unpackb

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
LIMIT = 30.0

DAG_RUN = {
    "dag_id": "dag", "run_id": "run", "logical_date": None, "data_interval_start": None,
    "data_interval_end": None, "run_after": "2026-11-30T10:00:00Z", "start_date": None, "end_date": None,
    "run_type": "manual", "state": "running", "conf": {"given": 1}, "consumed_asset_events": [],
    "partition_key": None,
}  # fmt: skip


def startup(task_id, **changes):
    """Return a ``StartupDetails`` body; keywords change the task instance or its server context."""
    ti = {
        "id": str(uuid.UUID(int=7)), "task_id": task_id, "dag_id": "dag", "run_id": "run", "try_number": 1,
        "dag_version_id": str(uuid.UUID(int=8)), "map_index": -1, "hostname": None,
        "context_carrier": None, "queue": "python",
    }  # fmt: skip
    server = {
        "dag_run": copy.deepcopy(DAG_RUN), "task_reschedule_count": 0, "max_tries": 0, "variables": [],
        "connections": [], "next_method": None, "next_kwargs": None, "xcom_keys_to_clear": [],
        "should_retry": False, "start_date": None,
    }  # fmt: skip
    for key, value in changes.items():
        (ti if key in ti else server)[key] = value
    return {
        "ti": ti, "dag_rel_path": "x.py", "bundle_info": {"name": "b", "version": None},
        "start_date": "2026-11-30T10:00:00Z", "ti_context": server, "sentry_integration": "",
        "type": "StartupDetails",
    }  # fmt: skip


class Refuse:
    """A reply whose third element says no."""

    def __init__(self, error, **detail):
        self.body = {"type": "ErrorResponse", "error": error, "detail": detail}


def missing(code):
    """Return an ``ErrorResponse`` as a body, the way a missing variable is answered."""
    return {"type": "ErrorResponse", "error": code, "detail": {}}


class Run:
    """What one task process said, in order."""

    def __init__(self, frames, logs, code, stdout, stderr):
        self.frames = frames
        self.bodies = [frame[1] for frame in frames]
        self.logs = logs
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    @property
    def last(self):
        """The message that ended the task."""
        return self.bodies[-1]

    def of(self, kind):
        """Return the requests of a type."""
        return [body for body in self.bodies if body["type"] == kind]

    def events(self, logger=None):
        """Return the texts of the log records, of one logger or of all."""
        return [line["event"] for line in self.logs if logger in (None, line["logger"])]


def read_exactly(sock, size):
    """Return ``size`` bytes, fewer at the end of the stream."""
    data = b""
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            return data
        data += chunk
    return data


def write_frame(sock, frame):
    """Send one frame."""
    payload = packb(frame)
    sock.sendall(len(payload).to_bytes(4, "big") + payload)


def answer(sock, ident, body, script):
    """Reply to one request as the script says."""
    reply = script.get(body["type"])
    if callable(reply):
        reply = reply(body)
    if isinstance(reply, Refuse):
        write_frame(sock, [ident, None, reply.body])
    else:
        write_frame(sock, [ident, reply, None])


def serve(sock, first, script, frames, hold=1):
    """Send the first frame and answer until the peer closes.

    :param hold: collect that many requests for variables and answer them in reverse order.
    """
    write_frame(sock, [0, first, None])
    held = []
    while True:
        head = read_exactly(sock, 4)
        if len(head) < 4:
            return
        frame = unpackb(read_exactly(sock, int.from_bytes(head, "big")))
        frames.append(frame)
        held.append(frame)
        if len(held) >= hold or frame[1]["type"] != "GetVariable":
            for ident, body in reversed([(f[0], f[1]) for f in held]):
                answer(sock, ident, body, script)
            held = []


def listen():
    """Return a listening socket and its address."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    server.settimeout(LIMIT)
    return server, f"127.0.0.1:{server.getsockname()[1]}"


def run_program(first, script=None, *, program="tasks.py", env=None, hold=1, command=None, between=None):
    """Start the program, be its supervisor until it ends, and return a :class:`Run`."""
    comm_server, comm_address = listen()
    logs_server, logs_address = listen()
    command = command or [sys.executable, "-m", "airflow_handoff_sdk.run", str(HERE / "programs" / program)]
    process = subprocess.Popen(
        [*command, "--comm=" + comm_address, "--logs=" + logs_address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), **(env or {})},
    )
    try:
        comm, _ = comm_server.accept()
        comm.settimeout(LIMIT)
        if between:
            between(process)
        logs, _ = logs_server.accept()
        lines = []
        reader = threading.Thread(target=collect, args=(logs, lines))
        reader.start()
        frames = []
        serve(comm, first, script or {}, frames, hold)
        stdout, stderr = process.communicate(timeout=LIMIT)
        reader.join(LIMIT)
        for sock in (comm, logs):
            sock.close()
        records = [json.loads(line) for line in b"".join(lines).splitlines()]
        return Run(frames, records, process.returncode, stdout.decode(), stderr.decode())
    finally:
        for sock in (comm_server, logs_server):
            sock.close()
        if process.poll() is None:
            process.kill()
            process.communicate()


def collect(sock, chunks):
    """Read a stream to its end."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        while selector.select(LIMIT):
            chunk = sock.recv(65536)
            if not chunk:
                return
            chunks.append(chunk)
