"""What the tables say of claims."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.unit.capabilities.samples import DATA, MANIFESTS, changed, claims, evidence, sound

from airflow_handoff.capabilities.config import SdkSource
from airflow_handoff.capabilities.dimensions import known_dimensions
from airflow_handoff.capabilities.evidence import Proof
from airflow_handoff.capabilities.project import read_claims
from airflow_handoff.capabilities.render import render
from airflow_handoff.capabilities.render.data import to_data, to_json
from airflow_handoff.capabilities.render.html import to_page
from airflow_handoff.capabilities.render.tables import (
    LEGEND,
    dimension_blocks,
    matrix_blocks,
    page_blocks,
    sdk_blocks,
)

FORMS = ("md", "rst", "html")


def rows(markdown: str) -> dict[str, list[str]]:
    """Return the cells of each row by the first one."""
    lines = [line.strip("|").split("|") for line in markdown.splitlines() if line.startswith("|")]
    return {cells[0].strip(" `*"): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_a_tick_shows_its_evidence_and_everything_else_shows_what_it_is() -> None:
    """Cases, SDK version and schema belong to the tick; no other status has one."""
    data = changed(retry_policy=..., skipped={"supported": True})
    proven = evidence(task_logging=Proof(("a", "b"), ("c",)), failed=Proof(("a", "b")))
    found = rows(render(matrix_blocks((claims(data, proven),), known_dimensions()), "md"))
    assert found["failed"] == ["MUST", "✓ 2 cases, 1.0.0, 2026-06-16"]
    assert found["success"] == ["MUST", "✓ 1 case, 1.0.0, 2026-06-16"]
    assert found["task-logging"] == ["MUST", "✗ failing 1 of 3 cases"]
    assert found["skipped"] == ["SHOULD", "unproven"]
    assert found["deferred"] == ["MAY", "no"]
    assert found["retry-policy"] == ["MAY", "undeclared"]
    assert found["task-group"] == ["MAY †", "n/a"]
    assert found["Evidence"] == ["", "1.0.0 under airflow-provider-handoff 0.1.0"]


def test_outdated_evidence_is_said_to_be_so() -> None:
    """A reader sees why the ticks are gone."""
    found = rows(render(matrix_blocks((claims(proven=evidence(), version="2.0"),), known_dimensions()), "md"))
    assert found["Evidence"] == ["", "outdated: 1.0.0 under airflow-provider-handoff 0.1.0"]
    assert found["failed"] == ["MUST", "unproven"]


@pytest.mark.parametrize("form", FORMS)
def test_no_tick_without_evidence(form: str) -> None:
    """Airflow's three manifests are claims: not one tick, in any format, until somebody proves one."""
    sdks = tuple(read_claims(SdkSource(DATA / name)) for name in MANIFESTS[:3])
    blocks = (*matrix_blocks(sdks, known_dimensions()), *(block for one in sdks for block in sdk_blocks(one)))
    text = render(blocks, form)
    quoted = render(matrix_blocks(sdks, known_dimensions())[1:], form)
    assert "✓" not in text.replace(quoted, "")
    assert text.count("unproven") > 50


def test_the_matrix_has_a_column_for_each_sdk() -> None:
    """In the order in which they were named, with what each one needs."""
    sdks = tuple(read_claims(SdkSource(DATA / name)) for name in MANIFESTS[:3])
    found = rows(render(matrix_blocks(sdks, known_dimensions()), "md"))
    assert found["Dimension"] == ["Tier", "go", "java", "ts"]
    assert found["Oldest Airflow"] == ["", "3.3", "3.3", "3.4"]
    assert found["Supervisor schema"] == ["", "2026-10-30", "2026-06-16", "2026-10-30"]
    assert found["variable-read-write"] == ["MUST", "no", "unproven", "unproven"]
    assert set(known_dimensions().by_name) <= set(found)


def test_the_first_generation_renders_with_what_it_lacks() -> None:
    """What came later is undeclared."""
    found = rows(render(sdk_blocks(read_claims(SdkSource(DATA / "java-first-generation.json"))), "md"))
    assert found["taskflow-binding"][:2] == ["MUST", "undeclared"]
    assert found["retry-policy"][:2] == ["MAY", "undeclared"]
    assert found["failed"] == ["MUST", "unproven", "3.3", "", ""]


def test_the_table_of_one_sdk_carries_its_notes() -> None:
    """In one line, escaped, with the versions that brought each thing."""
    data = changed(
        skipped={"supported": True, "since": "3.3.1", "sdk_version": "1.1", "note": "by | \n hand"}
    )
    text = render(sdk_blocks(claims(data)), "md")
    assert "| `skipped` | SHOULD | unproven | 3.3.1 | 1.1 | by \\| hand |" in text
    assert text.startswith("zig: Airflow 3.3 or later, supervisor schema 2026-06-16, evidence: none.")
    assert LEGEND.split(":")[0] in text


def test_json_says_everything() -> None:
    """For programs: the status by name, the cases, and nothing escaped."""
    data = changed(skipped={"supported": False, "note": "a | b"})
    written = json.loads(to_json((claims(data, evidence()),)))
    assert written == to_data((claims(data, evidence()),))
    (sdk,) = written["sdks"]
    assert (sdk["evidence"]["sdk_version"], sdk["evidence"]["outdated"]) == ("1.0.0", False)
    assert sdk["dimensions"]["failed"] == {
        **{"group": "states", "tier": "MUST", "conditional": False, "status": "proven"},
        **{"since": "3.3", "sdk_version": "1.0.0", "note": "", "passed": ["cases/failed"], "failed": []},
    }
    assert sdk["dimensions"]["skipped"]["note"] == "a | b"


def test_the_page_stands_alone() -> None:
    """One file with the matrix and each SDK's table and notes, for dark screens too."""
    noted = changed(skipped={"supported": False, "note": "<b>soon</b>"})
    other = replace(claims(noted), sdk="ada")
    page = to_page("Who can do what", page_blocks((claims(sound(), evidence()), other), known_dimensions()))
    assert page.startswith("<!doctype html>")
    assert "<h1>Who can do what</h1>" in page
    assert page.count("<table>") == 3
    assert page.count("&lt;b&gt;soon&lt;/b&gt;") == 2  # in its row, and on pointing at the matrix
    assert "<b>" not in page
    assert "http" not in page
    assert "prefers-color-scheme: dark" in page


def test_the_prose_explains_each_dimension() -> None:
    """Generated from the list, with tier, revision, meaning and gate."""
    text = render(dimension_blocks(known_dimensions()), "md")
    for dimension in known_dimensions().dimensions:
        assert f"### `{dimension.name}`\n" in text
    assert "MUST; on the list since main. Means: literal and XCom arguments of the stub call" in text
    assert "MUST, while native-dag-authoring is supported; on the list since 3.3." in text
    assert "While it is not supported, the dimensions that depend on it are n/a." in text


@pytest.mark.parametrize("form", [*FORMS, "json"])
def test_the_same_claims_are_the_same_bytes(form: str) -> None:
    """Also in another process with another hash seed."""
    program = (
        "import sys; from pathlib import Path\n"
        "from airflow_handoff.capabilities.config import SdkSource, Target\n"
        "from airflow_handoff.capabilities.project import Project\n"
        "p = Project(tuple(SdkSource(Path(a)) for a in sys.argv[2:])); t = Target(Path('-'), sys.argv[1])\n"
        "w = p.whole(t); sys.stdout.buffer.write((w() if w else p.section(t)('matrix')).encode())"
    )
    manifests = [str(DATA / name) for name in MANIFESTS[:3]]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, form, *manifests],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000
