"""The door: every answer of a logged-in person is judged here, then written by Airflow itself.

An answer that is wrong gets a 4xx and the request stays open; an answer that Airflow would accept and lose,
or that would be fatal to its task, is held until it is neither. No database connection is held meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from starlette.concurrency import run_in_threadpool

from airflow_handoff.compat import answers, apiserver, records
from airflow_handoff.exceptions import HandoffError
from airflow_handoff.hitl.links import required_actions_url
from airflow_handoff.hitl.question import COMMENT, Answer, Respondent
from airflow_handoff.hitl.verdict import Refused, judge
from airflow_handoff.server import gates
from airflow_handoff.server.inner import Airflow, Reply
from airflow_handoff.server.resume import resume
from airflow_handoff.server.standing import OpenRequest, Standing

log = logging.getLogger(__name__)

#: Event of our own line in Airflow's audit log, one for each answer that got 200.
AUDIT_EVENT = "handoff_answer"
#: How long an answer waits for a task that has written its request and still runs, in seconds.
RUNNING_WAIT = 15.0
#: How often such a task is looked at, in seconds.
LOOK_EVERY = 0.4
#: After a lost race the request may still be open (a timer parked it again): look again so many times.
ATTEMPTS = 4


@dataclass(frozen=True)
class Place:
    """Where a request lives."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        mapped = f"/{self.map_index}" if self.map_index >= 0 else ""
        return f"{self.dag_id}/{self.run_id}/{self.task_id}{mapped}"


@dataclass(frozen=True)
class Given:
    """An answer as it came in.

    :param door: where: ``airflow`` (Airflow's own page and API) or the name of one of our routes.
    :param expected: what the reader saw, as far as it is known: ``digest``, ``try_number``, ``ti_id``.
    """

    chosen_options: tuple[str, ...]
    params_input: Mapping[str, Any]
    door: str
    expected: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Taken:
    """Airflow wrote the answer.

    :param reply: Airflow's own response.
    """

    reply: Reply
    request: OpenRequest


class TurnedAway(HandoffError):
    """The door does not take an answer now, or not this one.

    :param status: HTTP status.
    :param detail: one sentence for the person.
    :param facts: more members of the response's body.
    :param retry_after: seconds after which to try again.
    """

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None, **facts: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.facts = facts
        self.retry_after = retry_after


@dataclass(frozen=True)
class Door:
    """Takes answers for one api-server process.

    :param settle: how old a park has to be before it is answered.
    :param running_wait: how long to wait for a task that is about to park, in seconds.
    :param turn: held while Airflow writes: a lock where writes have to take turns.
    """

    settle: timedelta
    running_wait: float = RUNNING_WAIT
    turn: contextlib.AbstractAsyncContextManager[Any] = field(default_factory=contextlib.nullcontext)

    @classmethod
    @functools.cache
    def configured(cls) -> Door:
        """Return the one door of this process, as ``[handoff] settle_seconds`` says."""
        settle = timedelta(seconds=apiserver.setting("settle_seconds", 8))
        return cls(settle, turn=asyncio.Lock()) if answers.is_sqlite() else cls(settle)

    async def answer(self, place: Place, given: Given, user: Any, airflow: Airflow) -> Taken:
        """Judge, hold, and let Airflow write the answer in the caller's name.

        :param user: as Airflow's auth manager has it; may already answer requests of this Dag.
        :raises TurnedAway: with the status to respond.
        """
        seen: OpenRequest | None = None
        for attempt in range(ATTEMPTS):
            seen = await self._ready(place, given, user, seen)
            async with self.turn:
                reply = await self._write(seen, given, user, airflow)
                if reply.status == 200:
                    await self._after(seen, given, user)
                    return Taken(reply, seen)
            if reply.status != 409 or attempt == ATTEMPTS - 1:
                break
        raise _turned_by_airflow(reply)

    async def _ready(self, place: Place, given: Given, user: Any, seen: OpenRequest | None) -> OpenRequest:
        """Wait until the request may be answered, judging it before the wait and after it."""
        give_up = time.monotonic() + self.running_wait
        while True:
            now = await self._look(place)
            if seen is not None and not now.same_question_as(seen):
                raise self._asked_again(now)
            seen = seen or now
            if now.standing is Standing.BUSY:
                if time.monotonic() >= give_up:
                    raise _still_running()
                await asyncio.sleep(LOOK_EVERY)
                continue
            # A form's rules are its author's: a costly one must not stop everybody else.
            await run_in_threadpool(self._check, now, given, user)
            wait = now.settled_in(datetime.now(timezone.utc), self.settle)
            if wait <= 0:
                return now
            # Never up to the second: the park has to be older than the settle time, not as old.
            await asyncio.sleep(wait + 0.02)

    async def _look(self, place: Place) -> OpenRequest:
        record = await run_in_threadpool(
            records.read_request, place.dag_id, place.run_id, place.task_id, place.map_index
        )
        if record is None:
            raise TurnedAway(404, f"There is no task instance {place}.")
        return OpenRequest.of(record)

    def _check(self, request: OpenRequest, given: Given, user: Any) -> None:
        _check_standing(request)
        if any(value is not None and value != _fact(request, name) for name, value in given.expected.items()):
            raise self._asked_again(request)
        if request.state is None:
            return
        person = respondent(user)
        if not is_assigned(request, person):
            names = ", ".join(people.name for people in request.question.assigned_users)
            raise TurnedAway(403, f"{person.name} is not assigned to this request: {names} may answer.")
        answer = Answer(
            chosen_options=given.chosen_options,
            params_input=dict(given.params_input),
            respondent=person,
            door=given.door,
        )
        verdict = judge(request.state, answer)
        if isinstance(verdict, Refused):
            raise TurnedAway(
                400, " ".join(verdict.reasons), reasons=list(verdict.reasons), allowed=verdict.allowed
            )

    def _asked_again(self, request: OpenRequest) -> TurnedAway:
        if request.standing in (Standing.OPEN, Standing.BUSY):
            page = page_of(request)
            return TurnedAway(
                409,
                f"This request has been asked again since: read the open one, then answer it: {page}",
                open=page,
                **{name: _fact(request, name) for name in ("try_number", "digest")},
            )
        try:
            _check_standing(request)
        except TurnedAway as turned:
            return turned
        return TurnedAway(409, "This request is no longer open.")

    async def _write(self, request: OpenRequest, given: Given, user: Any, airflow: Airflow) -> Reply:
        record = request.record
        admit = None
        if request.state is not None and request.question.assigned_users:
            admit = {"id": user.get_id(), "name": str(user.get_name())}
        expectation = answers.Expectation(record.ti_id, record.next_kwargs, admit)
        with answers.expecting(expectation):
            return await airflow.call(
                "PATCH",
                *("dags", record.dag_id, "dagRuns", record.run_id, "taskInstances", record.task_id),
                *(str(record.map_index), "hitlDetails"),
                payload={
                    "chosen_options": list(given.chosen_options),
                    "params_input": dict(given.params_input),
                },
                judged=True,
            )

    async def _after(self, request: OpenRequest, given: Given, user: Any) -> None:
        """Resume and write the audit line; the answer has its 200 whatever happens here."""
        try:
            await run_in_threadpool(resume, request.record, self.settle)
        except Exception:
            log.exception("The task of %s resumes with its trigger's next poll", request.record.task_id)
        try:
            await run_in_threadpool(
                records.write_audit, AUDIT_EVENT, request.record, str(user.get_name()), _audit(request, given)
            )
        except Exception:
            log.exception("The door of the answer to %s is not in the audit log", request.record.task_id)


