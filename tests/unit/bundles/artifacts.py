"""Artifacts of every kind, made for the tests."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from airflow_handoff.bundles.metadata import BundleMetadata, DagEntry, Sdk
from airflow_handoff.bundles.readers import pack_executable

SCHEMA = "2026-06-16"


def metadata(*dags: str, **options: Any) -> BundleMetadata:
    """Return what an artifact with these Dags says about itself."""
    return BundleMetadata(
        sdk=Sdk(language="c", version="1.0.0", supervisor_schema_version=SCHEMA),
        source="main.c",
        dags={dag_id: DagEntry(tasks=("one", "two"), **options) for dag_id in dags},
    )


def executable(path: Path, *dags: str, source: bytes = b"int main;\n") -> Path:
    """Pack a shell script as a bundle."""
    binary = path.with_name(f"{path.name}.in")
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.write_bytes(b"#!/bin/sh\nexit 0\n" + path.name.encode())
    pack_executable(binary, path, metadata(*dags), source)
    binary.unlink()
    return path


def jar(attributes: dict[str, str] | None) -> bytes:
    """Return a jar, with the main section of a manifest where there are attributes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("org/acme/Job.class", b"\xca\xfe\xba\xbe")
        if attributes is not None:
            lines = ["Manifest-Version: 1.0"]
            for name, value in attributes.items():
                line = f"{name}: {value}"
                lines.append(line[:70])
                lines += [f" {line[start : start + 69]}" for start in range(70, len(line), 69)]
            archive.writestr(
                "META-INF/MANIFEST.MF", "\r\n".join([*lines, "", "Name: x", "Main-Class: no", ""])
            )
    return buffer.getvalue()


def layout_bundle(manifest: dict[str, Any], sources: dict[str, bytes], code: bytes) -> bytes:
    """Return a Node bundle of the next revision."""

    def region(start: int, content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        return {"start": f"{start:016x}", "end": f"{start + len(content):016x}", "sha256": digest}

    content = json.dumps(manifest).encode()

    def render(base: int) -> tuple[bytes, bytes]:
        body = b"//# airflowMetadata="
        layout: dict[str, Any] = {"code": {}, "metadata": region(base + len(body), content), "sources": []}
        body += content + b"\n"
        for path, source in sources.items():
            body += f"/*# airflowSource:{path}\n".encode()
            layout["sources"].append({"path": path, **region(base + len(body), source)})
            body += source + b"\n#*/\n"
        layout["code"] = region(base + len(body), code)
        return b"//# airflowBundle=" + json.dumps(layout).encode() + b"\n", body + code

    head, _ = render(0)
    head, body = render(len(head))
    return head + body
