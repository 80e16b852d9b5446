"""The message types of both SDKs follow the installed supervisor schema."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import get_args

import pytest

from airflow_handoff.compat.versions import HAS_COORDINATORS

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(not HAS_COORDINATORS, reason="Airflow before 3.3 has no supervisor schema")


@pytest.fixture(scope="module")
def generate():
    """The generator, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("sdks_generate", ROOT / "sdks" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_output_is_what_the_schema_gives(generate):
    """A drift between schema and SDKs fails here: run ``python sdks/generate.py``."""
    for path, text in generate.outputs(generate.installed_schema()).items():
        assert path.read_text() == text, f"{path} is stale: run python sdks/generate.py"


def test_requests_are_those_that_a_supervisor_accepts(generate):
    """The generator's list of requests is the supervisor's own."""
    from airflow.sdk.execution_time import comms

    union = get_args(get_args(comms.ToSupervisor)[0])
    assert sorted(generate.REQUESTS) == sorted(message.__name__ for message in union)


def test_an_unknown_message_stops_the_generator(generate):
    """A message of a later schema is never left out without a word."""
    schema = generate.installed_schema()
    new = {"properties": {"type": {"const": "NewThing"}}}
    with pytest.raises(SystemExit, match="NewThing"):
        generate.outputs({**schema, "$defs": {**schema["$defs"], "NewThing": new}})
    gone = {name: body for name, body in schema["$defs"].items() if name != "GetVariable"}
    with pytest.raises(SystemExit, match="GetVariable"):
        generate.outputs({**schema, "$defs": gone})


def test_a_built_request_is_one_that_the_supervisor_reads(generate, monkeypatch):
    """What the Python builders make passes the supervisor's own models."""
    from airflow.sdk.execution_time import comms
    from pydantic import TypeAdapter

    monkeypatch.syspath_prepend(str(ROOT / "sdks" / "python" / "src"))
    from airflow_handoff_sdk import requests

    for name in ("airflow_handoff_sdk.requests", "airflow_handoff_sdk"):
        monkeypatch.setitem(sys.modules, name, sys.modules[name])
    reader = TypeAdapter(comms.ToSupervisor)
    moment = "2026-11-30T10:00:00+00:00"
    for body in (
        requests.SucceedTask(end_date=moment, task_outlets=[], outlet_events=[]),
        requests.RetryTask(end_date=moment, retry_delay_seconds=5.0, retry_reason="busy"),
        requests.DeferTask(classpath="a.B", next_method="n", trigger_kwargs={}, trigger_timeout="PT5S"),
        requests.AwaitInputTask(next_method="n", next_kwargs={"a": 1}),
        requests.RescheduleTask(reschedule_date=moment, end_date=moment),
        requests.TaskState(state="skipped", end_date=moment),
        requests.GetXCom(key="k", dag_id="d", run_id="r", task_id="t"),
    ):
        assert type(reader.validate_python(body)).__name__ == body["type"]
