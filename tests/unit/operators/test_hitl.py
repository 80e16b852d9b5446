"""The operators, run by Airflow's own task runner."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators import hitl as standard
from airflow.sdk import DAG, BaseNotifier, BaseOperator, Param, TaskGroup
from tests.unit.operators.harness import ADA, PARKED, TIMEOUT, WHEN, Driver, event

from airflow_handoff.compat.errors import AirflowFailException, AirflowProviderDeprecationWarning
from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.operators.hitl import (
    ApprovalOperator,
    HITLBranchOperator,
    HITLEntryOperator,
    HITLOperator,
    HumanRejected,
    HumanTimeout,
    RequestLost,
    TooManyRefused,
)


class WorkOperator(BaseOperator):
    """Stands for the work downstream of a decision."""

    def execute(self, context: Any) -> None:
        """Do nothing."""


def ask(cls: type[HITLOperator] = HITLOperator, **arguments: Any) -> Any:
    """A request in a Dag of its own."""
    with DAG("d"):
        return cls(**{"task_id": "ask", "subject": "Go?", **arguments})


def choose(**arguments: Any) -> Any:
    """A request with options a and b."""
    return ask(HITLOperator, **{"options": ["a", "b"], **arguments})


# -- asking


def test_a_request_parks_with_its_question_in_the_resume_kwargs(driver: Driver) -> None:
    """The row is written, then the task parks, and its state tells what was asked."""
    task = choose(subject="Go {{ ti.try_number }}?", body="Because {{ run_id }}", assigned_users=ADA)
    parked = driver.start(task)
    assert parked.state == PARKED
    row = driver.supervisor.row
    assert (row.subject, row.body, row.options) == ("Go 1?", "Because manual__1", ["a", "b"])
    assert [(user.id, user.name) for user in row.assigned_users] == [("1", "ada")]
    state = parked.handoff
    assert state["question"]["subject"] == "Go 1?"
    assert state["question"]["assigned_users"] == [ADA]
    assert (state["approval_key"], state["kind"], state["version"]) == ("ask", "hitl", 1)
    assert (state["ti_id"], state["try_number"]) == (str(driver.ti_id), 1)
    assert len(state["digest"]) == 64


def test_without_a_response_timeout_there_is_no_limit(driver: Driver) -> None:
    """No default limit sneaks in."""
    parked = driver.start(choose())
    assert parked.timeout is None
    assert parked.handoff["deadline"] is None


@pytest.mark.parametrize("value", [timedelta(seconds=90), 90, "90", "PT90S", "{{ 60 + 30 }}"])
def test_the_response_timeout_may_be_written_in_several_ways(driver: Driver, value: Any) -> None:
    """A timedelta, seconds, a text or a template all mean the same."""
    parked = driver.start(choose(response_timeout=value))
    assert parked.timeout == pytest.approx(90, abs=20)


def test_a_timeout_waits_until_the_park_has_settled(driver: Driver) -> None:
    """A timeout of one second resumes no sooner than an answer may: earlier would fail the task."""
    parked = driver.start(choose(response_timeout=timedelta(seconds=1)))
    assert parked.timeout == pytest.approx(8, abs=0.5)


def test_every_argument_that_says_what_is_asked_is_templated(driver: Driver) -> None:
    """The question is read from the rendered arguments."""
    task = choose(
        options=["{{ 'x' }}", "y"],
        defaults="{{ 'x' }}",
        assigned_users={"id": "{{ 1 + 1 }}", "name": "ben"},
        approval_key="{{ dag.dag_id }}-gate",
    )
    state = driver.start(task).handoff
    assert state["question"]["options"] == ["x", "y"]
    assert state["defaults"] == ["x"]
    assert state["question"]["assigned_users"] == [{"id": "2", "name": "ben"}]
    assert state["approval_key"] == "d-gate"


def test_case_dynamic_options() -> None:
    """An XComArg sets the dependency for each of the arguments that take one."""
    with DAG("d"):
        upstream = WorkOperator(task_id="upstream")
        names = (
            "subject",
            "body",
            "options",
            "defaults",
            "assigned_users",
            "response_timeout",
            "approval_key",
        )
        for name in names:
            task = HITLOperator(
                **{"task_id": f"ask_{name}", "subject": "s", "options": ["a"], name: upstream.output}
            )
            assert task.upstream_task_ids == {"upstream"}, name


def test_case_dynamic_options_are_used_and_validated_before_the_row_is_written(driver: Driver) -> None:
    """What an XComArg brings is offered; what cannot be asked is never written."""
    with DAG("d"):
        upstream = WorkOperator(task_id="upstream")
        task = HITLOperator(
            task_id="ask", subject="s", options=upstream.output, defaults="b", response_timeout=timedelta(1)
        )
    driver.supervisor.xcoms["upstream", -1, "return_value"] = ["a", "b"]
    assert driver.start(task).handoff["question"]["options"] == ["a", "b"]
    written = len(driver.supervisor.of("CreateHITLDetailPayload"))
    driver.supervisor.xcoms["upstream", -1, "return_value"] = ["a", "c"]
    failed = driver.start(task)
    assert failed.state == "failed"
    assert isinstance(failed.error, InvalidQuestion)
    assert "subset" in str(failed.error)
    assert len(driver.supervisor.of("CreateHITLDetailPayload")) == written


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"options": []}, "empty"),
        ({"options": ["a", "a"]}, "repeats"),
        ({"options": "a"}, "list of texts"),
        ({"defaults": ["z"]}, "subset"),
        ({"defaults": ["a", "b"]}, "More than one"),
        ({"params": {"_options": 1}}, "_options"),
        ({"params": {"comment": 1}}, "comment"),
        ({"params": {"__classname__": 1}}, "__classname__"),
        ({"params": {"n": Param(1, type="integr")}}, "no JSON schema"),
        ({"assigned_users": [5.5, {"x": 1}]}, "assigned_users"),
        ({"response_timeout": timedelta(0)}, "positive"),
        ({"response_timeout": "soon"}, "timedelta"),
        ({"params": {1: "x"}}, "names of params"),
        ({"notifiers": "mail"}, "notifiers"),
        ({"approval_key": "a/b"}, "approval_key"),
    ],
)
def test_literals_are_checked_when_the_dag_is_parsed(arguments: dict[str, Any], word: str) -> None:
    """What cannot be asked is an import error of the Dag, not a failed task."""
    with pytest.raises(ValueError, match=word) as caught:
        choose(**arguments)
    assert isinstance(caught.value, InvalidQuestion)


@pytest.mark.parametrize(
    "arguments",
    [
        {"options": []},
        {"options": ["a"], "defaults": ["z"]},
        {"approval_key": "a/b"},
        {"params": {"comment": "x"}},
    ],
)
def test_literals_of_a_mapped_request_are_checked_when_the_dag_is_parsed(arguments: dict[str, Any]) -> None:
    """Mapping does not put the check off."""
    with DAG("d"), pytest.raises(InvalidQuestion):
        HITLOperator.partial(task_id="ask", subject="s", **arguments)


@pytest.mark.filterwarnings("ignore:Task 'two' was never mapped")
def test_a_second_gate_with_the_same_key_is_a_parse_error() -> None:
    """The approve route has to know which gate is meant; mapped gates count, too."""
    with DAG("d"):
        choose_in_dag = dict(subject="s", options=["a"])
        HITLOperator(task_id="one", approval_key="gate", **choose_in_dag)
        with pytest.raises(InvalidQuestion, match="taken by task 'one'"):
            HITLOperator(task_id="two", approval_key="gate", **choose_in_dag)
    with DAG("d"):
        HITLOperator(task_id="one", **choose_in_dag)
        with pytest.raises(InvalidQuestion, match="taken by task 'one'"):
            HITLOperator.partial(task_id="two", approval_key="one", options=["a"])
    with DAG("d"):
        HITLOperator.partial(task_id="one", options=["a"]).expand(subject=["s"])
        with pytest.raises(InvalidQuestion, match="taken by task 'one'"):
            HITLOperator(task_id="two", approval_key="one", **choose_in_dag)


# -- the form


def test_case_required_field(driver: Driver) -> None:
    """A Param without a default parks as a required field; an answer without it is refused and says which."""
    task = ask(HITLEntryOperator, params={"p": Param(type="integer")})
    parked = driver.start(task)
    assert parked.state == PARKED
    assert driver.supervisor.row.params["p"]["value"] is None
    assert driver.supervisor.row.params["p"]["schema"] == {"type": "integer"}
    again = driver.answer(task, "OK", parked=parked)
    assert again.state == PARKED
    assert "'p' is required" in again.handoff["refused"][0]["reasons"][0]
    assert driver.answer(task, "OK", parked=again, p=3).state == "success"
    assert driver.supervisor.xcom("ask")["params_input"] == {"p": 3}


def test_defaults_of_the_form_are_visible_to_templates(driver: Driver) -> None:
    """Also one that breaks its own schema: it is the form's start value, not a task param."""
    task = choose(
        subject="{{ params.amount }} {{ params.note }}",
        params={"amount": Param(5, type="integer"), "note": Param("", type="string", minLength=3)},
    )
    assert driver.start(task).state == PARKED
    assert driver.supervisor.row.subject == "5 "