def respondent(user: Any) -> Respondent:
    """Return who calls, with ids as text."""
    return Respondent(id=str(user.get_id()), name=str(user.get_name()))


def is_assigned(request: OpenRequest, person: Respondent) -> bool:
    """Say whether *person* may answer, by id or name, compared as text."""
    people = request.question.assigned_users
    return not people or person.is_one_of(people)


def page_of(request: OpenRequest) -> str:
    """Return the address of Airflow's page for the request; without a base_url its path only."""
    record = request.record
    base = apiserver.base_url()
    absolute = base.startswith(("http://", "https://"))
    url = required_actions_url(
        base if absolute else "http://airflow.invalid",
        dag_id=record.dag_id,
        run_id=record.run_id,
        task_id=record.task_id,
        map_index=record.map_index,
    )
    return url if absolute else url.removeprefix("http://airflow.invalid")


def is_ours(record: records.RequestRecord) -> bool:
    """Say whether answers to this request come through the door.

    Those of our operators do, by the serialized Dag where the task is not parked. So do those of programs in
    other languages: their options are Airflow's to judge, but an early answer is as fatal to them.
    """
    if record.foreign and record.row is not None:
        return True
    request = OpenRequest.of(record)
    return request.state is not None or record.task_id in gates.of_dag(record.dag_id, record.dag_version_id)


def _check_standing(request: OpenRequest) -> None:
    standing = request.standing
    if standing is Standing.ANSWERED:
        raise TurnedAway(409, "This request has already been answered.")
    if standing is Standing.OVER:
        state = request.record.state
        raise TurnedAway(409, f"This request is no longer open: its task is {state} and does not wait.")
    if standing is Standing.NOT_ASKED:
        if request.record.row is None:
            raise TurnedAway(404, f"Nothing has been asked by {request.record.task_id} yet.")
        raise TurnedAway(
            409, "This request is not open yet: its task was cleared or retried and has to ask again."
        )


def _still_running() -> TurnedAway:
    return TurnedAway(
        425, "The task that asks this is still running: try again when it waits.", retry_after=5
    )


def _fact(request: OpenRequest, name: str) -> Any:
    record = request.record
    return {"digest": request.digest, "try_number": record.try_number, "ti_id": record.ti_id}[name]


def _turned_by_airflow(reply: Reply) -> TurnedAway:
    if reply.status >= 500:
        return TurnedAway(502, "Airflow could not write the answer: see the api-server's log.")
    body = reply.json()
    detail = body.get("detail") if isinstance(body, dict) else None
    return TurnedAway(reply.status, detail if isinstance(detail, str) else json.dumps(detail))


def _audit(request: OpenRequest, given: Given) -> str:
    inputs = {name: value for name, value in given.params_input.items() if name != COMMENT}
    facts = {
        "door": given.door,
        "digest": request.digest,
        "approval_key": request.state.approval_key if request.state else request.record.task_id,
        "ti_id": request.record.ti_id,
        "chosen_options": list(given.chosen_options),
        "params_input": inputs,
        "comment": given.params_input.get(COMMENT),
        "level": request.state.level if request.state else 0,
    }
    return json.dumps(facts)
