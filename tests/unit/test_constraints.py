"""The constraint file of an Airflow version is complete and is what is installed."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("environment", ROOT / "scripts" / "environment.py")
environment = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(environment)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned(airflow: str) -> dict[str, str]:
    """Return name to version of the constraint file, for the running Python."""
    lines = environment.constraints(airflow).read_text().splitlines()
    found = [Requirement(line) for line in lines if line and not line.lstrip().startswith("#")]
    return {
        canonicalize_name(r.name): str(r.specifier).removeprefix("==")
        for r in found
        if r.marker is None or r.marker.evaluate()
    }


def wanted(airflow: str) -> list[Requirement]:
    """Return what pyproject.toml asks for in the environment of the version."""
    extras = PROJECT["project"]["optional-dependencies"]
    texts = [*PROJECT["project"]["dependencies"], *environment.PINS[airflow]]
    texts += [text for extra in environment.EXTRAS for text in extras[extra]]
    texts += [text for g in environment.GROUPS[airflow] for text in PROJECT["dependency-groups"][g]]
    found = [Requirement(text) for text in texts]
    return [r for r in found if r.marker is None or r.marker.evaluate()]


@pytest.mark.parametrize("airflow", list(environment.PINS))
def test_every_requirement_is_pinned_and_fits(airflow):
    """After a change of dependencies ``make constraints`` has been run."""
    pins = pinned(airflow)
    missing = [str(r) for r in wanted(airflow) if canonicalize_name(r.name) not in pins]
    assert not missing, f"run `make constraints`: {missing}"
    unfit = [
        str(r) for r in wanted(airflow) if not r.specifier.contains(pins[canonicalize_name(r.name)], True)
    ]
    assert not unfit, f"run `make constraints`: {unfit}"


def test_what_is_installed_is_what_is_pinned():
    """The constraint file was used: no installed distribution differs from it."""
    running = ".".join(version("apache-airflow-core").split(".")[:2])
    different = {}
    for name, pin in pinned(running).items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        if found != pin:
            different[name] = (found, pin)
    assert not different, f"run `make venv AIRFLOW={running}`"


def test_the_constraints_name_no_index():
    """Where packages come from is the business of the machine that installs them."""
    for airflow in environment.PINS:
        text = environment.constraints(airflow).read_text()
        assert not re.search(r"https?://|--(extra-)?index|--find-links", text)
