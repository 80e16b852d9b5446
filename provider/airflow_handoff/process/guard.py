"""The guard: a small process between the host and a runtime, run as a script of its own.

It starts the runtime in a session of its own, adopts every process that the runtime's tree lets go of, and
takes the whole tree down when it is told to, or when its standard input ends because the host is gone
(killed with SIGKILL, say). It uses nothing but the interpreter's built-in modules, because a task waits for
it to start (contextlib, signal and typing would cost half as much again), and nothing of this
package.

Standard input is a socket to the host. The host writes marshalled tuples, each behind its length:
``(LAUNCH, command, environment, directory)`` once, then ``(STOP, grace)`` any number of times. The guard
answers in the same form: ``(STARTED, pid)`` or ``(REFUSED, errno, text)``, later ``(EXITED, code)`` and,
after each stop, ``(GONE, survivors)``.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

if False:  # the typing module is too slow to import here
    from typing import Any

LAUNCH, STOP = 1, 2
STARTED, REFUSED, EXITED, GONE = 3, 4, 5, 6

HOST = 0
#: Seconds between TERM and KILL when the host itself is gone.
ORPHAN_GRACE = 0.5
#: Seconds for which processes that ignore KILL (in an uninterruptible call) are waited for.
KILL_PATIENCE = 5.0
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_TERM, _KILL = 15, 9


def send(message: tuple[Any, ...]) -> None:
    """Write one message to the host; a host that is gone is noticed elsewhere."""
    data = marshal.dumps(message)
    try:
        os.write(HOST, len(data).to_bytes(4, "big") + data)
    except OSError:
        pass


class Inbox:
    """Messages of the host, cut out of the byte stream."""

    def __init__(self) -> None:
        self._data = b""
        self.ended = False

    def read(self) -> None:
        """Take what has come; blocks where nothing has."""
        data = os.read(HOST, 1 << 20)
        self.ended = not data
        self._data += data

    def take(self) -> Any:
        """Return the next complete message or None."""
        end = 4 + int.from_bytes(self._data[:4], "big")
        if len(self._data) < max(end, 5):
            return None
        message = marshal.loads(self._data[4:end])  # noqa: S302  -- written by the host, our own parent
        self._data = self._data[end:]
        return message


def load_prctl() -> Any:
    """Return Linux's ``prctl`` or a stand-in that does nothing."""
    if sys.platform != "linux":
        return lambda *arguments: 0
    try:  # a quarter of the time that the guard takes to start is saved by not importing all of ctypes
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        call = _ctypes.call_cdeclfunction
        return lambda *arguments: call(address, arguments)
    except (ImportError, AttributeError, OSError):
        import ctypes

        return ctypes.CDLL(None).prctl


def start(prctl: Any, command: list[str], environment: dict[str, str], directory: str | None) -> int:
    """Start the runtime with default signals, no standard input and the guard's standard output and error.

    :raises OSError: where the operating system refuses to run the command.
    """
    import _signal  # type: ignore[import-not-found]  # no stub

    read, write = os.pipe()
    me = os.getpid()
    pid = os.fork()
    if pid:
        os.close(write)
        problem = os.read(read, 4096)
        os.close(read)
        if problem:
            os.waitpid(pid, 0)
            raise OSError(*marshal.loads(problem))  # noqa: S302  -- written by our own child
        return pid
    try:
        os.setsid()
        prctl(_SET_DEATH_SIGNAL, _KILL, 0, 0, 0)
        if os.getppid() != me:  # the guard died before the death signal was set
            os._exit(1)
        for number in range(1, _signal.NSIG):
            try:
                _signal.signal(number, _signal.SIG_DFL)
            except (OSError, ValueError):
                pass
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        if directory:
            os.chdir(directory)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvpe(command[0], command, environment)  # noqa: S606  -- this is what the guard is for
    except OSError as error:
        os.write(write, marshal.dumps((error.errno or 0, error.strerror or str(error))))
    except BaseException as error:
        os.write(write, marshal.dumps((0, f"{type(error).__name__}: {error}")))
    os._exit(127)


def parents() -> dict[int, int]:
    """Return the parent of every process that still runs."""
    found: dict[int, int] = {}
    if not os.path.isdir("/proc/self"):
        with os.popen("ps -axo pid=,ppid=,state=") as listing:  # noqa: S605, S607  -- no /proc on this system
            rows = [line.split() for line in listing]
        return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            found[int(name)] = int(fields[1])
    return found


def tree() -> list[int]:
    """Return every living process below the guard.

    A zombie's children are the guard's already, so that skipping zombies loses nobody.
    """
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to each process that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def clear(grace: float, meanwhile: Any) -> list[int]:
    """Take the tree down: TERM, a grace in seconds, then KILL until nobody is left; return the survivors."""
    living = tree()
    signal_all(living, _TERM)
    if living and grace > 0:
        limit = time.monotonic() + grace
        pause = 0.002
        while living and time.monotonic() < limit:
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
            meanwhile()
            living = tree()
    limit = time.monotonic() + KILL_PATIENCE
    while living and time.monotonic() < limit:
        signal_all(living, _KILL)
        time.sleep(0.002)
        meanwhile()
        living = tree()
    return living


class Guard:
    """The guard's state after the runtime was started."""

    def __init__(self, runtime: int) -> None:
        self.runtime = runtime
        self.exited = False

    def reap(self) -> None:
        """Report the runtime's end, once, and bury what was adopted.

        The runtime itself stays a zombie, so that its pid means nobody else while the host lives.
        """
        if not self.exited:
            status = os.waitid(os.P_PID, self.runtime, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if status is not None:
                self.exited = True
                code = status.si_status
                send((EXITED, code if status.si_code == os.CLD_EXITED else -code))
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
                children = [int(pid) for pid in file.read().split()]
        except OSError:
            return
        for pid in children:
            if pid != self.runtime:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except OSError:
                    pass

    def serve(self, inbox: Inbox) -> None:
        """Obey the host until it is gone or has nothing more to say."""
        import _signal
        import select

        wake, alarm = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(alarm, False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(HOST, select.POLLIN)
        poll.register(wake, select.POLLIN)
        self.reap()
        while not inbox.ended:
            while (message := inbox.take()) is not None:
                if message[0] == STOP:
                    send((GONE, len(clear(message[1], self.reap))))
            for descriptor, _ in poll.poll():
                if descriptor == wake:
                    os.read(wake, 4096)
                    self.reap()
                else:
                    inbox.read()


def main() -> None:
    """Launch what the host asks for and guard it."""
    import _signal

    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGPIPE):
        _signal.signal(number, _signal.SIG_IGN)
    prctl = load_prctl()
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    inbox = Inbox()
    message = None
    while message is None and not inbox.ended:
        inbox.read()
        message = inbox.take()
    if message is None:
        return
    try:
        runtime = start(prctl, *message[1:])
    except OSError as error:
        send((REFUSED, error.errno or 0, error.strerror or str(error)))
        return
    send((STARTED, runtime))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    try:
        Guard(runtime).serve(inbox)
    finally:
        clear(ORPHAN_GRACE, lambda: None)
        os._exit(0)  # there is nothing to tidy and a host may be waiting


if __name__ == "__main__":
    main()
