"""The README and the pages say what is so: their code blocks are compiled, and run as far as they can be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import tomllib

from airflow_handoff.cli import COMMANDS, handoff
from airflow_handoff.exceptions import EnvironmentUnfit

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```([\w-]+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(*languages: str) -> Iterator[pytest.param]:
    """Yield each code block of the languages, named by its page and line."""
    for page in PAGES:
        text = page.read_text()
        for found in FENCE.finditer(text):
            if found[1] in languages:
                line = text.count("\n", 0, found.start()) + 2
                yield pytest.param(found[2], id=f"{page.relative_to(ROOT)}:{line}")


@pytest.mark.parametrize("source", blocks("python"))
def test_python_blocks_compile_and_what_they_import_exists(source):
    """Every Python block is valid, and every name of ours that it imports is there."""
    tree = ast.parse(source)
    compile(tree, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow_handoff"):
            try:
                exec(ast.unparse(node), {})
            except EnvironmentUnfit as unfit:
                pytest.skip(str(unfit))


def test_the_dag_of_the_readme_parses():
    """The README's Dag is a Dag with the tasks it shows."""
    sources = [p.values[0] for p in blocks("python") if p.id.startswith("README")]
    namespace: dict[str, object] = {"__name__": "readme"}
    source = next(s for s in sources if "@dag" in s).replace("\nexpense()\n", "\nmade = expense()\n")
    exec(source, namespace)
    assert set(namespace["made"].task_ids) == {"approve", "post"}


def shell_lines() -> Iterator[pytest.param]:
    """Yield each command of each shell block."""
    for block in blocks("shell", "bash", "console"):
        for line in block.values[0].replace("\\\n", " ").splitlines():
            command = line.strip().removeprefix("$ ")
            if command.split()[:1] and command.split()[0] in ("make", "handoff", "pip"):
                yield pytest.param(command, id=f"{block.id}: {command[:50]}")


@pytest.mark.parametrize("command", shell_lines())
def test_the_commands_that_the_pages_show_exist(command):
    """Targets of make, sub-commands of ours and extras of the package are real."""
    words = command.split()
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [w for w in words[1:] if "=" not in w and w in targets], f"no such target: {command}"
    elif words[0] == "handoff":
        sub = next((w for w in words[1:] if not w.startswith("-")), None)
        context = click.Context(handoff)
        assert sub is None or handoff.get_command(context, sub) is not None, f"no such command: {command}"
    else:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for named in re.findall(r"airflow-provider-handoff\[([\w,]+)\]", command):
            assert set(named.split(",")) <= set(extras)


def test_the_readme_names_the_test_command():
    """Who has cloned the project finds ``make test`` in the README."""
    assert "\nmake test\n" in (ROOT / "README.md").read_text()


def test_links_between_pages_lead_somewhere():
    """A relative link in the README or a page names a file that is there."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_of_the_table_is_there(name):
    """Each entry of the table leads to a click command with a help text."""
    command = handoff.get_command(click.Context(handoff), name)
    assert isinstance(command, click.Command)
    assert command.help
