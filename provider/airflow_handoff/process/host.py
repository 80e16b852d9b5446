"""Hosting a runtime: launch it under a guard, let it connect, pump its bytes, end it with its whole tree."""

from __future__ import annotations

import contextlib
import enum
import functools
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from airflow_handoff.exceptions import LaunchError
from airflow_handoff.process import guard
from airflow_handoff.process.doors import Doors

#: Bytes that are read from a channel in one turn.
CHUNK = 1 << 16
#: Seconds that what outlives its runtime gets between TERM and KILL.
LEFTOVER_GRACE = 0.2
#: Seconds without a byte after which a channel is given up that stays open though the tree is gone.
DRAIN_PATIENCE = 0.5
#: Seconds for which what is still in the channels is read after the tree is gone.
DRAIN_LIMIT = 30.0
#: Seconds after which a wait without a limit turns once: a selector takes no infinity.
LONGEST_WAIT = 60.0
#: Bytes of start-up output that a :class:`LaunchError` repeats.
SAID_LIMIT = 2000
#: Environment variables that the guard's own interpreter may need to start.
_GUARD_NEEDS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PATH", "SYSTEMROOT")


#: Reads the guard's compiled code from its standard input and runs it.
_BOOT = """# the guard of a language runtime, see airflow_handoff/process/guard.py
import marshal, os
size, data = int.from_bytes(os.read(0, 4), "big"), b""
while len(data) < size:
    data += os.read(0, size - len(data))
exec(marshal.loads(data), {"__name__": "__main__"})
"""


@functools.cache
def _guard_code() -> bytes:
    """Return the guard's code behind its length; to compile it anew for each task would take 2 ms."""
    code = marshal.dumps(compile(Path(guard.__file__).read_bytes(), guard.__file__, "exec"))
    return len(code).to_bytes(4, "big") + code


class Phase(enum.Enum):
    """How far a hosted runtime is."""

    PREPARED = "prepared"
    BOOTING = "booting"
    RUNNING = "running"
    DRAINING = "draining"
    ENDED = "ended"


class Receiver(Protocol):
    """What a host hands its runtime's bytes to; empty bytes say that a channel has ended."""

    def connected(self) -> None:
        """Both channels stand: the first message can be sent."""

    def comm(self, data: bytes) -> None:
        """Take bytes of the comm channel."""

    def logs(self, data: bytes) -> None:
        """Take bytes of the log channel."""

    def stdout(self, data: bytes) -> None:
        """Take bytes of the standard output."""

    def stderr(self, data: bytes) -> None:
        """Take bytes of the standard error."""


