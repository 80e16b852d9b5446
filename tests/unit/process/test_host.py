"""A hosted runtime starts, talks and ends with its whole tree, whatever it does."""

from __future__ import annotations

import errno
import os
import signal
import socket
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from airflow_handoff.process import Host, Phase
from airflow_handoff.process import doors as doors_module
from airflow_handoff.process import host as host_module

ENV = {"PATH": os.environ["PATH"]}
CONNECT = """
import os, signal, socket, subprocess, sys, time
def door(which):
    host, port = next(a for a in sys.argv if a.startswith(f"--{which}=")).split("=")[1].split(":")
    return socket.create_connection((host, int(port)))
def meet():
    comm, logs = door("comm"), door("logs")
    assert comm.recv(3) == b"go."
    return comm, logs
"""


class Listener:
    """A receiver that writes everything down."""

    def __init__(self) -> None:
        self.heard: dict[str, bytes] = {name: b"" for name in ("comm", "logs", "stdout", "stderr")}
        self.ended: set[str] = set()
        self.is_connected = False
        self.on_comm: Callable[[bytes], None] = lambda data: None

    def connected(self) -> None:
        """Remember it."""
        self.is_connected = True

    def _hear(self, name: str, data: bytes) -> None:
        self.heard[name] += data
        if not data:
            self.ended.add(name)

    def comm(self, data: bytes) -> None:
        """Write it down."""
        self._hear("comm", data)
        self.on_comm(data)

    def logs(self, data: bytes) -> None:
        """Write it down."""
        self._hear("logs", data)

    def stdout(self, data: bytes) -> None:
        """Write it down."""
        self._hear("stdout", data)

    def stderr(self, data: bytes) -> None:
        """Write it down."""
        self._hear("stderr", data)


class Stage:
    """A host, its listener and a way to run the two for a while."""

    def __init__(self, **arguments: float) -> None:
        self.listener = Listener()
        self.host = Host(self.listener, **arguments)

    def python(self, body: str) -> None:
        """Launch a runtime written in Python; ``meet()`` connects it and waits for the first bytes."""
        self.host.send(b"go.")
        self.host.launch([sys.executable, "-c", CONNECT + textwrap.dedent(body)], ENV)

    def until(self, condition: Callable[[], object], limit: float = 30) -> None:
        """Turn until the condition holds."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f"not within {limit} s: {self.listener.heard}"
            self.host.step(0.05)

    def to_the_end(self) -> None:
        """Turn until the runtime and its tree are gone."""
        self.until(lambda: self.host.phase is Phase.ENDED)


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A prepared host."""
    made = Stage()
    yield made
    made.host.close()


def gone(pid: int) -> bool:
    """Whether a process runs no more."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_everything_arrives(stage: Stage) -> None:
    """Bytes of all four channels arrive, to the last one, and the exit code with them."""
    stage.python("""
        comm, logs = meet()
        comm.sendall(b"question"); answer = comm.recv(100)
        logs.sendall(b"a line\\n"); print("said", answer.decode()); print("tail", file=sys.stderr, end="")
        sys.exit(7)
    """)
    stage.host.send(b"early, ")
    stage.host.send(b"answer")
    stage.to_the_end()
    heard = stage.listener.heard
    assert heard["comm"] == b"question"
    assert heard["logs"] == b"a line\n"
    assert heard["stdout"].startswith(b"said early")
    assert heard["stderr"] == b"tail"
    assert stage.listener.ended == {"comm", "logs", "stdout", "stderr"}
    assert stage.host.exit_code == 7
    assert stage.host.failure is None


def test_defaults_of_signals_and_standard_input(stage: Stage) -> None:
    """A runtime starts with default signals and a standard input that has ended, whatever its host has."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ours = Stage()
        ours.python("""
            comm, logs = meet()
            print([signal.getsignal(s) is signal.SIG_IGN for s in (signal.SIGINT, signal.SIGTERM)])
            print(repr(sys.stdin.read()), os.getsid(0) == os.getpid(), signal.pthread_sigmask(0, ()))
        """)
        ours.to_the_end()
        ours.host.close()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ours.listener.heard["stdout"] == b"[False, False]\n'' True set()\n"


def test_what_cannot_be_run(stage: Stage) -> None:
    """A command that does not exist is a failure with the system's own reason."""
    stage.host.launch(["/no/such/program"], ENV)
    stage.to_the_end()
    assert "'/no/such/program' cannot be run: No such file" in str(stage.host.failure)


def test_case_early_log(stage: Stage) -> None:
    """early-log: the output of a runtime that dies before it connects is kept and repeated."""
    stage.host.launch(["sh", "-c", "echo one; echo two >&2; exit 3"], ENV)
    stage.to_the_end()
    assert stage.listener.heard["stdout"] == b"one\n"
    assert stage.listener.heard["stderr"] == b"two\n"
    assert "ended with exit code 3 before it connected" in str(stage.host.failure)
    assert stage.host.failure is not None
    assert {"one", "two"} == set(stage.host.failure.said.split())


