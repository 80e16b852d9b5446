"""What changed between two states of an SDK."""

from __future__ import annotations

from tests.unit.capabilities.samples import DATA, changed, claims, evidence, sound

from airflow_handoff.capabilities.config import SdkSource
from airflow_handoff.capabilities.difference import difference, release_notes
from airflow_handoff.capabilities.evidence import Proof
from airflow_handoff.capabilities.project import read_claims


def test_release_notes_of_java() -> None:
    """From its first generation to the next: one thing gained, two more declared."""
    old, new = (read_claims(SdkSource(DATA / name)) for name in ("java-first-generation.json", "java.yaml"))
    assert release_notes(old, new).splitlines() == [
        *("### Now supported", "", "- `variable-read-write` (since Airflow 3.3), unproven", ""),
        *("### Newly declared", "", "- `taskflow-binding` is unsupported", "- `retry-policy` is unsupported"),
    ]


def test_each_kind_of_change() -> None:
    """Gained with its proof, lost, required, changed: what matters most comes first."""
    new = changed(
        min_airflow_version="3.4",
        skipped={"supported": True, "since": "3.4"},
        failed={"supported": False},
        task_logging={"supported": True, "since": "3.4"},
    )
    found = difference(
        claims(sound(), evidence()), claims(new, evidence(skipped=Proof(("s",)), connection_read=Proof()))
    )
    assert [(change.kind, change.text) for change in found] == [
        ("gained", "`skipped` (since Airflow 3.4)"),
        ("lost", "`failed` is unsupported"),
        ("requires", "oldest Airflow: 3.3 → 3.4"),
        ("changed", "`task-logging`: since Airflow 3.3 → 3.4"),
        ("changed", "`connection-read`: proven → unproven"),
    ]


def test_no_change_is_said() -> None:
    """Not an empty page."""
    assert release_notes(claims(), claims()) == "No change in what zig claims.\n"
