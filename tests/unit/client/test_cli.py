"""The commands, run as a person runs them, against a scripted api-server."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result
from tests.unit.client.scripted_server import ScriptedServer, detail

from airflow_handoff import cli as root
from airflow_handoff.client import audit, cli
from airflow_handoff.client.client import HandoffClient
from airflow_handoff.client.request import Request
from airflow_handoff.client.watch import NewRequests

ANSWER = "/api/v2/dags/expenses/dagRuns/run-1/taskInstances/review/-1/hitlDetails"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedServer:
    """Put a scripted server in the place of every connection that a command opens."""
    scripted = ScriptedServer(detail())
    monkeypatch.setenv("HANDOFF_URL", "http://airflow.test")
    monkeypatch.setenv("HANDOFF_TOKEN", "token")
    monkeypatch.setenv("HANDOFF_PROFILES", str(tmp_path / "profiles.yaml"))
    transport = httpx.MockTransport(scripted)
    monkeypatch.setattr(
        cli, "HandoffClient", lambda url, token=None: HandoffClient(url, token, transport=transport)
    )
    return scripted


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run ``handoff`` with these arguments."""
    return CliRunner().invoke(root.handoff, list(arguments), input=stdin)


@pytest.mark.parametrize(
    "command", ["pending", "show", "answer", "approve", "reject", "audit", "login", "mcp"]
)
def test_every_command_has_help_with_examples_and_json(command: str) -> None:
    """Help shows how it is used and that it can print JSON."""
    text = run(command, "--help").output
    assert "Examples:" in text
    assert f"handoff {command}" in text
    assert "--json" in text


def test_pending_prints_names_that_the_next_command_takes(server: ScriptedServer) -> None:
    """The table is not folded when it goes into a pipe."""
    server.details = [detail(run_id="manual__" + "x" * 120)]
    assert f"expenses/manual__{'x' * 120}/review" in run("pending").output


def test_pending_as_json_has_the_question_and_the_page(server: ScriptedServer) -> None:
    """One entry has all that a program needs to answer."""
    (entry,) = json.loads(run("pending", "--json").output)
    assert entry["request"] == "expenses/run-1/review"
    assert entry["options"] == ["Approve", "Reject"]
    assert entry["url"] == "http://airflow.test/dags/expenses/runs/run-1/tasks/review/required_actions"


def test_pending_with_nothing_says_so(server: ScriptedServer) -> None:
    """An empty list is a sentence for people and an empty list for programs."""
    server.details = []
    assert run("pending").output == "nothing waits for an answer\n"
    assert json.loads(run("pending", "--json").output) == []


def test_pending_hands_every_filter_to_airflow(server: ScriptedServer) -> None:
    """Each option is Airflow's own query parameter."""
    options = {
        "--task-id": ("task_id", "t"),
        "--dag-id-pattern": ("dag_id_pattern", "d%"),
        "--task-id-pattern": ("task_id_pattern", "t%"),
        "--dag-id-prefix": ("dag_id_prefix_pattern", "d"),
        "--task-id-prefix": ("task_id_prefix_pattern", "t"),
        "--map-index": ("map_index", "3"),
        "--state": ("state", "deferred"),
        "--subject": ("subject_search", "pay"),
        "--body": ("body_search", "now"),
        "--created-after": ("created_at_gte", "2026-01-01T00:00:00Z"),
        "--created-before": ("created_at_lte", "2026-01-02T00:00:00Z"),
        "--responded-by-id": ("responded_by_user_id", "ada"),
        "--responded-by-name": ("responded_by_user_name", "Ada"),
        "--order-by": ("order_by", "-subject"),
    }
    arguments = [part for option, (_, value) in options.items() for part in (option, value)]
    assert run("pending", *arguments).exit_code == 0
    sent = dict(server.calls[0].url.params)
    assert {name: sent[name] for name, _ in options.values()} == dict(options.values())


def test_answered_requests_can_be_listed(server: ScriptedServer) -> None:
    """--answered lists what has an answer, whatever became of the task."""
    server.details = [detail("a"), detail("b", received=True, state="success")]
    (entry,) = json.loads(run("pending", "--answered", "--json").output)
    assert (entry["task_id"], entry["chosen_options"]) == ("b", ["Approve"])


