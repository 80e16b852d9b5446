"""The models of a claim file, and the JSON Schema that is published of them."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.unit.capabilities.samples import DATA, MANIFESTS, changed, sound, subject

from airflow_handoff.capabilities.checks import check
from airflow_handoff.capabilities.dimensions import known_dimensions
from airflow_handoff.capabilities.manifest import SCHEMA_FILE, json_schema, read_manifest, schema_text
from airflow_handoff.exceptions import CapabilitiesError


@pytest.mark.parametrize("name", MANIFESTS)
def test_airflows_own_manifests_validate(name: str) -> None:
    """Go's, Java's and TypeScript's, in both generations, as YAML and as JSON."""
    manifest = read_manifest(DATA / name)
    assert manifest.sdk == name.split(".")[0].split("-")[0]
    assert manifest.states["failed"].supported
    jsonschema.validate(yaml.safe_load((DATA / name).read_text()), json_schema())


def test_each_generation_is_read_as_it_is() -> None:
    """The first has null `since`, empty notes and no later dimensions; the next may have `sdk_version`."""
    names = ("java-first-generation.json", "java.yaml", "ts.yaml")
    first, java, ts = (read_manifest(DATA / name) for name in names)
    assert first.states["skipped"].since is None
    assert first.states["skipped"].note == ""
    assert "taskflow-binding" not in first.capabilities
    assert "retry-policy" not in first.capabilities
    assert java.capabilities["task-logging"].sdk_version == "1.0.0-beta1"
    assert ts.capabilities["task-logging"].sdk_version is None


def rules(name: str) -> dict[str, list[str]]:
    """Return what the checks find in one of Airflow's manifests: the subjects of each rule."""
    findings = check(subject((DATA / name).read_text(), path=name))
    found: dict[str, list[str]] = {}
    for finding in findings:
        found.setdefault(finding.rule, []).append(
            finding.message.split("`")[1] if "`" in finding.message else ""
        )
    return found


def test_go_claims_a_schema_that_its_airflow_refuses() -> None:
    """Airflow 3.3 with schema 2026-10-30: 3.3.2 accepts 2026-06-16 only."""
    findings = check(subject((DATA / "go.yaml").read_text(), path="go.yaml"))
    (finding,) = [finding for finding in findings if finding.rule == "schema-unknown-to-airflow"]
    assert (finding.path, finding.line) == ("go.yaml", 3)
    assert finding.message == "Airflow 3.3 does not know schema 2026-10-30; it accepts 2026-06-16"


def test_none_of_the_three_meets_its_own_must_tier() -> None:
    """Go lacks two of the MUSTs, Java and TypeScript one; nothing else is wrong with the latter two."""
    assert rules("go.yaml")["must-not-met"] == ["taskflow-binding", "variable-read-write"]
    assert rules("java.yaml") == {"must-not-met": ["taskflow-binding"]}
    assert rules("ts.yaml") == {"must-not-met": ["taskflow-binding"]}
    assert rules("java-first-generation.json") == {"must-not-met": ["variable-read-write"]}


def test_the_published_schema_is_the_generated_one() -> None:
    """Where they differ, write ``schema_text()`` to ``SCHEMA_FILE``."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()


def test_the_published_schema_completes_dimensions() -> None:
    """An editor offers every dimension with its meaning, and underlines a misspelt one."""
    schema = json_schema()
    offered = {
        **schema["properties"]["states"]["properties"],
        **schema["properties"]["capabilities"]["properties"],
    }
    assert set(offered) == set(known_dimensions().by_name)
    assert offered["task-logging"]["description"].startswith("MUST: stdout, stderr")
    jsonschema.validate({**sound(), "$schema": "x.json"}, schema)
    for wrong in ({"task-loging": {"supported": True}}, {"task-logging": {"supported": "yes"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(changed(capabilities=wrong), schema)


def test_a_manifest_of_another_shape_names_its_line(tmp_path: Path) -> None:
    """A program that reads a manifest gets one sentence, not pydantic's page."""
    path = tmp_path / "capabilities.yaml"
    path.write_text(yaml.safe_dump(changed(skipped={"supported": "no"}), sort_keys=False))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "'no'" in text)
    with pytest.raises(CapabilitiesError, match=r"states\.skipped\.supported: .*names every fault") as raised:
        read_manifest(path)
    assert raised.value.line == line
