"""Both SDKs reach equally far: one list of operations, and each SDK has each of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

SDKS = Path(__file__).resolve().parents[3] / "sdks"
OPERATIONS = yaml.safe_load((SDKS / "operations.yaml").read_text())
PACKAGE = SDKS / "python" / "src" / "airflow_handoff_sdk"
#: What a class of the context holds together, and what a class is only made to be raised or returned.
HOLDERS = {"xcom", "variables", "assets", "client", "replay", "next_method", "next_kwargs", "map_index_label"}


def python_names() -> set[str]:
    """Return the public names of the Python SDK, and the public members of its classes."""
    found = set(re.findall(r"import (\w+) as \1", (PACKAGE / "__init__.py").read_text()))
    for name in ("context", "human", "tasks"):
        for node in ast.parse((PACKAGE / f"{name}.py").read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name != "Replay":
                found |= {node.name} | {f"{node.name}.{member}" for member in members(node)}
    return found - {"Retry.reason"}


def members(node: ast.ClassDef) -> set[str]:
    """Return the public methods of a class and the attributes that it sets on itself."""
    functions = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    attributes = {
        target.attr
        for item in ast.walk(node)
        if isinstance(item, (ast.Assign, ast.AnnAssign))
        for target in (item.targets if isinstance(item, ast.Assign) else [item.target])
        if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self"
    }
    return {name for name in functions | attributes if not name.startswith("_")}


def rust_names() -> set[str]:
    """Return the public types of the Rust SDK and their public functions, messages and values aside."""
    found: set[str] = set()
    for path in (SDKS / "rust" / "src").glob("*.rs"):
        if path.name in ("messages.rs", "value.rs", "revive.rs", "logs.rs"):
            continue
        text = path.read_text().split("#[cfg(test)]\nmod tests")[0]
        found |= set(re.findall(r"^pub (?:struct|enum|type|trait) (\w+)", text, re.MULTILINE))
        for kind, body in re.findall(r"^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? \{\n(.*?)^\}", text, re.M | re.S):
            found |= {f"{kind}::{name}" for name in re.findall(r"^    pub fn (\w+)", body, re.MULTILINE)}
    return found


def test_every_operation_has_names_in_both():
    """A line without a name in one SDK would say that it cannot do that."""
    assert len(OPERATIONS) > 35
    assert [line["do"] for line in OPERATIONS if not (line.get("python") and line.get("rust"))] == []


@pytest.mark.parametrize("sdk", ["python", "rust"])
def test_the_names_exist(sdk):
    """No line names what the SDK has not."""
    names = python_names() if sdk == "python" else rust_names() | {"ConnectionResult"}
    assert sorted({name for line in OPERATIONS for name in line[sdk]} - names) == []


def test_no_public_name_of_python_is_on_no_line():
    """What the Python SDK can do, the list has; plain data of a class goes with the class."""
    listed = {name for line in OPERATIONS for name in line["python"]}
    data = ("Connection.", "Answer.", "Task.", "Assets.outlet")
    missing = {
        name
        for name in python_names() - listed
        if not name.startswith(data) and name.partition(".")[2] not in HOLDERS
    }
    assert missing == {"AssetStore", "Assets", "TaskStore", "Variables", "XComs"}


def test_no_public_name_of_rust_is_on_no_line():
    """What the Rust SDK can do, the list has; a type goes with its functions."""
    listed = {name for line in OPERATIONS for name in line["rust"]}
    types = {name.partition("::")[0] for name in listed}
    plumbing = {"BoxedBody", "FromValue", "Handler", "Plain", "WithArguments", "Parked", "Result"}
    assert rust_names() - listed - types - plumbing == set()


def test_the_page_shows_the_list():
    """The table of docs/sdks.md is the list's."""
    check = [sys.executable, str(SDKS / "operations.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
