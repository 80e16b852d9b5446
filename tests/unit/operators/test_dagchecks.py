"""Checks of a whole Dag, through Airflow's own Dag processing."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

HEAD = """
from airflow.sdk import DAG, task
from airflow_handoff.operators.hitl import ApprovalOperator, HITLBranchOperator

with DAG("d") as dag:
"""
CASES = {
    "branch": (
        """
    branch = HITLBranchOperator(task_id="ask", subject="s", options=["zzz"])
    branch >> ApprovalOperator(task_id="b", subject="s")
""",
        "no direct downstream task",
    ),
    "key": (
        """
    ApprovalOperator(task_id="a", subject="s", approval_key="k")
    ApprovalOperator.partial(task_id="b", approval_key="k").expand(subject=["s"])
""",
        "is taken by task 'a'",
    ),
    "late_key": (
        """
    first = ApprovalOperator(task_id="a", subject="s")
    second = ApprovalOperator(task_id="b", subject="s")
    second.approval_key = "a"
""",
        "is taken by task",
    ),
    "literal": (
        """
    ApprovalOperator(task_id="a", subject="s", defaults="Maybe")
""",
        "subset",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_fault_is_an_import_error_of_the_dag(name: str, tmp_path: Path) -> None:
    """The Dag author reads it on the page, before anything runs."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow 3.1
        from airflow.models.dagbag import DagBag  # type: ignore[no-redef]
    source, message = CASES[name]
    path = tmp_path / "faulty.py"
    path.write_text(HEAD + source)
    known = inspect.signature(DagBag).parameters
    extra = {"include_examples": False} if "include_examples" in known else {}
    bag = DagBag(dag_folder=str(path), **extra)  # type: ignore[arg-type]
    (error,) = bag.import_errors.values()
    assert message in error
    assert "d" not in bag.dags
