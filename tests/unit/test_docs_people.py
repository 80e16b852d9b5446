"""The page about people: every Python block is a Dag that Airflow can use, and it says what is so."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_handoff.operators.hitl import ApprovalOperator, HITLBranchOperator, HITLOperator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "people.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("source", BLOCKS, ids=lambda source: re.search(r'DAG\("(\w+)"', source)[1])
def test_a_block_is_a_dag_that_can_be_asked(source, monkeypatch):
    """It runs, and passes the checks that Airflow makes when the Dag is complete."""
    made = []
    original = DAG.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(DAG, "__init__", remember)
    exec(source, {"__name__": "people"})
    (dag,) = made
    dag.resolve_template_files()
    assert [t for t in dag.tasks if issubclass(getattr(t, "operator_class", type(t)), HITLOperator)]


def test_what_the_page_names_exists():
    """Arguments in the text are arguments of the operators."""
    accepted = {
        name
        for cls in (*ApprovalOperator.__mro__, *HITLBranchOperator.__mro__)
        if "__init__" in vars(cls)
        for name in inspect.signature(cls.__init__).parameters
    }
    for name in re.findall(r"`(\w+)=(?:True)?`", TEXT):
        assert name in accepted, name
