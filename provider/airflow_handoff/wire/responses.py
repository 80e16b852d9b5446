"""Every message that a task can receive, as of supervisor schema 2026-06-16, one class per ``type``."""

from __future__ import annotations

from typing import Any

from airflow_handoff.wire.values import (
    AssetEventResponse,
    AssetProfile,
    AssetResponse,
    Aware,
    BundleInfo,
    ConnectionResponse,
    DagRun,
    DagRunState,
    ErrorType,
    Json,
    PreviousTIResponse,
    Question,
    Response,
    TaskInstance,
    TIRunContext,
    VariableResponse,
)


class StartupDetails(Response, frozen=True, kw_only=True):
    """The first frame of every run, never asked for."""

    ti: TaskInstance
    dag_rel_path: str
    bundle_info: BundleInfo
    start_date: Aware
    ti_context: TIRunContext
    sentry_integration: str


class ErrorResponse(Response, frozen=True, kw_only=True):
    """Why a request was not fulfilled."""

    error: ErrorType = "GENERIC_ERROR"
    detail: dict[str, Any] | None = None


class OKResponse(Response, frozen=True, kw_only=True):
    """Whether a request was fulfilled."""

    ok: bool


class XComResult(Response, frozen=True, kw_only=True):
    """One XCom."""

    key: str
    value: Json | None


class XComCountResponse(Response, frozen=True, kw_only=True):
    """How many mapped task instances pushed a key."""

    len: int


class XComSequenceIndexResult(Response, frozen=True, kw_only=True):
    """One item of a mapped task's XComs."""

    root: Json


class XComSequenceSliceResult(Response, frozen=True, kw_only=True):
    """Some items of a mapped task's XComs."""

    root: list[Json]


class VariableResult(VariableResponse, Response, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variable."""


class VariableKeysResult(Response, frozen=True, kw_only=True):
    """Names of variables."""

    keys: list[str]
    total_entries: int


class ConnectionResult(ConnectionResponse, Response, frozen=True, kw_only=True):
    """A connection."""


class DagResult(Response, frozen=True, kw_only=True):
    """A Dag."""

    dag_id: str
    is_paused: bool
    bundle_name: str | None
    bundle_version: str | None
    relative_fileloc: str | None
    owners: str | None
    tags: list[str]
    next_dagrun: Aware | None


class DagRunResult(DagRun, Response, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Dag run."""

    clear_number: int | None = 0  # type: ignore[assignment]  # the schema widens it here only


class DagRunStateResult(Response, frozen=True, kw_only=True):
    """A Dag run's state."""

    state: DagRunState


class DRCount(Response, frozen=True, kw_only=True):
    """A number of Dag runs."""

    count: int


class PreviousDagRunResult(Response, frozen=True, kw_only=True):
    """The run before a date, where there is one."""

    dag_run: DagRun | None = None


class PrevSuccessfulDagRunResult(Response, frozen=True, kw_only=True):
    """The last successful run, where there is one."""

    data_interval_start: Aware | None = None
    data_interval_end: Aware | None = None
    start_date: Aware | None = None
    end_date: Aware | None = None


class PreviousTIResult(Response, frozen=True, kw_only=True):
    """An earlier task instance, where there is one."""

    task_instance: PreviousTIResponse | None = None


class TICount(Response, frozen=True, kw_only=True):
    """A number of task instances."""

    count: int


class TaskStatesResult(Response, frozen=True, kw_only=True):
    """States of task instances, by run and task."""

    task_states: dict[str, Any]


class TaskBreadcrumbsResult(Response, frozen=True, kw_only=True):
    """The trail of a run's task instances."""

    breadcrumbs: list[dict[str, Any]]


class TaskRescheduleStartDate(Response, frozen=True, kw_only=True):
    """When the first reschedule began, where there was one."""

    start_date: Aware | None


class AssetResult(AssetResponse, Response, frozen=True, kw_only=True):
    """A registered asset."""


class AssetsByAliasResult(Response, frozen=True, kw_only=True):
    """The assets behind an alias."""

    assets: list[AssetResult]


class AssetEventsResult(Response, frozen=True, kw_only=True):
    """Asset events."""

    asset_events: list[AssetEventResponse]


class InactiveAssetsResult(Response, frozen=True, kw_only=True):
    """Inlets and outlets that are inactive."""

    inactive_assets: list[AssetProfile] | None = None


class TaskStateStoreResult(Response, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored value of a task."""

    value: Json | None


class AssetStateStoreResult(Response, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored value of an asset."""

    value: Json | None


class HITLDetailRequestResult(Question, Response, frozen=True, kw_only=True):
    """The question as Airflow stored it."""


class SentFDs(Response, frozen=True, kw_only=True):
    """File descriptors that follow; of no use over TCP."""

    fds: list[int]
