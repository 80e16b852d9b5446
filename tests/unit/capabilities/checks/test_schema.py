"""One test for each rule on the schema version."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.capabilities.samples import changed, found, sound

from airflow_handoff.capabilities.checks.schema import (
    schema_differs_from_build,
    schema_not_located,
    schema_unknown_to_airflow,
)
from airflow_handoff.capabilities.locate import BuildFile


def test_schema_unknown_to_airflow() -> None:
    """The claimed Airflow must accept the schema; both ways out are told."""
    (finding,) = found(schema_unknown_to_airflow, changed(supervisor_schema_version="2026-10-30"))
    assert (finding.line, finding.rule) == (3, "schema-unknown-to-airflow")
    assert finding.message == "Airflow 3.3 does not know schema 2026-10-30; it accepts 2026-06-16"
    assert (
        finding.write == "Write `supervisor_schema_version: '2026-06-16'`, or `min_airflow_version: '3.4'`."
    )


@pytest.mark.parametrize(
    ("airflow", "schema"),
    [("3.3", "2026-06-16"), ("3.3.2", "2026-06-16"), ("3.4", "2026-10-30"), ("3.4.0rc1", "2026-06-16")],
)
def test_a_schema_that_the_airflow_knows_is_no_fault(airflow: str, schema: str) -> None:
    """Patch releases and pre-releases count as their minor release."""
    assert not found(
        schema_unknown_to_airflow, changed(min_airflow_version=airflow, supervisor_schema_version=schema)
    )


def test_an_airflow_that_is_not_known_yet_is_not_judged() -> None:
    """An old copy of this package calls no newer Airflow wrong."""
    assert not found(
        schema_unknown_to_airflow, changed(min_airflow_version="9.0", supervisor_schema_version="2031-01-01")
    )


def test_airflow_without_supervisor() -> None:
    """Airflow before 3.1 runs no task in another language."""
    (finding,) = found(schema_unknown_to_airflow, changed(min_airflow_version="2.10"))
    assert (finding.line, finding.rule) == (2, "airflow-without-supervisor")
    assert finding.write == "Write `min_airflow_version: '3.1'` or a later one."


def test_schema_differs_from_build(tmp_path: Path) -> None:
    """The manifest follows the build file, which is named with its key."""
    build = tmp_path / "gradle.properties"
    build.write_text("airflowSupervisorSchemaVersion=2026-10-30\n")
    (finding,) = found(schema_differs_from_build, sound(), build_file=BuildFile(build))
    assert (finding.line, finding.rule) == (3, "schema-differs-from-build")
    assert f"{build} says airflowSupervisorSchemaVersion = 2026-10-30" in finding.message
    assert finding.write == "Write `supervisor_schema_version: '2026-10-30'`, or change the build file."
    build.write_text("airflowSupervisorSchemaVersion=2026-06-16\n")
    assert not found(schema_differs_from_build, sound(), build_file=BuildFile(build))


def test_schema_not_located(tmp_path: Path) -> None:
    """A search that finds nothing is at fault itself: it is told on the build file, and is no mismatch."""
    build = tmp_path / "Cargo.toml"
    build.write_text('[package]\nname = "zig"\n')
    (finding,) = found(schema_not_located, sound(), build_file=BuildFile(build))
    assert (finding.path, finding.rule) == (str(build), "schema-not-located")
    assert "This says nothing about the manifest" in finding.write
    assert not found(schema_differs_from_build, sound(), build_file=BuildFile(build))
