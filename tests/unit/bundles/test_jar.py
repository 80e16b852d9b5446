"""Jars, whose manifest entries may be in different files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.bundles.artifacts import jar

from airflow_handoff.bundles.jar import MAIN_CLASS, SCHEMA_VERSION, JavaProgram, assemble
from airflow_handoff.bundles.metadata import Bundle
from airflow_handoff.bundles.readers import read_jar_file
from airflow_handoff.exceptions import BundleError

SDK = {SCHEMA_VERSION: "2026-06-16"}
JOB = {MAIN_CLASS: "org.acme.jobs.with.a.very.long.package.name.that.must.be.continued.on.another.line.Main"}


def jars(folder: Path, **contents: dict[str, str] | None) -> list[Bundle]:
    """Write jars and read them."""
    found = []
    for name, attributes in contents.items():
        path = folder / f"{name}.jar"
        path.write_bytes(jar(attributes))
        bundle = read_jar_file(path)
        assert bundle is not None
        found.append(bundle)
    return found


def test_class_and_schema_come_from_different_jars(tmp_path: Path) -> None:
    """All jars are the classpath, in a stable order, and continued manifest lines are joined."""
    found = jars(tmp_path, sdk=SDK, job=JOB, lib=None)
    classpath = tuple(tmp_path / f"{name}.jar" for name in ("job", "lib", "sdk"))
    assert assemble(found) == JavaProgram(JOB[MAIN_CLASS], "2026-06-16", classpath)


def test_an_explicit_class_needs_no_manifest(tmp_path: Path) -> None:
    """The keyword decides, also among several."""
    found = jars(tmp_path, a={MAIN_CLASS: "A"}, b={MAIN_CLASS: "B"})
    assert assemble(found, main_class="C").main_class == "C"
    assert assemble(found, main_class="C").schema_version is None


def test_case_bundle_duplicate_jars_are_refused_by_name(tmp_path: Path) -> None:
    """Two classes, or two SDKs, are not settled by the order of a folder."""
    with pytest.raises(BundleError, match=r"A in .*a\.jar and B in .*b\.jar: set main_class"):
        assemble(jars(tmp_path, a={MAIN_CLASS: "A"}, b={MAIN_CLASS: "B"}))
    with pytest.raises(BundleError, match=r"c\.jar and .*d\.jar: keep one SDK"):
        assemble(jars(tmp_path, c={MAIN_CLASS: "A", **SDK}, d={SCHEMA_VERSION: "2026-10-30"}))


def test_case_bundle_rejected_jars(tmp_path: Path) -> None:
    """No jar, no class, and a broken jar each say so."""
    with pytest.raises(BundleError, match="no jar was found here"):
        assemble([], roots=[tmp_path])
    with pytest.raises(BundleError, match="none of 1 jars names a Main-Class: set main_class"):
        assemble(jars(tmp_path, lib=None))
    broken = tmp_path / "broken.jar"
    broken.write_bytes(jar(JOB)[:-30])
    with pytest.raises(BundleError, match="not a readable jar"):
        read_jar_file(broken)
    assert read_jar_file(tmp_path / "x.txt") is None