def test_case_slow_start() -> None:
    """slow-start: output is seen meanwhile; the failure names the limit and what was printed."""
    stage = Stage(startup_timeout=1.5)
    stage.host.launch(["sh", "-c", "echo warming up; sleep 600 & sleep 600"], ENV)
    stage.until(lambda: stage.listener.heard["stdout"] == b"warming up\n")
    assert stage.host.failure is None
    stage.to_the_end()
    stage.host.close()
    assert str(stage.host.failure).startswith("the runtime did not connect within 1.5 s; raise")
    assert "it printed: warming up" in str(stage.host.failure)


LINGERERS = """
    comm, logs = meet()
    deaf = "import signal,time;[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)];time.sleep(600)"
    pids = [
        subprocess.Popen(["sleep", "600"]).pid,
        subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL).pid,
        subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True, stderr=subprocess.DEVNULL).pid,
    ]
    read, write = os.pipe()
    if not os.fork():  # the double fork of a daemon
        os.setsid()
        pid = os.fork()
        if pid:
            os.write(write, str(pid).encode()); os._exit(0)
        time.sleep(600)
    pids.append(int(os.read(read, 100)))
    comm.sendall(" ".join(map(str, pids)).encode() + b".")
"""


@pytest.mark.parametrize("how", ["stop", "exit", "killed", "close"])
def test_case_grandchild(stage: Stage, how: str) -> None:
    """grandchild: children, escapees, daemons and the deaf are gone soon, on every path."""
    stage.python(LINGERERS + ("    time.sleep(600)" if how != "exit" else ""))
    stage.until(lambda: b"." in stage.listener.heard["comm"])
    pids = [int(pid) for pid in stage.listener.heard["comm"].strip(b".").split()]
    assert len(pids) == 4
    started = time.monotonic()
    if how == "stop":
        stage.host.stop(0.5)
    elif how == "killed":
        assert stage.host.runtime_pid is not None
        os.kill(stage.host.runtime_pid, signal.SIGKILL)
    if how == "close":
        stage.host.close()
    else:
        stage.to_the_end()
    assert all(gone(pid) for pid in pids)
    # The fault cost a minute; the grace here is half a second.
    assert time.monotonic() - started < 30


