"""The values inside the messages of the wire, and the base classes of the messages themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Struct

#: Anything JSON can hold; binary, extensions, NaN and keys that are not texts are refused.
Json = Any
Aware = Annotated[datetime, msgspec.Meta(tz=True)]

TaskInstanceState = Literal[
    "removed", "scheduled", "queued", "running", "success", "restarting", "failed", "up_for_retry",
    "up_for_reschedule", "upstream_failed", "skipped", "deferred", "awaiting_input",
]  # fmt: skip
DagRunState = Literal["queued", "running", "success", "failed"]
DagRunType = Literal[
    "backfill", "scheduled", "manual", "operator_triggered", "asset_triggered", "asset_materialization"
]
ErrorType = Literal[
    "CONNECTION_NOT_FOUND", "VARIABLE_NOT_FOUND", "XCOM_NOT_FOUND", "ASSET_NOT_FOUND", "TASK_STORE_NOT_FOUND",
    "ASSET_STORE_NOT_FOUND", "DAGRUN_ALREADY_EXISTS", "PERMISSION_DENIED", "GENERIC_ERROR",
    "API_SERVER_ERROR",
]  # fmt: skip


class Message(Struct, frozen=True, kw_only=True):
    """Base of all messages and of the values inside them."""

    def to_body(self) -> dict[str, Any]:
        """Return the map that goes into a frame, with every field and ``type``."""
        body = {name: getattr(self, name) for name in self.__struct_fields__}
        if self.__struct_config__.tag is not None:
            body["type"] = self.__struct_config__.tag
        return body


class Request(Message, frozen=True, kw_only=True, tag_field="type", tag=True):
    """A message that a task sends."""


class Response(Message, frozen=True, kw_only=True, tag_field="type", tag=True):
    """A message that a task receives."""


class TaskInstance(Message, frozen=True, kw_only=True):
    """The task instance that is to run."""

    id: UUID
    task_id: str
    dag_id: str
    run_id: str
    try_number: int
    dag_version_id: UUID
    map_index: int = -1
    hostname: str | None = None
    context_carrier: dict[str, Any] | None = None
    queue: str = "default"


class BundleInfo(Message, frozen=True, kw_only=True):
    """The Dag bundle that the task came from."""

    name: str
    version: str | None = None


class AssetReferenceAssetEventDagRun(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An asset, as an event names it."""

    name: str
    uri: str
    extra: dict[str, Json]


class AssetAliasReferenceAssetEventDagRun(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An asset alias, as an event names it."""

    name: str


class AssetEventDagRunReference(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An asset event that a Dag run consumed."""

    asset: AssetReferenceAssetEventDagRun
    extra: dict[str, Json]
    source_task_id: str | None
    source_dag_id: str | None
    source_run_id: str | None
    source_map_index: int | None
    source_aliases: list[AssetAliasReferenceAssetEventDagRun]
    timestamp: Aware
    partition_key: str | None = None


class DagRun(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Dag run."""

    dag_id: str
    run_id: str
    logical_date: Aware | None
    data_interval_start: Aware | None
    data_interval_end: Aware | None
    run_after: Aware
    start_date: Aware | None
    end_date: Aware | None
    clear_number: int = 0
    run_type: DagRunType
    state: DagRunState
    conf: dict[str, Any] | None = None
    triggering_user_name: str | None = None
    consumed_asset_events: list[AssetEventDagRunReference]
    partition_key: str | None
    partition_date: Aware | None = None
    note: str | None = None
    team_name: str | None = None


class VariableResponse(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variable that is handed out at the start."""

    key: str
    value: str | None


class ConnectionResponse(Message, frozen=True, kw_only=True):
    """A connection that is handed out at the start."""

    conn_id: str
    conn_type: str
    host: str | None
    schema: str | None
    login: str | None
    password: str | None
    port: int | None
    extra: str | None


class TIRunContext(Message, frozen=True, kw_only=True):
    """What the API server says about this attempt.

    Lists are ``None`` where the server sent none.
    """

    dag_run: DagRun
    task_reschedule_count: int = 0
    max_tries: int
    variables: list[VariableResponse] | None = None
    connections: list[ConnectionResponse] | None = None
    next_method: str | None = None
    next_kwargs: dict[str, Any] | str | None = None
    xcom_keys_to_clear: list[str] | None = None
    should_retry: bool = False
    start_date: Aware | None = None


class AssetProfile(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An asset as a task names it; ``type`` is the kind of asset, not of message."""

    name: str | None = None
    uri: str | None = None
    type: str


class AssetResponse(Message, frozen=True, kw_only=True):
    """A registered asset."""

    name: str
    uri: str
    group: str
    extra: dict[str, Json] | None = None


class DagRunAssetReference(Message, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Dag run that an asset event created."""

    run_id: str
    dag_id: str
    logical_date: Aware | None
    start_date: Aware
    end_date: Aware | None
    state: str
    data_interval_start: Aware | None
    data_interval_end: Aware | None
    partition_key: str | None


class AssetEventResponse(Message, frozen=True, kw_only=True):
    """An asset event."""

    id: int
    timestamp: Aware
    extra: dict[str, Json] | None = None
    asset: AssetResponse
    created_dagruns: list[DagRunAssetReference]
    source_task_id: str | None = None
    source_dag_id: str | None = None
    source_run_id: str | None = None
    source_map_index: int | None = None
    partition_key: str | None = None


class PreviousTIResponse(Message, frozen=True, kw_only=True):
    """An earlier task instance."""

    task_id: str
    dag_id: str
    run_id: str
    logical_date: Aware | None = None
    start_date: Aware | None = None
    end_date: Aware | None = None
    state: str | None = None
    try_number: int
    map_index: int | None = -1
    duration: float | None = None


class HITLUser(Message, frozen=True, kw_only=True):
    """A person who may answer."""

    id: str
    name: str


class Question(Message, frozen=True, kw_only=True):
    """What a person is asked."""

    ti_id: UUID
    options: list[str]
    subject: str
    body: str | None = None
    defaults: list[str] | None = None
    multiple: bool | None = False
    params: dict[str, Any] | None = None
    assigned_users: list[HITLUser] | None = None
