"""What our routes take and give, with the examples that OpenAPI shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from airflow_handoff.hitl.verdict import MAX_COMMENT_CHARS


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    data: dict[str, Any] = Field(default_factory=dict, description="Values of the form's fields.")
    comment: StrictStr | None = Field(None, max_length=MAX_COMMENT_CHARS, description="Free text, audited.")
    digest: StrictStr | None = Field(
        None, max_length=128, description="Digest of the question that was read; 409 if another one is open."
    )
    try_number: StrictInt | None = Field(
        None, description="Attempt whose question was read; 409 if another one is open."
    )


class Approval(_Body):
    """Approve or reject."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"approved": True, "data": {"amount": 120}, "comment": "Fine"}]},
    )

    approved: StrictBool


class Choice(_Body):
    """Choose options."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"options": ["publish"], "comment": "Checked"}]},
    )

    options: list[StrictStr] = Field(min_length=1, max_length=1000)


class Person(BaseModel):
    """Who answered."""

    id: str
    name: str


class AnswerTaken(BaseModel):
    """The answer was written."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "dag_id": "expenses",
                    "run_id": "manual__2026-01-01T00:00:00+00:00",
                    "task_id": "manager",
                    "map_index": -1,
                    "approval_key": "manager",
                    "try_number": 1,
                    "chosen_options": ["Approve"],
                    "responded_by": {"id": "7", "name": "mona"},
                    "responded_at": "2026-01-01T08:00:00Z",
                    "digest": "9f86d081884c7d65",
                }
            ]
        }
    )

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    approval_key: str
    try_number: int
    chosen_options: list[str]
    responded_by: Person | None
    responded_at: datetime | None
    digest: str


class Interrupt(BaseModel):
    """An open gate of a run: metadata only."""

    approval_key: str
    kind: Literal["hitl", "entry", "branch", "approval"]
    task_id: str
    map_index: int
    try_number: int
    created_at: datetime
    expires_at: datetime | None


class RunError(BaseModel):
    """Why a run failed."""

    code: str = Field(description="HumanRejected, HumanTimeout, TooManyRefused or TaskFailed.")
    approval_key: str | None = None
    task_id: str | None = None
    map_index: int = -1


class RunStatus(BaseModel):
    """Where a run stands."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "dag_id": "expenses",
                    "run_id": "manual__2026-01-01T00:00:00+00:00",
                    "status": "Interrupted",
                    "interrupt": {
                        "approval_key": "manager",
                        "kind": "approval",
                        "task_id": "manager",
                        "map_index": -1,
                        "try_number": 1,
                        "created_at": "2026-01-01T07:00:00Z",
                        "expires_at": "2026-01-02T07:00:00Z",
                    },
                    "interrupts": [],
                    "outcome": None,
                    "error": None,
                    "result": None,
                }
            ]
        }
    )

    dag_id: str
    run_id: str
    status: Literal["Running", "Interrupted", "Completed", "Failed"]
    interrupt: Interrupt | None = Field(description="The first of interrupts.")
    interrupts: list[Interrupt]
    outcome: str | None = Field(description="Of the gate that was decided last, for example approved.")
    error: RunError | None
    result: dict[str, Any] | None = Field(
        description="XComs of the tasks nobody waits for, by task id; only for who may read XComs."
    )


class Problem(BaseModel):
    """What is wrong, in one sentence; more members where they help."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "detail": "'maybe' was not offered: choose from 'Approve', 'Reject'.",
                    "reasons": ["'maybe' was not offered: choose from 'Approve', 'Reject'."],
                    "allowed": {"options": ["Approve", "Reject"], "multiple": False, "fields": {}},
                }
            ]
        },
    )

    detail: str


class Vote(BaseModel):
    """An answer that was counted in this attempt, or refused."""

    by: str | None
    at: datetime | None
    options: list[str]
    comment: str | None = None
    reasons: list[str] = Field(default_factory=list)


class HandoffFacts(BaseModel):
    """What this package knows about a request beside Airflow's own fields."""

    approval_key: str
    kind: Literal["hitl", "entry", "branch", "approval"]
    digest: str
    level: int
    expires_at: datetime | None
    answerable_at: datetime | None = Field(description="Earlier answers are held until then.")
    mine: bool = Field(description="Whether the caller may answer.")
    assigned: list[Person]
    assigned_checked: bool = Field(
        description="Whether the assignees were looked up; false where the auth manager lists no users."
    )
    warnings: list[str] = Field(description="What is doubtful, such as an assignee whom nobody is called.")
    votes: list[Vote]
    refused: list[Vote]


class AuditEntry(BaseModel):
    """One answer."""

    when: datetime
    who: str | None
    dag_id: str
    run_id: str | None
    task_id: str | None
    map_index: int
    try_number: int | None
    approval_key: str | None
    chosen_options: list[str]
    params_input: dict[str, Any]
    comment: str | None
    door: str | None = Field(description="Where it came in: airflow, approve, answer, or a link.")
    digest: str | None


class Audit(BaseModel):
    """Answers, oldest first."""

    entries: list[AuditEntry]
    next_offset: int | None = Field(description="Where to read on; null at the end.")


class Requests(BaseModel):
    """A page of Airflow's list of requests, each with a member ``handoff`` (null for other operators)."""

    hitl_details: list[dict[str, Any]]
    total_entries: int


class Service(BaseModel):
    """What this api-server runs."""

    version: str
    settle_seconds: float
    guard_airflow_api: bool
