"""The triggerer's channel to its supervisor: read a request's answer and record a timeout's default.

On every Airflow version the process that runs triggers asks its supervisor, which runs the execution API in
its own process. The channel is awaited directly; a detour through a thread costs as much again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from airflow_handoff.exceptions import HandoffError


@dataclass(frozen=True)
class StoredAnswer:
    """The answer as a request's row holds it.

    :param responded_by_user: ``{"id", "name"}`` of the person, ``None`` for a timeout's default.
    """

    chosen_options: list[str]
    params_input: dict[str, Any]
    responded_at: datetime | None
    responded_by_user: dict[str, str] | None


class RequestGone(HandoffError, LookupError):
    """The request has no row, most likely because its task instance was cleared or deleted."""


class AlreadyAnswered(HandoffError):
    """The request got an answer before the default could be recorded."""


async def read_answer(ti_id: UUID) -> StoredAnswer | None:
    """Return the answer of a request, or ``None`` while there is none.

    :raises RequestGone: when the request does not exist.
    """
    from airflow.sdk.execution_time.comms import GetHITLDetailResponse

    return _stored(await _ask(GetHITLDetailResponse(ti_id=ti_id)))


async def record_default(
    ti_id: UUID, options: Sequence[str], params_input: dict[str, Any]
) -> StoredAnswer | None:
    """Answer a request with its default, in nobody's name.

    :raises AlreadyAnswered: when a person was faster.
    :raises RequestGone: when the request does not exist.
    """
    from airflow.sdk.execution_time.comms import UpdateHITLDetail

    message = UpdateHITLDetail(ti_id=ti_id, chosen_options=list(options), params_input=params_input)
    return _stored(await _ask(message))


async def _ask(message: Any) -> Any:
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time import task_runner

    channel: Any = task_runner.SUPERVISOR_COMMS
    try:
        if hasattr(channel, "asend"):
            return await channel.asend(message)
        # dag.test of Airflow 3.1 and 3.2 runs triggers on a channel that only knows the blocking way.
        return await asyncio.to_thread(channel.send, message)
    except AirflowRuntimeError as error:
        detail: Any = error.error.detail
        status = detail.get("status_code") if isinstance(detail, Mapping) else None
        if status == 404:
            raise RequestGone(f"there is no request for task instance {message.ti_id}") from error
        if status == 409:
            raise AlreadyAnswered(
                f"the request of task instance {message.ti_id} is already answered"
            ) from error
        raise


def _stored(response: Any) -> StoredAnswer | None:
    if not getattr(response, "response_received", False):
        return None
    user = response.responded_by_user
    return StoredAnswer(
        chosen_options=list(response.chosen_options or []),
        params_input=dict(response.params_input or {}),
        responded_at=response.responded_at,
        responded_by_user=None if user is None else {"id": str(user.id), "name": str(user.name)},
    )
