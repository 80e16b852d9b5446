"""The seam to the ``airflow`` command line, to which a provider can add commands since Airflow 3.2."""

from __future__ import annotations

import argparse
from typing import Any


def airflow_commands() -> list[Any]:
    """Return ``airflow handoff``: everything behind it goes to the ``handoff`` command unread.

    Airflow calls this for every ``airflow`` command, so nothing of ours is imported before the command runs.
    """
    from airflow.cli.cli_config import ActionCommand, Arg, lazy_load_command

    make_argument: Any = Arg  # not annotated by Airflow
    everything = make_argument(
        ("arguments",),
        nargs=argparse.REMAINDER,
        metavar="COMMAND ...",
        help="a command of `handoff` and its options; `airflow handoff help` lists the commands",
    )
    return [
        ActionCommand(
            name="handoff",
            help="Answer requests to people; check language SDKs",
            func=lazy_load_command("airflow_handoff.cli.run_in_airflow"),
            args=(everything,),
        )
    ]