def test_a_killed_host_takes_its_tree_along(tmp_path: Path) -> None:
    """SIGKILL of the host clears the whole tree within seconds."""
    script = tmp_path / "host.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_host import Stage, LINGERERS\n"
        "s = Stage(); s.python(LINGERERS + '    time.sleep(600)')\n"
        "s.until(lambda: b'.' in s.listener.heard['comm'])\n"
        "print(s.host.pid, s.host.runtime_pid, s.listener.heard['comm'].decode().strip('.'), flush=True)\n"
        "s.until(lambda: False, 600)\n"
    )
    host = subprocess.Popen(
        [sys.executable, str(script), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    pids = [int(pid) for pid in host.stdout.readline().split()]
    assert len(pids) == 6
    host.kill()
    host.wait()
    host.stdout.close()
    end = time.monotonic() + 10
    while not all(gone(pid) for pid in pids):
        assert time.monotonic() < end, [pid for pid in pids if not gone(pid)]
        time.sleep(0.05)


def test_a_killed_guard_ends_the_runtime(stage: Stage) -> None:
    """A guard that is itself killed takes the runtime's session with it, and the host notices."""
    stage.python('comm, logs = meet(); subprocess.Popen(["sleep", "600"]); time.sleep(600)')
    stage.until(lambda: stage.listener.is_connected)
    runtime = stage.host.runtime_pid
    assert runtime is not None
    os.kill(stage.host.pid, signal.SIGKILL)
    stage.to_the_end()
    assert gone(runtime)
    assert stage.host.exit_code == -signal.SIGKILL


def test_case_exit_tail() -> None:
    """exit-tail: the host sees its runtime's end at once, not at the next tick."""
    tails = []
    for _ in range(20):
        stage = Stage()
        stage.python("comm, logs = meet(); logs.sendall(repr(time.monotonic()).encode())")
        stage.to_the_end()
        ended = time.monotonic()
        stage.host.close()
        tails.append(ended - float(stage.listener.heard["logs"]))
    # The fault cost five seconds. On a busy machine one may be late, but not half of them.
    assert max(tails) < 4
    assert statistics.median(tails) < 0.5


def test_a_wait_without_a_limit_ends_with_the_runtime(stage: Stage) -> None:
    """Who has nothing else to wait for may wait without a limit, while the runtime runs too."""
    stage.python("comm, logs = meet(); time.sleep(0.2)")
    while stage.host.phase is not Phase.ENDED:
        stage.host.step(float("inf"))
    assert stage.host.exit_code == 0


def test_a_grandchild_that_holds_the_output_costs_nothing(stage: Stage) -> None:
    """A child that keeps standard output open does not keep the task alive."""
    stage.python('comm, logs = meet(); subprocess.Popen(["sleep", "600"]); print(time.monotonic())')
    stage.to_the_end()
    # The fault cost a minute.
    assert time.monotonic() - float(stage.listener.heard["stdout"]) < 30


def test_a_stranger_that_holds_the_output_and_writes_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading on after the tree is gone has an end, whoever still writes."""
    monkeypatch.setattr(host_module, "DRAIN_LIMIT", 1.0)
    stage.python("comm, logs = meet(); comm.recv(100)")
    stage.until(lambda: stage.host.phase is Phase.RUNNING)
    done = threading.Event()
    with open(f"/proc/{stage.host.runtime_pid}/fd/1", "wb", buffering=0) as output:

        def write() -> None:
            while not done.wait(0.05):
                output.write(b"more\n")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            stage.host.send(b"end")
            stage.to_the_end()
        finally:
            done.set()
            writer.join()


def test_a_door_with_no_descriptor_left_does_not_spin(stage: Stage) -> None:
    """Where accepting fails for want of a descriptor the door stays knocked at, and is looked at seldom."""

    class Full:
        """A door of a process at its limit."""

        def accept(self) -> None:
            """Fail."""
            raise OSError(errno.EMFILE, "Too many open files")

    begun = time.monotonic()
    stage.host.doors._let_in("comm", Full())  # type: ignore[arg-type]
    assert time.monotonic() - begun >= doors_module.LOOK_INTERVAL


def test_case_stray_peer(stage: Stage) -> None:
    """stray-peer: fifteen strangers at each door are refused and delay nobody."""
    strangers = []
    for door in ("comm", "logs"):
        host, port = stage.host.doors.address(door).split(":")
        strangers += [socket.create_connection((host, int(port))) for _ in range(15)]
    started = time.monotonic()
    stage.python('comm, logs = meet(); comm.sendall(b"us"); time.sleep(600)')
    stage.until(lambda: stage.listener.heard["comm"])
    # The fault cost a second for each stranger.
    assert time.monotonic() - started < 12
    assert stage.listener.heard["comm"] == b"us"
    for stranger in strangers:
        stranger.settimeout(5)
        assert stranger.recv(1) == b""
        stranger.close()


def test_a_stranger_that_talks_is_not_heard(stage: Stage) -> None:
    """What a stranger sends is read by nobody."""
    host, port = stage.host.doors.address("comm").split(":")
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"evil")
        stage.python('comm, logs = meet(); comm.sendall(b"good")')
        stage.to_the_end()
    assert stage.listener.heard["comm"] == b"good"


def test_a_child_of_the_runtime_may_connect(stage: Stage) -> None:
    """A launcher's child, and even its daemon, is part of the tree."""
    inner = 'comm, logs = meet(); comm.sendall(b"child")'
    stage.python(
        f"code = {CONNECT + inner!r}\n"
        "subprocess.Popen([sys.executable, '-c', code, *sys.argv[1:]], start_new_session=True).wait()"
    )
    stage.to_the_end()
    assert stage.listener.heard["comm"] == b"child"


def test_a_peer_that_never_listens_costs_no_memory(stage: Stage) -> None:
    """While an answer waits to be taken, nothing more is read, and other channels go on."""
    stage.python("""
        comm, logs = meet()
        comm.setblocking(False)
        sent = 0
        try:
            while True: sent += comm.send(b"?" * 65536)
        except BlockingIOError: pass
        logs.sendall(b"full\\n")
        time.sleep(600)
    """)
    answers = 0

    def answer(data: bytes) -> None:
        nonlocal answers
        answers += 1
        stage.host.send(b"x" * 50_000_000)

    stage.listener.on_comm = answer
    stage.until(lambda: b"full" in stage.listener.heard["logs"])
    for _ in range(20):
        stage.host.step(0.01)
    assert 1 <= answers <= 2
    stage.host.stop(0)
    stage.to_the_end()


def test_waking_from_another_thread(stage: Stage) -> None:
    """A waiting step returns when it is woken."""
    stage.python("comm, logs = meet(); time.sleep(600)")
    stage.until(lambda: stage.listener.is_connected)
    called = threading.Event()

    def call() -> None:
        called.set()
        stage.host.wake()

    started = time.monotonic()
    threading.Timer(0.2, call).start()
    while not called.is_set():
        stage.host.step(30)
    assert time.monotonic() - started < 10


def test_nothing_is_left_open() -> None:
    """Descriptors and children are what they were before."""
    me = psutil.Process()
    before = me.num_fds()
    for _ in range(3):
        stage = Stage()
        stage.python("comm, logs = meet()")
        stage.to_the_end()
        stage.host.close()
    assert me.num_fds() == before
    assert [child for child in me.children() if "guard.py" in " ".join(child.cmdline())] == []
