"""Claim, list and evidence side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.capabilities.samples import changed, claims, evidence, sound

from airflow_handoff.capabilities.claims import Status, current_version
from airflow_handoff.capabilities.evidence import Evidence, Proof
from airflow_handoff.capabilities.locate import BuildFile


def status(
    name: str, data: dict[str, object] | None = None, proven: Evidence | None = None, **kwargs: str
) -> Status:
    """Return the status of one dimension."""
    return claims(data, proven, **kwargs).by_name[name].status


def test_a_claim_is_proven_only_by_its_cases() -> None:
    """Claimed and passed, claimed and failed, claimed and not exercised are three things."""
    proven = evidence(task_logging=Proof(("a",), ("b",)), xcom_read_write=Proof())
    assert status("failed", proven=proven) is Status.PROVEN
    assert status("task-logging", proven=proven) is Status.FAILING
    assert status("xcom-read-write", proven=proven) is Status.UNPROVEN
    assert status("failed") is Status.UNPROVEN


def test_evidence_of_another_sdk_schema_or_older_release_proves_nothing() -> None:
    """A tick belongs to one SDK version and one schema."""
    for other in ({"sdk": "ada"}, {"supervisor_schema_version": "2026-10-30"}):
        assert status("failed", proven=replace(evidence(), **other)) is Status.UNPROVEN
    assert status("failed", proven=evidence(), version="1.0.1") is Status.UNPROVEN
    assert status("failed", proven=evidence(), version="1.0.0-rc1") is Status.PROVEN


def test_what_is_denied_what_is_not_mentioned_and_what_cannot_apply_differ() -> None:
    """While whole Dags are not supported, what needs them is n/a, never "no"."""
    assert status("skipped") is Status.UNSUPPORTED
    assert status("skipped", changed(skipped=...)) is Status.UNDECLARED
    assert status("task-group") is Status.NOT_APPLICABLE
    assert status("task-group", changed(task_group=...)) is Status.NOT_APPLICABLE
    opened = {"native_dag_authoring": {"supported": True}}
    assert status("task-group", changed(**opened)) is Status.UNSUPPORTED
    assert status("task-group", changed(**opened, task_group=...)) is Status.UNDECLARED


def test_the_release_is_that_of_the_build_file_else_the_newest_entry(tmp_path: Path) -> None:
    """A build file that cannot be read is told by the check of it, not here."""
    data = changed(skipped={"supported": True, "sdk_version": "1.10.0"})
    assert current_version(data, None) == "1.10.0"
    build = tmp_path / "Cargo.toml"
    assert current_version(data, BuildFile(build)) == "1.10.0"
    build.write_text('package.version = "2.0.0"\n')
    assert current_version(data, BuildFile(build)) == "2.0.0"
    assert current_version(data, BuildFile(tmp_path / "schema.rs", release=build)) == "2.0.0"
    assert current_version({}, None) is None
    assert current_version(sound(), None) == "1.0.0"