class Host:
    """One runtime, its guard and its four channels on one selector; not for use by two threads.

    Making one starts the guard, which boots while its maker still looks for what to launch. Then
    :meth:`launch`, :meth:`step` until :attr:`phase` is ``ENDED``, and :meth:`close` in every case.

    :param receiver: gets the bytes.
    :param startup_timeout: seconds the runtime has to connect both channels.
    :raises LaunchError: where this system has no process or descriptor left for the guard.
    """

    def __init__(self, receiver: Receiver, *, startup_timeout: float = 10.0) -> None:
        self.phase = Phase.PREPARED
        self.exit_code: int | None = None
        self.failure: LaunchError | None = None
        self.runtime_pid: int | None = None
        self.exited_at: float | None = None
        self.startup_timeout = startup_timeout
        self._receiver = receiver
        self._selector = selectors.DefaultSelector()
        self._channels: dict[str, int | socket.socket] = {}
        self._comm: socket.socket | None = None
        self._outbox: deque[memoryview] = deque()
        self._said = b""
        self._stops = self._gone = 0
        self._closed = 0
        self._writing = self._met = False
        self._guard_lost = False
        self._pidfd: int | None = None
        self._startup_limit = float("inf")
        self._quiet_since = 0.0
        self._tree_gone_at: float | None = None
        with contextlib.ExitStack() as opened:
            opened.callback(self._selector.close)
            try:
                self._make_ready(opened)
            except OSError as error:
                fix = "the worker is short of processes, memory or descriptors"
                reason = f"no guard process could be started: {error.strerror or error}"
                raise LaunchError(reason, fix=fix) from error
            opened.pop_all()  # from here on it is closed by close()

    # -- beginning

    def _make_ready(self, opened: contextlib.ExitStack) -> None:
        self._wake_read, self._wake_write = socket.socketpair()
        for end in (self._wake_read, self._wake_write):
            opened.callback(end.close)
            end.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._woken)
        self.doors = Doors(self._selector)
        opened.callback(self.doors.close)
        self._start_guard(opened)

    def _start_guard(self, opened: contextlib.ExitStack) -> None:
        with contextlib.ExitStack() as theirs:
            self._control, control = socket.socketpair()
            opened.callback(self._control.close)
            theirs.callback(control.close)
            pipes = []
            for _ in range(2):
                read, write = os.pipe()
                opened.callback(os.close, read)
                theirs.callback(os.close, write)
                pipes.append((read, write))
            (out_read, out_write), (err_read, err_write) = pipes
            self._guard = subprocess.Popen(  # noqa: S603  -- our own script
                [sys.executable, "-I", "-S", "-c", _BOOT],
                stdin=control.fileno(),
                stdout=out_write,
                stderr=err_write,
                env={name: os.environ[name] for name in _GUARD_NEEDS if name in os.environ},
                start_new_session=True,
            )
        self._control.sendall(_guard_code())
        self._inbox = bytearray()
        self._control.setblocking(False)
        self._selector.register(self._control, selectors.EVENT_READ, self._read_control)
        self._open("stdout", out_read, self._receiver.stdout)
        self._open("stderr", err_read, self._receiver.stderr)

    @property
    def pid(self) -> int:
        """The pid of the guard, the root of the runtime's tree."""
        return int(self._guard.pid)

    def launch(self, command: list[str], environment: dict[str, str], directory: str | None = None) -> None:
        """Start the runtime with ``--comm=HOST:PORT --logs=HOST:PORT`` appended to its command.

        What goes wrong from here on is in :attr:`failure`, once the phase is ``ENDED``.

        :param command: the program, found on the ``PATH`` of ``environment``, and its arguments.
        :param environment: everything that the runtime sees.
        :param directory: where it starts; the host's directory by default.
        """
        addresses = (f"--comm={self.doors.address('comm')}", f"--logs={self.doors.address('logs')}")
        self._command = [*command, *addresses]
        self.phase = Phase.BOOTING
        self._startup_limit = time.monotonic() + self.startup_timeout
        self._tell((guard.LAUNCH, self._command, environment, directory))

    # -- turning

    def step(self, timeout: float) -> None:
        """Do what can be done now, or wait at most ``timeout`` seconds (infinity too) for something to do."""
        if self.phase is Phase.BOOTING:
            timeout = min(timeout, self.doors.patience, self._startup_limit - time.monotonic())
        elif self.phase is Phase.DRAINING:
            timeout = min(timeout, DRAIN_PATIENCE)
        closed = self._closed
        for key, _ in self._selector.select(min(max(timeout, 0), LONGEST_WAIT)):
            # An earlier handler of this turn may have closed others.
            if closed == self._closed or self._is_open(key):
                key.data()
        if self.phase is Phase.BOOTING:
            self._check_start()
        if self.phase is Phase.DRAINING:
            self._check_end()

    def _is_open(self, key: selectors.SelectorKey) -> bool:
        now = self._selector.get_map().get(key.fd)
        return now is not None and now.data is key.data

    def wake(self) -> None:
        """Make a waiting :meth:`step` return; safe in a signal handler and from other threads."""
        with contextlib.suppress(OSError):
            self._wake_write.send(b"!")

    def send(self, data: bytes | bytearray) -> None:
        """Send bytes on the comm channel, now or as soon as the runtime takes them.

        Nothing is read from the channel while something waits to be sent, so that a runtime which asks and
        never listens makes nobody's memory grow.
        """
        if self.phase in (Phase.DRAINING, Phase.ENDED) or (self._comm is None and self._connected):
            return
        if self._comm is None or self._outbox:
            self._outbox.append(memoryview(data))
            return
        try:  # most of what is sent is taken at once
            sent = self._comm.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:  # the reader notices the end
            return
        if sent < len(data):
            self._outbox.append(memoryview(data)[sent:])
            self._flush()

    def stop(self, grace: float) -> None:
        """Ask the guard to end the whole tree: TERM, ``grace`` seconds, KILL; :meth:`step` sees it happen."""
        if self.phase is Phase.PREPARED:
            self.phase = Phase.ENDED
        if self.phase is not Phase.ENDED:
            self._stops += 1
            self._tell((guard.STOP, grace))

    def close(self) -> None:
        """Let go of everything; a tree that still lives is killed by the guard, which is waited for."""
        self.phase = Phase.ENDED
        for name in list(self._channels):
            self._close_channel(name)
        self.doors.close()
        self._control.close()
        self._selector.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        self._wake_read.close()
        self._wake_write.close()
        try:
            self._guard.wait(guard.ORPHAN_GRACE + guard.KILL_PATIENCE + 5)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()

    # -- the guard

    def _tell(self, message: tuple[Any, ...]) -> None:
        data = marshal.dumps(message)
        try:
            self._control.setblocking(True)
            self._control.sendall(len(data).to_bytes(4, "big") + data)
            self._control.setblocking(False)
        except OSError:
            self._lose_guard()

    def _read_control(self) -> None:
        try:
            data = self._control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose_guard()
            return
        self._inbox += data
        while len(self._inbox) > 4:
            end = 4 + int.from_bytes(self._inbox[:4], "big")
            if len(self._inbox) < end:
                return
            message = marshal.loads(bytes(self._inbox[4:end]))  # noqa: S302  -- written by our own guard
            del self._inbox[:end]
            self._heed(message)

    def _heed(self, message: tuple[Any, ...]) -> None:
        kind = message[0]
        if kind == guard.STARTED:
            self.runtime_pid = message[1]
            self.doors.expect(root=self.pid, runtime=message[1])
            self._watch(message[1])
        elif kind == guard.REFUSED:
            reason = f"{self._command[0]!r} cannot be run: {message[2]}"
            self._fail(reason, fix="check the command and its permissions")
            self._stops = self._gone = 1
            self._drain(None)
        elif kind == guard.EXITED:
            self._drain(message[1])
        elif kind == guard.GONE:
            self._gone += 1
            if message[1]:  # not even KILL ended it, a process in an uninterruptible call
                self._drain(-signal.SIGKILL)

    def _watch(self, pid: int) -> None:
        # The guard leaves the runtime a zombie, so the pid cannot mean anybody else yet. The guard reports
        # the end as well; this descriptor is for a guard that is itself killed.
        with contextlib.suppress(AttributeError, OSError):
            self._pidfd = os.pidfd_open(pid)
            self._selector.register(self._pidfd, selectors.EVENT_READ, self._runtime_ended)

    def _runtime_ended(self) -> None:
        if self._pidfd is not None:
            self._closed += 1
            self._selector.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._guard_lost:
            self._drain(-signal.SIGKILL)

    def _lose_guard(self) -> None:
        # Killed from outside, or done after a refusal. The runtime dies by its death signal; the rest of
        # its session is killed here, and what left the session is beyond reach.
        if self._guard_lost:
            return
        self._guard_lost = True
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._control)
        if self.runtime_pid is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.runtime_pid, signal.SIGKILL)
        self._gone = self._stops = max(self._stops, 1)
        if self._pidfd is None or self.runtime_pid is None:
            if self.phase is Phase.BOOTING and self.runtime_pid is None and self.failure is None:
                self._fail("the guard process ended before it started the runtime")
            self._drain(None if self.runtime_pid is None else -signal.SIGKILL)

    # -- channels

    def _open(self, name: str, source: int | socket.socket, take: Callable[[bytes], None]) -> None:
        self._channels[name] = source
        if isinstance(source, int):
            os.set_blocking(source, False)
        else:
            source.setblocking(False)
        self._selector.register(source, selectors.EVENT_READ, lambda: self._read(name, source, take))

    def _read(self, name: str, source: int | socket.socket, take: Callable[[bytes], None]) -> None:
        if name == "comm" and self._outbox:
            self._flush()
            return
        try:
            data = os.read(source, CHUNK) if isinstance(source, int) else source.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a reset is an end like any other
            data = b""
        if not self._met and name in ("stdout", "stderr"):
            self._said = (self._said + data)[-SAID_LIMIT:]
        if self.phase is Phase.DRAINING:
            self._quiet_since = time.monotonic()
        if not data:
            self._close_channel(name)
        take(data)

    def _close_channel(self, name: str) -> None:
        source = self._channels.pop(name, None)
        if source is None:
            return
        self._closed += 1
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)
        if isinstance(source, int):
            os.close(source)
        else:
            source.close()
        if name == "comm":
            self._comm = None
            self._outbox.clear()

    def _flush(self) -> None:
        assert self._comm is not None  # noqa: S101  -- callers checked
        try:
            while self._outbox:
                sent = self._comm.send(self._outbox[0])
                if sent < len(self._outbox[0]):
                    self._outbox[0] = self._outbox[0][sent:]
                else:
                    self._outbox.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:  # the reader notices the end
            self._outbox.clear()
        if self._writing != bool(self._outbox):
            self._writing = bool(self._outbox)
            wanted = selectors.EVENT_WRITE if self._writing else selectors.EVENT_READ
            self._selector.modify(self._comm, wanted, self._selector.get_key(self._comm).data)

    def _woken(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_read.recv(4096)

    # -- start and end

    @property
    def _connected(self) -> bool:
        return self.phase not in (Phase.PREPARED, Phase.BOOTING)

    def _check_start(self) -> None:
        accepted = self.doors.admit()
        if accepted is not None:
            self._comm = accepted["comm"]
            self._closed += 1
            self.doors.close()
            self.phase = Phase.RUNNING
            self._met = True
            self._open("comm", accepted["comm"], self._receiver.comm)
            self._open("logs", accepted["logs"], self._receiver.logs)
            if self._outbox:
                self._flush()
            self._receiver.connected()
        elif time.monotonic() >= self._startup_limit and self.failure is None:
            self._fail(
                f"the runtime did not connect within {self.startup_timeout:g} s",
                fix="raise task_startup_timeout if it needs longer",
            )
            self.stop(LEFTOVER_GRACE)

    def _fail(self, reason: str, fix: str = "") -> None:
        if self.failure is None:
            self._fix = fix
            self.failure = LaunchError(reason, said=self.said, fix=fix)

    @property
    def said(self) -> str:
        """The last of what the runtime printed before it connected."""
        return self._said.decode("utf-8", "replace").strip()

    def _drain(self, code: int | None) -> None:
        if self.phase in (Phase.DRAINING, Phase.ENDED):
            return
        if self.phase is Phase.BOOTING and code is not None:
            how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
            self._fail(f"the runtime ended {how} before it connected")
        self.exit_code = code
        self.exited_at = self._quiet_since = time.monotonic()
        self.phase = Phase.DRAINING
        self._closed += 1
        self.doors.close()
        if not self._guard_lost:
            self.stop(LEFTOVER_GRACE)

    def _check_end(self) -> None:
        if self._gone < self._stops:
            return
        now = time.monotonic()
        if self._tree_gone_at is None:
            self._tree_gone_at = now
        # Somebody outside of the tree may hold a channel and write for ever.
        quiet = now - self._quiet_since >= DRAIN_PATIENCE or now - self._tree_gone_at >= DRAIN_LIMIT
        if self._channels and not quiet:
            return
        for name in list(self._channels):
            self._close_channel(name)
        if self.failure is not None:  # by now everything that it printed is known
            self.failure = LaunchError(self.failure.reason, said=self.said, fix=self._fix)
        self.phase = Phase.ENDED