def test_case_dag_params_leak(driver: Driver) -> None:
    """The form shows the task's own fields only, also where one equals the Dag's."""
    with DAG("d", params={"a": 1, "b": Param("x", type="string")}):
        bare = HITLOperator(task_id="bare", subject="{{ params.a }}", options=["x"])
        own = HITLOperator(task_id="own", subject="s", options=["x"], params={"a": 1, "c": 2})
        mapped = HITLOperator.partial(task_id="mapped", options=["x"], params={"c": 2}).expand(subject=["s"])
    assert driver.start(bare).state == PARKED
    assert driver.supervisor.row.params == {}
    assert driver.supervisor.row.subject == "1"
    driver.start(own)
    assert list(driver.supervisor.row.params) == ["a", "c"]
    driver.start(mapped, map_index=0)
    assert list(driver.supervisor.row.params) == ["c"]


def test_a_comment_field_is_shown_where_asked_for(driver: Driver) -> None:
    """It is on the page, but neither in the form's result nor among the fields that are required."""
    task = choose(comment=True, params={"n": 1})
    parked = driver.start(task)
    assert list(driver.supervisor.row.params) == ["n", "comment"]
    assert driver.answer(task, "a", parked=parked, comment="fine").state == "success"
    returned = driver.supervisor.xcom("ask")
    assert returned["comment"] == "fine"
    assert returned["params_input"] == {"n": 1}


