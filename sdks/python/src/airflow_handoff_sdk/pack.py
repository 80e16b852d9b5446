"""Tasks as one file that says what it holds: ``python -m airflow_handoff_sdk.pack TASKS -o BUNDLE``.

The name of the bundle decides its form. ``.py``: the file itself, with its manifest in a comment; nothing is
executed to learn what it holds. ``.pyz``: a folder whose ``__main__.py`` imports the tasks, as one archive.
Any other name: an executable (format AFBNDL01), which is a shell line that starts Python on the file itself,
the source, the manifest and a trailer. It runs where native programs run; ``$AIRFLOW_HANDOFF_PYTHON`` names
the interpreter, ``python3`` without it, and the SDK must be importable there. A coordinator passes neither
that name nor ``PYTHONPATH`` on by itself: give them to it as ``env``.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

MAGIC = b"AFBNDL01"
TRAILER = 64
ARCHIVE_MANIFEST = "airflow-metadata.yaml"
_LAUNCHER = b"""#!/bin/sh
exec "${AIRFLOW_HANDOFF_PYTHON:-python3}" -m airflow_handoff_sdk.run "$0" "$@"
exit 127
"""


def manifest(source: str) -> str:
    """Return the YAML manifest of the tasks that are registered in this process.

    :param source: the display name of the source.
    """
    import json

    from airflow_handoff_sdk import __version__
    from airflow_handoff_sdk.requests import SCHEMA_VERSION
    from airflow_handoff_sdk.tasks import by_dag

    lines = [
        'airflow_bundle_metadata_version: "1.0"',
        "sdk:",
        "  language: python",
        f'  version: "{__version__}"',
        f'  supervisor_schema_version: "{SCHEMA_VERSION}"',
        f"source: {json.dumps(source)}",
        "dags:" if by_dag() else "dags: {}",
    ]
    for dag_id, tasks in by_dag().items():
        lines += [f"  {json.dumps(dag_id)}:", "    tasks:"]
        lines += [f"      - {json.dumps(task_id)}" for task_id in tasks]
    return "\n".join(lines) + "\n"


def bundle(source: bytes, metadata: str) -> bytes:
    """Return the bytes of an executable bundle; the digests of its parts are recorded in it."""
    from hashlib import sha256

    body = f'{metadata}source_sha256: "{sha256(source).hexdigest()}"\n'.encode()
    body += b"# manifest-sha256: " + sha256(body).hexdigest().encode() + b"\n"
    sizes = b"".join(n.to_bytes(4, "little") for n in (len(source), len(body), 1))
    digest = sha256(_LAUNCHER).digest()
    return _LAUNCHER + source + body + sizes + digest + bytes(12) + MAGIC


def script(source: bytes, metadata: str) -> bytes:
    """Return a source with its manifest in a comment, behind a shebang and a coding line."""
    from base64 import b64encode

    # A byte order mark is only allowed in front, and UTF-8 is the default without it.
    lines = source[3:].splitlines(True) if source.startswith(b"\xef\xbb\xbf") else source.splitlines(True)
    at = 0
    while at < min(2, len(lines)) and (
        lines[at].startswith(b"#!") or (lines[at].lstrip().startswith(b"#") and b"coding" in lines[at])
    ):
        at += 1
    comment = b"# airflowMetadata=" + b64encode(metadata.encode()) + b"\n"
    kept = [line for line in lines if not line.startswith(b"# airflowMetadata=")]
    return b"".join([*kept[:at], comment, *kept[at:]])


def archive(folder: str, metadata: str) -> bytes:
    """Return the Python files of a folder, and its manifest, as a zip archive."""
    import io
    from zipfile import ZIP_DEFLATED, ZipFile

    out = io.BytesIO()
    # Builds that can be repeated set times that a zip archive has not.
    with ZipFile(out, "w", ZIP_DEFLATED, strict_timestamps=False) as packed:
        packed.writestr(ARCHIVE_MANIFEST, metadata)
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = os.path.join(parent, name)
                packed.write(path, os.path.relpath(path, folder))
    return out.getvalue()


def source_of(data: bytes) -> bytes:
    """Return the source region of a bundle.

    :raises ValueError: where ``data`` is no bundle.
    """
    if len(data) < TRAILER or data[-8:] != MAGIC:
        raise ValueError("expected a Python file or an AFBNDL01 bundle, and this is neither")
    source_len = int.from_bytes(data[-64:-60], "little")
    end = len(data) - TRAILER - int.from_bytes(data[-60:-56], "little")
    if end - source_len < 0:
        raise ValueError("the trailer of this bundle names regions larger than the file")
    return data[end - source_len : end]


def load_bundle(path: str, name: str) -> ModuleType:
    """Run the source of a bundle, of an archive or of a folder's ``__main__.py`` as the module ``name``."""
    from types import ModuleType

    code: Any
    if os.path.isdir(path):
        sys.path.insert(0, path)
        path = os.path.join(path, "__main__.py")
        code = compile(_read(path), path, "exec")
    elif path.endswith(".pyz"):
        from zipimport import zipimporter

        sys.path.insert(0, path)
        code = zipimporter(path).get_code("__main__")
    else:
        code = compile(source_of(_read(path)), path, "exec")
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def main(argv: list[str] | None = None) -> int:
    """Pack one file."""
    import argparse

    from airflow_handoff_sdk.run import load
    from airflow_handoff_sdk.tasks import REGISTRY

    parser = argparse.ArgumentParser(
        prog="python -m airflow_handoff_sdk.pack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tasks", help="the Python file that registers the tasks, or a folder for a .pyz")
    parser.add_argument("-o", "--output", required=True, help="where to write the bundle")
    options = parser.parse_args(argv)
    if os.path.isdir(options.tasks) != options.output.endswith(".pyz"):
        parser.error("a folder is packed as .pyz, and nothing else is")
    load(options.tasks)
    if not REGISTRY:
        sys.stderr.write(
            f"{options.tasks} registers no task: decorate a function with @task(dag_id, task_id)\n"
        )
        return 1
    metadata = manifest(os.path.basename(os.path.normpath(options.tasks)))
    if os.path.isdir(options.tasks):
        data = archive(options.tasks, metadata)
    else:
        data = (script if options.output.endswith(".py") else bundle)(_read(options.tasks), metadata)
    with open(options.output, "wb") as file:
        file.write(data)
    if data.startswith(_LAUNCHER):
        os.chmod(options.output, 0o755)
    sys.stdout.write(f"{options.output}: {len(data)} bytes, {len(REGISTRY)} tasks\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
