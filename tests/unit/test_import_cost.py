"""What importing the package costs is pinned: Airflow's provider discovery runs it in every process."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution

import pytest

PROBE = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(statement: str, env: dict[str, str] | None = None) -> set[str]:
    """Return the modules that a statement loads in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def tops(modules: set[str]) -> set[str]:
    """Return the top-level names that are not in the standard library."""
    return {name.split(".")[0] for name in modules} - sys.stdlib_module_names


def test_the_package_root_imports_nothing():
    """``import airflow_handoff`` loads itself, no Airflow and no third-party module."""
    assert loaded_by("import airflow_handoff") - sys.stdlib_module_names == {"airflow_handoff"}


def test_provider_discovery_imports_nothing():
    """Calling the provider-info entry point loads no Airflow, no room and no third-party module."""
    statement = "from airflow_handoff.get_provider_info import get_provider_info; get_provider_info()"
    modules = loaded_by(statement)
    assert {m for m in modules if m.split(".")[0] not in sys.stdlib_module_names} == {
        "airflow_handoff",
        "airflow_handoff.get_provider_info",
    }


def test_the_plugin_entry_point_is_light():
    """What Airflow loads as our plugin brings no web framework, template engine or HTTP client of its own."""
    entries = [
        e for e in distribution("airflow-provider-handoff").entry_points if e.group == "airflow.plugins"
    ]
    for entry in entries:
        ours = f"import airflow.plugins_manager\nbefore = set(sys.modules)\nimport {entry.module}"
        assert tops(loaded_by(ours)) <= {"airflow_handoff", "airflow"}


def test_the_command_line_help_imports_no_room():
    """``handoff --help`` loads click and ours, no room, no Airflow, no optional dependency."""
    modules = loaded_by(
        "from airflow_handoff.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    assert tops(modules) <= {"airflow_handoff", "click", "_colorama"}
    rooms = {m.split(".")[1] for m in modules if m.startswith("airflow_handoff.")}
    assert rooms <= {"cli"}


def test_the_operators_bring_no_web_machinery():
    """Importing the operators loads none of these beyond what Airflow's own ``airflow.sdk`` has loaded."""
    modules = loaded_by(
        "from airflow.sdk import BaseOperator\n"
        "before = set(sys.modules)\n"
        "import airflow_handoff.operators.hitl"
    )
    assert not tops(modules) & {"fastapi", "starlette", "jinja2", "httpx", "itsdangerous", "uvicorn"}
    assert not {m for m in modules if m.startswith(("airflow_handoff.server", "airflow_handoff.client"))}


@pytest.mark.parametrize(
    "room", ["exceptions", "hitl", "wire", "bundles", "capabilities", "conformance", "process", "client"]
)
def test_the_pure_rooms_load_no_airflow(room):
    """A CI hook or an SDK author imports these without Airflow, every module of them."""
    statement = (
        "import pkgutil, importlib\n"
        f"room = importlib.import_module('airflow_handoff.{room}')\n"
        "for found in pkgutil.walk_packages(getattr(room, '__path__', []), room.__name__ + '.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)"
    )
    loaded = tops(loaded_by(statement))
    assert "airflow" not in loaded
    optional = {"httpx", "rich", "jinja2", "itsdangerous", "fastapi"}
    assert room == "client" or not loaded & optional