# -- judging


@pytest.mark.parametrize(
    ("options", "params", "word"),
    [
        (["z"], {}, "was not offered"),
        (["a", "b"], {}, "exactly one"),
        ([], {}, "no option"),
        (["a"], {"n": 1}, "minimum"),
        (["a"], {"zzz": 1}, "unknown field"),
    ],
)
def test_case_late_validation(driver: Driver, options: list[str], params: dict[str, Any], word: str) -> None:
    """A bad answer that got through opens the request again, and the next one counts."""
    task = choose(params={"n": Param(5, type="integer", minimum=3)})
    again = driver.answer(task, *options, **params)
    assert again.state == PARKED
    assert word in again.handoff["refused"][0]["reasons"][0]
    assert again.handoff["refused"][0]["respondent"] == ADA
    assert len(driver.supervisor.of("CreateHITLDetailPayload")) == 2
    assert driver.answer(task, "a", parked=again).state == "success"


def test_case_unknown_keys(driver: Driver) -> None:
    """An unknown key of an approval is refused with the names that are allowed."""
    task = ask(ApprovalOperator, params={"why": ""})
    again = driver.answer(task, "Approve", zzz=1)
    assert "the fields are 'why'" in again.handoff["refused"][0]["reasons"][0]


def test_case_reserved_keys_as_the_trigger_hands_them_over(driver: Driver) -> None:
    """Form input that Airflow cannot serialize arrives as text and is refused like any other."""
    task = choose()
    parked = driver.start(task)
    answer = {**event("a"), "params_input": '{"__classname__": "x"}'}
    again = driver.resume(task, parked, answer)
    assert again.state == PARKED
    assert "__classname__" in again.handoff["refused"][0]["reasons"][0]


def test_case_reserved_keys_as_the_api_server_hands_them_over(driver: Driver) -> None:
    """Airflow 3.3 resumes such a task to fail it, without its kwargs; it asks again and keeps count."""
    task = choose(response_timeout=timedelta(days=400 * 365))
    driver.start(task)
    fail = {
        "error": "Could not resume the task: the event payload could not be serialized (x)",
        "traceback": [],
    }
    for count in (1, 2):
        again = driver.resume_with(task, fail, method="__fail__")
        assert again.state == PARKED
        assert len(again.handoff["refused"]) == count
    assert again.handoff["deadline"] is not None


def test_case_reserved_keys_in_a_mapped_task_counts_its_own_index_only(driver: Driver) -> None:
    """What another index was refused is none of this one's business."""
    task = choose()
    fail = {
        "error": "Could not resume the task: the event payload could not be serialized (x)",
        "traceback": [],
    }
    for index, count in ((0, 1), (1, 1), (0, 2), (1, 2)):
        again = driver.resume_with(task, fail, method="__fail__", map_index=index)
        assert again.state == PARKED, again.error
        assert len(again.handoff["refused"]) == count


def test_an_option_that_no_database_takes_is_refused_like_another(driver: Driver) -> None:
    """It is not kept with the refusal, which is stored."""
    again = driver.answer(choose(), "a\0", "b" * 10_000)
    assert again.state == PARKED
    (refusal,) = again.handoff["refused"]
    assert [len(option) for option in refusal["chosen_options"]] == [200]
    assert "\0" not in str(driver.supervisor.xcoms)


def test_a_trigger_that_crashed_is_still_a_fault(driver: Driver) -> None:
    """Only an unusable answer asks again."""
    task = choose()
    driver.start(task)
    failed = driver.resume_with(task, {"error": "Trigger failure", "traceback": ["x"]}, method="__fail__")
    assert failed.state == "failed"


def test_after_twenty_refused_answers_the_task_fails_with_the_list(driver: Driver) -> None:
    """Asking is bounded, and who tried what can be read."""
    task = choose()
    current = driver.start(task)
    for count in range(1, 21):
        assert current.state == PARKED
        current = driver.answer(task, f"z{count}", parked=current)
    assert current.state == "failed"
    assert isinstance(current.error, TooManyRefused)
    assert isinstance(current.error, AirflowFailException)
    assert "20. ada" in str(current.error)
    assert "z7" in str(current.error)
    assert driver.supervisor.xcom("ask", "handoff")["code"] == "TooManyRefused"


