"""Features by Airflow version, with ticks that only tests write."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_handoff.capabilities.document import parse_document
from airflow_handoff.capabilities.features import (
    FeatureRun,
    FeatureStatus,
    join_features,
    parse_runs,
    read_features,
    runs_text,
)
from airflow_handoff.capabilities.render import render
from airflow_handoff.capabilities.render.tables import feature_blocks
from airflow_handoff.exceptions import CapabilitiesError

LIST = """
versions: ["3.1", "3.3"]
features:
  - name: waiting
    title: A waiting task
    airflow: {"3.1": defers, "3.3": parks}
  - name: coordinators
    title: Coordinators
    airflow: {"3.1": {absent: Airflow has none}, "3.3": by queue}
"""
RUNS = {
    ("waiting", "3.3"): FeatureRun("3.3.2", ("tests/a.py::test_b", "tests/a.py::test_a")),
    ("coordinators", "3.3"): FeatureRun("3.3.2", (), ("tests/c.py::test_c",)),
}


def test_a_tick_is_written_by_tests_only() -> None:
    """Proven, failing, unproven and absent are told apart, with the version that ran."""
    features = join_features(parse_document(LIST, "features.yaml"), RUNS)
    waiting, coordinators = features.features
    assert [waiting.support[v].status for v in features.versions] == [
        FeatureStatus.UNPROVEN,
        FeatureStatus.PROVEN,
    ]
    assert [coordinators.support[v].status for v in features.versions] == [
        FeatureStatus.ABSENT,
        FeatureStatus.FAILING,
    ]
    assert render(feature_blocks(features), "md").split("\n")[:4] == [
        "| Feature | Airflow 3.1 | Airflow 3.3 |",
        "| --- | --- | --- |",
        "| A waiting task | defers (unproven) | ✓ parks (2 tests on 3.3.2) |",
        "| Coordinators | no: Airflow has none | ✗ by queue (failing) |",
    ]


def test_the_evidence_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Beside the list, sorted, without a time."""
    (tmp_path / "features.yaml").write_text(LIST)
    (tmp_path / "features.evidence.json").write_text(runs_text(RUNS))
    read = read_features(tmp_path / "features.yaml")
    assert read.features[0].support["3.3"].passed == ("tests/a.py::test_a", "tests/a.py::test_b")
    assert runs_text(parse_runs(runs_text(RUNS), "x")) == runs_text(dict(reversed(RUNS.items())))


def test_slips_are_told() -> None:
    """A feature that is not listed, a list of another shape, evidence of another format."""
    with pytest.raises(CapabilitiesError, match="the tests cite unknown features: magic"):
        join_features(parse_document(LIST, "f.yaml"), {("magic", "3.3"): FeatureRun("3.3.2", ("a",))})
    with pytest.raises(CapabilitiesError, match=r"wrong: '3\.3'"):
        join_features(parse_document(LIST.replace('"3.3": by queue', ""), "f.yaml"), {})
    with pytest.raises(CapabilitiesError, match="format 2"):
        parse_runs('{"format": 2, "features": {}}', "f.evidence.json")


def test_evidence_of_a_thousand_levels_is_told() -> None:
    """A file that nobody wrote by running tests ends in a sentence, too."""
    with pytest.raises(CapabilitiesError, match="record the system tests again"):
        parse_runs("[" * 100_000, "features.json")
