"""One test for each rule on the list of dimensions."""

from __future__ import annotations

import pytest
from tests.unit.capabilities.samples import changed, found, line_of, sound, subject

from airflow_handoff.capabilities.checks.tiers import (
    TIER_RULES,
    gate_contradiction,
    must_not_met,
    since_on_unsupported,
    stale_gap,
    unknown_dimension,
)


def test_a_sound_manifest_fits_the_list() -> None:
    """No rule speaks without a reason."""
    assert not [finding for rule in TIER_RULES for finding in rule(subject(sound()))]


@pytest.mark.parametrize(
    ("section", "name", "write"),
    [
        ("states", "up_for_retries", "Write `up_for_retry:`."),
        ("capabilities", "xcom-readwrite", "Write `xcom-read-write:`."),
        ("capabilities", "Task_Logging", "Write `task-logging:`."),
        ("capabilities", "skipped", "Move it below `states:`."),
        (
            "capabilities",
            "qqqq",
            "Remove it, or upgrade airflow-provider-handoff if Airflow's list has it.",
        ),
    ],
)
def test_unknown_dimension(section: str, name: str, write: str) -> None:
    """A misspelt name is answered with the nearest one, a misplaced one with its place."""
    data = sound()
    data["states"].pop("skipped")
    data[section][name] = {"supported": False}
    (finding,) = found(unknown_dimension, data)
    assert (finding.line, finding.rule, finding.write) == (
        line_of(data, f"{name}:"),
        "unknown-dimension",
        write,
    )


def test_since_on_unsupported() -> None:
    """What is not supported has no version since which it works."""
    data = changed(skipped={"supported": False, "since": "3.4"})
    (finding,) = found(since_on_unsupported, data)
    assert (finding.line, finding.rule) == (line_of(data, "'3.4'"), "since-on-unsupported")
    assert finding.write == "Remove `since`, or write `supported: true` if skipped works."


@pytest.mark.parametrize("gate", [{"supported": False}, ...])
def test_gate_contradiction(gate: object) -> None:
    """Task groups without whole Dags cannot be, whether the gate is denied or not mentioned."""
    data = changed(native_dag_authoring=gate, task_group={"supported": True})
    (finding,) = found(gate_contradiction, data)
    assert (finding.line, finding.rule) == (line_of(data, "task-group"), "gate-contradiction")
    assert finding.write == "Write `supported: true` for native-dag-authoring, or `supported: false` here."


def test_must_not_met() -> None:
    """A MUST that is denied and one that is left out are told, with the way to admit a gap."""
    data = changed(up_for_retry={"supported": False}, connection_read=...)
    denied, left_out = found(must_not_met, data)
    assert (denied.line, denied.message) == (
        line_of(data, "up_for_retry"),
        "`up_for_retry` is a MUST, and is not supported",
    )
    assert (left_out.line, left_out.message) == (
        line_of(data, "capabilities:"),
        "`connection-read` is a MUST, and is not declared",
    )
    assert "add 'connection-read' to `unmet`" in left_out.write


def test_a_newer_must_that_is_left_out_is_undeclared_not_a_fault() -> None:
    """A dimension that is added to the list breaks no manifest."""
    assert not found(must_not_met, changed(taskflow_binding=..., retry_policy=...))
    assert found(must_not_met, changed(taskflow_binding={"supported": False}))


def test_a_conditional_must_counts_only_with_its_gate() -> None:
    """Task arguments are a MUST for those who write whole Dags."""
    assert not found(must_not_met, changed(native_dag_authoring={"supported": False}))
    opened = found(must_not_met, changed(native_dag_authoring={"supported": True}))
    names = [finding.message.split("`")[1] for finding in opened]
    assert names == ["task-args", "dag-params", "taskflow-dependencies"]


def test_an_admitted_gap_is_no_fault() -> None:
    """The project knows, and says so in its configuration."""
    assert not found(must_not_met, changed(connection_read={"supported": False}), unmet=("connection-read",))


def test_stale_gap() -> None:
    """An admitted gap that is closed, or never was one, is told."""
    (finding,) = found(stale_gap, sound(), unmet=("connection-read",))
    assert (finding.rule, finding.write) == (
        "stale-gap",
        "Remove 'connection-read' from `unmet` of this SDK in handoff.toml.",
    )
