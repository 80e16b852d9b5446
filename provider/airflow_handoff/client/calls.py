"""What a client says to the api-server, without saying it: each operation is a generator of calls.

It yields a :class:`Call` and is sent the :class:`Reply`, or yields a :class:`Pause` and is sent ``None``. The
synchronous and the asynchronous client drive the same generators, so there is one account of every rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from airflow_handoff.client.errors import (
    AnswerRejected,
    ClientError,
    InvalidUse,
    NotAllowed,
    NotAuthenticated,
    NotOpen,
    NotSettled,
    RequestNotFound,
    RunFailed,
    RunInterrupted,
    ServerUnreachable,
    WaitTimedOut,
)
from airflow_handoff.client.reference import RequestRef
from airflow_handoff.client.request import Request

T = TypeVar("T")

#: Airflow returns at most so many entries a page.
PAGE = 100
#: Header of an answer that says what its giver has read: attempt and digest.
SEEN = "Handoff-Seen"
#: How long an answer is sent again while its task has not finished asking, in seconds.
SETTLE_PATIENCE = 60.0
NO_ROUTES = (
    "the server has no /handoff routes: they need airflow-provider-handoff installed in the api-server's "
    "environment"
)


@dataclass(frozen=True)
class Call:
    """One HTTP request below the server's base URL."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pause:
    """Nothing to say for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """What came back.

    :param body: decoded JSON, or the text where it is not JSON.
    """

    status: int
    body: Any
    retry_after: float | None = None
    location: str | None = None


Operation = Generator["Call | Pause", "Reply | None", T]


def ask(call: Call) -> Operation[Any]:
    """Make one call and return its body, a JSON object.

    :raises ClientError: the class that fits the status.
    """
    reply = yield call
    if reply is None:  # pragma: no cover - a driver that breaks the protocol
        raise TypeError("the driver sent no reply")
    if 200 <= reply.status < 300 and isinstance(reply.body, Mapping):
        return reply.body
    # Airflow serves its page for every address that it does not know, and only for GET.
    if reply.status in (200, 405) and call.path.startswith("/handoff/"):
        raise RequestNotFound(NO_ROUTES, status=reply.status)
    if 300 <= reply.status < 400:
        raise ServerUnreachable(
            f"{call.path} is redirected to {reply.location or 'another address'}: is the URL the "
            "api-server's, with its path, and the token one of its API?",
            status=reply.status,
        )
    if 200 <= reply.status < 300:
        raise ServerUnreachable(
            f"{call.path} gave no JSON object: is the URL the api-server's, with its path?",
            status=reply.status,
        )
    raise error_of(reply, call)


def error_of(reply: Reply, call: Call) -> ClientError:
    """Turn an unsuccessful reply into the error of its kind."""
    detail = _detail(reply.body) or f"{call.method} {call.path} got HTTP {reply.status}"
    if reply.status in (425, 429):
        return NotSettled(
            detail,
            retry_after=1.0 if reply.retry_after is None else reply.retry_after,
            status=reply.status,
            body=reply.body,
        )
    choices = [
        option for name, option in _CHOICES.items() if isinstance(reply.body, Mapping) and name in reply.body
    ]
    if reply.status == 409 and choices:
        return InvalidUse(f"{detail} (with `handoff approve`: {choices[0]})", status=409, body=reply.body)
    if reply.status in (400, 422) and (call.method == "GET" or _is_of_the_address(reply.body)):
        return InvalidUse(detail, status=reply.status, body=reply.body)
    kinds: dict[int, type[ClientError]] = {
        400: AnswerRejected,
        401: NotAuthenticated,
        403: NotAllowed,
        404: RequestNotFound,
        409: NotOpen,
        413: AnswerRejected,
        415: AnswerRejected,
        422: AnswerRejected,
    }
    kind = kinds.get(reply.status, ServerUnreachable if reply.status >= 500 else ClientError)
    if kind is NotAuthenticated:
        detail += " (the token is missing, wrong or expired: run `handoff login`)"
    return kind(detail, status=reply.status, body=reply.body)


#: Members of a 409 that says that an address fits several gates, and what a command says then.
_CHOICES = {"dags": "--dag-id", "map_indexes": "--map-index", "task_ids": "the task id as KEY"}


def _is_of_the_address(body: Any) -> bool:
    """Say whether a reply finds fault with the address of a call, not with the answer in it."""
    found = body.get("detail") if isinstance(body, Mapping) else None
    items = found if isinstance(found, list) else []
    places = [item.get("loc") or [None] for item in items if isinstance(item, Mapping)]
    return bool(places) and all(place[0] in ("query", "path") for place in places)


def part(body: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return one member of a reply.

    :raises ServerUnreachable: if it is missing or no *kind*: what answers is no Airflow that is known here.
    """
    value = body.get(name)
    if not isinstance(value, kind):
        raise ServerUnreachable(
            f"the reply has no {name}: is the URL the api-server's, and airflow-provider-handoff up to date?"
        )
    return value


