"""Ours beside the standard provider's operators, as installed: what those take and have, ours do, too."""

from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any

import airflow.providers.standard
import pytest
from airflow.providers.standard.operators import hitl as standard
from airflow.sdk import DAG, BaseOperator, Param
from tests.unit.operators.harness import ADA, PARKED, TIMEOUT, Driver, event

from airflow_handoff.operators import hitl as ours

NAMES = ("HITLOperator", "ApprovalOperator", "HITLBranchOperator", "HITLEntryOperator")
#: What each is made with, beside a subject.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "HITLOperator": {"options": ["a", "b"], "defaults": "a", "params": {"n": Param(1, type="integer")}},
    "ApprovalOperator": {"defaults": "Approve", "assigned_users": {"id": "1", "name": "ada"}},
    "HITLBranchOperator": {"options": ["x", "y"], "options_mapping": {"x": "one", "y": "two"}},
    "HITLEntryOperator": {"params": {"n": 1}},
}


def made(module: Any, name: str, **more: Any) -> Any:
    """Make one of the operators in a Dag of its own, with two tasks after it."""
    with DAG("d"):
        task = getattr(module, name)(task_id="ask", subject="s", **{**ARGUMENTS[name], **more})
        task >> [BaseOperator(task_id="one"), BaseOperator(task_id="two")]
    return task


def own_classes(cls: type) -> list[type]:
    """The classes of *cls* that are about people."""
    return [c for c in cls.__mro__ if ".hitl" in c.__module__ or "airflow_handoff" in c.__module__]


