"""What is said where Airflow is missing or too old."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRETEND = """
import importlib.metadata as metadata
real = metadata.version
def version(name):
    if name in ("apache-airflow-core", "apache-airflow"):
        if {found!r} is None:
            raise metadata.PackageNotFoundError(name)
        return {found!r}
    return real(name)
metadata.version = version
try:
    import {module}
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("module", ["airflow_handoff.operators.hitl", "airflow_handoff.triggers.hitl"])
@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "none is installed: run `pip install 'airflow-provider-handoff[airflow]'`."),
        ("3.0.6", "3.0 is installed: upgrade apache-airflow."),
        ("2.11.0", "2.11 is installed: upgrade apache-airflow."),
    ],
)
def test_an_unfit_environment_is_told_in_one_sentence(module: str, found: str | None, says: str) -> None:
    """Importing what needs Airflow says what to install."""
    done = subprocess.run(
        [sys.executable, "-c", PRETEND.format(found=found, module=module)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == f"EnvironmentUnfit {module} needs Apache Airflow 3.1 or later and {says}\n", (
        done.stderr
    )
