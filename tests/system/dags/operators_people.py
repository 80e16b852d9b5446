"""Requests for the tests of the operators: each Dag is one situation, as small as it can be."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, BaseNotifier, Param, TaskGroup, task, task_group

from airflow_handoff.operators.hitl import (
    ApprovalOperator,
    HITLBranchOperator,
    HITLEntryOperator,
    HITLOperator,
)

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
# Several times what a scheduler needs to see the end of a process, on a machine with much to do.
SHORT = timedelta(seconds=20)


class Slow(BaseNotifier):
    """Takes three seconds, then leaves a trace."""

    def notify(self, context):
        """Tell that it is done."""
        time.sleep(3)
        context["ti"].xcom_push(key="told", value=True)


class Broken(BaseNotifier):
    """Always raises."""

    def notify(self, context):
        """Fail."""
        raise RuntimeError("the mail server is down")


def work(name: str, **arguments):
    """A task downstream of a decision."""

    @task(task_id=name, **arguments)
    def done():
        return "done"

    return done()


with DAG("operators_forms", schedule=None, start_date=START, params={"a": 1}):

    @task
    def offer():
        """Options that are known only when the run is on its way."""
        return ["red", "green", "blue"]

    HITLOperator(
        task_id="choose",
        subject="Param a is {{ params.a }}",
        options=offer(),
        multiple=True,
        params={"shade": Param("dark", type="string", enum=["dark", "light"])},
        comment=True,
    )
    HITLEntryOperator(
        task_id="entry",
        subject="How many?",
        params={"count": Param(type="integer", minimum=3), "unit": Param("kg", type="string")},
    )
    HITLOperator(
        task_id="told",
        subject="Told?",
        options=["yes", "no"],
        notifiers=[Broken(), Slow()],
        execution_timeout=timedelta(seconds=2),
        response_timeout=timedelta(days=1),
    )

with DAG("operators_timeouts", schedule=None, start_date=START):
    HITLOperator(
        task_id="default",
        subject="s",
        options=["yes", "no"],
        defaults="no",
        params={"n": 7},
        response_timeout=SHORT,
    ) >> work("after_default")
    HITLOperator(
        task_id="nothing",
        subject="s",
        options=["yes", "no"],
        response_timeout=SHORT,
        retries=2,
        retry_delay=timedelta(seconds=1),
    )
    HITLEntryOperator(
        task_id="required", subject="s", params={"p": Param(type="integer")}, response_timeout=SHORT
    )
    ApprovalOperator(task_id="rejected", subject="s", defaults="Reject", response_timeout=SHORT) >> work(
        "after_rejected"
    )

with DAG("operators_deadline", schedule=None, start_date=START):
    HITLOperator(
        task_id="ask",
        subject="s",
        options=["yes", "no"],
        defaults="no",
        response_timeout=SHORT,
    )

with DAG("operators_decisions", schedule=None, start_date=START):
    ApprovalOperator(task_id="yes", subject="s") >> work("after_yes")
    no = ApprovalOperator(task_id="no", subject="s")
    no >> work("after_no") >> work("later", trigger_rule="all_done")
    (
        ApprovalOperator(task_id="all_off", subject="s", ignore_downstream_trigger_rules=True)
        >> work("direct")
        >> work("always", trigger_rule="all_done")
    )
    ApprovalOperator(
        task_id="final", subject="s", fail_on_reject=True, retries=2, retry_delay=timedelta(seconds=1)
    ) >> work("after_final")
    with TaskGroup("g"):
        branch = HITLBranchOperator(
            task_id="branch",
            subject="s",
            options=["one", "two", "Three"],
            options_mapping={"Three": "three"},
        )
        one = work("one")
        branch >> [one, work("two"), work("three")]
        one >> work("join", trigger_rule="none_failed_min_one_success")

with DAG("operators_mapped", schedule=None, start_date=START):

    @task
    def items():
        """What the groups are expanded over, known only at run time."""
        return ["a", "b"]

    @task_group
    def gate(item):
        """An approval and its work, once for each item."""
        ApprovalOperator(task_id="ask", subject=item) >> work("work")

    @task_group
    def fork(item):
        """A branch, once for each item."""
        HITLBranchOperator(task_id="ask", subject=item, options=["left", "right"]) >> [
            work("left"),
            work("right"),
        ]

    gate.expand(item=items())
    fork.expand(item=["a", "b"])
    ApprovalOperator.partial(task_id="each").expand(subject=["a", "b", "c"]) >> work("publish")
    ApprovalOperator.partial(task_id="most", reject_policy="majority").expand(
        subject=["a", "b", "c"]
    ) >> work("go")


def fail_first(context):
    """Let the first attempt fail before it asks."""
    if context["ti"].try_number == 1:
        raise RuntimeError("not yet")


with DAG("operators_rounds", schedule=None, start_date=START):
    HITLOperator(
        task_id="second_try",
        subject="try {{ ti.try_number }}",
        options=["a"],
        pre_execute=fail_first,
        retries=1,
        retry_delay=timedelta(seconds=1),
    )
    HITLOperator(task_id="cleared", subject="s", options=["a"]) >> work("after_cleared")
    ApprovalOperator(task_id="stopped", subject="s") >> work("after_stopped")

with DAG("operators_cancelled", schedule=None, start_date=START):
    ApprovalOperator(task_id="ask", subject="s") >> work("after")

with DAG("operators_one_at_a_time", schedule=None, start_date=START, max_active_tasks=1):
    ApprovalOperator(task_id="ask", subject="s", priority_weight=10)
    work("other", priority_weight=1)

with DAG("operators_pool", schedule=None, start_date=START):
    ApprovalOperator(task_id="ask", subject="s", pool="operators_one_slot", priority_weight=10)
    work("other", pool="operators_one_slot", priority_weight=1)

with DAG("operators_bad_answers", schedule=None, start_date=START):
    for name in ("late", "reserved", "unknown"):
        HITLOperator(
            task_id=name,
            subject="s",
            options=["a", "b"],
            params={"n": Param(5, type="integer", minimum=3), "data": Param({}, type="object")},
        )
