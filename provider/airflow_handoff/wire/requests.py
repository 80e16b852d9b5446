"""Every message that a task can send, as of supervisor schema 2026-06-16, one class per ``type``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from airflow_handoff.wire.values import (
    AssetProfile,
    Aware,
    Json,
    Question,
    Request,
    TaskInstanceState,
)

# -- how a task ends ----------------------------------------------------------------------------------


class SucceedTask(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task succeeded."""

    state: Literal["success"] = "success"
    end_date: Aware
    task_outlets: list[AssetProfile] | None = None
    outlet_events: list[dict[str, Any]] | None = None
    rendered_map_index: str | None = None


class TaskState(Request, frozen=True, kw_only=True):
    """The task failed for good, was skipped, or was removed."""

    state: Literal["failed", "skipped", "removed"]
    end_date: Aware | None = None
    rendered_map_index: str | None = None


class RetryTask(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The attempt failed and the task is to be tried again."""

    state: Literal["up_for_retry"] = "up_for_retry"
    end_date: Aware
    rendered_map_index: str | None = None
    retry_delay_seconds: float | None = None
    retry_reason: str | None = None


class RescheduleTask(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same attempt is to run again at a later time."""

    state: Literal["up_for_reschedule"] = "up_for_reschedule"
    reschedule_date: Aware
    end_date: Aware


class DeferTask(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task waits for a trigger; a new process resumes it with ``next_method``."""

    state: Literal["deferred"] = "deferred"
    classpath: str
    trigger_kwargs: dict[str, Json] | str | None = None
    trigger_timeout: timedelta | None = None
    queue: str | None = None
    next_method: str
    next_kwargs: dict[str, Json] | None = None
    rendered_map_index: str | None = None


class AwaitInputTask(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task waits for a person; a new process resumes it with ``next_method``."""

    state: Literal["awaiting_input"] = "awaiting_input"
    timeout: timedelta | None = None
    next_method: str
    next_kwargs: dict[str, Json] | None = None
    rendered_map_index: str | None = None


Terminal = SucceedTask | TaskState | RetryTask | RescheduleTask | DeferTask | AwaitInputTask
#: The messages that say how a task ended.
TERMINAL: tuple[type[Terminal], ...] = (
    SucceedTask, TaskState, RetryTask, RescheduleTask, DeferTask, AwaitInputTask,
)  # fmt: skip


# -- XComs --------------------------------------------------------------------------------------------


class _XComKey(Request, frozen=True, kw_only=True):
    key: str
    dag_id: str
    run_id: str
    task_id: str


class GetXCom(_XComKey, frozen=True, kw_only=True):
    """Ask for one XCom; answered by :class:`XComResult`, whose value is null where there is none."""

    map_index: int | None = None
    include_prior_dates: bool = False


class GetXComCount(_XComKey, frozen=True, kw_only=True):
    """Ask how many mapped task instances pushed this key; answered by :class:`XComCountResponse`."""


class GetXComSequenceItem(_XComKey, frozen=True, kw_only=True):
    """Ask for one item of a mapped task's XComs; answered by :class:`XComSequenceIndexResult`."""

    offset: int


class GetXComSequenceSlice(_XComKey, frozen=True, kw_only=True):
    """Ask for some items of a mapped task's XComs; answered by :class:`XComSequenceSliceResult`."""

    start: int | None
    stop: int | None
    step: int | None
    include_prior_dates: bool = False


class SetXCom(_XComKey, frozen=True, kw_only=True):
    """Push one XCom; ``mapped_length`` is the number of items that a downstream task expands over."""

    value: Json
    map_index: int | None = None
    dag_result: bool = False
    mapped_length: int | None = None


class DeleteXCom(_XComKey, frozen=True, kw_only=True):
    """Remove one XCom."""

    map_index: int | None = None


# -- variables and connections ------------------------------------------------------------------------


class GetVariable(Request, frozen=True, kw_only=True):
    """Ask for a variable; answered by :class:`VariableResult`."""

    key: str


class GetVariableKeys(Request, frozen=True, kw_only=True):
    """Ask for the names of variables; answered by :class:`VariableKeysResult`."""

    prefix: str | None = None
    limit: int = 1000
    offset: int = 0


class PutVariable(Request, frozen=True, kw_only=True):
    """Write a variable."""

    key: str
    value: str | None
    description: str | None


class DeleteVariable(Request, frozen=True, kw_only=True):
    """Remove a variable; answered by :class:`OKResponse`."""

    key: str


class GetConnection(Request, frozen=True, kw_only=True):
    """Ask for a connection; answered by :class:`ConnectionResult`."""

    conn_id: str


class MaskSecret(Request, frozen=True, kw_only=True):
    """Name a value that must not be readable in logs; not answered with a body."""

    value: Json
    name: str | None = None


# -- runs and task instances --------------------------------------------------------------------------


class GetDag(Request, frozen=True, kw_only=True):
    """Ask for a Dag; answered by :class:`DagResult`."""

    dag_id: str


class GetDagRun(Request, frozen=True, kw_only=True):
    """Ask for a Dag run; answered by :class:`DagRunResult`."""

    dag_id: str
    run_id: str


class GetDagRunState(Request, frozen=True, kw_only=True):
    """Ask for a Dag run's state; answered by :class:`DagRunStateResult`."""

    dag_id: str
    run_id: str


class GetDRCount(Request, frozen=True, kw_only=True):
    """Count Dag runs; answered by :class:`DRCount`."""

    dag_id: str
    logical_dates: list[Aware] | None = None
    run_ids: list[str] | None = None
    states: list[str] | None = None


class GetPreviousDagRun(Request, frozen=True, kw_only=True):
    """Ask for the run before a date; answered by :class:`PreviousDagRunResult`."""

    dag_id: str
    logical_date: Aware
    state: str | None = None


class GetPrevSuccessfulDagRun(Request, frozen=True, kw_only=True):
    """Ask for the last successful run; answered by :class:`PrevSuccessfulDagRunResult`."""

    ti_id: UUID


class TriggerDagRun(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start a Dag run; answered by :class:`OKResponse`."""

    logical_date: Aware | None = None
    run_after: Aware | None = None
    conf: dict[str, Any] | None = None
    reset_dag_run: bool | None = False
    partition_key: str | None = None
    note: str | None = None
    dag_id: str
    run_id: str


class GetPreviousTI(Request, frozen=True, kw_only=True):
    """Ask for an earlier task instance; answered by :class:`PreviousTIResult`."""

    dag_id: str
    task_id: str
    logical_date: Aware | None = None
    map_index: int = -1
    state: TaskInstanceState | None = None


class GetTICount(Request, frozen=True, kw_only=True):
    """Count task instances; answered by :class:`TICount`."""

    dag_id: str
    map_index: int | None = None
    task_ids: list[str] | None = None
    task_group_id: str | None = None
    logical_dates: list[Aware] | None = None
    run_ids: list[str] | None = None
    states: list[str] | None = None


class GetTaskStates(Request, frozen=True, kw_only=True):
    """Ask for states of task instances; answered by :class:`TaskStatesResult`."""

    dag_id: str
    map_index: int | None = None
    task_ids: list[str] | None = None
    task_group_id: str | None = None
    logical_dates: list[Aware] | None = None
    run_ids: list[str] | None = None


class GetTaskBreadcrumbs(Request, frozen=True, kw_only=True):
    """Ask for the trail of a run's task instances; answered by :class:`TaskBreadcrumbsResult`."""

    dag_id: str
    run_id: str


class GetTaskRescheduleStartDate(Request, frozen=True, kw_only=True):
    """Ask when the first reschedule began; answered by :class:`TaskRescheduleStartDate`."""

    ti_id: UUID
    try_number: int = 1


class SkipDownstreamTasks(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Skip downstream tasks, each a task id or ``[task_id, map_index]``."""

    tasks: list[str | tuple[str, int]]


class SetRenderedFields(Request, frozen=True, kw_only=True):
    """Show these values as the task's rendered fields."""

    rendered_fields: dict[str, Json]


class SetRenderedMapIndex(Request, frozen=True, kw_only=True):
    """Show this text in place of the map index."""

    rendered_map_index: str


# -- assets -------------------------------------------------------------------------------------------


class _NamedAsset(Request, frozen=True, kw_only=True):
    name: str


class _LocatedAsset(Request, frozen=True, kw_only=True):
    uri: str


class GetAssetByName(_NamedAsset, frozen=True, kw_only=True):
    """Ask for an asset by name; answered by :class:`AssetResult`."""


class GetAssetByUri(_LocatedAsset, frozen=True, kw_only=True):
    """Ask for an asset by exact URI; answered by :class:`AssetResult`."""


class GetAssetsByAlias(Request, frozen=True, kw_only=True):
    """Ask for the assets behind an alias; answered by :class:`AssetsByAliasResult`."""

    alias_name: str


class _EventFilter(Request, frozen=True, kw_only=True):
    after: Aware | None = None
    before: Aware | None = None
    limit: int | None = None
    ascending: bool = True


class GetAssetEventByAsset(_EventFilter, frozen=True, kw_only=True):
    """Ask for an asset's events; answered by :class:`AssetEventsResult`."""

    name: str | None
    uri: str | None


class GetAssetEventByAssetAlias(_EventFilter, frozen=True, kw_only=True):
    """Ask for the events behind an alias; answered by :class:`AssetEventsResult`."""

    alias_name: str


class ValidateInletsAndOutlets(Request, frozen=True, kw_only=True):
    """Ask which inlets and outlets are inactive; answered by :class:`InactiveAssetsResult`."""

    ti_id: UUID


# -- state stores -------------------------------------------------------------------------------------


class _TaskStore(Request, frozen=True, kw_only=True):
    ti_id: UUID


class GetTaskStateStore(_TaskStore, frozen=True, kw_only=True):
    """Ask for a stored value of this task; answered by :class:`TaskStateStoreResult`."""

    key: str


class SetTaskStateStore(_TaskStore, frozen=True, kw_only=True):
    """Store a value for later attempts of this task."""

    key: str
    value: Json
    expires_at: Aware | None


class DeleteTaskStateStore(_TaskStore, frozen=True, kw_only=True):
    """Remove a stored value of this task."""

    key: str


class ClearTaskStateStore(_TaskStore, frozen=True, kw_only=True):
    """Remove all stored values of this task."""


class GetAssetStateStoreByName(_NamedAsset, frozen=True, kw_only=True):
    """Ask for a stored value of an asset; answered by :class:`AssetStateStoreResult`."""

    key: str


class GetAssetStateStoreByUri(_LocatedAsset, frozen=True, kw_only=True):
    """Ask for a stored value of an asset; answered by :class:`AssetStateStoreResult`."""

    key: str


class SetAssetStateStoreByName(_NamedAsset, frozen=True, kw_only=True):
    """Store a value for an asset."""

    key: str
    value: Json


class SetAssetStateStoreByUri(_LocatedAsset, frozen=True, kw_only=True):
    """Store a value for an asset."""

    key: str
    value: Json


class DeleteAssetStateStoreByName(_NamedAsset, frozen=True, kw_only=True):
    """Remove a stored value of an asset."""

    key: str


class DeleteAssetStateStoreByUri(_LocatedAsset, frozen=True, kw_only=True):
    """Remove a stored value of an asset."""

    key: str


class ClearAssetStateStoreByName(_NamedAsset, frozen=True, kw_only=True):
    """Remove all stored values of an asset."""


class ClearAssetStateStoreByUri(_LocatedAsset, frozen=True, kw_only=True):
    """Remove all stored values of an asset."""


# -- people -------------------------------------------------------------------------------------------


class CreateHITLDetailPayload(Question, Request, frozen=True, kw_only=True):
    """Write the question that a person will answer; answered by :class:`HITLDetailRequestResult`."""


class UpdateHITLDetail(Request, frozen=True, kw_only=True):
    """Answer a question; Airflow refuses it to a task."""

    ti_id: UUID
    chosen_options: list[str]
    params_input: dict[str, Any] | None = None


class GetHITLDetailResponse(Request, frozen=True, kw_only=True):
    """Ask for the answer; Airflow refuses it to a task."""

    ti_id: UUID


class ResendLoggingFD(Request, frozen=True, kw_only=True):
    """Ask for the log socket again; of no use over TCP."""
