"""``handoff capabilities``, as a person and a program use it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.unit.capabilities.samples import DATA, changed, evidence, line_of, sound

from airflow_handoff.capabilities import hook
from airflow_handoff.capabilities.cli import capabilities
from airflow_handoff.capabilities.evidence import write_evidence_beside
from airflow_handoff.capabilities.manifest import schema_text
from airflow_handoff.cli import handoff

MARKERS = "# Zig\n<!-- handoff:begin {} -->\n<!-- handoff:end -->\n"


def run(*arguments: object) -> Result:
    """Run the command as a person would."""
    return CliRunner().invoke(capabilities, [str(argument) for argument in arguments])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a repository with one SDK, its build file and a README."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "capabilities.yaml", sound())
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nversion = "1.0.0"\nmetadata.supervisor-schema-version = "2026-06-16"\n'
    )
    (tmp_path / "README.md").write_text(MARKERS.format("sdk zig"))
    (tmp_path / "handoff.toml").write_text(
        'sdks = [{manifest = "capabilities.yaml", build_file = "Cargo.toml"}]\ntargets = ["README.md"]\n'
    )
    return tmp_path


def write(path: Path, data: dict[str, Any]) -> None:
    """Write a manifest."""
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def test_check_tells_every_fault_of_every_file() -> None:
    """With file, line and what to write; exit code 1."""
    result = run("check", DATA / "go.yaml", DATA / "java.yaml")
    assert result.exit_code == 1
    assert f"{DATA / 'go.yaml'}:3: [schema-unknown-to-airflow] " in result.output
    assert f"{DATA / 'java.yaml'}:34: [must-not-met] " in result.output
    assert "    Write `supervisor_schema_version: '2026-06-16'`" in result.output
    assert result.output.endswith("2 manifests checked: 4 faults.\n")


def test_check_as_json() -> None:
    """The same, for a program."""
    result = run("check", DATA / "java.yaml", "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)["findings"]
    assert (finding["line"], finding["rule"]) == (34, "must-not-met")
    assert set(finding) == {"path", "line", "rule", "message", "write"}


def test_check_follows_the_configuration(repository: Path) -> None:
    """Without files: its SDKs, with their build files and their admitted gaps."""
    assert run("check").output == "1 manifest checked: 0 faults.\n"
    build = repository / "Cargo.toml"
    build.write_text(build.read_text().replace("2026-06-16", "2026-10-30"))
    assert "[schema-differs-from-build]" in run("check").output
    assert "[schema-differs-from-build]" in run("check", "capabilities.yaml").output
    build.write_text("[package]\n")
    assert "[schema-not-located]" in run("check").output


def test_check_with_options_instead_of_a_configuration(repository: Path) -> None:
    """For a repository that has none."""
    (repository / "handoff.toml").unlink()
    write(repository / "capabilities.yaml", changed(connection_read={"supported": False}))
    assert run("check").exit_code == 2
    assert run("check", "capabilities.yaml").exit_code == 1
    result = run("check", "capabilities.yaml", "--unmet", "connection-read", "--build-file", "Cargo.toml")
    assert result.exit_code == 0, result.output
    assert run("check", "capabilities.yaml", "--build-file", "none.toml").exit_code == 1


def test_check_with_evidence(repository: Path) -> None:
    """Asked for, a claim needs its proof; given, it is sound; older than the build, it is not."""
    assert run("check", "--require-evidence").output.count("[claim-without-evidence]") == 10
    write_evidence_beside(repository / "capabilities.yaml", evidence())
    assert run("check", "--require-evidence").exit_code == 0
    build = repository / "Cargo.toml"
    build.write_text(build.read_text().replace("1.0.0", "1.1.0"))
    assert "[evidence-outdated]" in run("check", "--require-evidence").output


@pytest.mark.parametrize(
    ("text", "rule"),
    [("a: [", "unreadable-manifest"), (None, "unreadable-manifest"), ("- a", "not-a-manifest")],
)
def test_check_survives_what_it_cannot_read(repository: Path, text: str | None, rule: str) -> None:
    """One bad file is a finding among the others, not the end."""
    path = repository / "other.yaml"
    if text is not None:
        path.write_text(text)
    result = run("check", path, DATA / "java.yaml")
    assert result.exit_code == 1
    assert f"[{rule}]" in result.output
    assert "[must-not-met]" in result.output


def test_check_names_unreadable_evidence(repository: Path) -> None:
    """A generated file that somebody edited is told as such."""
    (repository / "capabilities.evidence.json").write_text("{")
    result = run("check")
    assert (result.exit_code, "[unreadable-evidence]" in result.output) == (1, True)


def test_matrix_rewrites_and_says_so(repository: Path) -> None:
    """Exit code 0 for a person; a second run has nothing to do; --check writes nothing and fails."""
    before = (repository / "README.md").read_text()
    result = run("matrix", "--check")
    assert (result.exit_code, (repository / "README.md").read_text()) == (1, before)
    assert (
        "README.md: is out of date\nRun `handoff capabilities matrix` and commit the result.\n"
        in result.output
    )
    assert run("matrix").exit_code == 0
    after = (repository / "README.md").read_text()
    assert "| `failed` | MUST | unproven | 3.3 | 1.0.0 |  |" in after
    assert run("matrix", "--check").output == "1 target up to date.\n"
    assert (repository / "README.md").read_text() == after


def test_matrix_of_named_files_into_named_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the issue: FILE... --target README.md --format md; and any number of targets at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README").write_text(MARKERS.format("matrix"))
    files = [DATA / "go.yaml", DATA / "java.yaml", DATA / "ts.yaml"]
    result = run("matrix", *files, "--target", "README", "--format", "md")
    assert result.exit_code == 0, result.output
    assert "| Dimension | Tier | go | java | ts |" in (tmp_path / "README").read_text()
    result = run(
        "matrix", *files, "--target", "a/page.html", "--target", "a.json", "--target", "a.rst", "--json"
    )
    assert json.loads(result.output) == {"targets": 3, "changed": ["a/page.html", "a.json", "a.rst"]}
    assert "<h2>ts</h2>" in (tmp_path / "a" / "page.html").read_text()
    assert len(json.loads((tmp_path / "a.json").read_text())["sdks"]) == 3
    assert ".. list-table::" in (tmp_path / "a.rst").read_text()


def test_matrix_on_the_terminal() -> None:
    """Without a target it is printed, in any format."""
    assert run("matrix", DATA / "go.yaml").output.startswith("| Dimension | Tier | go |\n")
    assert run("matrix", DATA / "go.yaml", "--format", "rst").output.startswith(".. list-table::\n")
    assert json.loads(run("matrix", DATA / "go.yaml", "--json").output)["sdks"][0]["sdk"] == "go"


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("sdk ada", "a marker asks for the SDK `ada`, and the SDKs here are: zig"),
        ("matrx", "a marker asks for `matrx`; write `matrix`, `sdk NAME`"),
        ("features", "where the configuration names a features file"),
    ],
)
def test_matrix_tells_what_a_marker_may_ask_for(repository: Path, marker: str, told: str) -> None:
    """One line, exit code 2, nothing written."""
    (repository / "README.md").write_text(MARKERS.format(marker))
    result = run("matrix")
    assert (result.exit_code, told in result.output) == (2, True), result.output
    assert (repository / "README.md").read_text() == MARKERS.format(marker)


def test_matrix_refuses_two_sdks_of_one_name_and_a_broken_one(repository: Path) -> None:
    """A column stands for one SDK, and a broken manifest for none."""
    shutil.copy("capabilities.yaml", "other.yaml")
    result = run("matrix", "capabilities.yaml", "other.yaml")
    assert (result.exit_code, "`sdk: zig` is also the name in capabilities.yaml" in result.output) == (
        2,
        True,
    )
    broken = changed(skipped={"supported": "no"})
    write(repository / "other.yaml", broken)
    result = run("matrix", "other.yaml", "--json")
    assert result.exit_code == 2
    assert f"other.yaml:{line_of(broken, chr(39) + 'no')}: expected true or false" in result.stdout


def test_diff() -> None:
    """As Markdown for release notes and as JSON."""
    files = (DATA / "java-first-generation.json", DATA / "java.yaml")
    assert run("diff", *files).output.startswith(
        "### Now supported\n\n- `variable-read-write` (since Airflow 3.3)"
    )
    changes = json.loads(run("diff", *files, "--json").output)
    assert changes["sdk"] == "java"
    assert [change["kind"] for change in changes["changes"]] == ["gained", "declared", "declared"]


def test_schema(tmp_path: Path) -> None:
    """For an editor, on the terminal or into a file."""
    assert run("schema").output == schema_text()
    assert run("schema", "--output", tmp_path / "a" / "s.json").exit_code == 0
    assert (tmp_path / "a" / "s.json").read_text() == schema_text()


def test_every_command_has_help_with_an_example_and_json() -> None:
    """Also through ``handoff``, which mounts the group."""
    for name, command in capabilities.commands.items():
        text = run(name, "--help").output
        assert f"handoff capabilities {name}" in text.split("Options:")[0]
        assert "--json" in text, command
    mounted = CliRunner().invoke(handoff, ["capabilities", "matrix", str(DATA / "go.yaml")])
    assert mounted.output.startswith("| Dimension |")


def hooked(entry: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run a hook's entry point and return its exit code."""
    monkeypatch.setattr("sys.argv", ["hook", *arguments])
    with pytest.raises(SystemExit) as raised:
        entry()
    return int(raised.value.code or 0)


