"""The generated file that proves claims; its format is a contract with those who write it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.capabilities.samples import evidence

from airflow_handoff.capabilities.evidence import (
    Evidence,
    Proof,
    evidence_path,
    evidence_text,
    manifest_of,
    parse_evidence,
    read_evidence_beside,
    write_evidence_beside,
)
from airflow_handoff.exceptions import CapabilitiesError


def test_the_format_is_pinned() -> None:
    """Sorted, without a time: the same run writes the same bytes."""
    one = Evidence(
        "zig",
        "1.0.0",
        "2026-06-16",
        "airflow 3.3.2",
        {"skipped": Proof(("b", "a"), ("c",)), "failed": Proof()},
    )
    assert json.loads(evidence_text(one)) == {
        "format": 1,
        "sdk": "zig",
        "sdk_version": "1.0.0",
        "supervisor_schema_version": "2026-06-16",
        "supervisor": "airflow 3.3.2",
        "dimensions": {
            "failed": {"passed": [], "failed": []},
            "skipped": {"passed": ["a", "b"], "failed": ["c"]},
        },
    }
    other = Evidence(*list(vars(one).values())[:4], dict(reversed(one.dimensions.items())))
    assert evidence_text(one) == evidence_text(other)


def test_it_lies_beside_its_manifest(tmp_path: Path) -> None:
    """Written and read by the manifest's path, whatever the manifest's kind."""
    manifest = tmp_path / "capabilities.yml"
    assert read_evidence_beside(manifest) is None
    manifest.write_text("sdk: zig\n")
    written = write_evidence_beside(manifest, evidence())
    assert written == evidence_path(manifest) == tmp_path / "capabilities.evidence.json"
    assert read_evidence_beside(manifest) == evidence()
    assert manifest_of(written) == manifest
    assert manifest_of(tmp_path / "other.evidence.json") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "expected JSON"),
        ("[]", '`"format": 1`'),
        ('{"format": 2}', "upgrade airflow-provider-handoff"),
        ('{"format": 1}', "'sdk' is missing or wrong"),
        ('{"format": 1, "sdk": 3}', "`sdk` is missing or wrong"),
    ],
)
def test_a_file_of_another_kind_is_refused(text: str, reason: str) -> None:
    """With what to do: nobody edits it by hand."""
    with pytest.raises(CapabilitiesError, match=reason):
        parse_evidence(text, "capabilities.evidence.json")


@pytest.mark.parametrize("proof", ['{"passed": "a"}', '{"failed": [1]}', "[]", "null"])
def test_a_proof_of_another_kind_is_refused(proof: str) -> None:
    """A list of characters would count as many cases."""
    text = evidence_text(evidence(task_logging=Proof())).replace(
        '{\n      "passed": [],\n      "failed": []\n    }', proof
    )
    assert proof in text
    with pytest.raises(CapabilitiesError, match="run the cases again"):
        parse_evidence(text, "capabilities.evidence.json")


def test_unknown_keys_are_ignored() -> None:
    """A newer writer may say more."""
    data = {**json.loads(evidence_text(evidence())), "host": "x"}
    assert parse_evidence(json.dumps(data), "x") == evidence()
