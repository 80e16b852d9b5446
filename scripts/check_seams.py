"""Fail where code outside ``compat`` knows an Airflow version or a private Airflow path.

ruff's banned names (pyproject.toml) catch the usual spellings while one types. This catches the rest: an
import from Airflow that is not on the list of public paths, a path imported by its name as a string, and
versions read or compared without naming a banned function.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Airflow modules that its documentation calls public and that all supported versions have.
PUBLIC = (
    "airflow.configuration",
    "airflow.exceptions",
    "airflow.listeners",
    "airflow.notifications.basenotifier",
    "airflow.plugins_manager",
    "airflow.providers.standard",
    "airflow.sdk",
    "airflow.triggers.base",
)
#: Private paths below public ones.
PRIVATE = (
    "airflow.sdk._shared",
    "airflow.sdk.api",
    "airflow.sdk.coordinators._subprocess",
    "airflow.sdk.definitions",
    "airflow.sdk.execution_time",
    "airflow.sdk.types",
    "airflow.providers.standard.version_compat",
)
VERSION_ADVICE = "Airflow versions are known in airflow_handoff.compat only: export a capability there"
PATH_ADVICE = "private Airflow path: reach it through airflow_handoff.compat"
_DISTRIBUTION = re.compile(r"apache-airflow(-core|-task-sdk)?")
_IMPORTERS = frozenset({"import_module", "__import__", "find_spec", "import_string"})
_READERS = frozenset({"version", "distribution", "metadata", "get_distribution"})


def violations(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the sentence of each violation in one module's source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _path(node, alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                yield from _imported(node, node.module, alias.name)
        elif isinstance(node, ast.Call):
            yield from _call(node)
        elif isinstance(node, ast.Attribute) and node.attr == "__version__":
            if "airflow" in ast.unparse(node.value) and "airflow_handoff" not in ast.unparse(node.value):
                yield node.lineno, VERSION_ADVICE
        elif isinstance(node, ast.Name) and node.id.startswith("AIRFLOW_V_"):
            yield node.lineno, VERSION_ADVICE


def _imported(node: ast.ImportFrom, module: str, name: str) -> Iterator[tuple[int, str]]:
    if module.split(".")[0] == "airflow" and (name == "__version__" or name.startswith("AIRFLOW_V_")):
        yield node.lineno, VERSION_ADVICE
    elif module == "airflow":
        yield from _path(node, f"airflow.{name}")
    elif _inside(f"{module}.{name}", PRIVATE):
        yield node.lineno, f"{module}.{name}: {PATH_ADVICE}"
    else:
        yield from _path(node, module)


def _path(node: ast.AST, path: str) -> Iterator[tuple[int, str]]:
    if path.split(".")[0] != "airflow" or path == "airflow":
        return
    private_name = any(part.startswith("_") for part in path.split("."))
    if private_name or _inside(path, PRIVATE) or not _inside(path, PUBLIC):
        yield getattr(node, "lineno", 0), f"{path}: {PATH_ADVICE}"


def _call(node: ast.Call) -> Iterator[tuple[int, str]]:
    called = ast.unparse(node.func).split(".")[-1]
    texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    for text in texts:
        if called in _IMPORTERS:
            yield from _path(node, text)
        elif _reads_version(called, text, node):
            yield node.lineno, VERSION_ADVICE


def _reads_version(called: str, text: str, node: ast.Call) -> bool:
    if called == "getattr":
        return text == "__version__" and "airflow" in ast.unparse(node.args[0])
    return called in _READERS and _DISTRIBUTION.fullmatch(text) is not None


def _inside(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root + ".") for root in roots)


def main() -> int:
    """Check the package, print the violations and return the exit code."""
    package = ROOT / "provider" / "airflow_handoff"
    found = 0
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] == "compat":
            continue
        for line, sentence in violations(path.read_text()):
            found += 1
            print(f"{path.relative_to(ROOT)}:{line}: {sentence}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
