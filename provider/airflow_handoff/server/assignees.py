"""Assignees whom nobody is called: said while the question is new, not after everybody has waited.

Airflow compares ids only when somebody answers, so a misspelt name shows when it is too late.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from airflow_handoff.compat import apiserver, records
from airflow_handoff.hitl.question import Respondent

log = logging.getLogger(__name__)

#: Event of the line in Airflow's audit log, which its pages show beside the task.
AUDIT_EVENT = "handoff_unknown_assignee"


def unknown(people: Iterable[Respondent]) -> tuple[Respondent, ...] | None:
    """Return those of *people* whose id and name no user has; ``None`` where that cannot be told."""
    users = apiserver.known_users()
    if users is None:
        return None
    return tuple(person for person in people if not {person.id, person.name} & users)


def sentence(person: Respondent) -> str:
    """Say what is doubtful about an assignee."""
    called = person.id if person.id == person.name else f"{person.id} or {person.name}"
    return f"Nobody here is called {called}, who is to answer: is the name right?"


def note(ti_id: str, upsert: dict[str, Any]) -> None:
    """Write a line to the audit log if a question that was just asked names somebody unknown.

    :param ti_id: the attempt that asks.
    :param upsert: the question as its task sent it.
    """
    strangers = unknown(map(Respondent.of, upsert.get("assigned_users") or ()))
    record = records.read_attempt(ti_id) if strangers else None
    if not strangers or record is None:
        return
    detail = " ".join(map(sentence, strangers))
    extra = json.dumps({"detail": detail, "ti_id": ti_id})
    noted = records.read_audit(
        (AUDIT_EVENT,), dag_ids=[record.dag_id], run_id=record.run_id, task_id=record.task_id, limit=1000
    )
    if any(line.extra == extra for line in noted):  # A second round asks the same people.
        return
    log.warning("%s of %s, run %s: %s", record.task_id, record.dag_id, record.run_id, detail)
    records.write_audit(AUDIT_EVENT, record, "handoff", extra)
