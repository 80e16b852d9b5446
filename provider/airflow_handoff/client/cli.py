"""The commands of the people who answer: from ``pending`` and ``answer`` to ``audit``."""

from __future__ import annotations

import csv
import functools
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from airflow_handoff.client import audit as audit_trail
from airflow_handoff.client import calls, present, profile
from airflow_handoff.client.client import HandoffClient
from airflow_handoff.client.errors import ClientError, InvalidUse, ServerUnreachable
from airflow_handoff.client.identity import user_of
from airflow_handoff.client.reference import RequestRef
from airflow_handoff.client.request import Request
from airflow_handoff.client.watch import NewRequests

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES = """\b
Exit codes:
  0   done
  1   the answer was refused; the request stays open
  2   the command line is wrong, or no server or token is known
  3   not logged in, or not allowed
  4   no such request
  5   already answered, or no longer waiting
  6   too early: the task has not finished asking
  7   the server cannot be reached"""


def reporting_errors(command: F) -> F:
    """Turn a client's error into one line on stderr and the exit code of its kind."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except ClientError as error:
            click.echo(f"handoff: {error}", err=True)
            sys.exit(error.exit_code)

    return wrapped  # type: ignore[return-value]


def connecting(command: F) -> F:
    """Add ``--url``, ``--token`` and ``--profile``, and pass the connection as first argument."""

    @click.option("--url", help=f"Base URL of the api-server  [env: {profile.URL_VARIABLE}]")
    @click.option("--token", help=f"Bearer token; better in the environment  [env: {profile.TOKEN_VARIABLE}]")
    @click.option(
        "--profile", "profile_name", help=f"Profile of `handoff login`  [env: {profile.PROFILE_VARIABLE}]"
    )
    @reporting_errors
    @functools.wraps(command)
    def wrapped(url: str | None, token: str | None, profile_name: str | None, **kwargs: Any) -> Any:
        return command(profile.resolve(url, token, profile_name), **kwargs)

    return wrapped  # type: ignore[return-value]


def client_of(connection: profile.Connection) -> HandoffClient:
    """Return a client for the resolved server."""
    return HandoffClient(connection.url, connection.token)


@click.command(
    epilog="""\b
Examples:
  handoff pending
  handoff pending --mine --dag-id expense_approval
  handoff pending --watch --json | while read -r line; do ...; done
"""
    + "\n\n"
    + EXIT_CODES
)
@click.option("--dag-id", default="~", help="Only this Dag.")
@click.option("--run-id", default="~", help="Only this run.")
@click.option("--task-id", help="Only this task.")
@click.option("--dag-id-pattern", help="Dag id contains; % and _ are wildcards.")
@click.option("--task-id-pattern", help="Task id contains; % and _ are wildcards.")
@click.option("--dag-id-prefix", "dag_id_prefix_pattern", help="Dag id starts with (Airflow 3.2 and later).")
@click.option(
    "--task-id-prefix", "task_id_prefix_pattern", help="Task id starts with (Airflow 3.2 and later)."
)
@click.option("--map-index", type=int, help="Only this index of a mapped task.")
@click.option("--state", multiple=True, help="Only tasks in this state; may be repeated.")
@click.option("--subject", "subject_search", help="Subject contains.")
@click.option("--body", "body_search", help="Body contains.")
@click.option("--created-after", "created_at_gte", help="Asked at or after this time, RFC 3339.")
@click.option("--created-before", "created_at_lte", help="Asked at or before this time, RFC 3339.")
@click.option("--responded-by-id", "responded_by_user_id", help="Answered by this user id; with --answered.")
@click.option("--responded-by-name", "responded_by_user_name", help="Answered by this user; with --answered.")
@click.option("--answered", is_flag=True, help="List what has been answered instead.")
@click.option("--order-by", default=None, help="Airflow's sort key, such as -created_at or subject.")
@click.option(
    "--mine",
    is_flag=True,
    help="Only requests that I may answer: those that name me, and those that name nobody.",
)
@click.option("--user", help="Who `me` is, by id or name; default: the token's bearer.")
@click.option("--watch", is_flag=True, help="Go on, and print each new request once.")
@click.option(
    "--every", default=3.0, show_default=True, type=click.FloatRange(min=0.2), help="Seconds between looks."
)
@click.option("--json", "as_json", is_flag=True, help="JSON; with --watch one object a line.")
@connecting
def pending(
    connection: profile.Connection,
    *,
    dag_id: str,
    run_id: str,
    answered: bool,
    mine: bool,
    user: str | None,
    watch: bool,
    every: float,
    as_json: bool,
    **filters: Any,
) -> None:
    """List the requests that wait for a person, oldest first."""
    who = user or user_of(connection.token) if mine or user else None
    filters = {name: list(value) if isinstance(value, tuple) else value for name, value in filters.items()}
    filters = {name: value for name, value in filters.items() if value not in (None, [])}
    with client_of(connection) as client:

        def look() -> list[Request]:
            if not answered:
                return client.pending(dag_id=dag_id, run_id=run_id, user=who, **filters)
            listed = calls.list_requests(
                {"response_received": "true", **filters}, dag_id=dag_id, run_id=run_id
            )
            return [r for r in client.run(listed) if who is None or r.open_to(who)]

        if watch:
            _watch(look, every, as_json, connection.url)
        elif as_json:
            click.echo(json.dumps([entry(r, connection.url) for r in look()], indent=2))
        else:
            present.table(look())


def _watch(look: Callable[[], list[Request]], every: float, as_json: bool, url: str) -> None:
    new = NewRequests()
    waiting = False
    try:
        while True:
            try:
                fresh = new.among(look())
            except ServerUnreachable as error:
                # A server that restarts is no reason to stop watching; said once, not every few seconds.
                if not waiting:
                    click.echo(f"handoff: {error}; still watching", err=True)
                waiting, fresh = True, []
            else:
                waiting = False
            for request in fresh:
                if as_json:
                    click.echo(json.dumps(entry(request, url)))
                else:
                    present.line(request)
            sys.stdout.flush()
            time.sleep(every)
    except KeyboardInterrupt:
        return


def entry(request: Request, url: str) -> dict[str, Any]:
    """Return what ``--json`` prints for one request."""
    return {**request.as_json(), "url": request.page(url)}


@click.command(
    epilog="""\b
