"""A tasks file as one executable bundle: ``python -m airflow_handoff_sdk.pack TASKS.py -o BUNDLE``.

The bundle (format AFBNDL01) is a shell line that starts Python on the bundle itself, the source, the
manifest and a trailer. ``$AIRFLOW_HANDOFF_PYTHON`` names the interpreter, ``python3`` without it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

MAGIC = b"AFBNDL01"
TRAILER = 64
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


def bundle(source: bytes, metadata: bytes) -> bytes:
    """Return the bytes of a bundle."""
    import hashlib

    digest = hashlib.sha256(_LAUNCHER).digest()
    sizes = b"".join(n.to_bytes(4, "little") for n in (len(source), len(metadata), 1))
    return _LAUNCHER + source + metadata + sizes + digest + bytes(12) + MAGIC


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
    """Run the source of a bundle as the module ``name``."""
    from types import ModuleType

    with open(path, "rb") as file:
        source = source_of(file.read())
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def main(argv: list[str] | None = None) -> int:
    """Pack one file."""
    import argparse

    from airflow_handoff_sdk.run import load
    from airflow_handoff_sdk.tasks import REGISTRY

    parser = argparse.ArgumentParser(prog="python -m airflow_handoff_sdk.pack", description=__doc__)
    parser.add_argument("tasks", help="the Python file that registers the tasks")
    parser.add_argument("-o", "--output", required=True, help="where to write the bundle")
    options = parser.parse_args(argv)
    load(options.tasks)
    if not REGISTRY:
        sys.stderr.write(
            f"{options.tasks} registers no task: decorate a function with @task(dag_id, task_id)\n"
        )
        return 1
    with open(options.tasks, "rb") as file:
        source = file.read()
    data = bundle(source, manifest(os.path.basename(options.tasks)).encode())
    with open(options.output, "wb") as file:
        file.write(data)
    os.chmod(options.output, 0o755)
    sys.stdout.write(f"{options.output}: {len(data)} bytes, {len(REGISTRY)} tasks\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
