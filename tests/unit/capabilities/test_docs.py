"""The page on capabilities is a session: its files are written, its commands run, their output compared."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from airflow_handoff.capabilities.checks import RULES
from airflow_handoff.capabilities.checks.proof import PROOF_RULES
from airflow_handoff.capabilities.config import read_config
from airflow_handoff.capabilities.document import load_yaml
from airflow_handoff.capabilities.evidence import evidence_text, parse_evidence
from airflow_handoff.cli import handoff

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(command: str) -> str:
    """Run one of the page's commands and return what it prints."""
    return CliRunner().invoke(handoff, shlex.split(command)[1:]).output


def compare(block: str) -> None:
    """Run each command of a console block; a last line of dots stands for what is left out."""
    for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        shown = run(command)
        if wanted.endswith("...\n"):
            assert shown.startswith(wanted.removesuffix("...\n")), shown
        else:
            assert shown == wanted


def test_the_session_is_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that names a file is that file; console blocks are run in turn."""
    monkeypatch.chdir(tmp_path)
    commands = 0
    for language, block in BLOCKS:
        named = re.match(r"# ([\w.]+\.\w+)\n", block)
        if named:
            Path(named[1]).write_text(block)
        elif language == "json" and '"airflow"' in block:
            Path("build.zig.json").write_text(block)
        elif language == "console":
            compare(block)
            commands += block.count("$ ")
        elif language == "markdown":
            assert block in Path("README.md").read_text()
    assert commands == 5
    assert "<h2>zig</h2>" in Path("matrix.html").read_text()


def test_the_evidence_that_is_shown_is_of_the_format() -> None:
    """What the page documents, the code reads and writes."""
    (shown,) = (block for language, block in BLOCKS if language == "json" and '"format"' in block)
    evidence = parse_evidence(shown, "page")
    assert parse_evidence(evidence_text(evidence), "x") == evidence
    assert evidence.dimensions["failed"].passed == ("states/failed", "states/failed-by-exit")


def test_every_rule_is_listed() -> None:
    """The page names each rule that the checks can tell, and no other."""
    sources = (ROOT / "provider" / "airflow_handoff" / "capabilities").rglob("*.py")
    code = "\n".join(
        path.read_text() for path in sources if "checks" in path.parts or path.name == "project.py"
    )
    told = set(re.findall(r'^\s+(?:f?)"([a-z]+(?:-[a-z]+)+)",$', code, re.MULTILINE))
    told |= set(re.findall(r'\(\s*"([a-z]+(?:-[a-z]+)+)", \(', code)) | {
        "unreadable-manifest",
        "unreadable-evidence",
    }
    table = PAGE[PAGE.index("| what is checked |") : PAGE.index("A manifest that is older")]
    assert set(re.findall("`([a-z]+(?:-[a-z]+)+)`", table)) == told
    assert len(told) >= len((*RULES, *PROOF_RULES))


def test_the_hooks_that_are_shown_exist() -> None:
    """The ids are those of .pre-commit-hooks.yaml, and its entries are console scripts."""
    (shown,) = (load_yaml(block) for _, block in BLOCKS if block.startswith("repos:"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in shown["repos"][0]["hooks"]] == [hook["id"] for hook in hooks]
    scripts = (ROOT / "pyproject.toml").read_text()
    for hook in hooks:
        assert f"\n{hook['entry']} = " in scripts


def test_each_sdk_of_the_repository_is_checked_and_has_its_table() -> None:
    """A manifest under sdks/ is listed in handoff.toml, and its README there too."""
    config = read_config(ROOT / "handoff.toml")
    listed = {source.manifest for source in config.sdks}
    targets = {target.path for target in config.targets}
    for manifest in (ROOT / "sdks").glob("*/capabilities.yaml"):
        assert manifest in listed, "handoff.toml: add it to sdks"
        readme = manifest.with_name("README.md")
        assert readme in targets or not readme.exists(), 'handoff.toml: add "sdks/*/README.md" to targets'


def test_the_repositorys_own_tables_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """README, pages and each SDK's README carry what the manifests say; ``make lint`` asks the same."""
    monkeypatch.chdir(ROOT)
    assert "up to date" in run("handoff capabilities matrix --check")
