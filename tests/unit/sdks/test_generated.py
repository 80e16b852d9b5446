"""The message types of both SDKs follow the installed supervisor schema."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
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


def newer(schema):
    """A schema like Airflow's next: arguments of stub calls, one more field of a request, nothing gone."""
    schema = json.loads(json.dumps(schema))
    schema["api_version"] = "2026-10-30"
    binding = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kind": {"type": "string"}, "value": {"default": None}},
        "required": ["name", "kind"],
    }
    schema["$defs"]["ArgBinding"] = binding
    schema["$defs"]["TIRunContext"]["properties"]["arg_bindings"] = {
        "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/ArgBinding"}}, {"type": "null"}],
        "default": None,
    }
    fields = schema["$defs"]["GetVariable"]["properties"]
    fields["team_name"] = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    return schema


def test_the_next_schema_needs_no_other_generator(generate, tmp_path):
    """A newer schema, given as a file, becomes types that Python imports and the Rust crate builds."""
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(newer(generate.installed_schema())))
    script = [sys.executable, str(ROOT / "sdks" / "generate.py"), "--schema", str(file)]
    made = tmp_path / "sdks"
    subprocess.run([*script, "--output", str(made)], check=True, capture_output=True)
    source = "from airflow_handoff_sdk import requests as r, replies; print(r.SCHEMA_VERSION, r.GetVariable("
    source += "key='k', team_name='t')['team_name'], replies.TIRunContext.__annotations__['arg_bindings'])"
    package = made / "python" / "src" / "airflow_handoff_sdk"
    for path in (ROOT / "sdks" / "python" / "src" / "airflow_handoff_sdk").glob("*.py"):
        if not (package / path.name).exists():
            shutil.copy(path, package)
    said = subprocess.run(
        [sys.executable, "-c", source], cwd=package.parent, check=True, capture_output=True, text=True
    ).stdout
    assert said.startswith("2026-10-30 t ")
    assert "ArgBinding" in said

    rust = made / "rust"
    messages = (rust / "src" / "messages.rs").read_text()
    assert (
        "pub arg_bindings: Vec<ArgBinding>" in messages or "arg_bindings: Option<Vec<ArgBinding>>" in messages
    )
    assert "pub team_name: Option<String>" in messages
    cargo = shutil.which("cargo")
    if cargo is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("cargo is not installed")
    shutil.copytree(ROOT / "sdks" / "rust", rust, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
    (rust / "src" / "messages.rs").write_text(messages)
    target = {"CARGO_TARGET_DIR": str(ROOT / "sdks" / "rust" / "target" / "newer")}
    done = subprocess.run(
        [cargo, "check", "--quiet"],
        cwd=rust,
        env={**os.environ, **target},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_drift_is_red(generate, tmp_path):
    """One changed field of the schema is seen in every output that has it."""
    schema = newer(generate.installed_schema())
    stale = [path.name for path, text in generate.outputs(schema).items() if path.read_text() != text]
    assert stale == ["requests.py", "replies.py", "messages.rs"]
    script = [sys.executable, str(ROOT / "sdks" / "generate.py"), "--check"]
    assert subprocess.run(script, check=False, capture_output=True).returncode == 0
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    done = subprocess.run([*script, "--schema", str(file)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("differs")) == (1, 3)