def _request(detail: Any) -> Request:
    try:
        return Request.from_detail(detail)
    except (KeyError, TypeError, AttributeError) as error:
        raise ServerUnreachable(
            f"a request in the reply cannot be read ({type(error).__name__}: {error}): "
            "is the URL the api-server's, and airflow-provider-handoff up to date?"
        ) from None


def _detail(body: Any) -> str:
    if not isinstance(body, Mapping):
        return ""
    detail = body.get("detail") or ""
    if isinstance(detail, Mapping):
        reasons = detail.get("reasons")
        detail = "; ".join(map(str, reasons)) if reasons else detail.get("message", detail)
    if isinstance(detail, list):
        return "; ".join(
            f"{'.'.join(map(str, item.get('loc', ())))}: {item.get('msg')}"
            if isinstance(item, Mapping)
            else str(item)
            for item in detail
        )
    return str(detail)


def list_requests(
    filters: Mapping[str, Any] | None = None, *, dag_id: str = "~", run_id: str = "~"
) -> Operation[list[Request]]:
    """Follow every page of the list: the plugin's, which knows more of each request, else Airflow's own.

    :param filters: Airflow's own query parameters; ``None`` values are left out.
    """
    scope = {name: value for name, value in (("dag_id", dag_id), ("run_id", run_id)) if value != "~"}
    try:
        return (yield from _all_pages("/handoff/v1/requests", {**(filters or {}), **scope}))
    except RequestNotFound:
        path = f"/api/v2/dags/{quote(dag_id, safe='~')}/dagRuns/{quote(run_id, safe='~')}/hitlDetails"
        return (yield from _all_pages(path, filters or {}))


def _all_pages(path: str, filters: Mapping[str, Any]) -> Operation[list[Request]]:
    chosen = {name: value for name, value in filters.items() if value is not None}
    found: dict[tuple[str, str, RequestRef], Request] = {}
    offset, before = 0, 0
    while True:
        page = yield from ask(
            Call("GET", path, {"order_by": "created_at", **chosen, "limit": PAGE, "offset": offset})
        )
        details: list[Any] = part(page, "hitl_details", list)
        for request in map(_request, details):
            found.setdefault((*request.identity, request.ref), request)
        total: int = part(page, "total_entries", int)
        # What was answered between two pages moved the rest forward: this page began as much too late.
        late, before = max(0, before - total), total
        offset += -min(late, offset) if late else len(details)
        if not late and (not details or offset >= total):
            return list(found.values())


def pending(
    filters: Mapping[str, Any] | None = None, *, dag_id: str = "~", run_id: str = "~", user: str | None = None
) -> Operation[list[Request]]:
    """List what waits for an answer, oldest first.

    :param user: keep only requests that this person (an id or a name) may answer.
    """
    requests = yield from list_requests(
        {"response_received": "false", **(filters or {})}, dag_id=dag_id, run_id=run_id
    )
    return [r for r in requests if r.waiting and (user is None or r.open_to(user))]


def show(ref: RequestRef, try_number: int | None = None) -> Operation[Request]:
    """Read one request.

    :param try_number: an earlier attempt's question and answer (Airflow 3.2 and later).
    """
    dag, run, task = (quote(part, safe="") for part in (ref.dag_id, ref.run_id, ref.task_id))
    known = f"/handoff/v1/dags/{dag}/runs/{run}/requests/{task}"
    params = {"map_index": ref.map_index, **({} if try_number is None else {"try": try_number})}
    try:
        return _request((yield from ask(Call("GET", known, params))))
    except RequestNotFound:
        # No plugin there, or no such request: Airflow itself says which.
        path = ref.path if try_number is None else f"{ref.path}/tries/{try_number}"
        return _request((yield from ask(Call("GET", path))))


