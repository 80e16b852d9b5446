"""The HTTP routes below ``/handoff``, and the door in front of Airflow's own answer route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.routing import APIRouter

from airflow_handoff import __version__
from airflow_handoff.compat import answers, apiserver
from airflow_handoff.hitl.question import COMMENT
from airflow_handoff.server import audit, requests, runs, seen
from airflow_handoff.server.answer import Door, Given, Place, Taken, TurnedAway
from airflow_handoff.server.caller import JSON_ONLY, Index, Name, User, Way, handle_errors
from airflow_handoff.server.inner import Airflow, ASGIApp
from airflow_handoff.server.limits import Limits
from airflow_handoff.server.models import (
    AnswerTaken,
    Approval,
    Audit,
    Choice,
    Problem,
    Requests,
    RunStatus,
    Service,
)
from airflow_handoff.server.standing import OpenRequest

APPROVE, REJECT = "Approve", "Reject"

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "The answer breaks a rule of the question; the request stays open.",
        401: "Nobody is logged in.",
        403: "The caller may not do this, or is not assigned.",
        404: "There is no such run or gate, or it has not asked anything yet.",
        409: "Answered, no longer waiting, not asked again yet, or asked again; or the run id is ambiguous.",
        413: "The body is too large.",
        415: "The body is not application/json.",
        425: "The task still runs: try again after Retry-After seconds.",
    }.items()
}
_READ: dict[int | str, dict[str, Any]] = {status: _PROBLEMS[status] for status in (400, 401, 403, 404, 409)}

_SERVICE: dict[int | str, dict[str, Any]] = {401: _PROBLEMS[401]}

router = APIRouter(prefix="/v1")


def _door(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


TheDoor = Annotated[Door, Depends(_door)]


@dataclass(frozen=True)
class Gate:
    """A gate as the address names it."""

    dag_id: str | None
    run_id: str
    approval_key: str
    map_index: int | None


class Answering:
    """A caller before the door."""

    def __init__(self, user: Any, way: Airflow, door: Door) -> None:
        self._user, self._way, self._door = user, way, door

    async def approve(self, gate: Gate, body: Approval) -> AnswerTaken:
        """Choose Approve or Reject where these are the options."""
        request = await self._find(gate)
        options = request.question.options
        if set(options) != {APPROVE, REJECT}:
            raise TurnedAway(
                400,
                f"This gate has other options than {APPROVE} and {REJECT}: choose from "
                f"{', '.join(options)} with .../answer/{gate.approval_key}.",
                allowed={"options": list(options), "multiple": request.question.multiple},
            )
        chosen = (APPROVE if body.approved else REJECT,)
        return await self._answer(request, gate, _given(chosen, body, "approve"))

    async def answer(self, gate: Gate, chosen: tuple[str, ...], body: Choice) -> AnswerTaken:
        """Choose options."""
        return await self._answer(await self._find(gate), gate, _given(chosen, body, "answer"))

    async def _find(self, gate: Gate) -> OpenRequest:
        return await runs.find_gate(self._user, gate.dag_id, gate.run_id, gate.approval_key, gate.map_index)

    async def _answer(self, request: OpenRequest, gate: Gate, given: Given) -> AnswerTaken:
        record = request.record
        place = Place(record.dag_id, record.run_id, record.task_id, record.map_index)
        taken = await self._door.answer(place, given, self._user, self._way)
        return _taken(taken, gate.approval_key)


def _answering(user: User, way: Way, door: TheDoor) -> Answering:
    return Answering(user, way, door)


Asking = Annotated[Answering, Depends(_answering)]
Mapped = Annotated[Index | None, Query(description="Which instance of a mapped task.")]


@router.post("/runs/{run_id}/approve/{approval_key:path}", responses=_PROBLEMS, dependencies=[JSON_ONLY])
async def approve(
    run_id: Name, approval_key: Name, body: Approval, asked: Asking, map_index: Mapped = None
) -> AnswerTaken:
    """Approve or reject a gate of the run with this id."""
    return await asked.approve(Gate(None, run_id, approval_key, map_index), body)


@router.post(
    "/dags/{dag_id}/runs/{run_id}/approve/{approval_key:path}", responses=_PROBLEMS, dependencies=[JSON_ONLY]
)
async def approve_in_dag(
    dag_id: Name, run_id: Name, approval_key: Name, body: Approval, asked: Asking, map_index: Mapped = None
) -> AnswerTaken:
    """Approve or reject a gate of one Dag's run."""
    return await asked.approve(Gate(dag_id, run_id, approval_key, map_index), body)


@router.post("/runs/{run_id}/answer/{approval_key:path}", responses=_PROBLEMS, dependencies=[JSON_ONLY])
async def answer(
    run_id: Name, approval_key: Name, body: Choice, asked: Asking, map_index: Mapped = None
) -> AnswerTaken:
    """Choose options at a gate of the run with this id."""
    return await asked.answer(Gate(None, run_id, approval_key, map_index), tuple(body.options), body)


