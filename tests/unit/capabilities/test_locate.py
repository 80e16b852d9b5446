"""The schema version and the release in an SDK's own build file."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_handoff.capabilities.locate import LocatorError, locate_schema_version, locate_sdk_version

GRADLE = """# airflowSupervisorSchemaVersion=1999-01-01
! x
group = org.example
airflowSupervisorSchemaVersion = {}
sdkVersion=1.0.0-beta1
"""
CARGO = """[package]
name = "zig"
version = "0.1.0"
[package.metadata.airflow]
supervisor-schema-version = "{}"
"""
NPM = '{{"name": "zig", "version": "0.1.0-beta1", "airflow": {{"supervisorSchemaVersion": "{}"}}}}'
PYPROJECT = '[project]\nname = "zig"\nversion = "0.2.0"\n[tool.zig]\nsupervisor_schema_version = {}\n'
GO = """
package sdk

// const SupervisorSchemaVersion = "1999-01-01"
/* SupervisorSchemaVersion = "1999-01-02"
*/
const url = "http://example.org/SupervisorSchemaVersion"

const (
	Name = `zig`
	SupervisorSchemaVersion string = "{}"
)
"""
RUST = "pub const SUPERVISOR_SCHEMA_VERSION: &str = \"{}\"; // one\nfn f<'a>(x: &'a str) {{}}\n"

PYTHON = '# SUPERVISOR_SCHEMA_VERSION = "1999-01-01"\nSUPERVISOR_SCHEMA_VERSION: str = "{}"\n'
JAVA = 'class Schema {{\n  static final String SUPERVISOR_SCHEMA_VERSION = "{}";\n}}\n'


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("gradle.properties", GRADLE, "airflowSupervisorSchemaVersion"),
        ("Cargo.toml", CARGO, "package.metadata.airflow.supervisor-schema-version"),
        ("package.json", NPM, "airflow.supervisorSchemaVersion"),
        ("pyproject.toml", PYPROJECT, "tool.zig.supervisor_schema_version"),
        ("schema.go", GO, "SupervisorSchemaVersion"),
        ("lib.rs", RUST, "SUPERVISOR_SCHEMA_VERSION"),
        ("Schema.java", JAVA, "SUPERVISOR_SCHEMA_VERSION"),
        ("schema.py", PYTHON, "SUPERVISOR_SCHEMA_VERSION"),
    ],
)
def test_the_schema_version_is_found_in_each_kind_of_build_file(
    tmp_path: Path, name: str, text: str, key: str
) -> None:
    """Under the name that its language would use; comments do not count."""
    path = tmp_path / name
    path.write_text(text.format("2026-06-16"))
    located = locate_schema_version(path)
    assert (located.key, located.value, located.path) == (key, "2026-06-16", str(path))


def test_a_folder_of_go_sources_is_searched(tmp_path: Path) -> None:
    """Also below it; tests do not count."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "main.go").write_text("package main\n")
    (tmp_path / "pkg" / "schema.go").write_text(GO.format("2026-06-16"))
    (tmp_path / "pkg" / "schema_test.go").write_text(GO.format("1999-01-01"))
    assert locate_schema_version(tmp_path).path == str(tmp_path / "pkg" / "schema.go")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("gradle.properties", "a=b\n", "no key that is called supervisor_schema_version"),
        ("Cargo.toml", "[package\n", "the file cannot be read"),
        ("package.json", "{", "the file cannot be read"),
        ("build.xml", "<x/>", "expected .properties, .toml, .json or a source file"),
        (
            "schema.go",
            GO.format("2026-06-16") + 'var OtherSupervisorSchemaVersion = "2027-01-01"\n',
            "more than one",
        ),
        ("absent.toml", None, "No such file"),
    ],
)
def test_a_search_without_one_answer_is_an_error_of_the_search(
    tmp_path: Path, name: str, text: str | None, reason: str
) -> None:
    """It names the file, and what to set instead."""
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(LocatorError, match=reason) as raised:
        locate_schema_version(path)
    assert raised.value.path == str(path)


def test_a_named_key_is_found_in_any_spelling(tmp_path: Path) -> None:
    """For a build file that calls it otherwise, or has two of them."""
    path = tmp_path / "gradle.properties"
    path.write_text("wireVersion=2026-06-16\nairflowSupervisorSchemaVersion=1\nmySupervisorSchemaVersion=2\n")
    assert locate_schema_version(path, "wire-version").value == "2026-06-16"
    assert locate_schema_version(path, "mySupervisorSchemaVersion").value == "2"


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("gradle.properties", GRADLE, "1.0.0-beta1"),
        ("Cargo.toml", CARGO, "0.1.0"),
        ("package.json", NPM, "0.1.0-beta1"),
        ("pyproject.toml", PYPROJECT, "0.2.0"),
        ("Cargo.toml", "[package]\nversion.workspace = true\n", None),
        ("schema.go", GO, None),
    ],
)
def test_the_release_is_found_where_that_kind_of_file_has_one(
    tmp_path: Path, name: str, text: str, version: str | None
) -> None:
    """A Go module's release is a tag, a dynamic one is elsewhere."""
    path = tmp_path / name
    path.write_text(text.format("2026-06-16") if "{}" in text else text)
    located = locate_sdk_version(path)
    assert (located and located.value) == version