def test_watching_prints_each_new_request_once(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second look prints only what is new, one JSON object a line; a server that is away is waited for."""
    looks = iter(["new request", "server away", "stop"])

    def between_two_looks(seconds: float) -> None:
        match next(looks):
            case "new request":
                server.details.append(detail("second"))
            case "server away":
                away = httpx.Response(503, text="restarting")
                server.script("GET", "/api/v2/dags/~/dagRuns/~/hitlDetails", away)
            case _:
                raise KeyboardInterrupt

    monkeypatch.setattr("airflow_handoff.client.cli.time.sleep", between_two_looks)
    result = run("pending", "--watch", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["task_id"] for line in lines] == ["review", "second"]
    assert "still watching" in result.stderr
    assert result.exit_code == 0


def test_a_question_that_comes_back_is_new() -> None:
    """After a refused answer the same request is open again and has to be answered again."""
    request = Request.from_detail(detail())
    new = NewRequests()
    assert [new.among(look) for look in ([request], [request], [], [request])] == [
        [request],
        [],
        [],
        [request],
    ]


def test_show_names_the_fields_that_answer_takes(server: ScriptedServer) -> None:
    """A form field is shown as the option that sets it."""
    server.script("GET", ANSWER, httpx.Response(200, json=detail()))
    assert "--set amount=<integer>  now 5  in euros" in run("show", "expenses/run-1/review").output


def test_an_earlier_try_is_asked_for(server: ScriptedServer) -> None:
    """--try reads the history route."""
    server.script("GET", f"{ANSWER}/tries/1", httpx.Response(200, json=detail(received=True)))
    output = run("show", "expenses/run-1/review", "--try", "1").output
    assert "answered: Approve" in output
    assert "by:       Ada" in output


def test_case_stale_tab_what_show_printed_pins_the_answer(server: ScriptedServer) -> None:
    """--try and --digest as printed; another question is exit code 5, and doubts are on stderr."""
    known = {**detail(), "handoff": {"digest": "abc", "warnings": ["nobody is called ada"]}}
    path = "/handoff/v1/dags/expenses/runs/run-1/requests/review"
    server.script("GET", path, httpx.Response(200, json=known))
    server.script("PATCH", ANSWER, httpx.Response(200, json={}))
    shown = run("show", "expenses/run-1/review").output
    assert "digest:   abc" in shown
    assert "warning:  nobody is called ada" in shown
    pinned = ["answer", "expenses/run-1/review", "Approve"]
    assert run(*pinned, "--try", "2").exit_code == 5
    assert run(*pinned, "--digest", "abd").exit_code == 5
    assert not server.bodies
    assert run(*pinned, "--try", "1", "--digest", "abc").exit_code == 0
    unchecked = {**detail(assigned=("ada",)), "handoff": {"digest": "abc", "assigned_checked": False}}
    server.script("GET", path, httpx.Response(200, json=unchecked))
    assert "checked:  no" in run("show", "expenses/run-1/review").output
    listed = httpx.Response(200, json={"hitl_details": [known], "total_entries": 1})
    server.script("GET", "/handoff/v1/requests", listed)
    assert "nobody is called ada" in run("pending").stderr
    entry = json.loads(run("pending", "--json").stdout)[0]
    assert (entry["digest"], entry["warnings"]) == ("abc", ["nobody is called ada"])


def test_answer_reads_values_as_json_or_text(server: ScriptedServer) -> None:
    """Numbers are numbers, quoted ones are text, anything else is text."""
    server.script("PATCH", ANSWER, httpx.Response(200, json={}))
    fields = ["n=5", 'quoted="5"', "words=five of them", "flag=true", "empty="]
    sets = [part for field in fields for part in ("--set", field)]
    result = run("answer", "expenses/run-1/review", "Approve", *sets, "--comment", "ok")
    assert result.output == "answered expenses/run-1/review: Approve\n"
    assert server.bodies[0]["params_input"] == {
        "n": 5,
        "quoted": "5",
        "words": "five of them",
        "flag": True,
        "empty": "",
        "comment": "ok",
    }


@pytest.mark.parametrize("bad", ["novalue", "=5"])
def test_a_malformed_field_is_exit_two(server: ScriptedServer, bad: str) -> None:
    """Nothing is sent for a field that is not key=value."""
    result = run("answer", "expenses/run-1/review", "Approve", "--set", bad)
    assert result.exit_code == 2
    assert "expected --set key=value" in result.stderr
    assert not server.calls


@pytest.mark.parametrize(
    ("status", "code"), [(400, 1), (401, 3), (403, 3), (404, 4), (409, 5), (422, 1), (500, 7)]
)
def test_exit_codes_mean_something(server: ScriptedServer, status: int, code: int) -> None:
    """Each kind of refusal has a code of its own and one line on stderr."""
    server.script("PATCH", ANSWER, httpx.Response(status, json={"detail": "because"}))
    result = run("answer", "expenses/run-1/review", "Approve")
    assert result.exit_code == code
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(("command", "approved"), [("approve", True), ("reject", False)])
def test_a_gate_is_decided_by_its_key(server: ScriptedServer, command: str, approved: bool) -> None:
    """The approve route gets the decision, the data and the comment."""
    path = "/handoff/v1/dags/expenses/runs/run-1/approve/manager"
    server.script("POST", path, httpx.Response(200, json={"chosen_options": []}))
    options = ["--dag-id", "expenses", "--map-index", "2", "--set", "amount=7", "--comment", "so be it"]
    assert run(command, "run-1", "manager", *options).exit_code == 0
    assert server.bodies == [{"approved": approved, "data": {"amount": 7}, "comment": "so be it"}]
    assert server.calls[0].url.params["map_index"] == "2"


ENTRY = {
    "when": "2026-01-01T00:00:00Z",
    "who": "ada",
    "dag_id": "expenses",
    "run_id": "run-1",
    "task_id": "review",
    "map_index": -1,
    "try_number": 1,
    "approval_key": "review",
    "chosen_options": ["Approve"],
    "params_input": {"amount": 7},
    "comment": "=HYPERLINK(1)",
    "door": "approve",
    "digest": "abc",
}


def test_audit_pages_are_followed_and_printed(server: ScriptedServer) -> None:
    """JSON has every entry of every page; --since travels."""
    first = httpx.Response(200, json={"entries": [ENTRY], "next_offset": 500})
    last = httpx.Response(200, json={"entries": [{**ENTRY, "who": "grace"}], "next_offset": None})
    server.script("GET", "/handoff/v1/audit", first, last)
    entries = json.loads(run("audit", "--since", "2026-01-01T00:00:00Z", "--json").output)
    assert [entry["who"] for entry in entries] == ["ada", "grace"]
    assert [call.url.params["offset"] for call in server.calls] == ["0", "500"]
    assert server.calls[0].url.params["since"] == "2026-01-01T00:00:00Z"


def test_audit_as_csv_runs_no_formula(server: ScriptedServer) -> None:
    """A comment that a spreadsheet would evaluate is text; every column is there."""
    server.script(
        "GET", "/handoff/v1/audit", httpx.Response(200, json={"entries": [ENTRY], "next_offset": None})
    )
    (row,) = csv.DictReader(io.StringIO(run("audit", "--format", "csv").output))
    assert row["comment"] == "'=HYPERLINK(1)"
    assert row["map_index"] == "-1"
    assert row["params_input"] == '{"amount": 7}'
    assert tuple(row) == audit.COLUMNS


def test_audit_without_the_plugin_says_what_is_missing(server: ScriptedServer) -> None:
    """The trail is ours: without the routes the sentence names the package."""
    result = run("audit")
    assert result.exit_code == 4
    assert "airflow-provider-handoff" in result.stderr


@pytest.mark.parametrize(
    ("command", "method", "path", "status"),
    [
        (("audit",), "GET", "/handoff/v1/audit", 200),
        (("approve", "run-1", "review"), "POST", "/handoff/v1/runs/run-1/approve/review", 405),
    ],
)
def test_an_airflow_without_the_plugin_is_told_by_its_page(
    server: ScriptedServer, command: tuple[str, ...], method: str, path: str, status: int
) -> None:
    """Airflow serves its own page at unknown addresses, and takes only GET there."""
    server.script(method, path, httpx.Response(status, text="<!doctype html>"))
    result = run(*command)
    assert result.exit_code == 4
    assert "airflow-provider-handoff" in result.stderr


def test_a_server_that_is_no_airflow_is_one_sentence(server: ScriptedServer) -> None:
    """Another site's page is not taken for a list."""
    server.script("GET", "/api/v2/dags/~/dagRuns/~/hitlDetails", httpx.Response(200, text="<html>"))
    result = run("pending")
    assert result.exit_code == 7
    assert "is the URL the api-server's" in result.stderr


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/api/v2/dags/~/dagRuns/~/hitlDetails", ("pending",)),
        (ANSWER, ("show", "expenses/run-1/review")),
        ("/handoff/v1/audit", ("audit",)),
    ],
)
def test_a_reply_of_another_shape_is_one_sentence(
    server: ScriptedServer, path: str, command: tuple[str, ...]
) -> None:
    """Something else that speaks JSON answers, or an Airflow to come."""
    server.script("GET", path, httpx.Response(200, json={"hello": "world"}))
    result = run(*command)
    assert result.exit_code == 7
    assert "is the URL the api-server's" in result.stderr


