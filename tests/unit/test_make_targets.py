"""What the targets of ``make`` promise to a newcomer and to CI."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tomllib
from scripts import check, environment
from tests.system import conftest as campaign

from airflow_handoff.compat.versions import installed_airflow

ROOT = Path(__file__).resolve().parents[2]


# -- make venv


@pytest.mark.parametrize("version", ["3.1", "3.2", "3.3"])
def test_each_environment_has_its_airflow_an_interpreter_that_fits_and_the_test_tools(version):
    """``make venv AIRFLOW=...`` has made it; ``.venv`` is the newest."""
    python = ROOT / f".venv-{version}" / "bin" / "python"
    ask = (
        "import sys, pytest, hypothesis, httpx, airflow_handoff, importlib.metadata as m; "
        "print(*sys.version_info[:2], m.version('apache-airflow'), airflow_handoff.__file__)"
    )
    done = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True)
    major, minor, airflow, ours = done.stdout.split()
    assert (int(major), int(minor)) < ((3, 14) if version == "3.1" else (3, 15))
    assert airflow.startswith(f"{version}.")
    assert Path(ours).is_relative_to(ROOT / "provider")
    assert environment.fits(python, version)
    assert (ROOT / ".venv").resolve() == (ROOT / ".venv-3.3").resolve()


def test_these_tests_run_on_the_version_that_the_environment_promises():
    """The unit tests are not run three times on one Airflow."""
    found = next(part for part in Path(sys.prefix).parts if part.startswith(".venv"))
    version = (ROOT / found).resolve().name.removeprefix(".venv-")
    assert ".".join(map(str, (installed_airflow() or ())[:2])) == version
    assert importlib.metadata.version("apache-airflow-providers-standard") == "1.21.0"


def test_an_installed_interpreter_is_taken_before_one_is_downloaded(monkeypatch, capsys):
    """The one that runs the script first, then those on the path; a download is the last resort."""
    pythons = {"python3.13": "/usr/bin/python3.13", "python3.11": "/usr/bin/python3.11"}
    taken = {"/usr/bin/python3.13"}
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3.14")
    monkeypatch.setattr(shutil, "which", pythons.get)
    monkeypatch.setattr(environment, "fits", lambda python, version: str(python) in taken)
    assert environment.interpreter("3.1") == "/usr/bin/python3.13"
    taken.add("/usr/bin/python3.14")
    assert environment.interpreter("3.3") == "/usr/bin/python3.14"
    taken.clear()
    monkeypatch.setattr(environment, "uv", lambda: "uv")
    monkeypatch.setattr(
        environment.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stdout="")
    )
    assert environment.interpreter("3.1") == "3.12"
    assert "downloading one" in capsys.readouterr().out


@pytest.mark.parametrize(("minor", "good"), [(10, False), (11, True), (13, True), (14, False)])
def test_airflow_31_takes_no_python_314(tmp_path, minor, good):
    """The check runs in the interpreter itself; here one that says it is another."""
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c "
        f'"import sys; sys.version_info = (3, {minor}, 0); exec(sys.argv[1])" "$2"\n'
    )
    python.chmod(0o755)
    assert environment.fits(python, "3.1") is good


# -- make test, make test-full


def test_the_budget_is_printed_and_the_slowest_twenty(monkeypatch):
    """At the end of each run: how much of which budget is used, set-up included."""
    lines: list[str] = []
    reporter: Any = SimpleNamespace(section=lines.append, line=lines.append)
    monkeypatch.setenv("HANDOFF_BUDGET", f"make test-full:2400:{time.time() - 100}")
    campaign.pytest_terminal_summary(reporter)
    assert lines == ["budget", "make test-full: 100 s of 2400 s"]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert "--durations=20" in settings["addopts"].split()
    assert check.BUDGET["test"] == 20 * 60
    assert check.BUDGET["test-full"] == 40 * 60


def test_make_test_checks_style_types_directions_units_on_all_versions_and_the_tools(monkeypatch):
    """Each is one job, and each unit job has an environment and a home of its own."""
    names = {job.name for job in check.lint_jobs()}
    assert {"types", "style", "format", "import directions", "seams to Airflow", "hooks", "news"} <= names
    assert [job.command[0] for job in check.unit_jobs()] == [
        f".venv-{version}/bin/python" for version in ("3.3", "3.2", "3.1")
    ]
    monkeypatch.setenv("AIRFLOW__CORE__UNIT_TEST_MODE", "True")
    for job in check.unit_jobs():
        kept = job.environment()
        assert not [key for key in kept if key.startswith("AIRFLOW__")]
        assert kept["AIRFLOW_HOME"].endswith(f".airflow/{job.home}")


@pytest.mark.parametrize(("good", "expected"), [(True, 0), (False, 1)])
def test_a_failed_check_fails_make_test_and_starts_no_airflow(monkeypatch, good, expected):
    """All jobs run and are printed; the system tests come only after good ones, and their code counts."""
    live: list[str] = []
    monkeypatch.setattr(check, "run_captured", lambda job: good or job.name != "style")
    monkeypatch.setattr(check, "run_live", lambda job, budget: live.append(job.name) or 0)
    assert check.main("test") == expected
    assert live == (["system tests"] if good else [])
    halves = []
    monkeypatch.setattr(check, "run_live", lambda *jobs: halves.extend((jobs[0], *jobs[2:])) or 5)
    assert check.main("test-full") == 5
    assert [job.command[-1] for job in halves] == ["not (3.1 or 3.2)", "3.1 or 3.2"]
    assert len({job.home for job in halves}) == 2


@pytest.mark.parametrize(("codes", "expected"), [((0, 0), 0), ((3, 0), 3), ((0, 4), 4)])
def test_two_halves_run_at_once_and_the_second_is_printed_last(codes, expected, tmp_path):
    """Each half waits for the other to have begun; whichever fails is the exit code."""
    program = (
        "import pathlib, sys, time\nmine, other = map(pathlib.Path, sys.argv[1:3])\nmine.touch()\n"
        "while not other.exists():\n    time.sleep(0.01)\nprint('closing line of', mine.name)\n"
        "sys.exit(int(sys.argv[3]))"
    )
    names = ("first", "second")
    jobs = [
        check.Job(
            name, (sys.executable, "-c", program, *map(str, (tmp_path / name, tmp_path / other)), str(code))
        )
        for name, other, code in zip(names, reversed(names), codes, strict=True)
    ]
    run = "import sys\nfrom scripts import check\njobs = [check.Job(*job) for job in {}]\n"
    run += "sys.exit(check.run_live(jobs[0], 'x:1:0', jobs[1]))"
    done = subprocess.run(
        [sys.executable, "-c", run.format([(job.name, job.command) for job in jobs])],
        cwd=check.ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == expected, done.stderr
    lines = done.stdout.splitlines()
    assert lines.index("closing line of first") < lines.index("closing line of second") == len(lines) - 1
    failed = [line for line in lines if "FAILED" in line]
    assert len(failed) == (expected != 0)


def test_each_job_of_the_matrix_can_be_listed_and_run_alone(monkeypatch, capsys):
    """What nox would be wanted for: one command per session, named, with arguments passed on."""
    assert check.main("list") == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(set(listed))
    assert {"types", "unit tests on Airflow 3.1", "integration tests", "system tests"} <= set(listed)
    ran: list[Any] = []
    monkeypatch.setattr(
        check.subprocess, "run", lambda command, **_: ran.append(command) or SimpleNamespace(returncode=3)
    )
    assert check.main("run", "unit tests on Airflow 3.1", "-k", "verdict") == 3
    assert ran == [(".venv-3.1/bin/python", "-m", "pytest", "-q", "tests/unit", "-k", "verdict")]
    assert check.main("run", "nothing") == 2
    assert "check.py list" in capsys.readouterr().err


# -- optional tools


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with nothing on it but what the script itself needs: no tool, no apt-get."""
    for name in ("sh", "ls", "id"):
        (tmp_path / name).symlink_to(shutil.which(name))
    return str(tmp_path)


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_a_missing_tool_is_one_line_and_in_ci_a_failure(bare_path, ci, code):
    """``scripts/install-tools.sh`` where the tools cannot be installed."""
    done = subprocess.run(
        [f"{bare_path}/sh", str(ROOT / "scripts" / "install-tools.sh")],
        env={"PATH": bare_path, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "chromium" in line
    assert "redis-server" in line
    assert "skipped" in line


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_test_that_needs_a_missing_tool_is_skipped_and_fails_in_ci(monkeypatch, ci, outcome):
    """The mark ``needs`` names the tool and the script that installs it."""
    monkeypatch.setattr(campaign, "has_tool", lambda name: name != "chromium")
    monkeypatch.setenv("CI", ci)
    mark = SimpleNamespace(args=("postgresql", "chromium"))
    item: Any = SimpleNamespace(iter_markers=lambda name: [mark])
    with pytest.raises(outcome, match=r"missing: chromium \(scripts/install-tools.sh"):
        campaign.pytest_runtest_setup(item)
    monkeypatch.setattr(campaign, "has_tool", lambda name: True)
    campaign.pytest_runtest_setup(item)


def test_ci_runs_both_targets_as_ci():
    """What must hold before a change lands: ``make test`` and ``make test-full``, with no tool missing."""
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines[-3:] == ["export CI=true", "make test", "make test-full"]
    assert "set -euo pipefail" in lines
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
