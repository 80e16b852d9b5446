"""Node bundles of both generations, and Python scripts."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bundles.artifacts import layout_bundle, metadata

from airflow_handoff.bundles.metadata import Bundle, VerifiedBundle, write_manifest
from airflow_handoff.bundles.readers import read_jar_file, read_node_bundle, read_python_bundle
from airflow_handoff.bundles.script import NODE_MANIFEST, PYTHON_MANIFEST, write_node
from airflow_handoff.exceptions import BundleError

MANIFEST = write_manifest(metadata("d", task_options={"one": {"execution_timeout": 2.5}}))
HANDLERS = {
    "airflow_bundle_metadata_version": "1.0",
    "sdk": {"language": "typescript", "version": "0.2.0", "supervisor_schema_version": "2026-10-30"},
    "dag_source_paths": {"d": "src/d.ts"},
    "task_handlers": {"d": {"tasks": ["one"]}, "e": ["two"], "f": {"three": {}}},
}
SOURCES = {"src/d.ts": b"export const d = 1;", "src/\xe9.ts": "let \u00e9;".encode()}
CODE = b"console.log(1);\n"


def written(path: Path, data: bytes) -> Path:
    """Write a file."""
    path.write_bytes(data)
    return path


def test_the_published_node_bundle_is_read(tmp_path: Path) -> None:
    """The first line holds the manifest in base64, and there is no digest to check."""
    bundle = read_node_bundle(written(tmp_path / "bundle.mjs", write_node(MANIFEST, CODE)))
    assert type(bundle) is Bundle
    assert bundle.metadata.execution_timeout("d", "one") == 2.5
    assert bundle.metadata.execution_timeout("d", "two") is None
    assert bundle.metadata.execution_timeout("x", "one") is None


@pytest.mark.parametrize("sources", [{}, SOURCES])
def test_the_next_node_bundle_is_read_and_verified(tmp_path: Path, sources: dict[str, bytes]) -> None:
    """Every region of the layout is checked, and handlers are Dags and tasks."""
    path = written(tmp_path / "x.min.mjs", layout_bundle(HANDLERS, sources, CODE))
    bundle = read_node_bundle(path)
    assert isinstance(bundle, VerifiedBundle)
    assert sorted(bundle.digests) == sorted(["manifest", "code", *(f"source {name}" for name in sources)])
    tasks = {dag_id: entry.tasks for dag_id, entry in bundle.metadata.dags.items()}
    assert tasks == {"d": ("one",), "e": ("two",), "f": ("three",)}
    assert bundle.metadata.schema_version == "2026-10-30"


@pytest.mark.parametrize("word", [b"typescript", b"export const", b"console"])
def test_case_bundle_edited_node(tmp_path: Path, word: bytes) -> None:
    """An edit of the manifest, of a source or of the code is refused."""
    data = layout_bundle(HANDLERS, SOURCES, CODE)
    path = written(tmp_path / "x.min.mjs", data.replace(word, word.upper()))
    with pytest.raises(BundleError, match="was changed after packing"):
        read_node_bundle(path)


def good() -> bytes:
    """Return a sound bundle of the next revision."""
    return layout_bundle(HANDLERS, SOURCES, CODE)


def relaid(**changes: Any) -> bytes:
    """Return the bundle with parts of its layout replaced by something of the same length where it can be."""
    first, _, rest = good().partition(b"\n")
    layout = json.loads(first[len(b"//# airflowBundle=") :])
    layout.update(changes)
    return b"//# airflowBundle=" + json.dumps(layout).encode() + b"\n" + rest


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (NODE_MANIFEST + b"!!!\n", "not base64"),
        (NODE_MANIFEST + base64.b64encode(b"[]") + b"\n", "must be a mapping"),
        (NODE_MANIFEST + b"A" * (1024 * 1024 + 1), "1048576 bytes"),
        (b"//# airflowBundle={", "not JSON"),
        (b"//# airflowBundle=[]\n", "must be a mapping with metadata, sources and code"),
        (relaid(code=None), "code needs start and end"),
        (relaid(metadata={"start": "zz", "end": "0", "sha256": ""}), "manifest needs start and end"),
        (relaid(sources=[]), "another place"),
        (good() + b"//", "does not reach to the end"),
        (good().replace(b"//# airflowMetadata=", b"//# airflowMetadatx="), "must be the manifest"),
        (good().replace(b"\n#*/\n/*#", b"\n#*/;/*#"), "no digest covers"),
        (layout_bundle(HANDLERS, {"a.ts": b"x */ evil() /*"}, CODE), "would be executed"),
    ],
)
def test_case_bundle_rejected_node(tmp_path: Path, data: bytes, reason: str) -> None:
    """A bundle that breaks its format is named, with what was expected."""
    with pytest.raises(BundleError, match=reason):
        read_node_bundle(written(tmp_path / "x.min.mjs", data))


def test_other_scripts_are_no_node_bundles(tmp_path: Path) -> None:
    """The name and the first line decide."""
    assert read_node_bundle(written(tmp_path / "lib.mjs", CODE)) is None
    assert read_node_bundle(written(tmp_path / "empty.mjs", b"")) is None
    assert read_node_bundle(written(tmp_path / "bundle.js", write_node(MANIFEST, CODE))) is None


@pytest.mark.parametrize("form", ["base64", "json"])
def test_a_python_script_carries_its_manifest_in_a_comment(tmp_path: Path, form: str) -> None:
    """In base64 or as JSON, among the first five lines."""
    as_json = json.dumps(metadata("d").to_manifest()).encode()
    content = as_json if form == "json" else base64.b64encode(MANIFEST)
    head = b"#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n"
    bundle = read_python_bundle(
        written(tmp_path / "t.py", head + PYTHON_MANIFEST + content + b"\nprint(1)\n")
    )
    assert bundle is not None
    assert (bundle.kind, list(bundle.metadata.dags)) == ("python", ["d"])
    late = b"\n" * 5 + PYTHON_MANIFEST + content
    assert read_python_bundle(written(tmp_path / "u.py", late)) is None


def test_a_python_archive_carries_its_manifest_as_a_member(tmp_path: Path) -> None:
    """An archive without the member is no bundle, and what is no archive is rejected."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", "print(1)")
    assert read_python_bundle(written(tmp_path / "plain.pyz", buffer.getvalue())) is None
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("airflow-metadata.yaml", MANIFEST)
    bundle = read_python_bundle(written(tmp_path / "t.pyz", b"#!/usr/bin/env python3\n" + buffer.getvalue()))
    assert bundle is not None
    assert list(bundle.metadata.dags) == ["d"]
    with pytest.raises(BundleError, match="not a readable archive"):
        read_python_bundle(written(tmp_path / "bad.pyz", b"no zip"))


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_case_bundle_rejected_archives_that_rot(tmp_path: Path, compression: int) -> None:
    """Whatever a decompressor says about a damaged archive or jar, it is one bundle that is rejected."""
    for name, member, read in (
        ("t.pyz", "airflow-metadata.yaml", read_python_bundle),
        ("t.jar", "META-INF/MANIFEST.MF", read_jar_file),
    ):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression) as archive:
            archive.writestr(member, MANIFEST if name == "t.pyz" else b"Main-Class: A\r\n\r\n")
        whole = buffer.getvalue()
        start = 30 + len(member)
        for at in range(start, whole.index(b"PK\x01\x02")):
            damaged = whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
            with contextlib.suppress(BundleError):
                read(written(tmp_path / name, damaged))


@pytest.mark.parametrize("text", [b"a: !!timestamp x", b"a: !!int x", b"a: !!float x", b"a: !!binary \xff"])
def test_case_bundle_rejected_tags_that_lie(tmp_path: Path, text: bytes) -> None:
    """A manifest whose explicit tags are wrong is rejected like any other."""
    with pytest.raises(BundleError):
        read_python_bundle(written(tmp_path / "t.py", PYTHON_MANIFEST + base64.b64encode(text)))
