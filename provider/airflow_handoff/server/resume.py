"""Event-driven resume on Airflow 3.1 and 3.2: an answered task goes on at once, not at the next poll."""

from __future__ import annotations

from datetime import timedelta

from airflow_handoff.compat import answers, records

#: Triggers that bear being cancelled while they poll; Airflow 3.1's triggerer can die of one that does not.
RESUMABLE_TRIGGERS = ("airflow_handoff.triggers.hitl.HITLTrigger",)


def resume(record: records.RequestRecord, settle: timedelta) -> bool:
    """Resume the task of an answered request if that is safe; else its trigger does, later.

    :param settle: how old the park has to be.
    :returns: whether the task was resumed here.
    """
    return answers.resume(record, RESUMABLE_TRIGGERS, settle)