Examples:
  handoff show expense_approval/manual__1/manager_approval
  handoff show expense_approval/manual__1/manager_approval --try 1 --json
"""
    + "\n\n"
    + EXIT_CODES
)
@click.argument("request_name", metavar="REQUEST")
@click.option(
    "--try", "try_number", type=click.IntRange(min=1), help="An earlier attempt (Airflow 3.2 and later)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@connecting
def show(connection: profile.Connection, *, request_name: str, try_number: int | None, as_json: bool) -> None:
    """Show one request: its question, its form, and its answer once there is one.

    REQUEST is dag/run/task, or dag/run/task/map_index in a mapped task.
    """
    with client_of(connection) as client:
        request = client.show(request_name, try_number)
    if as_json:
        click.echo(json.dumps(entry(request, connection.url), indent=2))
    else:
        present.detail(request, connection.url)


def field_values(assignments: Iterable[str]) -> dict[str, Any]:
    """Read ``key=value`` pairs; a value that is JSON is taken as JSON, anything else as text.

    :raises InvalidUse: for a pair without ``=`` or a key that comes twice.
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise InvalidUse(f"expected --set key=value, got {assignment!r}")
        if key in values:
            raise InvalidUse(f"--set {key} was given twice")
        try:
            values[key] = json.loads(text, parse_constant=_no_json)
        except RecursionError:
            raise InvalidUse(f"the value of --set {key} is nested too deeply") from None
        except ValueError:
            values[key] = text
    return values


def _no_json(word: str) -> Any:
    # Python's reader takes NaN and Infinity, which JSON does not know: they are words.
    raise ValueError(word)


def pinning(command: F) -> F:
    """Add the options that say which question is meant: ``--try`` and ``--digest``."""
    command = click.option(
        "--digest",
        help="Digest of the question that was read, as `show` prints it; another one is exit code 5.",
    )(command)
    return click.option(
        "--try",
        "try_number",
        type=click.IntRange(min=1),
        help="The attempt whose question was read; another one is exit code 5.",
    )(command)


def setting(command: F) -> F:
    """Add the options that fill a form: ``--set`` and ``--comment``."""
    command = click.option("--comment", help="A remark that is kept with the answer.")(command)
    return click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help='A form field; the value is read as JSON where it is JSON (5, true, "5"), else as text.',
    )(command)


