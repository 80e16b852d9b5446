"""Checks of a whole Dag, through Airflow's own Dag processing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

HEAD = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task
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
    "mapped_branch": (
        """
    branch = HITLBranchOperator.partial(task_id="ask", options=["zzz"]).expand(subject=["s"])
    branch >> ApprovalOperator(task_id="b", subject="s")
""",
        "no direct downstream task",
    ),
    "mapped_options": (
        """
    branch = HITLBranchOperator.partial(task_id="ask", subject="s").expand(options=[["b"], ["b", "zzz"]])
    branch >> ApprovalOperator(task_id="b", subject="s")
""",
        "['zzz'], which is no direct downstream task",
    ),
    "mapped_kwargs": (
        """
    branch = HITLBranchOperator.partial(task_id="ask", subject="s").expand_kwargs(
        [{"options": ["b"]}, {"options": ["x"], "options_mapping": {"x": "zzz"}}]
    )
    branch >> ApprovalOperator(task_id="b", subject="s")
""",
        "['zzz'], which is no direct downstream task",
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


RIGHT = """
    from airflow_handoff.operators.hitl import HITLEntryOperator

    @task
    def offers():
        return [["one", "two"]]

    with TaskGroup("g"):
        branch = HITLBranchOperator.partial(task_id="ask", options=["one", "g.two"]).expand(subject=["s"])
        branch >> [EmptyOperator(task_id="one"), EmptyOperator(task_id="two")]
    later = HITLBranchOperator.partial(task_id="later", subject="s").expand(options=offers())
    later >> EmptyOperator(task_id="b")
    HITLEntryOperator.partial(task_id="e", subject="s", defaults="a").expand(options=[["a"], ["a", "b"]])
    ApprovalOperator(task_id="k", subject="s", approval_key="{{ task.task_id }}")
    ApprovalOperator(task_id="l", subject="s", approval_key="{{ task.task_id }}")
    ApprovalOperator.partial(task_id="m", subject="s").expand(approval_key=["x", "y"])
"""


def bag_of(source: str, tmp_path: Path) -> Any:
    """Let Airflow process one Dag file."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow 3.1
        from airflow.models.dagbag import DagBag  # type: ignore[no-redef]
    path = tmp_path / "sources.py"
    path.write_text(HEAD + source)
    known = inspect.signature(DagBag).parameters
    extra = {"include_examples": False} if "include_examples" in known else {}
    return DagBag(dag_folder=str(path), **extra)  # type: ignore[arg-type]


def test_what_only_a_run_can_tell_is_no_fault(tmp_path: Path) -> None:
    """Templates, XComs and names without their group are left to the run, mapped tasks included."""
    bag = bag_of(RIGHT, tmp_path)
    assert bag.import_errors == {}
    assert "g.ask" in bag.dags["d"].task_ids


@pytest.mark.filterwarnings("ignore:Task 'b' was never mapped")
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_fault_is_an_import_error_of_the_dag(name: str, tmp_path: Path) -> None:
    """The Dag author reads it on the page, before anything runs."""
    source, message = CASES[name]
    bag = bag_of(source, tmp_path)
    (error,) = bag.import_errors.values()
    assert message in error
    assert "d" not in bag.dags
