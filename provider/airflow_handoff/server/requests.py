"""Airflow's list of requests and one request, with what this package knows of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool

from airflow_handoff.compat import apiserver, records
from airflow_handoff.compat.versions import HAS_ANSWER_HISTORY
from airflow_handoff.exceptions import HandoffError
from airflow_handoff.hitl.state import Refusal, RequestState
from airflow_handoff.server import assignees
from airflow_handoff.server.answer import Place, TurnedAway, respondent
from airflow_handoff.server.inner import Airflow, Reply
from airflow_handoff.server.models import HandoffFacts, Person, Requests, Vote

#: Filters of Airflow's list that all supported versions know; newer ones are handed on as they come.
_TEXT_FILTERS = (
    *("dag_id_pattern", "task_id", "task_id_pattern", "subject_search", "body_search"),
    *("created_at_gte", "created_at_gt", "created_at_lte", "created_at_lt"),
)
_LIST_FILTERS = ("state", "responded_by_user_id", "responded_by_user_name", "order_by")

# Airflow hands larger numbers to the database, which fails.
_MAX_DIGITS = 9


def _filter(name: str, schema: Mapping[str, Any], text: str = "As in Airflow's list.") -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": text}


FILTERS = [
    _filter("dag_id", {"type": "string"}, "Requests of one Dag."),
    _filter("run_id", {"type": "string"}, "Requests of the runs with this id."),
    _filter("limit", {"type": "integer", "default": 50, "minimum": 0}, "Airflow gives at most 100."),
    _filter("offset", {"type": "integer", "default": 0, "minimum": 0}),
    _filter("response_received", {"type": "boolean"}, "false: what is open."),
    _filter("map_index", {"type": "integer"}),
    *(_filter(name, {"type": "string"}) for name in _TEXT_FILTERS),
    *(_filter(name, {"type": "array", "items": {"type": "string"}}) for name in _LIST_FILTERS),
]


async def listed(query: str, user: Any, way: Airflow) -> Requests:
    """List requests that the caller may read.

    :param query: Airflow's filters and our two, URL-encoded.
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    for name, value in pairs:
        if name in ("map_index", "limit", "offset") and len(value) > _MAX_DIGITS:
            raise TurnedAway(400, f"{name} is out of range.")
    ours = {name: value for name, value in pairs if name in ("dag_id", "run_id")}
    for name, value in ours.items():
        # It goes into a path, where it would name another of Airflow's routes.
        if "/" in value:
            raise TurnedAway(400, f"{name} cannot have a slash: give one id.")
    rest = urlencode([pair for pair in pairs if pair[0] not in ours]).encode()
    dag_id, run_id = ours.get("dag_id") or "~", ours.get("run_id") or "~"
    reply = await way.call("GET", "dags", dag_id, "dagRuns", run_id, "hitlDetails", query=rest)
    page = _content(reply)
    await _enrich(page["hitl_details"], user)
    return Requests(hitl_details=page["hitl_details"], total_entries=page["total_entries"])


async def shown(place: Place, try_number: int | None, user: Any, way: Airflow) -> dict[str, Any]:
    """Show one request that the caller may read.

    :param try_number: an earlier attempt; needs Airflow 3.2.
    """
    path = [*("dags", place.dag_id, "dagRuns", place.run_id, "taskInstances", place.task_id)]
    path += [str(place.map_index), "hitlDetails"]
    found: dict[str, Any]
    if try_number is not None and not HAS_ANSWER_HISTORY:
        found = _content(await way.call("GET", *path))
        if found["task_instance"].get("try_number") != try_number:
            raise TurnedAway(404, "Airflow keeps the questions of earlier tries from version 3.2 on.")
    else:
        tries = () if try_number is None else ("tries", str(try_number))
        found = _content(await way.call("GET", *path, *tries))
    if try_number is None or (found.get("task_instance") or {}).get("try_number") == try_number:
        await _enrich([found], user)
    return {"handoff": None, **found}


def _content(reply: Reply) -> Any:
    body = reply.json()
    if reply.status == 200 and isinstance(body, dict):
        return body
    detail = body.get("detail") if isinstance(body, dict) else None
    if reply.status >= 500 or detail is None:
        raise TurnedAway(502, "Airflow's own route failed: see the api-server's log.")
    text = detail if isinstance(detail, str) else "Airflow refused the request."
    raise TurnedAway(reply.status, text, **({} if isinstance(detail, str) else {"reasons": detail}))


async def _enrich(items: list[dict[str, Any]], user: Any) -> None:
    await run_in_threadpool(_enriched, items, user)


def _enriched(items: list[dict[str, Any]], user: Any) -> None:
    places = {index: _place(item) for index, item in enumerate(items)}
    known = records.read_kwargs([place for place in places.values() if place is not None])
    may: dict[str, bool] = {}
    for index, item in enumerate(items):
        place = places[index]
        kwargs, updated_at = known.get(place, (None, None)) if place else (None, None)
        state = _state(kwargs)
        item["handoff"] = None
        if state is None or place is None:
            continue
        if place[0] not in may:
            may[place[0]] = apiserver.may_access(user, "PUT", "HITL_DETAIL", place[0])
        item["handoff"] = facts(state, updated_at, user, may[place[0]]).model_dump(mode="json")


def _state(kwargs: Any) -> RequestState | None:
    """Read what is known of a request; one that cannot be read does not keep the others from being shown."""
    try:
        return RequestState.from_kwargs(kwargs)
    except (HandoffError, ValueError):
        return None


def _place(item: Mapping[str, Any]) -> tuple[str, str, str, int] | None:
    task = item.get("task_instance")
    if not isinstance(task, Mapping):
        return None
    return task["dag_id"], task["dag_run_id"], task["task_id"], task["map_index"]


def facts(state: RequestState, parked_at: datetime | None, user: Any, may_answer: bool) -> HandoffFacts:
    """Return what the resume kwargs say about a request, for one reader.

    :param may_answer: whether the reader may answer requests of this Dag at all.
    """
    settle = timedelta(seconds=apiserver.setting("settle_seconds", 8))
    people = state.question.assigned_users
    strangers = assignees.unknown(people)
    return HandoffFacts(
        approval_key=state.approval_key,
        kind=state.kind,
        digest=state.digest or state.question.digest,
        level=state.level,
        expires_at=state.deadline,
        answerable_at=None if parked_at is None else parked_at + settle,
        mine=may_answer and (not people or respondent(user).is_one_of(people)),
        assigned=[Person(id=person.id, name=person.name) for person in people],
        assigned_checked=strangers is not None,
        warnings=[assignees.sentence(person) for person in strangers or ()],
        votes=[
            Vote(
                by=vote.respondent.name if vote.respondent else None,
                at=vote.responded_at,
                options=list(vote.chosen_options),
                comment=vote.comment,
            )
            for vote in state.votes
        ],
        refused=[_refused(refusal) for refusal in state.refused],
    )


def _refused(refusal: Refusal) -> Vote:
    return Vote(
        by=refusal.respondent.name if refusal.respondent else None,
        at=refusal.at,
        options=list(refusal.chosen_options),
        reasons=list(refusal.reasons),
    )
