"""``airflow handoff`` on Airflow 3.2 and later."""

from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_handoff import __version__
from airflow_handoff.compat.versions import HAS_PROVIDER_CLI


@pytest.mark.skipif(not HAS_PROVIDER_CLI, reason="Airflow 3.1 takes no commands from providers")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), "pending"),
        (("--version",), __version__),
        (("pending", "--help"), "--json"),
        (("help",), "answer"),
    ],
)
def test_airflow_handoff_is_handoff(arguments, shown, tmp_path):
    """What follows ``airflow handoff`` reaches our command unread, options included."""
    program = "from airflow.__main__ import main; main()"
    arguments = ("--", *arguments) if arguments[:1] == ("--version",) else arguments
    done = subprocess.run(
        [sys.executable, "-c", program, "handoff", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"AIRFLOW_HOME": str(tmp_path), "PATH": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout
