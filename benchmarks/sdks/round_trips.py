"""The same task with the Python SDK."""

import os

from airflow_handoff_sdk import task


@task("dag", "round_trips")
def round_trips(ctx):
    """Ask for a variable again and again."""
    for _ in range(int(os.environ.get("HANDOFF_ROUNDS", "1"))):
        ctx.variables.get("v1")
