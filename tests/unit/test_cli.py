"""The ``handoff`` command itself; what its sub-commands do is tested in their rooms."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from airflow_handoff import __version__, cli


def test_version_is_the_package_version():
    """``--version`` prints the version of the package."""
    done = CliRunner().invoke(cli.handoff, ["--version"])
    assert done.output.split()[-1] == __version__


def test_help_names_every_command_with_its_line():
    """``--help`` is written out of the table."""
    shown = CliRunner().invoke(cli.handoff, ["--help"], terminal_width=200).output
    for name, (_, _, line) in cli.COMMANDS.items():
        assert name in shown
        assert line in shown


def test_an_unknown_command_is_told_so():
    """A misspelt command exits 2 with one sentence and no traceback."""
    done = CliRunner().invoke(cli.handoff, ["aprove"])
    assert done.exit_code == 2
    assert "aprove" in done.output


@pytest.mark.parametrize(("module", "extra"), [("httpx", "client"), ("mcp", "mcp")])
def test_a_missing_extra_is_named(monkeypatch, module, extra):
    """A command whose optional dependency is missing exits 2 and says which extra to install."""

    def without(name):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(importlib, "import_module", without)
    done = CliRunner().invoke(cli.handoff, [next(iter(cli.COMMANDS))])
    assert done.exit_code == 2
    assert f"pip install 'airflow-provider-handoff[{extra}]'" in done.output
    assert "Traceback" not in done.output


def test_the_console_script_is_there():
    """The module runs as a program too."""
    command = [sys.executable, "-m", "airflow_handoff.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(__version__)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_written_is_one_sentence():
    """A full disk behind the standard output exits 74 without a traceback."""
    command = [sys.executable, "-m", "airflow_handoff.cli", "--help"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        74,
        "Error: the output could not be written: No space left on device.\n",
    )