def test_the_matrix_hook_fails_once(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It rewrites, exits 1 and prints the command; then passes; then an edited table fails."""
    assert hooked(hook.matrix_hook, monkeypatch) == 1
    assert "README.md: rewritten\nRun `handoff capabilities matrix`" in capsys.readouterr().out
    assert hooked(hook.matrix_hook, monkeypatch) == 0
    readme = repository / "README.md"
    good = readme.read_text()
    readme.write_text(good.replace("unproven", "✓", 1))
    assert hooked(hook.matrix_hook, monkeypatch) == 1
    assert readme.read_text() == good


def test_the_capabilities_hook_checks_what_the_changed_files_concern(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A manifest, its evidence, a build file; a file that concerns no SDK concerns nobody."""
    write_evidence_beside(repository / "capabilities.yaml", evidence())
    (repository / "features.evidence.json").write_text("{}")
    for changed_file in ("capabilities.yaml", "capabilities.evidence.json", "Cargo.toml", "handoff.toml"):
        assert hooked(hook.capabilities_hook, monkeypatch, changed_file) == 0
        assert capsys.readouterr().out == "1 manifest checked: 0 faults.\n"
    write(repository / "capabilities.yaml", changed(failed=...))
    for changed_file in ("capabilities.yaml", "capabilities.evidence.json", "Cargo.toml"):
        assert hooked(hook.capabilities_hook, monkeypatch, changed_file) == 1
    (repository / "handoff.toml").unlink()
    capsys.readouterr()
    assert hooked(hook.capabilities_hook, monkeypatch, "Cargo.toml", "features.evidence.json") == 0
    assert capsys.readouterr().out == ""
    assert hooked(hook.capabilities_hook, monkeypatch, "capabilities.evidence.json") == 1


def test_a_target_that_cannot_be_written_is_told(repository: Path) -> None:
    """One line and exit code 2, no traceback."""
    (repository / "a").write_text("a file, not a folder")
    result = run("matrix", "capabilities.yaml", "--target", "a/b.html")
    assert result.exit_code == 2
    assert result.output.startswith("Error: ")