def test_the_reason_reaches_the_log_and_the_notifiers(
    driver: Driver, capfd: pytest.CaptureFixture[str]
) -> None:
    """A notifier reads the refusals from the summary."""
    seen: list[Any] = []
    task = choose(notifiers=lambda context: seen.append(context["task"].hitl_summary.get("refused")))
    driver.answer(task, "z")
    assert seen[0] is None
    assert "'z' was not offered" in seen[1][0]
    assert "'z' was not offered" in "".join(capfd.readouterr())


def test_a_second_round_keeps_the_deadline(driver: Driver) -> None:
    """A refused answer buys no time."""
    task = choose(response_timeout=timedelta(hours=1))
    parked = driver.start(task)
    again = driver.answer(task, "z", parked=parked)
    before, after = (datetime.fromisoformat(p.handoff["deadline"]) for p in (parked, again))
    assert abs(after - before) < timedelta(seconds=30)


# -- the end


def test_an_answer_is_returned_with_every_key(driver: Driver) -> None:
    """The standard operators' keys, ``timedout``, and a record of the outcome."""
    done = driver.answer(choose(params={"n": 1}), "a")
    assert (done.state, done.error) == ("success", None)
    assert driver.supervisor.xcom("ask") == {
        "chosen_options": ["a"],
        "params_input": {"n": 1},
        "responded_at": WHEN,
        "responded_by_user": ADA,
        "timedout": False,
    }
    kept = driver.supervisor.xcom("ask", "handoff")
    assert (kept["outcome"], kept["code"], kept["approval_key"]) == ("answered", None, "ask")
    assert kept["answer"]["respondent"] == ADA


def test_the_summary_is_the_standard_one(driver: Driver) -> None:
    """Listeners find what they know."""
    task = choose(params={"n": 1}, defaults="a", multiple=True)
    assert set(task.hitl_summary) == {
        "subject",
        "body",
        "options",
        "defaults",
        "multiple",
        "assigned_users",
        "serialized_params",
    }
    done = driver.answer(task, "a", "b")
    assert done.task.hitl_summary["chosen_options"] == ["a", "b"]
    assert done.task.hitl_summary["responded_at"] == WHEN.isoformat()
    assert done.task.hitl_summary["responded_by_user"] == ADA


def test_the_timeouts_defaults_are_an_answer_by_nobody(driver: Driver) -> None:
    """Case default-replayed: the default counts, whatever the event carries, and the respondent is nobody."""
    task = choose(defaults="b", params={"n": 7}, response_timeout=timedelta(hours=1))
    parked = driver.start(task)
    assert driver.supervisor.row.defaults == ["b"]
    done = driver.resume(task, parked, event("b", user=None, timedout=True, n=7))
    assert done.state == "success"
    returned = driver.supervisor.xcom("ask")
    assert (returned["chosen_options"], returned["params_input"]) == (["b"], {"n": 7})
    assert (returned["responded_by_user"], returned["timedout"]) == (None, True)


def test_case_decisions_are_not_retried_on_timeout(driver: Driver) -> None:
    """A timeout without defaults fails at once, as the standard error, and is kept before it is raised."""
    task = choose(response_timeout=timedelta(hours=1), retries=2)
    failed = driver.resume(task, driver.start(task), TIMEOUT)
    assert failed.state == "failed"
    assert isinstance(failed.error, HumanTimeout)
    assert isinstance(failed.error, HITLTimeoutError)
    kept = driver.supervisor.xcom("ask", "handoff")
    assert (kept["outcome"], kept["code"], kept["timedout"]) == ("timed_out", "HumanTimeout", True)


def test_an_implicit_default_never_stands_in_for_a_required_field(driver: Driver) -> None:
    """Case timeout-means-approve: the entry's OK is not written to the row, and the timeout is one."""
    task = ask(HITLEntryOperator, params={"p": Param(type="integer")}, response_timeout=timedelta(hours=1))
    parked = driver.start(task)
    assert driver.supervisor.row.defaults is None
    failed = driver.resume(task, parked, TIMEOUT)
    assert isinstance(failed.error, HumanTimeout)
    assert "'p'" in str(failed.error)


def test_an_entry_whose_fields_have_defaults_is_ok_on_timeout(driver: Driver) -> None:
    """The standard meaning of the implicit default."""
    task = ask(HITLEntryOperator, params={"p": 1}, response_timeout=timedelta(hours=1))
    parked = driver.start(task)
    assert driver.supervisor.row.defaults == ["OK"]
    assert driver.resume(task, parked, event("OK", user=None, timedout=True)).state == "success"


def test_an_error_that_is_no_timeout_may_be_retried(driver: Driver) -> None:
    """A lost request is a fault, not a decision."""
    task = choose(retries=1)
    failed = driver.resume(task, driver.start(task), {"error": "gone", "error_type": "unknown"})
    assert failed.state == "up_for_retry"
    assert isinstance(failed.error, RequestLost)


