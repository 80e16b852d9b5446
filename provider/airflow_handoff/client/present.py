"""Requests and answers for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from airflow_handoff.client.request import Request


def table(requests: Sequence[Request]) -> None:
    """Print a table of requests, or one sentence where there is none."""
    if not requests:
        click.echo("nothing waits for an answer")
        return
    shown = Table("request", "subject", "options", "for", "asked", box=None, header_style="bold")
    for request in requests:
        shown.add_row(*map(escape, _cells(request)), style=None)
    _console().print(shown)
    for request in requests:
        warn(request)


def warn(request: Request) -> None:
    """Print on stderr what is doubtful about a request."""
    for warning in request.warnings:
        click.echo(_on_one_line(f"{request.ref}: {warning}"), err=True)


def line(request: Request) -> None:
    """Print one request on one line."""
    click.echo("  ".join(_cells(request)))
    warn(request)


def _cells(request: Request) -> tuple[str, ...]:
    people = ", ".join(str(person.get("name") or person.get("id")) for person in request.assigned_users)
    cells = (
        str(request.ref),
        request.subject,
        " | ".join(request.options),
        people or "anyone",
        request.created_at,
    )
    return tuple(map(_on_one_line, cells))


def _on_one_line(text: str) -> str:
    return plain(text).replace("\n", " ")


def plain(text: str) -> str:
    """Return *text* without what a terminal would obey: it may come out of a model or a stranger's mail."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def detail(request: Request, url: str) -> None:
    """Print all of one request."""
    rows: list[tuple[str, Any]] = [
        ("request", request.ref),
        ("state", f"{request.state}, try {request.try_number}"),
        ("digest", request.digest),
        ("subject", request.subject),
        ("body", request.body),
        ("options", " | ".join(request.options) + (" (several allowed)" if request.multiple else "")),
        ("defaults", " | ".join(request.defaults or ()) or None),
        ("for", ", ".join(str(p.get("name") or p.get("id")) for p in request.assigned_users) or "anyone"),
        ("asked", request.created_at),
        ("page", request.page(url)),
        ("checked", _unchecked(request)),
        *(("warning", warning) for warning in request.warnings),
    ]
    if request.response_received:
        who = request.responded_by or {}
        rows += [
            ("answered", " | ".join(request.chosen_options or ())),
            ("by", who.get("name") or who.get("id") or "nobody (a timeout's default)"),
            ("at", request.responded_at),
        ]
    for name, value in rows:
        if value is not None:
            click.echo(f"{name + ':':<10}{plain(str(value))}")
    for name, field in request.form.items():
        schema = field.get("schema") or {}
        kind = schema.get("type", "any")
        value = request.params_input.get(name, field.get("value"))
        described = plain(str(field.get("description") or ""))
        click.echo(f"  --set {plain(name)}=<{kind}>  now {value!r}  {described}".rstrip())


def _unchecked(request: Request) -> str | None:
    known = request.handoff
    if not known or not request.assigned_users or known.get("assigned_checked", True):
        return None
    return "no: the auth manager does not list its users, so nobody named here was looked up"


def audit(lines: Iterable[Mapping[str, Any]]) -> None:
    """Print a table of answers."""
    shown = Table("when", "who", "request", "what", "comment", "door", "try", box=None, header_style="bold")
    for answered in lines:
        chosen = " | ".join(answered.get("chosen_options") or ())
        cells = (
            answered.get("when"),
            answered.get("who"),
            answered.get("request"),
            chosen,
            answered.get("comment"),
            answered.get("door"),
            answered.get("try_number"),
        )
        shown.add_row(*(escape(_on_one_line(str("" if cell is None else cell))) for cell in cells))
    _console().print(shown)


def _console() -> Console:
    # In a pipe rich would fold lines at 80 columns and cut the request's name that the next command needs.
    console = Console(soft_wrap=True)
    return console if console.is_terminal else Console(width=1_000, soft_wrap=True)
