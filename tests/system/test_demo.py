"""``make demo`` as a person runs it: with no terminal, and with one on which answers and Ctrl-C are typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import psutil
import pytest

from tests.system.stack import ROOT

DEMO = [sys.executable, str(ROOT / "scripts" / "demo.py")]
PATIENCE = 400.0
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads a pseudo-terminal as Linux has it")


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, command: Sequence[str]) -> None:
        self.shown = ""
        self.deadline = time.monotonic() + PATIENCE
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            # Make says what went wrong in the language of whoever runs the tests.
            os.execvpe(command[0], command, {**os.environ, "LANGUAGE": "en"})

    def read(self) -> None:
        """Take what is shown within half a second."""
        assert time.monotonic() < self.deadline, self.shown
        if not select.select([self.screen], [], [], 0.5)[0]:
            return
        try:
            self.shown += os.read(self.screen, 65536).decode(errors="replace")
        except OSError:  # the other side is closed
            time.sleep(0.1)

    def until(self, text: str) -> None:
        """Read until the text is shown, or fail where the program ends before."""
        while text not in self.shown:
            assert psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE, self.shown
            self.read()

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self.screen, text.encode())

    def exit_code(self) -> int:
        """Read to the end and return the exit code."""
        while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            self.read()
        return os.waitstatus_to_exitcode(ended[1])

    def processes(self) -> list[psutil.Process]:
        """Return all processes below the program."""
        return psutil.Process(self.pid).children(recursive=True)


@contextmanager
def terminal(*command: str) -> Iterator[Terminal]:
    """Run a program on a terminal; whatever happens, nothing of it is left."""
    opened = Terminal(command)
    started: list[psutil.Process] = []
    try:
        opened.until("[y/n]")
        started = opened.processes()
        assert len(started) >= 3
        yield opened
        assert not [process for process in started if process.is_running()]
    finally:
        for process in [p for p in started if p.is_running()]:
            process.kill()
        os.close(opened.screen)


def test_without_a_terminal_it_approves_and_ends_well():
    """The demo goes from the question to the end by itself and exits 0."""
    done = subprocess.run(
        DEMO, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the run waits for a person" in done.stdout
    assert "/required_actions" in done.stdout
    assert "handoff approve demo manager_approval" in done.stdout
    assert "curl -X PATCH" in done.stdout
    assert "receipt: success" in done.stdout
    assert "chose Approve; the run ended: success" in done.stdout


@on_linux
def test_y_is_typed_and_airflow_stays_up_until_ctrl_c():
    """``make demo KEEP=1``: what is no answer is asked again, and the login that it names works over REST."""
    with terminal("make", "demo", "KEEP=1") as demo:
        demo.type("maybe\n")
        demo.until("y or n?")
        demo.type("y\n")
        demo.until("Ctrl-C ends it.")
        assert "chose Approve; the run ended: success" in demo.shown
        url = re.search(r"Airflow stays up: (http://127\.0\.0\.1:\d+)", demo.shown)[1]
        users = re.findall(r"^  (\w+) +(\w+) +password (\S+)\s*$", demo.shown, re.MULTILINE)
        assert [role for _, role, _ in users] == ["admin", "user", "user"]
        for name, _, password in users:
            login = {"username": name, "password": password}
            token = httpx.post(f"{url}/auth/token", json=login, trust_env=False).json()["access_token"]
            runs = httpx.get(
                f"{url}/api/v2/dags/expense_receipt/dagRuns",
                headers={"Authorization": f"Bearer {token}"},
                trust_env=False,
            )
            assert [run["state"] for run in runs.json()["dag_runs"]] == ["success"]
        demo.type("\x03")
        assert demo.exit_code() != 0  # make's own; what it ran says how it ended
        assert "no process is left" in demo.shown
        assert "Error 130" in demo.shown


@on_linux
def test_n_is_typed_and_the_run_ends_as_it_then_must():
    """A Reject fails the run; that is what is expected of it, so the demo exits 0."""
    with terminal(*DEMO) as demo:
        demo.type("n\n")
        assert demo.exit_code() == 0, demo.shown
        assert "chose Reject; the run ended: failed" in demo.shown
        assert re.search(r"manager_approval +failed", demo.shown)
        assert re.search(r"receipt +upstream_failed", demo.shown)


@on_linux
def test_ctrl_c_at_the_question_leaves_no_process():
    """Every process ends, and the demo says so."""
    with terminal(*DEMO) as demo:
        demo.type("\x03")
        assert demo.exit_code() == 130
        assert "no process is left" in demo.shown
