"""The ``handoff`` command: mounts the sub-commands of the rooms without importing them.

A room is imported when its command is used, so that ``handoff --help`` costs nothing and a missing extra
matters only to the command that needs it.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from airflow_handoff import __version__

#: Command name to the room's module, its click command, and one line of help.
COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "pending": ("airflow_handoff.client.cli", "pending", "List the requests that wait for a person."),
    "show": ("airflow_handoff.client.cli", "show", "Show one request."),
    "answer": ("airflow_handoff.client.cli", "answer", "Answer one request."),
    "approve": ("airflow_handoff.client.cli", "approve", "Approve a gate of a run."),
    "reject": ("airflow_handoff.client.cli", "reject", "Reject a gate of a run."),
    "audit": ("airflow_handoff.client.cli", "audit", "Say who answered what and when."),
    "login": ("airflow_handoff.client.cli", "login", "Log in and keep the token."),
    "mcp": ("airflow_handoff.client.mcp", "mcp", "Serve requests to an AI agent over MCP."),
    "capabilities": (
        "airflow_handoff.capabilities.cli",
        "capabilities",
        "Check what language SDKs claim, render the tables.",
    ),
}
#: The extra that brings an optional distribution's top-level module.
EXTRAS: Mapping[str, str] = {
    "airflow": "airflow",
    "httpx": "client",
    "rich": "client",
    "mcp": "mcp",
}


#: Exit code of a command whose output could not be written (EX_IOERR).
UNWRITTEN = 74
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


class Unfit(click.ClickException):
    """A command that cannot run where it stands; the message says what to install."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group that knows its sub-commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all sub-commands, in the order of their table."""
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one sub-command.

        :raises click.ClickException: (exit code 2) where an extra is missing, naming it.
        """
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = COMMANDS[cmd_name]
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            raise _unfit(cmd_name, error) from error
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands out of the table, so that help imports no room."""
        rows = [(name, help_line) for name, (_, _, help_line) in COMMANDS.items()]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _unfit(command: str, error: ImportError) -> click.ClickException:
    top = (error.name or "").split(".")[0]
    extra = EXTRAS.get(top)
    if extra:
        advice = f"it needs {top}: run `pip install 'airflow-provider-handoff[{extra}]'`."
    else:
        advice = str(error)
    return Unfit(f"`handoff {command}` cannot run here: {advice}")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="handoff")
def handoff() -> None:
    """Airflow tasks that leave Python and come back: to a person, or to another language."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line.

    :param arguments: in place of the program's own, for callers such as ``airflow handoff``.
    """
    # A reader that goes away (`| head`) is not worth a traceback.
    try:
        return handoff.main(args=arguments, prog_name="handoff")
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        # What is still buffered would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        click.echo(f"Error: the output could not be written: {error.strerror}.", err=True)
        sys.exit(UNWRITTEN)


def run_in_airflow(arguments: Any) -> None:
    """Run ``airflow handoff ...``.

    :param arguments: what Airflow's parser made of the command line; ours are in ``arguments``.
    """
    ours: list[str] = arguments.arguments
    main(["--help"] if ours in ([], ["help"]) else ours)


if __name__ == "__main__":
    main()