def test_a_task_parked_by_the_standard_operator_resumes_in_ours(driver: Driver) -> None:
    """There is no state then; the operator's own arguments tell what was asked."""
    task = choose()
    driver.start(task)
    assert driver.resume_with(task, {"event": event("a")}).state == "success"
    again = driver.resume_with(task, {"event": {"error": "n: too small", "error_type": "validation"}})
    assert again.state == PARKED
    assert again.handoff["refused"][0]["reasons"] == ["n: too small"]


def test_without_xcom_push_nothing_of_the_answer_is_kept(driver: Driver) -> None:
    """The outcome is metadata, the answer is not."""
    driver.answer(choose(do_xcom_push=False), "a")
    assert driver.supervisor.xcom("ask") is None
    assert driver.supervisor.xcom("ask", "handoff")["answer"] is None


# -- approval


def test_approve_goes_on(driver: Driver) -> None:
    """Nothing is skipped."""
    done = driver.answer(ask(ApprovalOperator), "Approve")
    assert done.state == "success"
    assert not driver.supervisor.of("SkipDownstreamTasks")
    assert driver.supervisor.xcom("ask", "handoff")["outcome"] == "approved"
    assert done.task.hitl_summary["approved"] is True


@pytest.mark.parametrize(("everything", "skipped"), [(False, ["work"]), (True, ["after", "work"])])
def test_reject_skips_downstream_and_keeps_the_answer(
    driver: Driver, everything: bool, skipped: list[str]
) -> None:
    """The direct tasks, or all; never a teardown. The answer is pushed before the skip."""
    with DAG("d"):
        task = ApprovalOperator(task_id="ask", subject="s", ignore_downstream_trigger_rules=everything)
        work, after = WorkOperator(task_id="work"), WorkOperator(task_id="after")
        task >> work >> after
        task >> WorkOperator(task_id="clean").as_teardown()
    done = driver.answer(task, "Reject")
    assert done.state == "success"
    (message,) = driver.supervisor.of("SkipDownstreamTasks")
    assert sorted(message.tasks) == [(name, -1) for name in skipped]
    assert driver.supervisor.xcom("ask")["chosen_options"] == ["Reject"]
    assert driver.supervisor.xcom("ask", "skipmixin_key") == {"skipped": skipped}
    assert driver.supervisor.xcom("ask", "handoff")["outcome"] == "rejected"


def test_reject_with_nothing_downstream_succeeds(driver: Driver) -> None:
    """There is nothing to skip, and the answer is returned."""
    assert driver.answer(ask(ApprovalOperator), "Reject").state == "success"
    assert driver.supervisor.xcom("ask")["chosen_options"] == ["Reject"]


def test_case_decisions_are_not_retried(driver: Driver) -> None:
    """fail_on_reject fails at once, as the standard error, and the answer is there."""
    failed = driver.answer(ask(ApprovalOperator, fail_on_reject=True, retries=2), "Reject")
    assert failed.state == "failed"
    assert isinstance(failed.error, HumanRejected)
    assert isinstance(failed.error, HITLRejectException)
    assert "ada rejected 'ask'" in str(failed.error)
    assert driver.supervisor.xcom("ask")["chosen_options"] == ["Reject"]
    assert driver.supervisor.xcom("ask", "handoff")["code"] == "HumanRejected"


@pytest.mark.parametrize("name", ["options", "multiple"])
def test_an_approval_has_fixed_options(name: str) -> None:
    """As in the standard operator."""
    with pytest.raises(ValueError, match=name):
        ask(ApprovalOperator, **{name: True})


def test_an_unknown_reject_policy_is_a_parse_error() -> None:
    """The message lists the policies."""
    with pytest.raises(InvalidQuestion, match="majority"):
        ask(ApprovalOperator, reject_policy="some")


# -- mapped approvals


def mapped_group(*, expand: bool = True) -> Any:
    """An approval and work in a mapped task group, and a task behind the group."""
    from airflow.sdk import task_group

    with DAG("d") as dag:
        after = WorkOperator(task_id="after")

        @task_group
        def each(item: str) -> None:
            approval = ApprovalOperator(task_id="ask", subject=item)
            approval >> WorkOperator(task_id="work")
            approval >> after

        each.expand(item=["x", "y"])
    return dag


def test_case_mapped_group_reject(driver: Driver) -> None:
    """A Reject skips its own index of the group; the task behind it is shared and stops at one Reject."""
    task = mapped_group().get_task("each.ask")
    driver.supervisor.counts.update({("each.work", 1): 1})
    assert driver.answer(task, "Reject", map_index=1).state == "success"
    (message,) = driver.supervisor.of("SkipDownstreamTasks")
    assert sorted(message.tasks) == [("after", -1), ("each.work", 1)]


