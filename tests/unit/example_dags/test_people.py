"""The example Dags about people parse on every version, the way Airflow parses them."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from airflow_handoff.operators.hitl import HITLOperator

FOLDER = Path(__file__).resolve().parents[3] / "example_dags"
GATES = {
    "hitl_all_forms": {"trip", "hotel", "extras", "insurance", "approval", "payment"},
    "expense_approval": {"manager_approval"},
    "content_moderation": {"moderate.decision"},
    "draft_review": {"correction", "release"},
}


@pytest.mark.parametrize("name", sorted(GATES))
def test_an_example_parses(name):
    """No import error, the Dag is named like its file, and it has the gates that the pages talk about."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow 3.1
        from airflow.models.dagbag import DagBag
    known = inspect.signature(DagBag).parameters
    bag = DagBag(
        dag_folder=str(FOLDER / f"{name}.py"),
        **({"include_examples": False} if "include_examples" in known else {}),
    )
    assert bag.import_errors == {}
    dag = bag.dags[name]
    assert {task.task_id for task in dag.tasks if isinstance(task, HITLOperator)} == GATES[name]


def test_the_submitted_claim_reaches_accounting():
    """The tasks of the expense example are those of its story, in order."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("expense", FOLDER / "expense_approval.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dag = module.expense_approval()
    assert dag.get_task("manager_approval").upstream_task_ids == {"submit"}
    assert dag.get_task("accounting_post").upstream_task_ids == {"submit", "manager_approval"}
    assert dag.get_task("manager_approval").fail_on_reject is True
