"""Who answered what, when and through which door."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from airflow_handoff.compat import apiserver, records
from airflow_handoff.server.answer import AUDIT_EVENT, TurnedAway
from airflow_handoff.server.models import Audit, AuditEntry

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class AuditQuery(BaseModel):
    """Which answers to list."""

    dag_id: str | None = Field(None, max_length=1000)
    run_id: str | None = Field(None, max_length=1000)
    task_id: str | None = Field(None, max_length=1000)
    since: datetime | None = Field(None, description="Without a zone: UTC.")
    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=2**31 - 1)


async def read(user: Any, query: AuditQuery) -> Audit:
    """List answers to requests of Dags whose audit log the caller may read."""
    dag_ids = await run_in_threadpool(_readable, user, query.dag_id)
    lines = await run_in_threadpool(
        records.read_audit,
        (AUDIT_EVENT,),
        dag_ids=dag_ids,
        run_id=query.run_id,
        task_id=query.task_id,
        since=_utc(query.since),
        limit=query.limit + 1,
        offset=query.offset,
    )
    more = len(lines) > query.limit
    return Audit(
        entries=[_entry(line) for line in lines[: query.limit]],
        next_offset=query.offset + query.limit if more else None,
    )


def _readable(user: Any, dag_id: str | None) -> list[str]:
    if dag_id is not None:
        if not apiserver.may_access(user, "GET", "AUDIT_LOG", dag_id):
            raise TurnedAway(403, f"You may not read the audit log of {dag_id}.")
        return [dag_id]
    return [
        dag
        for dag in sorted(apiserver.readable_dag_ids(user) & records.read_audited_dags((AUDIT_EVENT,)))
        if apiserver.may_access(user, "GET", "AUDIT_LOG", dag)
    ]


def _utc(since: datetime | None) -> datetime | None:
    if since is None:
        return None
    try:
        at = since.replace(tzinfo=timezone.utc) if since.tzinfo is None else since.astimezone(timezone.utc)
    except OverflowError:
        raise TurnedAway(400, "since is out of range.") from None
    return max(at, _EPOCH)


def _entry(line: records.AuditLine) -> AuditEntry:
    facts = _facts(line.extra)
    return AuditEntry(
        when=line.when,
        who=line.who,
        dag_id=line.dag_id or "",
        run_id=line.run_id,
        task_id=line.task_id,
        map_index=-1 if line.map_index is None else line.map_index,
        try_number=line.try_number,
        approval_key=facts.get("approval_key"),
        chosen_options=facts.get("chosen_options") or [],
        params_input=facts.get("params_input") or {},
        comment=facts.get("comment"),
        door=facts.get("door"),
        digest=facts.get("digest"),
    )


def _facts(extra: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(extra or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