def test_case_mapped_group_reject_waits_for_the_expansion(driver: Driver) -> None:
    """A skip of an instance that does not exist yet would be ignored."""
    task = mapped_group().get_task("each.ask")
    polls: list[int] = []
    original = driver.supervisor._GetTICount

    def late(message: Any) -> Any:
        if message.map_index == 1:
            polls.append(len(polls))
            driver.supervisor.counts["each.work", 1] = len(polls) > 2
        return original(message)

    driver.supervisor._GetTICount = late  # type: ignore[method-assign]
    driver.answer(task, "Reject", map_index=1)
    assert len(polls) == 3
    assert ("each.work", 1) in driver.supervisor.of("SkipDownstreamTasks")[0].tasks


def test_what_was_rejected_never_runs_though_it_cannot_be_skipped(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Airflow does not make the instance in time, the decision fails: then nothing after it runs."""
    monkeypatch.setattr("airflow_handoff.operators.skipping.EXPANSION_WAIT", 0.0)
    driver.supervisor.counts["each.work", 1] = 0
    done = driver.answer(mapped_group().get_task("each.ask"), "Reject", map_index=1)
    assert done.state == "failed"
    assert "Clear it to decide again" in str(done.error)
    assert driver.supervisor.of("SkipDownstreamTasks") == []
    assert driver.supervisor.xcom("each.ask", map_index=1)["chosen_options"] == ["Reject"]


def test_without_any_default_option_a_timeout_fails(driver: Driver) -> None:
    """``defaults=[]`` is written into no row and decides nothing."""
    with DAG("d"):
        task = ApprovalOperator(
            task_id="ask", subject="s", defaults=[], response_timeout=timedelta(minutes=1)
        )
    parked = driver.start(task)
    assert driver.supervisor.row.defaults is None
    assert driver.resume(task, parked, TIMEOUT).state == "failed"


@pytest.mark.parametrize("value", ["soon", "nan", "inf", "-1", "1e30"])
def test_a_settle_time_that_is_none_fails_no_request(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The default is taken instead, and the log names the setting."""
    monkeypatch.setenv("AIRFLOW__HANDOFF__SETTLE_SECONDS", value)
    parked = driver.start(choose(response_timeout=1))
    assert parked.state == PARKED
    assert parked.timeout == pytest.approx(8, abs=1)
    assert "settle_seconds" in caplog.text


def mapped_operator(policy: str) -> Any:
    """Three mapped approvals before an unmapped task."""
    with DAG("d"):
        task = ApprovalOperator.partial(task_id="ask", reject_policy=policy).expand(subject=["a", "b", "c"])
        task >> WorkOperator(task_id="publish")
    return task


@pytest.mark.parametrize(
    ("policy", "answers", "stopped_at"),
    [
        ("any", "ARA", 1),
        ("any", "AAA", None),
        ("majority", "RAR", 2),
        ("majority", "RAA", None),
        ("all", "RRR", 2),
        ("all", "RRA", None),
    ],
)
def test_case_mapped_operator_any_all(
    driver: Driver, policy: str, answers: str, stopped_at: int | None
) -> None:
    """The policy decides how many Rejects stop an unmapped task; one is enough unless told otherwise."""
    task = mapped_operator(policy)
    driver.supervisor.counts["ask"] = 3
    stopped = None
    for index, letter in enumerate(answers):
        before = len(driver.supervisor.of("SkipDownstreamTasks"))
        assert (
            driver.answer(task, "Approve" if letter == "A" else "Reject", map_index=index).state == "success"
        )
        if len(driver.supervisor.of("SkipDownstreamTasks")) > before and stopped is None:
            stopped = index
    assert stopped == stopped_at
    assert driver.supervisor.xcom("ask", map_index=1)["chosen_options"]


def test_a_task_that_runs_already_is_not_skipped(driver: Driver) -> None:
    """With a trigger rule of its own it may have been started by another index; 3.1 would kill it."""
    task = mapped_operator("any")
    original = driver.supervisor._GetTICount

    def started(message: Any) -> Any:
        found = original(message)
        return found.model_copy(update={"count": 1}) if message.states else found

    driver.supervisor._GetTICount = started  # type: ignore[method-assign]
    assert driver.answer(task, "Reject", map_index=0).state == "success"
    assert not driver.supervisor.of("SkipDownstreamTasks")[0].tasks


def test_an_unmapped_reject_skips_every_instance_of_a_mapped_task(driver: Driver) -> None:
    """Those that were expanded when the run began, too."""
    with DAG("d"):
        task = ApprovalOperator(task_id="ask", subject="s")
        task >> WorkOperator.partial(task_id="work").expand(doc_md=["x", "y"])
    driver.supervisor.counts["work"] = 2
    driver.answer(task, "Reject")
    assert driver.supervisor.of("SkipDownstreamTasks")[0].tasks == [("work", -1), ("work", 0), ("work", 1)]


# -- branch


def branch(**arguments: Any) -> tuple[Any, Any]:
    """A branch in a task group, with two tasks there, a join behind them, and a task outside."""
    with DAG("d") as dag:
        with TaskGroup("g"):
            one, two = WorkOperator(task_id="one"), WorkOperator(task_id="two")
            ask = HITLBranchOperator(task_id="ask", subject="s", **{"options": ["one", "two"], **arguments})
            ask >> [one, two]
        other = WorkOperator(task_id="other")
        join = WorkOperator(task_id="join")
        ask >> other
        ask >> join
        one >> join
    return dag, ask


def skipped(driver: Driver) -> list[tuple[str, int]]:
    """What was skipped last."""
    return sorted(driver.supervisor.of("SkipDownstreamTasks")[-1].tasks)


def test_case_branch_in_group(driver: Driver) -> None:
    """An option names a task of the same group; a join behind it is no alternative; the answer is kept."""
    dag, task = branch()
    dag.resolve_template_files()
    done = driver.answer(task, "one")
    assert done.state == "success"
    assert skipped(driver) == [("g.two", -1), ("other", -1)]
    assert driver.supervisor.xcom("g.ask")["chosen_options"] == ["one"]
    assert driver.supervisor.xcom("g.ask", "handoff")["outcome"] == "branched"
    assert done.task.hitl_summary["branches_to_execute"] == ["g.one"]


def test_options_mapping_names_tasks_and_groups(driver: Driver) -> None:
    """Full ids, ids within the group, and task groups."""
    dag, task = branch(
        options=["first", "both", "outside"],
        options_mapping={"first": "g.one", "both": "two", "outside": "other"},
    )
    dag.resolve_template_files()
    driver.answer(task, "outside")
    assert skipped(driver) == [("g.one", -1), ("g.two", -1), ("join", -1)]
    with DAG("d") as dag:
        task = HITLBranchOperator(task_id="ask", subject="s", options=["g", "x"])
        with TaskGroup("g") as group:
            WorkOperator(task_id="one") >> WorkOperator(task_id="late")
            WorkOperator(task_id="two")
        task >> [group, WorkOperator(task_id="x")]
    dag.resolve_template_files()
    driver.answer(task, "g")
    assert skipped(driver) == [("x", -1)]


@pytest.mark.parametrize("arguments", [{"options": ["one", "zzz"]}, {"options_mapping": {"one": "late"}}])
def test_case_branch_in_group_parse_error(arguments: dict[str, Any]) -> None:
    """An option that is no direct downstream task is an error when the Dag is parsed."""
    dag, _ = branch(**arguments)
    with pytest.raises(InvalidQuestion, match=r"no direct downstream task: these are \['g.one'"):
        dag.resolve_template_files()


def test_dynamic_branches_are_checked_before_the_row_is_written(driver: Driver) -> None:
    """What cannot be known when the Dag is parsed fails before anybody is asked."""
    _, task = branch(options=["{{ 'one' }}", "{{ 'zzz' }}"])
    failed = driver.start(task)
    assert isinstance(failed.error, InvalidQuestion)
    assert not driver.supervisor.of("CreateHITLDetailPayload")


@pytest.mark.parametrize(
    ("mapping", "word"), [({"zzz": "one"}, "not in `options`"), ({"one": 5}, "must be strings")]
)
def test_a_wrong_options_mapping_is_a_parse_error(mapping: dict[str, Any], word: str) -> None:
    """As in the standard operator."""
    with pytest.raises(ValueError, match=word):
        branch(options_mapping=mapping)


def test_a_branch_in_a_mapped_group_skips_its_own_index(driver: Driver) -> None:
    """A task that all indexes share is skipped only if none has chosen it."""
    from airflow.sdk import task_group

    with DAG("d") as dag:
        shared = WorkOperator(task_id="shared")

        @task_group
        def each(item: str) -> None:
            task = HITLBranchOperator(task_id="ask", subject=item, options=["one", "shared"])
            task >> [WorkOperator(task_id="one"), shared]

        each.expand(item=["x", "y"])
    task = dag.get_task("each.ask")
    driver.supervisor.counts.update({"each.ask": 2, ("each.one", 0): 1, ("each.one", 1): 1})
    driver.answer(task, "one", map_index=0)
    assert not driver.supervisor.of("SkipDownstreamTasks")
    driver.answer(task, "one", map_index=1)
    assert skipped(driver) == [("shared", -1)]
    driver.answer(task, "shared", map_index=1)
    assert skipped(driver) == [("each.one", 1)]


# -- notifiers


class Told(BaseNotifier):
    """A notifier that remembers, waits or raises."""

    def __init__(self, act: Callable[[Any], Any]) -> None:
        super().__init__()
        self.act = act

    def notify(self, context: Any) -> None:
        """Do what the test wants."""
        self.act(context)


def fail(error: BaseException) -> Told:
    """A notifier that raises."""

    def act(context: Any) -> None:
        raise error

    return Told(act)


def test_case_notifier_fails(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    """Logged with its name; the others run; the request is open."""
    seen: list[str] = []
    task = choose(
        notifiers=[
            fail(RuntimeError("no mail")),
            Told(lambda context: seen.append("told")),
            fail(SystemExit(1)),
            fail(AirflowFailException("no")),
        ]
    )
    assert driver.start(task).state == PARKED
    assert seen == ["told"]
    log = "".join(capfd.readouterr())
    assert log.count("test_hitl.Told failed") == 3
    assert "no mail" in log


def test_case_answer_before_park_notifiers_run_before_the_row_is_written(driver: Driver) -> None:
    """An answer cannot come while a notifier runs: there is nothing to answer yet."""
    rows: list[int] = []
    task = choose(
        notifiers=Told(lambda context: rows.append(len(driver.supervisor.of("CreateHITLDetailPayload"))))
    )
    driver.start(task)
    assert rows == [0]
    kinds = [type(message).__name__ for message in driver.supervisor.messages]
    assert kinds[kinds.index("CreateHITLDetailPayload") + 1 :] in (["DeferTask"], ["AwaitInputTask"])


def test_case_execution_timeout(driver: Driver) -> None:
    """A notifier that outlasts execution_timeout neither kills the task nor uses up its budget."""

    def slow(context: Any) -> None:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            time.sleep(0.01)

    task = choose(
        execution_timeout=timedelta(seconds=0.3), response_timeout=timedelta(days=1), notifiers=Told(slow)
    )
    parked = driver.start(task)
    assert parked.state == PARKED, parked.error
    assert parked.timeout == pytest.approx(86_400, abs=20)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_execution_timeout_alone_still_means_the_response_timeout(driver: Driver) -> None:
    """Deprecated, with a warning, as in the standard operator."""
    with pytest.warns(AirflowProviderDeprecationWarning, match="response_timeout"):
        task = choose(execution_timeout=timedelta(hours=1))
    assert task.execution_timeout is None
    assert driver.start(task).timeout == pytest.approx(3600, abs=20)


def test_a_notifier_for_the_standard_operators_accepts_ours(driver: Driver) -> None:
    """It may check the class and ask the standard class for a link."""
    links: list[str] = []

    def act(context: Any) -> None:
        assert isinstance(context["task"], standard.HITLOperator)
        assert isinstance(context["task"], standard.ApprovalOperator)
        links.append(
            standard.HITLOperator.generate_link_to_ui_from_context(
                context=context, base_url="https://host/airflow", options=["Approve"]
            )
        )

    assert driver.start(ask(ApprovalOperator, notifiers=[Told(act)])).state == PARKED
    assert links[0].startswith("https://host/airflow/dags/d/runs/manual__1/tasks/ask/required_actions?")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("HITLOperator", HITLOperator),
        ("ApprovalOperator", ApprovalOperator),
        ("HITLBranchOperator", HITLBranchOperator),
        ("HITLEntryOperator", HITLEntryOperator),
    ],
)
def test_ours_are_virtual_subclasses(name: str, ours: type) -> None:
    """Each stands for the standard operator of its name."""
    assert issubclass(ours, getattr(standard, name))


