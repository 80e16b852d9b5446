"""Our OpenAPI description, fuzzed: no request makes the api-server answer 500."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.unit.server import rows
from tests.unit.server.conftest import ROOT_PATH, Api

from airflow_handoff.compat.versions import HAS_AWAITING_INPUT

#: It needs a newer starlette than the older Airflows have: a program of its own, in the newest's environment.
SCHEMATHESIS = Path(__file__).parents[3] / ".venv-3.3" / "bin" / "schemathesis"
#: Examples for each operation; the older versions share most of what can fail.
EXAMPLES = "15" if HAS_AWAITING_INPUT else "5"


@pytest.fixture
def address(api: Api) -> Iterator[str]:
    """The application behind a real server, on a free loopback port."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(api.app, lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{ROOT_PATH}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def _described(address: str, dag_id: str) -> dict:
    """Return the description, with a run and a gate that exist among the examples."""
    while True:
        try:
            found = httpx.get(f"{address}/handoff/openapi.json", trust_env=False)
            break
        except httpx.TransportError:
            time.sleep(0.1)
    document: dict = found.json()
    known = {"dag_id": dag_id, "run_id": "run", "approval_key": "gate", "task_id": "gate"}
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] in known:
                    parameter["schema"] = {"type": "string", "enum": [known[parameter["name"]], "other"]}
    document.pop("servers", None)
    return document


def test_no_request_of_the_description_makes_a_500(api, dag_id, address, tmp_path):
    """Schemathesis sends valid and broken requests to every route, with a login."""
    if not SCHEMATHESIS.exists():
        pytest.fail("schemathesis is missing: `make venv` installs it into .venv-3.3")
    for number in range(3):
        rows.add_task(dag_id, "run", "gate", map_index=number)
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(_described(address, dag_id)))
    done = subprocess.run(
        [
            *(str(SCHEMATHESIS), "run", str(described), "--url", f"{address}/handoff"),
            *("-H", "Authorization: " + api.headers("admin")["authorization"]),
            *("--checks", "not_a_server_error", "--max-examples", EXAMPLES, "--seed", "1", "--no-shrink"),
            *("--phases", "examples,coverage,fuzzing", "--request-timeout", "60", "--workers", "1"),
            *("--generation-database", "none"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        check=False,
        env={"PATH": "/usr/bin:/bin", "NO_PROXY": "127.0.0.1", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    cases = re.search(r"(\d+) generated", done.stdout)
    assert cases, done.stdout[-2000:]
    assert int(cases[1]) > 100