def test_an_address_without_its_scheme_is_told(server: ScriptedServer) -> None:
    """The most common slip says how to write it."""
    result = run("pending", "--url", "localhost:8080")
    assert result.exit_code == 2
    assert "begin with http://" in result.stderr


@pytest.mark.parametrize(
    "extra",
    [("--set", "n=1e999"), ("--set", 'n="\\ud800"'), ("--token", "t\u00f6ken"), ("--comment", "\udcff")],
)
def test_what_cannot_be_sent_is_one_sentence(server: ScriptedServer, extra: tuple[str, str]) -> None:
    """No traceback for an endless number, half a character, or a token that is none."""
    result = run("answer", "expenses/run-1/review", "Approve", *extra)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("handoff: ")
    assert not server.bodies


def test_words_that_only_python_takes_for_numbers_are_text(server: ScriptedServer) -> None:
    """JSON knows neither NaN nor Infinity."""
    server.script("PATCH", ANSWER, httpx.Response(200, json={}))
    run("answer", "expenses/run-1/review", "Approve", "--set", "a=NaN", "--set", "b=-Infinity")
    assert server.bodies[0]["params_input"] == {"a": "NaN", "b": "-Infinity"}


@pytest.mark.parametrize("command", [("pending",), ("show", "expenses/run-1/review")])
def test_a_subject_cannot_steer_the_terminal(server: ScriptedServer, command: tuple[str, ...]) -> None:
    """Escape sequences are not printed, and a request stays on its line in a list."""
    hostile = {**detail(), "subject": "Pay\x1b[2J\rApproved\nnothing to do", "body": "\x1b]0;x\x07"}
    server.details = [hostile]
    server.script("GET", ANSWER, httpx.Response(200, json=hostile))
    output = run(*command).output
    assert not {"\x1b", "\r", "\x07"} & set(output)
    if command == ("pending",):
        assert len(output.splitlines()) == 2


def test_login_keeps_the_token_for_the_next_command(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name and a password become a profile; neither is printed."""
    server.script("POST", "/auth/token", httpx.Response(201, json={"access_token": "fresh"}))
    result = run(
        "login", "--url", "http://airflow.test", "--username", "ada", "--password-stdin", stdin="hush\n"
    )
    assert result.exit_code == 0, result.output
    assert "hush" not in result.output
    assert "fresh" not in result.output
    monkeypatch.delenv("HANDOFF_TOKEN")
    run("pending")
    assert server.calls[-1].headers["authorization"] == "Bearer fresh"


@pytest.mark.parametrize(
    "arguments", [("show", "gate/r1/\udcff"), ("answer", "d/r/t", "OK", "--set", "n=" + "[" * 100_000)]
)
def test_odd_arguments_are_one_sentence(server: ScriptedServer, arguments: tuple[str, ...]) -> None:
    """Bytes that are no text, and a value nested without end."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("handoff: ")