def test_links_are_checked_and_go_through_one_function(driver: Driver) -> None:
    """Unknown options and fields are refused; both spellings of the input are accepted."""
    links: list[str] = []

    def act(context: Any) -> None:
        make = HITLOperator.generate_link_to_ui_from_context
        links.append(make(context=context, base_url="http://h", options="a b", params_inputs={"n": 2}))
        with pytest.raises(ValueError, match="not valid options"):
            make(context=context, base_url="http://h", options="z")
        with pytest.raises(ValueError, match="not valid params"):
            make(context=context, base_url="http://h", params_input={"z": 1})
        links.append("checked")

    driver.start(choose(options=["a b"], params={"n": 1}, notifiers=act))
    assert len(links) == 2
    assert "n=2" in links[0]
    assert "%22a%20b%22" in links[0]


# -- callbacks


@pytest.mark.parametrize(
    ("answer", "arguments", "fired"),
    [
        ("Approve", {}, ["success"]),
        ("Reject", {}, ["success"]),
        ("Reject", {"fail_on_reject": True, "retries": 2}, ["failure"]),
    ],
)
def test_callbacks_fire_once_for_each_outcome(
    driver: Driver, answer: str, arguments: dict[str, Any], fired: list[str]
) -> None:
    """Parking and asking again are no outcome; a decision is one, and it is not a retry."""
    calls: list[str] = []

    def callback(name: str) -> Callable[[Any], None]:
        return lambda context: calls.append(name)

    names = ("success", "failure", "retry", "skipped")
    with DAG("d"):
        task = ApprovalOperator(
            task_id="ask",
            subject="s",
            **arguments,
            **{f"on_{name}_callback": callback(name) for name in names},
        )
        task >> WorkOperator(task_id="work")
    again = driver.answer(task, "z")
    assert calls == []
    driver.answer(task, answer, parked=again)
    assert calls == fired
