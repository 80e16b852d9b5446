"""What the hooks load: a figure for it is measured in benchmarks/capabilities.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.capabilities.samples import DATA

ENTRY = """
import sys
from airflow_handoff.capabilities.hook import {0}
sys.argv[1:] = {1!r}
try:
    {0}()
except SystemExit:
    print(sorted({{name.split(".")[0] for name in sys.modules}}))
"""


@pytest.mark.parametrize(
    ("entry", "arguments"),
    [
        ("capabilities_hook", ["--help"]),
        ("capabilities_hook", [str(DATA / "java.yaml")]),
        ("matrix_hook", [str(DATA / "java.yaml"), "--target", "out.md"]),
    ],
)
def test_a_hook_loads_neither_pydantic_nor_airflow(tmp_path: Path, entry: str, arguments: list[str]) -> None:
    """Also while it works: pydantic alone would double its start."""
    program = ENTRY.format(entry, arguments)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1]
    assert "'click'" in loaded
    for heavy in ("airflow", "pydantic", "jsonschema", "psutil", "msgpack", "httpx", "difflib"):
        assert f"'{heavy}'" not in loaded
