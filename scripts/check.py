"""Run the checks of ``make lint``, ``make test`` and ``make test-full``.

The matrix is a table of jobs over the environments that ``make venv`` makes anyway: a second tool would keep
a second set of them. Jobs that need no Airflow run two at a time, each job's output is printed when it ends,
and the system tests come last and alone, so that the output ends with pytest's closing line. They wait more
than they work, so ``make test-full`` runs them in two halves at the same time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv-3.3" / "bin"
VERSIONS = ("3.1", "3.2", "3.3")
#: Seconds on two cores, set-up included.
BUDGET = {"test": 1200, "test-full": 2400, "test-language": 900}


@dataclass(frozen=True)
class Job:
    """One command.

    :param home: name of its Airflow home; two versions must not share one.
    """

    name: str
    command: tuple[str, ...]
    home: str = "3.3"

    def environment(self) -> dict[str, str]:
        """Return the environment: no Airflow settings of the caller's, and never a home of somebody's."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW__")}
        home = ROOT / ".airflow" / self.home
        home.mkdir(parents=True, exist_ok=True)
        return {**kept, "AIRFLOW_HOME": str(home)}


def lint_jobs() -> list[Job]:
    """Return the jobs of ``make lint``, the longest first."""
    return [
        Job("types", (str(BIN / "mypy"),)),
        Job("style", (str(BIN / "ruff"), "check", "--no-fix", "--no-cache", ".")),
        Job("format", (str(BIN / "ruff"), "format", "--check", ".")),
        Job("import directions", (str(BIN / "lint-imports"), "--no-cache")),
        Job("seams to Airflow", (str(BIN / "python"), "scripts/check_seams.py")),
        Job("claims", (str(BIN / "handoff"), "capabilities", "check")),
        Job("generated tables", (str(BIN / "handoff"), "capabilities", "matrix", "--check")),
        Job("news", (str(BIN / "towncrier"), "build", "--draft", "--version", "next")),
        Job("hooks", (str(BIN / "prek"), "run", "--all-files")),
    ]


def unit_jobs() -> list[Job]:
    """Return one run of the unit tests for each Airflow version, the longest first."""
    return [
        Job(f"unit tests on Airflow {v}", (f".venv-{v}/bin/python", "-m", "pytest", "-q", "tests/unit"), v)
        for v in reversed(VERSIONS)
    ]


def integration_job() -> Job:
    """Return the tests that start other programs, but no Airflow."""
    return Job("integration tests", (str(BIN / "python"), "-m", "pytest", "-q", "tests/integration"))


def system(expression: str, half: str = "") -> Job:
    """Return the system tests that a mark expression selects; they start real Airflows, one at a time.

    :param half: an expression over the tests' names, with the Airflow version in brackets.
    """
    command = (str(BIN / "python"), "-m", "pytest", "tests/system", "-m", expression)
    if not half:
        return Job("system tests", command)
    return Job(f"system tests, {half}", (*command, "-k", half), f"system-{half.replace(' ', '-')}")


def run_captured(job: Job) -> bool:
    """Run a job, print its output when it has ended, and tell whether it succeeded."""
    started = time.monotonic()
    done = subprocess.run(
        job.command, cwd=ROOT, env=job.environment(), capture_output=True, text=True, check=False
    )
    good = done.returncode == 0
    verdict = "ok" if good else f"FAILED (exit {done.returncode})"
    text = (done.stdout + done.stderr).rstrip()
    took = time.monotonic() - started
    print(f"===== {job.name}: {verdict}, {took:.0f} s\n{text}" if text else f"===== {job.name}: {verdict}")
    sys.stdout.flush()
    return good


def run_live(job: Job, budget: str, *beside: Job) -> int:
    """Run a job with our output and others beside it; a signal to us is passed on and waited for.

    :param budget: what the tests' summary prints of the time: the name, the seconds, and when it started.
    :param beside: their output is printed when all have ended.
    :returns: the first exit code that is not 0, or 0.
    """
    with contextlib.ExitStack() as files:
        kept = [files.enter_context(tempfile.TemporaryFile("w+")) for _ in beside]
        processes = []
        for one, output in zip((job, *beside), (None, *kept), strict=True):
            print(f"===== {one.name}{'' if output is None else ': printed at the end'}", flush=True)
            environment = {**one.environment(), "HANDOFF_BUDGET": budget}
            started = subprocess.Popen(
                one.command, cwd=ROOT, env=environment, stdout=output, stderr=output and subprocess.STDOUT
            )
            processes.append(started)
        signal.signal(signal.SIGTERM, lambda *_: [one.send_signal(signal.SIGINT) for one in processes])
        codes = [_ended(one) for one in processes]
        if codes[0] and beside:
            print(f"===== {job.name}: FAILED (exit {codes[0]}), see above", flush=True)
        for one, output, code in zip(beside, kept, codes[1:], strict=True):
            output.seek(0)
            verdict = "ok" if code == 0 else f"FAILED (exit {code})"
            print(f"===== {one.name}: {verdict}\n{output.read().rstrip()}", flush=True)
    return next((code for code in codes if code), 0)


def _ended(process: subprocess.Popen[Any]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The terminal has sent it to the child as well, which now ends its Airflow.
            continue


def all_succeed(jobs: Sequence[Job]) -> bool:
    """Run the jobs two at a time."""
    with ThreadPoolExecutor(max_workers=max(2, min(4, os.cpu_count() or 2))) as pool:
        return all(list(pool.map(run_captured, jobs)))


def main(what: str, *arguments: str) -> int:
    """Run one group of checks and return the exit code."""
    started = time.time()
    budget = f"make {what}:{BUDGET.get(what, 0)}:{started}"
    if what == "lint":
        return 0 if all_succeed(lint_jobs()) else 1
    if what == "test":
        good = all_succeed([*unit_jobs(), *lint_jobs()])
        # Alone: they hold figures to limits, which a busy neighbour would break.
        if not (run_captured(integration_job()) and good):
            print("a check FAILED: see above; the system tests were not run", flush=True)
            return 1
        return run_live(system("smoke"), budget)
    if what == "test-full":
        older = " or ".join(VERSIONS[:-1])
        return run_live(system("not smoke", f"not ({older})"), budget, system("not smoke", older))
    if what == "test-language" and arguments:
        return run_live(Job(f"tests of {arguments[0]}", language_tests(arguments[0])), budget)
    if what == "list":
        print("\n".join(job.name for job in every_job()))
        return 0
    if what == "run" and arguments:
        return run_one(*arguments)
    print(
        "usage: check.py lint | test | test-full | test-language NAME | list | run JOB ...", file=sys.stderr
    )
    return 2


def every_job() -> list[Job]:
    """Return all jobs of the matrix."""
    return [*lint_jobs(), *unit_jobs(), integration_job(), system("smoke or not smoke")]


def run_one(name: str, *arguments: str) -> int:
    """Run one job of the matrix, with more arguments, and return its exit code."""
    found = [job for job in every_job() if job.name == name]
    if not found:
        print(f"no job is called {name!r}: `check.py list` lists them", file=sys.stderr)
        return 2
    (job,) = found
    return subprocess.run((*job.command, *arguments), cwd=ROOT, env=job.environment(), check=False).returncode


def language_tests(language: str) -> tuple[str, ...]:
    """Return the command that tests the SDK of one language."""
    own = ROOT / "tests" / "system" / f"test_language_{language}.py"
    target = [str(own)] if own.exists() else ["tests", "-k", language]
    return (str(BIN / "python"), "-m", "pytest", *target)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or [""]))