def init_parameters(cls: type) -> dict[str, inspect.Parameter]:
    """Every keyword that the constructors of *cls* name."""
    found: dict[str, inspect.Parameter] = {}
    for each in own_classes(cls):
        if "__init__" in vars(each):
            found.update(inspect.signature(inspect.unwrap(vars(each)["__init__"])).parameters)
    return {n: p for n, p in found.items() if n != "self" and p.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", NAMES)
def test_ours_take_every_argument_with_the_same_default(name: str) -> None:
    """None is missing, none has become required, none has another default."""
    theirs, mine = (init_parameters(getattr(module, name)) for module in (standard, ours))
    assert theirs
    assert set(theirs) <= set(mine)
    assert {n: p.default for n, p in theirs.items()} == {n: mine[n].default for n in theirs}
    new = {n: p.default for n, p in mine.items() if n not in theirs}
    assert inspect.Parameter.empty not in new.values(), "a new argument has no safe default"


@pytest.mark.parametrize("name", NAMES)
def test_ours_have_every_public_attribute_and_method(name: str) -> None:
    """What a subclass or a notifier may use or override is there, and methods take the same arguments."""
    theirs, mine = getattr(standard, name), getattr(ours, name)
    names = {n for c in own_classes(theirs) for n in vars(c) if not n.startswith("_")}
    assert names <= set(dir(mine))
    for each in names:
        there, here = inspect.getattr_static(theirs, each), inspect.getattr_static(mine, each)
        assert type(there) is type(here) or not (callable(there) or isinstance(there, property)), each
        if callable(getattr(theirs, each)):
            wanted = list(inspect.signature(getattr(theirs, each)).parameters)
            got = list(inspect.signature(getattr(mine, each)).parameters)
            assert [p for p in got if p in wanted] == wanted, each
    assert set(theirs.template_fields) <= set(mine.template_fields)
    public = {n for n in vars(made(standard, name)) if not n.startswith("_")}
    assert public <= set(vars(made(ours, name)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", [{}, {"response_timeout": timedelta(hours=1)}], ids=["plain", "timed"])
def test_the_summary_is_the_standard_ones(name: str, more: dict[str, Any]) -> None:
    """Key for key and value for value, before anything runs."""
    theirs, mine = made(standard, name, **more).hitl_summary, made(ours, name, **more).hitl_summary
    for summary in (theirs, mine):
        fields = summary["serialized_params"] or {}
        summary["serialized_params"] = {n: (f["value"], f["schema"]) for n, f in fields.items()}
    assert mine == theirs


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_after_an_answer_has_every_standard_key(name: str, driver: Driver) -> None:
    """So a listener that reads it finds what it found before; what is returned, too, plus ``timedout``."""
    option = {"ApprovalOperator": "Approve", "HITLBranchOperator": "x", "HITLEntryOperator": "OK"}.get(
        name, "a"
    )
    params = {"n": 1} if "params" in ARGUMENTS[name] else {}
    ends = []
    for module in (standard, ours):
        done = driver.resume_with(made(module, name), {"event": event(option, **params)})
        assert done.state == "success", done.error
        ends.append((done.task.hitl_summary, driver.supervisor.xcom("ask")))
    (theirs, returned), (mine, also) = ends
    assert set(theirs) <= set(mine)
    same = set(theirs) - {"serialized_params"}
    assert {k: mine[k] for k in same} == {k: theirs[k] for k in same}
    if isinstance(returned, dict) and "chosen_options" in returned:
        assert {k: v for k, v in also.items() if k != "timedout"} == returned
        assert also["timedout"] is False


def subclass(module: Any) -> type:
    """A subclass as it was written for the standard operator."""

    class Mine(module.HITLOperator):  # type: ignore[misc, name-defined]
        """Has rules and an outcome of its own."""

        def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
            """Wrap the result."""
            return {"mine": super().execute_complete(context=context, event=event)["chosen_options"]}

        def validate_params_input(self, params_input: Any) -> None:
            """No thirteen."""
            super().validate_params_input(params_input)
            if params_input.get("n") == 13:
                raise ValueError("not thirteen")

        def process_trigger_event_error(self, event: dict[str, Any]) -> None:
            """An error of its own."""
            raise LookupError(event["error_type"])

    return Mine


@pytest.mark.parametrize("module", [standard, ours], ids=["standard", "ours"])
def test_a_subclass_keeps_its_own_execute_complete_and_its_hooks(module: Any, driver: Driver) -> None:
    """An answer reaches an override that knows nothing of our state, and so does a timeout."""
    with DAG("d"):
        task = subclass(module)(task_id="ask", subject="s", options=["a"], params={"n": 1})
    parked = driver.start(task)
    assert parked.state == PARKED
    if module is ours:
        done = driver.resume(task, parked, event("a", n=2))
        late = driver.resume(task, parked, TIMEOUT)
    else:
        done = driver.resume_with(task, {"event": event("a", n=2)})
        late = driver.resume_with(task, {"event": TIMEOUT})
    assert driver.supervisor.xcom("ask") == {"mine": ["a"]}
    assert (done.state, late.state) == ("success", "failed")
    assert isinstance(late.error, LookupError)


def test_a_rule_of_a_subclass_opens_the_request_again_and_the_state_is_kept(driver: Driver) -> None:
    """Where the standard operator fails the task; the refusals are counted over the rounds."""
    with DAG("d"):
        task = subclass(ours)(task_id="ask", subject="s", options=["a"], params={"n": 1})
    first = driver.start(task)
    second = driver.resume(task, first, event("a", n=13))
    third = driver.resume(task, second, event("a", n=13))
    assert (second.state, third.state) == (PARKED, PARKED)
    assert [r["reasons"] for r in third.handoff["refused"]] == [["not thirteen"]] * 2
    assert third.handoff["refused"][0]["respondent"] == ADA
    assert driver.resume(task, third, event("a", n=14)).state == "success"


def test_the_standard_providers_own_example_parses_with_only_the_import_changed() -> None:
    """Its tasks, its dependencies and its arguments, with our operators."""
    (folder,) = airflow.providers.standard.__path__
    source = (Path(folder) / "example_dags" / "example_hitl_operator.py").read_text()
    changed = source.replace("airflow.providers.standard.operators.hitl", "airflow_handoff.operators.hitl")
    assert changed != source
    dags = []
    for text in (source, changed):
        namespace: dict[str, Any] = {"__name__": "example"}
        exec(text, namespace)
        dags.append(namespace["wait_for_input"].dag)
    theirs, mine = dags
    assert theirs.task_ids == mine.task_ids
    for task_id in theirs.task_ids:
        there, here = theirs.get_task(task_id), mine.get_task(task_id)
        assert there.downstream_task_ids == here.downstream_task_ids
        if isinstance(there, standard.HITLOperator):
            assert type(here) is getattr(ours, type(there).__name__)
            assert here.response_timeout == there.response_timeout
            assert here.defaults == there.defaults
