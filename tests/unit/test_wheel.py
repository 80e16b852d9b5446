"""The wheel holds what it must and nothing else."""

from __future__ import annotations

import configparser
import importlib.util
import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "provider" / "airflow_handoff"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="the wheel is built in the default environment only"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """The wheel, built from the tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def brought_in() -> tuple[str, ...]:
    """Return the places in the wheel whose files come from elsewhere in the tree."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return tuple(settings["tool"]["hatch"]["build"]["targets"]["wheel"].get("force-include", {}).values())


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    """Modules, ``py.typed`` and data (YAML, templates, pages) all travel."""
    in_tree = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    in_wheel = {
        name
        for name in wheel.namelist()
        if name.startswith("airflow_handoff/") and not name.startswith(brought_in())
    }
    assert in_wheel == in_tree
    assert "airflow_handoff/py.typed" in in_wheel


def test_nothing_else_is_in_the_wheel(wheel):
    """One top-level package and its metadata, with the licence and the notice."""
    tops = {name.split("/")[0] for name in wheel.namelist()}
    (info,) = tops - {"airflow_handoff"}
    assert info.endswith(".dist-info")
    licences = {Path(n).name for n in wheel.namelist() if n.startswith(f"{info}/licenses/")}
    assert licences == {"LICENSE", "NOTICE"}


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    """Return one metadata file of the wheel."""
    (path,) = [n for n in wheel.namelist() if n.endswith(f".dist-info/{name}")]
    return wheel.read(path).decode()


def test_the_base_needs_no_airflow(wheel):
    """An SDK author installs a light package; Airflow comes with an extra and has no upper cap."""
    required = Parser().parsestr(metadata(wheel, "METADATA")).get_all("Requires-Dist")
    base = {re.split(r"[^\w.-]", r)[0].lower() for r in required if "extra ==" not in r}
    assert {"click", "jsonschema", "msgpack", "psutil", "pydantic", "pyyaml"} <= base
    assert not base & {"apache-airflow", "fastapi", "httpx", "jinja2", "itsdangerous", "rich", "sqlalchemy"}
    airflow = [r for r in required if r.startswith("apache-airflow") and "extra == 'airflow'" in r]
    assert len(airflow) == 2
    assert not [r for r in airflow if "<" in r]


def test_the_entry_points_are_the_fixed_names(wheel):
    """Airflow finds the provider, a shell finds the command."""
    entries = configparser.ConfigParser(delimiters=("=",))
    entries.read_string(metadata(wheel, "entry_points.txt"))
    assert entries["console_scripts"]["handoff"] == "airflow_handoff.cli:main"
    assert entries["apache_airflow_provider"]["provider_info"].startswith(
        "airflow_handoff.get_provider_info:"
    )
