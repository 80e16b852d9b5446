"""One test for each rule that ``--require-evidence`` adds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.capabilities.samples import changed, evidence, found, line_of, sound, subject

from airflow_handoff.capabilities.checks import check
from airflow_handoff.capabilities.checks.proof import (
    PROOF_RULES,
    claim_failing,
    claim_without_evidence,
    evidence_outdated,
    stale_claim,
)
from airflow_handoff.capabilities.evidence import Proof
from airflow_handoff.capabilities.locate import BuildFile


def test_a_proven_manifest_has_no_fault() -> None:
    """No rule speaks without a reason."""
    proven = subject(sound(), evidence=evidence())
    assert not [finding for rule in PROOF_RULES for finding in rule(proven)]


def test_claim_without_evidence() -> None:
    """A tick needs a case, and a file without evidence has none."""
    (finding,) = found(claim_without_evidence, sound(), evidence=evidence(task_logging=Proof()))
    assert (finding.line, finding.rule) == (line_of(sound(), "task-logging"), "claim-without-evidence")
    assert "If there is no case for it, write one." in finding.write
    assert len(found(claim_without_evidence, sound())) == 10


def test_claim_failing() -> None:
    """A claim whose case failed names the case."""
    proven = evidence(task_logging=Proof(passed=("logs/plain",), failed=("logs/early",)))
    (finding,) = found(claim_failing, sound(), evidence=proven)
    assert (finding.line, finding.rule) == (line_of(sound(), "task-logging"), "claim-failing")
    assert "logs/early" in finding.message


def test_stale_claim() -> None:
    """What all cases show, and nobody claims, is a manifest that lags behind."""
    proven = evidence(skipped=Proof(passed=("states/skip",)))
    (finding,) = found(stale_claim, sound(), evidence=proven)
    assert (finding.line, finding.rule) == (line_of(sound(), "skipped"), "stale-claim")
    assert not found(stale_claim, sound(), evidence=evidence(skipped=Proof(("a",), ("b",))))


def test_evidence_outdated(tmp_path: Path) -> None:
    """Evidence of an older release, another schema or another SDK does not count, each for its own reason."""
    older = replace(evidence(), sdk_version="1.0.0-beta3")
    (finding,) = found(evidence_outdated, sound(), evidence=older)
    assert finding.rule == "evidence-outdated"
    assert "it is of 1.0.0-beta3, and the SDK is at 1.0.0" in finding.message
    other = replace(evidence(), sdk="ada", supervisor_schema_version="2026-10-30")
    assert len(found(evidence_outdated, sound(), evidence=other)) == 2
    build = tmp_path / "Cargo.toml"
    build.write_text('[package]\nversion = "1.1.0"\n')
    (finding,) = found(evidence_outdated, sound(), evidence=evidence(), build_file=BuildFile(build))
    assert "the SDK is at 1.1.0" in finding.message


def test_evidence_is_asked_for_only_on_demand() -> None:
    """Without the option an unproven manifest is sound; with it, it is not."""
    assert not check(subject(sound()))
    assert check(subject(sound()), require_evidence=True)


def test_everything_is_told_at_once_in_the_order_of_the_file() -> None:
    """Six faults of six rules in one file are six findings, sorted by line."""
    data = changed(
        min_airflow_version="latest",
        skipped={"supported": "no"},
        failed={"supported": False, "since": "3.3"},
        task_group={"supported": True},
    )
    data["states"]["removd"] = {"supported": False}
    findings = check(subject(data))
    assert {finding.rule for finding in findings} == {
        "malformed-version",
        "not-a-boolean",
        "since-on-unsupported",
        "must-not-met",
        "gate-contradiction",
        "unknown-dimension",
    }
    assert [finding.line for finding in findings] == sorted(finding.line for finding in findings)
    assert str(findings[0]).startswith(
        "zig/capabilities.yaml:2: [malformed-version] expected an Airflow version"
    )
