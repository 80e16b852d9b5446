"""Literals of mapped requests are checked when the Dag is parsed, wherever they are written."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.operators.hitl import (
    ApprovalOperator,
    HITLBranchOperator,
    HITLEntryOperator,
    HITLOperator,
)
from airflow_handoff.operators.mapping import MOST, UNKNOWN, known_instances


@pytest.mark.parametrize(
    ("operator", "given", "mapped", "word"),
    [
        (HITLOperator, {}, {"options": [["a"], []]}, "cannot be empty"),
        (HITLOperator, {"defaults": "z"}, {"options": [["z"], ["a"]]}, "subset"),
        (HITLOperator, {"options": ["a"]}, {"defaults": [["a"], ["z"]]}, "subset"),
        (HITLOperator, {}, {"options": [["a"]], "defaults": [["z"]]}, "subset"),
        (HITLOperator, {"options": ["a"]}, {"response_timeout": [-1]}, "positive"),
        (HITLOperator, {"options": ["a"]}, {"approval_key": ["k", "a/b"]}, "approval_key"),
        (HITLOperator, {"options": ["a"]}, {"params": [{"x": 1}, {"comment": 1}]}, "not allowed"),
        (ApprovalOperator, {}, {"defaults": [["Approve"], ["Maybe"]]}, "subset"),
        (HITLEntryOperator, {"defaults": "Fine"}, {"body": ["a"]}, "subset"),
        (HITLBranchOperator, {"options_mapping": {"x": "y"}}, {"options": [["x"], ["z"]]}, "options_mapping"),
        (HITLBranchOperator, {"options": ["x"]}, {"options_mapping": [{"x": 1}]}, "must be strings"),
    ],
)
def test_what_expand_maps_over_is_checked(operator: Any, given: Any, mapped: Any, word: str) -> None:
    """Each element counts, together with what ``partial`` was given; ``expand_kwargs`` is the same."""
    with DAG("d"), pytest.raises(InvalidQuestion, match=word):
        operator.partial(task_id="ask", subject="s", **given).expand(**mapped)
    each = [dict(zip(mapped, values, strict=True)) for values in zip(*mapped.values(), strict=True)]
    with DAG("e"), pytest.raises(InvalidQuestion, match=word):
        operator.partial(task_id="ask", subject="s", **given).expand_kwargs(each)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [({"options": ["a"]}, "Passing options"), ({"multiple": True}, "Passing multiple")],
)
def test_a_mapped_approval_has_fixed_options_too(arguments: dict[str, Any], word: str) -> None:
    """As without mapping, and at the same moment."""
    with DAG("d"), pytest.raises(ValueError, match=word):
        ApprovalOperator.partial(task_id="ask", **arguments)
    with DAG("d"), pytest.raises(ValueError, match="reject_policy"):
        ApprovalOperator.partial(task_id="ask", reject_policy="some")


def test_airflows_own_complaints_stay() -> None:
    """What cannot be mapped at all is said by Airflow."""
    with DAG("d"):
        with pytest.raises(TypeError, match="no arguments"):
            HITLOperator.partial(task_id="a", options=["a"]).expand()
        with pytest.raises(ValueError, match="unexpected type"):
            HITLOperator.partial(task_id="b", options=["a"]).expand(subject="s")
        with pytest.raises(TypeError, match="unmappable or already specified"):
            HITLOperator.partial(task_id="c", subject="s", options=["a"]).expand(subject=["s"])


def test_a_checked_mapping_is_an_ordinary_mapped_operator() -> None:
    """The Dag gets what Airflow itself makes; what is serialized and copied of it is the same."""
    import copy

    from airflow.sdk.definitions.mappedoperator import MappedOperator
    from airflow.serialization import serialized_objects

    with DAG("d") as dag:
        made = ApprovalOperator.partial(task_id="ask").expand(subject=["a", "b"])
    assert type(made) is MappedOperator
    assert dag.get_task("ask") is made
    # Of another name since Airflow 3.2.
    serializer = getattr(serialized_objects, "DagSerialization", serialized_objects.SerializedDAG)
    (task,) = serializer.to_dict(dag)["dag"]["tasks"]
    assert task["__var"]["_is_mapped"] is True
    assert "resolve_template_files" not in task["__var"]
    copied = copy.deepcopy(dag).get_task("ask")
    assert type(copied) is MappedOperator
    assert copied is not made


def test_only_so_many_instances_are_looked_at_and_each_once() -> None:
    """A large mapping costs little, and what does not matter multiplies nothing."""
    wide = {"options": [[str(n)] for n in range(50)], "defaults": [["0"]] * 50, "subject": ["s"] * 10_000}
    assert len(list(known_instances({}, wide, ("options", "defaults")))) == MOST
    assert list(known_instances({"a": 1}, {"subject": ["s"] * 3}, ("options",))) == [
        {"a": 1, "subject": UNKNOWN}
    ]
    later = object()
    assert list(known_instances({"a": 1}, later, ("a",))) == [{"a": 1}]
    assert list(known_instances({"a": 1}, later, ("a",), final=False)) == []
