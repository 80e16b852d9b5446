"""What Airflow reads about the package."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from importlib.metadata import entry_points
from pathlib import Path

import airflow
import jsonschema
import pytest

from airflow_handoff import get_provider_info as module
from airflow_handoff.get_provider_info import get_provider_info

SCHEMA = json.loads((Path(airflow.__path__[0]) / "provider_info.schema.json").read_text())
INFO = get_provider_info()
ROOT = Path(__file__).resolve().parents[2]


def test_the_installed_airflow_accepts_it():
    """Discovery checks the metadata against this schema."""
    jsonschema.validate(INFO, SCHEMA)
    # Airflow 3.1 passes over the commands that later versions take.
    known = set(SCHEMA["properties"]) | {"config", "cli"}
    assert set(INFO) <= known


def test_it_is_one_literal():
    """Nothing is computed: discovery runs before Airflow itself is imported."""
    (function,) = (
        node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Return)
    )
    assert ast.literal_eval(function.value) == INFO


@pytest.mark.parametrize("kind", ["operators", "triggers"])
def test_what_it_names_is_there(kind):
    """Every module can be imported, and every integration is declared."""
    declared = {integration["integration-name"] for integration in INFO["integrations"]}
    for entry in INFO[kind]:
        assert entry["integration-name"] in declared
        for name in entry["python-modules"]:
            assert importlib.import_module(name)


def test_every_option_is_documented_and_read_somewhere():
    """An option that nobody reads, or that has no description, is a promise not kept."""
    sources = "".join(
        path.read_text() for path in (ROOT / "provider").rglob("*.py") if path.name != "get_provider_info.py"
    )
    for name, option in INFO["config"]["handoff"]["options"].items():
        assert option["description"], name
        assert f'"{name}"' in sources, name


def test_airflow_finds_it_through_the_entry_point():
    """Airflow discovers providers by this entry point."""
    (entry,) = (
        e for e in entry_points(group="apache_airflow_provider") if e.value.startswith("airflow_handoff")
    )
    assert entry.load()() == INFO


def test_the_declared_pace_is_the_one_that_was_measured():
    """Airflow hands out the declared default, so another one in the code would never be used."""
    from airflow_handoff.triggers.polling import Pace

    options = INFO["config"]["handoff"]["options"]
    declared = [float(options[n]["default"]) for n in ("poke_interval", "poke_interval_max", "poke_rate")]
    assert declared == [Pace().shortest, Pace().longest, Pace().per_second]
