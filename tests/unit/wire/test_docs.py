"""The page about the wire runs, and its table of states is the code's."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.wire.vectors import VECTORS, read

from airflow_handoff.wire.states import SUPERVISOR_TABLE, TASK_TABLE

PAGE = (Path(__file__).parents[3] / "docs" / "wire.md").read_text()


def test_the_examples_of_the_page_run() -> None:
    """Each block goes on where the one before ended."""
    names = {"startup_details": read(VECTORS / "StartupDetails.json")[0].decoded[1]}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(compile(block, "wire.md", "exec"), names)


def test_the_table_of_the_page_is_the_table_of_the_code() -> None:
    """No transition is missing on either side."""
    rows = re.findall(
        r"^\| ([a-z, ]+) \| ([a-z ]+) \| (running|reporting|reported|broken|ended) \|$", PAGE, re.M
    )
    shown = {(state, event): after for states, event, after in rows for state in states.split(", ")}
    for table in (SUPERVISOR_TABLE, TASK_TABLE):
        assert shown == {(state.value, event.value): after.value for (state, event), after in table.items()}
