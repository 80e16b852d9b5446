"""The commands and the client against a real Airflow, as their users run them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_handoff.client import HandoffClient, RunInterrupted
from airflow_handoff.client.errors import RunFailed
from tests.system.stack import ROOT, Stack

HANDOFF = [sys.executable, "-m", "airflow_handoff.cli"]


def environment(stack: Stack) -> dict[str, str]:
    """Return an environment in which ``handoff`` reaches this stack as its admin."""
    token = stack.client().headers["authorization"].removeprefix("Bearer ")
    return {**os.environ, "HANDOFF_URL": stack.url, "HANDOFF_TOKEN": token, "NO_PROXY": "127.0.0.1"}


def handoff(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [*HANDOFF, *arguments],
        env=environment(stack),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.run("client_form")
def test_a_form_is_answered_from_the_terminal(run: Any) -> None:
    """Listed, shown, refused with the reason and still open, answered, and then answered already."""
    name = f"client_form/{run.run_id}/fill"
    listed = json.loads(handoff(run.stack, "pending", "--dag-id", "client_form", "--json").stdout)
    assert [entry["request"] for entry in listed] == [name]
    assert "--set amount=<integer>" in handoff(run.stack, "show", name).stdout
    refused = handoff(run.stack, "answer", name, "north", "--set", "amount=1")
    assert (refused.returncode, "amount" in refused.stderr) == (1, True), refused.stderr
    not_offered = handoff(run.stack, "answer", name, "east")
    assert (not_offered.returncode, "north" in not_offered.stderr) == (1, True), not_offered.stderr
    taken = handoff(
        run.stack, "answer", name, "north", "west", "--set", "amount=7", "--comment", "by hand", "--json"
    )
    assert taken.returncode == 0, taken.stderr
    assert json.loads(taken.stdout)["chosen_options"] == ["north", "west"]
    again = handoff(run.stack, "answer", name, "south")
    assert again.returncode == 5, again.stderr
    assert run.wait_run() == "success"
    result = run.xcom("fill")
    assert (result["chosen_options"], result["params_input"]) == (["north", "west"], {"amount": 7})
    assert result["comment"] == "by hand"


@pytest.mark.run("client_gate")
def test_a_gate_is_rejected_by_key_and_audited(run: Any) -> None:
    """The key is enough; the trail says who, what, why, through which door."""
    done = handoff(run.stack, "reject", run.run_id, "gate", "--comment", "no receipt")
    assert done.returncode == 0, done.stderr
    assert run.wait_run() == "failed"
    text = handoff(run.stack, "audit", "--run-id", run.run_id, "--format", "csv").stdout
    (line,) = csv.DictReader(io.StringIO(text))
    assert (line["who"], line["chosen_options"], line["comment"]) == ("admin", "Reject", "no receipt")
    assert (line["door"], line["approval_key"], line["try_number"]) == ("approve", "gate", "1")
    assert line["digest"]


@pytest.mark.run("client_mapped")
def test_a_mapped_request_has_its_index_in_its_name(run: Any) -> None:
    """Each index is listed and answered on its own."""
    listed = json.loads(handoff(run.stack, "pending", "--run-id", run.run_id, "--json").stdout)
    names = {entry["request"] for entry in listed}
    assert names == {f"client_mapped/{run.run_id}/each/{index}" for index in (0, 1)}
    for name in sorted(names):
        done = handoff(run.stack, "answer", name, "Approve")
        assert done.returncode == 0, done.stderr
    assert run.wait_run() == "success"


@pytest.mark.run("client_gate", until={})
def test_the_python_client_follows_a_run_past_its_person(run: Any) -> None:
    """Trigger, wait, RunInterrupted, approve, wait: the result arrives; a rejected run raises RunFailed."""
    env = environment(run.stack)
    with HandoffClient(env["HANDOFF_URL"], env["HANDOFF_TOKEN"]) as client:
        other = client.trigger("client_gate")
        for run_id in (run.run_id, other):
            with pytest.raises(RunInterrupted) as caught:
                client.wait(run_id, "client_gate", timeout=120)
            assert (caught.value.run_id, caught.value.approval_key) == (run_id, "gate")
        client.approve(run.run_id, "gate", dag_id="client_gate")
        client.reject(other, "gate", dag_id="client_gate")
        status = client.wait(run.run_id, "client_gate", timeout=120)
        assert (status["outcome"], status["result"]) == ("approved", {"post": "posted"})
        with pytest.raises(RunFailed) as failed:
            client.wait(other, "client_gate", timeout=120)
        assert failed.value.code == "HumanRejected"


@pytest.mark.run("client_gate")
def test_a_viewer_is_refused_with_its_own_exit_code(run: Any) -> None:
    """Who may not answer gets 3, and the request stays open."""
    viewer = next(name for name, role in run.stack.users.items() if role == "viewer")
    token = run.stack.client(viewer).headers["authorization"].removeprefix("Bearer ")
    done = handoff(run.stack, "answer", f"client_gate/{run.run_id}/ask", "Approve", "--token", token)
    assert done.returncode == 3, done.stderr
    assert run.hitl()[0]["response_received"] is False


class ApiOnly(Stack):
    """An Airflow whose tasks another process runs: only the api-server is up."""

    @property
    def component_names(self) -> tuple[str, ...]:
        """Leave out the scheduler, which would take the tasks of ``airflow dags test``."""
        return ("api-server",)


AGENT = """
import json, subprocess, sys

handoff = [sys.executable, "-m", "airflow_handoff.cli"]
watch = subprocess.Popen([*handoff, "pending", "--watch", "--json"], stdout=subprocess.PIPE, text=True)
try:
    for _ in range(2):
        request = json.loads(watch.stdout.readline())
        done = subprocess.run([*handoff, "answer", request["request"], "Approve"], check=True)
finally:
    watch.terminate()
    watch.wait()
"""


@pytest.fixture
def api_only() -> Iterator[Stack]:
    """An api-server of 3.3 on a database of its own."""
    with ApiOnly("3.3", ROOT / "tests" / "system" / "dags") as running:
        yield running


@pytest.mark.skipif(
    "3.3" not in os.environ.get("HANDOFF_VERSIONS", "3.3"), reason="`airflow dags test` waits on 3.3 only"
)
def test_an_agent_answers_a_run_of_dags_test(api_only: Stack, tmp_path: Path) -> None:
    """One process runs the Dag, another reads ``pending --watch --json`` and answers: the run ends."""
    dag_file = ROOT / "tests" / "system" / "dags" / "client_gates.py"
    log = tmp_path / "dags-test.log"
    with log.open("w") as output:
        testing = subprocess.Popen(
            [str(api_only.venv / "bin" / "airflow"), "dags", "test", "client_chain", "-f", str(dag_file)],
            env=api_only.env,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            agent = subprocess.run(
                [sys.executable, "-c", AGENT],
                env=environment(api_only),
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert agent.returncode == 0, f"{agent.stderr}\n{log.read_text()[-3000:]}"
            assert testing.wait(timeout=120) == 0, log.read_text()[-3000:]
        finally:
            testing.kill()
            testing.wait()
    (run,) = api_only.client().get("/api/v2/dags/client_chain/dagRuns").json()["dag_runs"]
    assert run["state"] == "success"
