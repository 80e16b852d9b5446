"""Writes the ticks of docs/features.yaml: ``--record-features`` on a run of the system tests.

A test says which feature it proves, on each version that it runs on::

    @pytest.mark.proves("waiting")

What passed and failed replaces the earlier record of the same feature and version; a feature that was not run
keeps its own. ``make features`` runs all of them and renders the table.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from airflow_handoff.capabilities.features import FeatureRun, parse_runs, runs_text

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "docs" / "features.evidence.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that records."""
    parser.addoption(
        "--record-features",
        nargs="?",
        const=EVIDENCE,
        type=Path,
        metavar="=FILE",
        help=f"write what marked tests showed, by default to {EVIDENCE.relative_to(ROOT)}",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record where the option asks for it."""
    evidence = config.getoption("--record-features")
    if evidence:
        config.pluginmanager.register(FeatureRecorder(evidence))


def full_version(release: str, root: Path = ROOT) -> str:
    """Return the full Airflow version of an environment, such as ``3.3.2`` for ``3.3``."""
    pattern = "lib/python*/site-packages/apache_airflow_core-*.dist-info"
    (found,) = (root / f".venv-{release}").glob(pattern)
    return found.name.removesuffix(".dist-info").split("-")[-1]


class FeatureRecorder:
    """Collects outcomes by feature and version, and writes them when the session ends.

    :param evidence: the file to write.
    """

    def __init__(self, evidence: Path) -> None:
        self.evidence = evidence
        self.passed: dict[tuple[str, str], set[str]] = {}
        self.failed: dict[tuple[str, str], set[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the outcome of each phase of a marked test."""
        report = yield
        callspec = getattr(item, "callspec", None)
        version = callspec.params.get("airflow_version") if callspec else None
        if version and (report.failed or (report.when == "call" and report.passed)):
            for mark in item.iter_markers("proves"):
                self.note(mark.args, version, item.nodeid.split("[")[0], failed=report.failed)
        return report

    def note(self, features: Iterable[str], version: str, test: str, *, failed: bool) -> None:
        """Note one outcome; a test that failed once, in any phase or with any parameter, has failed."""
        for feature in features:
            (self.failed if failed else self.passed).setdefault((feature, version), set()).add(test)

    def pytest_sessionfinish(self) -> None:
        """Write what this session showed over what earlier ones did."""
        held = parse_runs(self.evidence.read_text(), str(self.evidence)) if self.evidence.exists() else {}
        for key in {*self.passed, *self.failed}:
            failed = self.failed.get(key, set())
            passed = self.passed.get(key, set()) - failed
            held[key] = FeatureRun(full_version(key[1]), tuple(passed), tuple(failed))
        self.evidence.write_text(runs_text(held))
