"""``make demo`` as a person runs it: with no terminal, and with one on which Ctrl-C is typed."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

import psutil
import pytest

from tests.system.stack import ROOT

DEMO = [sys.executable, str(ROOT / "scripts" / "demo.py")]


def children(pid: int) -> list[psutil.Process]:
    """Return all processes below one."""
    return psutil.Process(pid).children(recursive=True)


def test_without_a_terminal_it_approves_and_ends_well():
    """The demo goes from the question to the end by itself and exits 0."""
    done = subprocess.run(
        DEMO, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the run waits for a person" in done.stdout
    assert "/required_actions" in done.stdout
    assert "receipt: success" in done.stdout
    assert "chose Approve; the run ended: success" in done.stdout


def test_without_its_node_it_fails():
    """No Node is a failure that says what to do, never a step that is left out."""
    program = (
        "import runpy, sys, pathlib, tests.system.node as node; node.NODE = pathlib.Path('/nowhere/node'); "
        "sys.argv[1:] = []; runpy.run_path('scripts/demo.py', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "the demo failed: its Node is not installed; run `make venv`\n"


@pytest.mark.skipif(sys.platform != "linux", reason="reads a pseudo-terminal as Linux has it")
def test_ctrl_c_leaves_no_process():
    """Ctrl-C on the terminal, at the question, ends every process and says so."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(DEMO[0], DEMO)
    shown = ""
    started: list[psutil.Process] = []
    deadline = time.monotonic() + 400
    try:
        while "[y/n]" not in shown:
            assert time.monotonic() < deadline, shown
            shown += read(terminal)
        started = children(pid)
        assert len(started) >= 3
        os.write(terminal, b"\x03")
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline, shown
            shown += read(terminal)
        assert os.waitstatus_to_exitcode(ended[1]) == 130
        assert not [process for process in started if process.is_running()]
    finally:
        for process in [p for p in started if p.is_running()]:
            process.kill()
        os.close(terminal)


def read(terminal: int) -> str:
    """Return what the terminal has to show within half a second."""
    if not select.select([terminal], [], [], 0.5)[0]:
        return ""
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # the other side is closed
        return ""
