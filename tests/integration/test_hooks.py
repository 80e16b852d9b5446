"""prek and pre-commit run both hooks in a fresh repository, as a maintainer of an SDK would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.unit.capabilities.samples import DATA, sound

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
repos:
  - repo: {path}
    rev: {revision}
    hooks:
      - id: handoff-capabilities
      - id: handoff-matrix
"""
README = "# Zig SDK\n\nBy hand.\n\n<!-- handoff:begin sdk zig -->\n<!-- handoff:end -->\n"
IDENTITY = ("-c", "user.name=A. Maintainer", "-c", "user.email=maintainer@example.org")


def environment(home: Path) -> dict[str, str]:
    """Return an environment of its own: nobody's git settings, and caches that go with the test."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PREK_", "PRE_COMMIT"))
    }
    kept.pop("VIRTUAL_ENV", None)
    kept["GIT_CONFIG_GLOBAL"] = os.devnull
    kept["GIT_CONFIG_COUNT"] = "1"
    kept["GIT_CONFIG_KEY_0"], kept["GIT_CONFIG_VALUE_0"] = "safe.directory", "*"
    kept["PREK_HOME"], kept["PRE_COMMIT_HOME"] = str(home / "prek"), str(home / "pre-commit")
    tools = [str(path.parent) for path in (ROOT / ".tools").glob("*/bin/uv")]
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *tools, kept["PATH"]])
    return kept


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints."""
    command = ["git", "-c", "safe.directory=*", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path) -> str:
    """Commit everything in a folder and return the revision."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "All", "--no-verify")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """This checkout as it stands, committed or not, as a repository of hooks."""
    folder = tmp_path_factory.mktemp("hooks")
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    return folder, commit(folder)


@pytest.fixture
def sdk_repository(tmp_path: Path, hook_repository: tuple[Path, str]) -> Path:
    """A fresh repository with a sample SDK that uses both hooks."""
    folder = tmp_path / "zig-sdk"
    folder.mkdir()
    path, revision = hook_repository
    (folder / ".pre-commit-config.yaml").write_text(CONFIG.format(path=path, revision=revision))
    (folder / "capabilities.yaml").write_text(yaml.safe_dump(sound(), sort_keys=False))
    (folder / "handoff.toml").write_text('sdks = ["capabilities.yaml"]\ntargets = ["README.md"]\n')
    (folder / "README.md").write_text(README)
    commit(folder)
    return folder


@pytest.mark.parametrize("tool", ["prek", "pre-commit"])
def test_the_hooks_in_a_fresh_repository(tool: str, sdk_repository: Path, tmp_path: Path) -> None:
    """The first run rewrites and fails, the second passes, an edited table and a bad claim fail."""
    readme = sdk_repository / "README.md"

    def run() -> tuple[int, str]:
        done = subprocess.run(
            [tool, "run", "--all-files", "--color", "never"],
            cwd=sdk_repository,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    code, shown = run()
    assert code == 1, shown
    assert "README.md: rewritten" in shown
    assert "Run `handoff capabilities matrix` and commit the result." in shown
    assert "render what language SDKs claim" in shown
    assert "| `failed` | MUST | unproven | 3.3 | 1.0.0 |  |" in readme.read_text()
    assert readme.read_text().startswith("# Zig SDK\n\nBy hand.\n")
    commit(sdk_repository)

    code, shown = run()
    assert code == 0, shown
    assert shown.count("Passed") == 2

    good = readme.read_text()
    readme.write_text(good.replace("unproven", "✓", 1))
    commit(sdk_repository)
    code, shown = run()
    assert (code, "README.md: rewritten" in shown) == (1, True), shown
    assert readme.read_text() == good

    shutil.copy(DATA / "go.yaml", sdk_repository / "capabilities.yaml")
    readme.write_text(good.replace("sdk zig", "sdk go"))
    commit(sdk_repository)
    code, shown = run()
    assert code == 1, shown
    assert "capabilities.yaml:3: [schema-unknown-to-airflow]" in shown

    (site,) = tmp_path.glob(f"{tool}/**/site-packages/airflow_handoff")
    installed = {path.name.split("-")[0].lower() for path in site.parent.glob("*.dist-info")}
    assert not {name for name in installed if "apache" in name or name == "airflow"}
    assert len(installed) < 25, installed