@click.command(
    epilog="""\b
Examples:
  handoff answer expense_approval/manual__1/manager_approval Approve
  handoff answer forms/manual__1/entry OK --set amount=120 --set 'note=see receipt'
  handoff answer batch/manual__1/review/3 Reject --comment "wrong account"
  handoff answer batch/manual__1/review/3 Approve --try 1
"""
    + "\n\n"
    + EXIT_CODES
)
@click.argument("request_name", metavar="REQUEST")
@click.argument("options", nargs=-1, required=True, metavar="OPTION...")
@setting
@pinning
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@connecting
def answer(
    connection: profile.Connection,
    *,
    request_name: str,
    options: tuple[str, ...],
    assignments: tuple[str, ...],
    comment: str | None,
    try_number: int | None,
    digest: str | None,
    as_json: bool,
) -> None:
    """Answer one request with one of its options, or several where it takes several.

    REQUEST is dag/run/task, or dag/run/task/map_index in a mapped task.
    """
    ref = RequestRef.parse(request_name)
    with client_of(connection) as client:
        taken = client.answer(
            ref, list(options), field_values(assignments), comment, try_number=try_number, digest=digest
        )
    _say(taken, as_json, f"answered {ref}: {', '.join(options)}")


def _gate(name: str, approved: bool, word: str, example: str) -> click.Command:
    @click.command(
        name=name,
        help=f"{word} the gate KEY of the run RUN.",
        epilog=f"\b\nExamples:\n{example}\n\n{EXIT_CODES}",
    )
    @click.argument("run_id", metavar="RUN")
    @click.argument("approval_key", metavar="KEY")
    @click.option("--dag-id", help="The run's Dag, where several Dags have a run of this id.")
    @click.option("--map-index", type=int, help="Index in a mapped task.")
    @setting
    @pinning
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @connecting
    def command(
        connection: profile.Connection,
        *,
        run_id: str,
        approval_key: str,
        dag_id: str | None,
        map_index: int | None,
        assignments: tuple[str, ...],
        comment: str | None,
        try_number: int | None,
        digest: str | None,
        as_json: bool,
    ) -> None:
        with client_of(connection) as client:
            taken = client.run(
                calls.decide(
                    run_id,
                    approval_key,
                    approved,
                    data=field_values(assignments),
                    comment=comment,
                    dag_id=dag_id,
                    map_index=map_index,
                    try_number=try_number,
                    digest=digest,
                )
            )
        _say(taken, as_json, f"{word.lower()}{'d' if approved else 'ed'} {approval_key} of {run_id}")

    return command


approve = _gate(
    "approve",
    True,
    "Approve",
    "  handoff approve manual__1 manager_approval\n  handoff approve run-7 publish --dag-id news",
)
reject = _gate(
    "reject", False, "Reject", "  handoff reject manual__1 manager_approval --comment 'no receipt'"
)


def _say(taken: Mapping[str, Any], as_json: bool, sentence: str) -> None:
    click.echo(json.dumps(taken, indent=2) if as_json else sentence)


@click.command(
    epilog="""\b
Examples:
  handoff audit --since 2026-01-01T00:00:00Z
  handoff audit --dag-id expense_approval --format csv > answers.csv
"""
    + "\n\n"
    + EXIT_CODES
)
@click.option("--since", help="Only answers at or after this time, RFC 3339.")
@click.option("--dag-id", help="Only this Dag.")
@click.option("--run-id", help="Only this run.")
@click.option("--task-id", help="Only this task.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@connecting
def audit(
    connection: profile.Connection,
    *,
    since: str | None,
    dag_id: str | None,
    run_id: str | None,
    task_id: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Say who answered what and when: every try and vote, with comment, door and digest."""
    with client_of(connection) as client:
        lines = client.run(audit_trail.read(since=since, dag_id=dag_id, run_id=run_id, task_id=task_id))
    if as_json or form == "json":
        click.echo(json.dumps(lines, indent=2))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, audit_trail.COLUMNS)
        writer.writeheader()
        writer.writerows(map(audit_trail.flat, lines))
    else:
        present.audit(lines)


@click.command(
    epilog="""\b
Examples:
  handoff login --url http://localhost:8080 --username ada
  handoff login --url https://airflow.example.com/prod --profile prod --username ada
"""
)
@click.option("--url", required=True, help="Base URL of the api-server.")
@click.option("--username", prompt=True, help="Airflow user.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--profile", "name", default="default", show_default=True, help="Name to keep it under.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reporting_errors
def login(url: str, username: str, password_stdin: bool, name: str, as_json: bool) -> None:
    """Log in, and keep the token in a file that only you can read."""
    password = (
        sys.stdin.readline().rstrip("\r\n") if password_stdin else click.prompt("Password", hide_input=True)
    )
    with HandoffClient(url) as client:
        token = client.run(calls.login(username, password))
    path = profile.profiles_path()
    profile.write_profile(path, name, profile.Connection(url.rstrip("/"), token))
    _say(
        {"profile": name, "file": str(path), "url": url},
        as_json,
        f"logged in as {username}; profile {name!r} in {path}",
    )
