"""The ticks of our own features by Airflow version come from marked system tests and from nowhere else."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from tests.system.recorder import full_version

from airflow_handoff.capabilities.features import parse_runs, read_features

ROOT = Path(__file__).resolve().parents[3]
LIST = ROOT / "docs" / "features.yaml"
EVIDENCE = ROOT / "docs" / "features.evidence.json"

SAMPLE = """
import pytest

VERSIONS = pytest.mark.parametrize("airflow_version", ["3.1", "3.3"])

@VERSIONS
@pytest.mark.proves("waiting", "resume")
def test_good(airflow_version): ...

@VERSIONS
@pytest.mark.proves("waiting")
def test_bad_on_one(airflow_version):
    assert airflow_version == "3.3"

@pytest.fixture
def broken():
    yield
    raise RuntimeError

@VERSIONS
@pytest.mark.proves("links")
def test_bad_at_the_end(airflow_version, broken): ...

@VERSIONS
@pytest.mark.proves("history")
def test_skipped(airflow_version):
    pytest.skip("not here")

def test_unmarked(): ...
"""
CONFIGURATION = "def pytest_configure(config): config.addinivalue_line('markers', 'proves(*f): x')\n"
RUNNER = """
import sys, pytest
from tests.system import recorder
recorder.full_version = lambda release: release + ".9"
sys.exit(pytest.main(sys.argv[1:], plugins=[recorder]))
"""


def marked_tests() -> dict[str, set[str]]:
    """Return the features that the marks of each system test name."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests" / "system").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.proves":
                        test = f"{path.relative_to(ROOT)}::{node.name}"
                        found.setdefault(test, set()).update(map(ast.literal_eval, mark.args))
    return found


def test_the_recorder_writes_what_the_tests_showed(tmp_path: Path) -> None:
    """By feature and version; skipped and unmarked tests say nothing, older records stay."""
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    (tmp_path / "conftest.py").write_text(CONFIGURATION)
    evidence = tmp_path / "features.evidence.json"
    old = {"airflow": "3.2.0", "passed": ["x"], "failed": []}
    evidence.write_text(json.dumps({"format": 1, "features": {"waiting": {"3.1": old, "3.2": old}}}))
    command = [sys.executable, "-c", RUNNER, "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        [*command, "--noconftest", "-p", "conftest", f"--record-features={evidence}", "test_sample.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    good, bad, end = (
        f"test_sample.py::{name}" for name in ("test_good", "test_bad_on_one", "test_bad_at_the_end")
    )
    runs = {
        key: (run.airflow, run.passed, run.failed)
        for key, run in parse_runs(evidence.read_text(), "x").items()
    }
    assert runs == {
        ("waiting", "3.1"): ("3.1.9", (good,), (bad,)),
        ("waiting", "3.2"): ("3.2.0", ("x",), ()),
        ("waiting", "3.3"): ("3.3.9", (bad, good), ()),
        ("resume", "3.1"): ("3.1.9", (good,), ()),
        ("resume", "3.3"): ("3.3.9", (good,), ()),
        ("links", "3.1"): ("3.1.9", (), (end,)),
        ("links", "3.3"): ("3.3.9", (), (end,)),
    }


def test_the_full_version_is_that_of_the_environment(tmp_path: Path) -> None:
    """Read where the tests' Airflow is installed, not remembered."""
    (tmp_path / ".venv-3.2/lib/python3.12/site-packages/apache_airflow_core-3.2.2.dist-info").mkdir(
        parents=True
    )
    assert full_version("3.2", tmp_path) == "3.2.2"


def test_marks_and_the_list_agree() -> None:
    """A test cites features that exist."""
    names = {feature.name for feature in read_features(LIST).features}
    assert {name for cited in marked_tests().values() for name in cited} <= names


def test_each_recorded_tick_is_of_a_test_that_still_proves_it() -> None:
    """A test that was renamed or lost its mark leaves no tick behind (``make features``)."""
    marked = marked_tests()
    runs = parse_runs(EVIDENCE.read_text(encoding="utf-8"), str(EVIDENCE)) if EVIDENCE.exists() else {}
    stale = [
        (feature, version, test)
        for (feature, version), run in runs.items()
        for test in (*run.passed, *run.failed)
        if feature not in marked.get(test, set())
    ]
    assert not stale
