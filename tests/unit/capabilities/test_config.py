"""handoff.toml and [tool.handoff]."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_handoff.capabilities.config import Target, find_config, read_config, target
from airflow_handoff.capabilities.locate import BuildFile
from airflow_handoff.exceptions import CapabilitiesError

FULL = """
features = "docs/features.yaml"
sdks = [
  {manifest = "zig/capabilities.yaml", unmet = ["deferred"]},
  {manifest = "ada/capabilities.yaml", build_file = "ada/Cargo.toml", key = "wire", release_file = "x"},
]
targets = ["README.md", {path = "docs/matrix", format = "rst"}]
"""


def written(folder: Path, text: str, name: str = "handoff.toml") -> Path:
    """Write a configuration and return its path."""
    path = folder / name
    path.write_text(text)
    return path


def test_all_that_can_be_said(tmp_path: Path) -> None:
    """Short and long forms; paths are relative to the file."""
    config = read_config(written(tmp_path, FULL))
    zig, ada = config.sdks
    assert (zig.manifest, zig.build_file) == (tmp_path / "zig/capabilities.yaml", None)
    assert ada.build_file == BuildFile(tmp_path / "ada/Cargo.toml", "wire", tmp_path / "x")
    assert (zig.unmet, ada.unmet) == (("deferred",), ())
    assert config.targets == (Target(tmp_path / "README.md", "md"), Target(tmp_path / "docs/matrix", "rst"))
    assert config.features == tmp_path / "docs/features.yaml"


def test_it_is_found_upwards_and_in_pyproject_too(tmp_path: Path) -> None:
    """A pyproject.toml that says nothing of us is passed by; handoff.toml comes first."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    written(below, "[project]\nname = 'x'\n", "pyproject.toml")
    assert find_config(below) is None
    written(tmp_path, "[tool.handoff]\ntargets = ['README.md']\n", "pyproject.toml")
    found = find_config(below)
    assert found
    assert [one.path.resolve() for one in found.targets] == [tmp_path / "README.md"]
    nearer = written(tmp_path / "a", "")
    assert (find_config(below) or found).path.resolve() == nearer


def test_a_pattern_names_many_sdks(tmp_path: Path) -> None:
    """Sorted, so that a new SDK gets its column without an edit; one that matches nothing is a slip."""
    for name in ("rust", "python"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "capabilities.yaml").touch()
    path = written(tmp_path, 'sdks = ["*/capabilities.yaml"]\n')
    assert [sdk.manifest.parent.name for sdk in read_config(path).sdks] == ["python", "rust"]
    (tmp_path / "rust" / "README.md").touch()
    path = written(tmp_path, 'targets = ["*/README.md"]\n')
    assert read_config(path).targets == (Target(tmp_path / "rust" / "README.md", "md"),)
    with pytest.raises(CapabilitiesError, match="matches no file"):
        read_config(written(tmp_path, 'sdks = ["*/nothing.yaml"]\n'))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sdks = [\n", "expected TOML"),
        ("sdk = []\n", "`sdk` is not a key of the configuration; the keys are sdks, targets, features"),
        ("sdks = 'x'\n", "expected a list for `sdks`"),
        ("sdks = [3]\n", "expected an item of `sdks` to be a table or a path"),
        ("sdks = [{manifest = 3}]\n", "expected a text for `manifest`"),
        ("sdks = [{manifest = 'a', buildfile = 'b'}]\n", "`buildfile` is not a key of an item of `sdks`"),
        ("sdks = [{manifest = 'a', unmet = 'b'}]\n", "expected a list for `unmet`"),
        ("targets = ['README']\n", "the name does not say the format"),
        ("targets = [{path = 'README.md', format = 'pdf'}]\n", "name one of md, rst, html, json"),
    ],
)
def test_a_slip_is_told(tmp_path: Path, text: str, reason: str) -> None:
    """With the file, what was expected and what came."""
    with pytest.raises(CapabilitiesError, match=reason) as raised:
        read_config(written(tmp_path, text))
    assert raised.value.path.endswith("handoff.toml")


def test_the_name_of_a_target_says_its_format() -> None:
    """Unless one is given."""
    assert target(Path("a.markdown")).format == "md"
    assert target(Path("a.htm")).format == "html"
    assert target(Path("a.txt"), "rst").format == "rst"
