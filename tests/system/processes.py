"""Start processes so that nothing of them can stay behind.

Every process gets a session of its own and a mark in its environment. What belongs to it is found again by
three ways (parent, session, mark), because a killed parent, a daemonized child or an emptied environment
defeats each one alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

MARK = "HANDOFF_STACK_ID"
_PR_SET_PDEATHSIG = 1


def free_port() -> int:
    """Return a loopback TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Component:
    """One long-running process with its log file.

    :param name: what failure messages call it.
    :param command: the argument vector.
    :param env: the whole environment.
    :param log: file that takes stdout and stderr; appended to, so that a restart keeps the story.
    :param user: run as this unprivileged user where we are root.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path | None = None,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as sink:
            self.process = subprocess.Popen(
                list(command),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
                user=user,
                preexec_fn=_end_with_parent(),
            )

    @property
    def pid(self) -> int:
        """The process id, which is also its session id."""
        return self.process.pid

    def returncode(self) -> int | None:
        """Return the exit code, or ``None`` while it runs."""
        return self.process.poll()

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of the log."""
        if not self.log.exists():
            return "(no log)"
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join(text[-lines:])


def _end_with_parent() -> Callable[[], None] | None:
    # The kernel binds the death signal to the *thread* that starts the child; only the main thread lives as
    # long as the process does.
    if not hasattr(os, "pidfd_open") or threading.current_thread() is not threading.main_thread():
        return None
    libc = ctypes.CDLL(None)

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return ask


def belonging(components: Iterable[Component], mark: str | None = None) -> list[psutil.Process]:
    """Return all living processes of the components, by parent, by session and by mark."""
    sessions = {component.pid for component in components}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.pid in sessions or os.getsid(process.pid) in sessions or _has_mark(process, mark):
                found[process.pid] = process
                found.update((child.pid, child) for child in process.children(recursive=True))
        except (psutil.Error, OSError):
            continue
    return list(found.values())


def _has_mark(process: psutil.Process, mark: str | None) -> bool:
    if mark is None:
        return False
    try:
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no second Ctrl-C interrupt the clean-up after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end(components: Sequence[Component], mark: str | None = None, seconds: float = 20.0) -> None:
    """Kill the components and all that belongs to them, and wait until they are gone.

    :param seconds: how long to keep trying before a leftover is an error.
    """
    deadline = time.monotonic() + seconds
    while alive := belonging(components, mark):
        for process in alive:
            try:
                process.kill()
            except psutil.Error:
                continue
        psutil.wait_procs(alive, timeout=2)
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes would not end: {alive}")
    for component in components:
        component.process.wait(timeout=5)