@router.post(
    "/dags/{dag_id}/runs/{run_id}/answer/{approval_key:path}", responses=_PROBLEMS, dependencies=[JSON_ONLY]
)
async def answer_in_dag(
    dag_id: Name, run_id: Name, approval_key: Name, body: Choice, asked: Asking, map_index: Mapped = None
) -> AnswerTaken:
    """Choose options at a gate of one Dag's run."""
    return await asked.answer(Gate(dag_id, run_id, approval_key, map_index), tuple(body.options), body)


@router.get("/runs/{run_id}", responses=_READ)
async def run_status(run_id: Name, user: User) -> RunStatus:
    """Say where the run with this id stands: metadata only, never what was asked."""
    return await runs.status(user, None, run_id)


@router.get("/dags/{dag_id}/runs/{run_id}", responses=_READ)
async def run_status_in_dag(dag_id: Name, run_id: Name, user: User) -> RunStatus:
    """Say where one Dag's run stands: metadata only, never what was asked."""
    return await runs.status(user, dag_id, run_id)


@router.get("/requests", responses=_READ, openapi_extra={"parameters": requests.FILTERS})
async def list_requests(request: Request, user: User, way: Way) -> Requests:
    """List requests as Airflow does, with all of its filters, and what this package knows of each."""
    return await requests.listed(request.url.query, user, way)


@router.get("/dags/{dag_id}/runs/{run_id}/requests/{task_id}", responses=_READ)
async def show_request(
    dag_id: Name,
    run_id: Name,
    task_id: Name,
    user: User,
    way: Way,
    map_index: Index = -1,
    try_number: Annotated[int | None, Query(alias="try", ge=1, le=2**31 - 1)] = None,
) -> dict[str, Any]:
    """Show one request as Airflow does, with a member ``handoff``; an earlier try from Airflow 3.2 on."""
    return await requests.shown(Place(dag_id, run_id, task_id, map_index), try_number, user, way)


@router.get("/audit", responses=_READ)
async def read_audit(user: User, query: Annotated[audit.AuditQuery, Query()]) -> Audit:
    """List who answered what, oldest first: every try and every vote."""
    return await audit.read(user, query)


@router.get("/service", responses=_SERVICE)
async def service(_user: User, door: TheDoor) -> Service:
    """Say what this api-server runs."""
    return Service(
        version=__version__,
        settle_seconds=door.settle.total_seconds(),
        guard_airflow_api=apiserver.switch("guard_airflow_api", True),
    )


def _given(chosen: tuple[str, ...], body: Approval | Choice, door: str) -> Given:
    inputs = dict(body.data)
    if body.comment is not None:
        if COMMENT in inputs:
            raise TurnedAway(400, "The comment came twice: beside data and in it.")
        inputs[COMMENT] = body.comment
    expected = {"digest": body.digest, "try_number": body.try_number}
    return Given(chosen, inputs, door, expected)


def _taken(taken: Taken, approval_key: str) -> AnswerTaken:
    record, reply = taken.request.record, taken.reply.json() or {}
    return AnswerTaken(
        dag_id=record.dag_id,
        run_id=record.run_id,
        task_id=record.task_id,
        map_index=record.map_index,
        approval_key=approval_key,
        try_number=record.try_number,
        chosen_options=reply.get("chosen_options") or [],
        responded_by=reply.get("responded_by"),
        responded_at=reply.get("responded_at"),
        digest=taken.request.digest,
    )


def _app(**options: Any) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, version=__version__, **options)
    handle_errors(app)
    answers.watch_writes()
    app.state.door = Door.configured()
    return app


def build() -> ASGIApp:
    """Build the routes that Airflow mounts at ``/handoff``."""
    app = _app(title="Handoff", description="Answer the requests of waiting Airflow runs.")
    app.include_router(router)
    return Limits(app)


Payload = apiserver.answer_payload_model()


async def _airflow_answer(
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    map_index: int,
    payload: Payload,  # type: ignore[valid-type]
    request: Request,
    user: User,
    way: Way,
    door: TheDoor,
) -> Response:
    inputs = dict(payload.params_input)  # type: ignore[attr-defined]
    shown = inputs.pop(seen.FIELD, request.headers.get(seen.HEADER.decode()))
    expected = {} if shown is None else seen.expectation(shown)
    given = Given(tuple(payload.chosen_options), inputs, "airflow", expected)  # type: ignore[attr-defined]
    taken = await door.answer(Place(dag_id, dag_run_id, task_id, map_index), given, user, way)
    reply = taken.reply
    response = Response(reply.body, reply.status)
    response.raw_headers = list(reply.headers)
    return response


def airflow_doors() -> ASGIApp:
    """Build what stands in front of Airflow's own answer route, at the same path."""
    app = _app(openapi_url=None)
    app.patch(
        "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/{map_index}/hitlDetails",
        dependencies=[Depends(apiserver.access_dependency("PUT", "HITL_DETAIL"))],
    )(_airflow_answer)
    return Limits(app)