def answer(
    ref: RequestRef,
    options: list[str],
    params_input: Mapping[str, Any] | None = None,
    comment: str | None = None,
    *,
    try_number: int | None = None,
    digest: str | None = None,
    patience: float = SETTLE_PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> Operation[dict[str, Any]]:
    """Answer one request through Airflow's own route, which the guard judges where the plugin is loaded.

    The request is read first, and the answer says what was read: if another question is open by the time it
    is written, it is not taken.

    :param comment: travels as the form field ``comment``.
    :param try_number: the attempt whose question is meant.
    :param digest: digest of the question that is meant; needs the plugin.
    :raises NotOpen: also where another attempt or another question is open.
    :param patience: seconds to go on while the task has not finished asking.
    """
    form = dict(params_input or {})
    if comment is not None:
        form["comment"] = comment
    seen = yield from _seen(ref, try_number, digest)
    payload = {"chosen_options": list(options), "params_input": form}
    call = Call("PATCH", ref.path, json=payload, headers={SEEN: seen} if seen else {})
    body: dict[str, Any] = yield from _patiently(call, patience, clock)
    return body


def _seen(ref: RequestRef, try_number: int | None, digest: str | None) -> Operation[str | None]:
    try:
        request = yield from show(ref)
    except RequestNotFound:
        if try_number is not None or digest is not None:
            raise
        return None  # the answer will be told why
    if digest is not None and request.digest is None:
        raise NotOpen(
            "no question of airflow-provider-handoff is open there: leave the digest out for any other"
        )
    if try_number not in (None, request.try_number) or digest not in (None, request.digest):
        raise NotOpen(
            f"another question is open: try {request.try_number}, digest {request.digest or 'unknown'}; "
            f"read it with `handoff show {ref}`, then answer it"
        )
    return f"{request.ti_id}:{request.digest or ''}" if request.ti_id else None


def decide(
    run_id: str,
    approval_key: str,
    approved: bool,
    *,
    data: Mapping[str, Any] | None = None,
    comment: str | None = None,
    dag_id: str | None = None,
    map_index: int | None = None,
    try_number: int | None = None,
    digest: str | None = None,
    patience: float = SETTLE_PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> Operation[dict[str, Any]]:
    """Approve or reject a gate by its key, through the approve route.

    :param try_number: the attempt whose question is meant.
    :param digest: digest of the question that is meant.

    :raises RequestNotFound: also where the plugin is not loaded, since there is no such route then.
    """
    payload: dict[str, Any] = {"approved": approved, "data": dict(data or {})}
    if comment is not None:
        payload["comment"] = comment
    meant = {"try_number": try_number, "digest": digest}
    payload.update({name: value for name, value in meant.items() if value is not None})
    path = f"{run_path(run_id, dag_id)}/approve/{quote(approval_key, safe='')}"
    params = {} if map_index is None else {"map_index": map_index}
    body: dict[str, Any] = yield from _patiently(Call("POST", path, params, payload), patience, clock)
    return body


def _patiently(call: Call, patience: float, clock: Callable[[], float]) -> Operation[Any]:
    """Send an answer again for as long as the server says that it is too early for it."""
    give_up = clock() + patience
    while True:
        try:
            return (yield from ask(call))
        except NotSettled as early:
            if clock() + early.retry_after > give_up:
                raise
            yield Pause(early.retry_after)


def trigger(dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> Operation[str]:
    """Start a run and return its id."""
    payload: dict[str, Any] = {"conf": dict(conf or {}), "logical_date": None}
    if run_id is not None:
        payload["dag_run_id"] = run_id
    body = yield from ask(Call("POST", f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns", json=payload))
    return str(part(body, "dag_run_id", str))


def run_path(run_id: str, dag_id: str | None = None) -> str:
    """Path of one run below the plugin's prefix."""
    scope = "" if dag_id is None else f"/dags/{quote(dag_id, safe='')}"
    return f"/handoff/v1{scope}/runs/{quote(run_id, safe='')}"


def run_status(run_id: str, dag_id: str | None = None) -> Operation[dict[str, Any]]:
    """Read where a run stands: ``status``, ``interrupts``, ``error``, ``outcome`` and ``result``."""
    body: dict[str, Any] = yield from ask(Call("GET", run_path(run_id, dag_id)))
    return body


def wait(
    run_id: str,
    dag_id: str | None = None,
    *,
    timeout: float | None = None,
    every: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
) -> Operation[dict[str, Any]]:
    """Follow a run until it completes, and return its status.

    :param timeout: seconds; ``None`` waits without a limit.
    :param every: seconds between two looks.
    :raises RunInterrupted: as soon as a gate of the run is open.
    :raises RunFailed: if the run failed.
    :raises WaitTimedOut: if it was still going after ``timeout``.
    """
    give_up = None if timeout is None else clock() + timeout
    while True:
        status = yield from run_status(run_id, dag_id)
        state = part(status, "status", str)
        if state == "Completed":
            return status
        if state == "Failed":
            raise RunFailed(run_id, (status.get("error") or {}).get("code"), status)
        if state == "Interrupted":
            interrupts = part(status, "interrupts", list)
            first = interrupts[0] if interrupts and isinstance(interrupts[0], Mapping) else {}
            raise RunInterrupted(run_id, part(first, "approval_key", str), interrupts)
        if give_up is not None and clock() + every > give_up:
            raise WaitTimedOut(f"run {run_id} was still {state} after {timeout:g} s", body=status)
        yield Pause(every)


def login(username: str, password: str) -> Operation[str]:
    """Trade a name and a password for a token of Airflow's API."""
    body = yield from ask(Call("POST", "/auth/token", json={"username": username, "password": password}))
    token = body.get("access_token") if isinstance(body, Mapping) else None
    if not token:
        raise InvalidUse(
            "the server's /auth/token gave no access_token: its auth manager has another way to log in"
        )
    return str(token)
