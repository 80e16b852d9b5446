"""The page about bundles runs, and its manifest is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_handoff.bundles.metadata import parse_manifest

PAGE = (Path(__file__).parents[3] / "docs" / "bundles.md").read_text()


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block goes on where the one before ended."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(compile(block, "bundles.md", "exec"), names)


def test_the_manifest_of_the_page_is_valid() -> None:
    """It is read with its options, and without the quotes it is refused."""
    (manifest,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
    metadata = parse_manifest(manifest.encode())
    assert metadata.execution_timeout("sales", "load") == 90
    assert metadata.schema_version == "2026-06-16"
    with pytest.raises(ValueError, match="in quotes"):
        parse_manifest(manifest.replace('"2026-06-16"', "2026-06-16").encode())
