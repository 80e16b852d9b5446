"""A request while it waits: ask, park, judge what comes back, finish or ask again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_handoff.compat import comms, standard
from airflow_handoff.compat.park import execution_timeout_paused, park, settle_time, unusable_answer
from airflow_handoff.hitl.question import Answer, Question, json_problems
from airflow_handoff.hitl.state import HANDOFF_KEY, MAX_REFUSED, Refusal, RequestState
from airflow_handoff.hitl.verdict import Accepted, Refused, judge, judge_defaults
from airflow_handoff.operators import asking, outcomes
from airflow_handoff.operators.outcomes import HumanTimeout, RequestLost, TooManyRefused
from airflow_handoff.operators.request import Notifier, RequestOperator

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.triggers.base import BaseTrigger

#: Our operators by the name of the standard operator that each stands for.
STANDS_FOR: dict[str, type] = {}


class WaitingOperator(RequestOperator):
    """The life of a request; see :class:`airflow_handoff.operators.hitl.HITLOperator`."""

    #: What the task was parked with, once it goes on.
    _parked: RequestState | None = None

    def execute(self, context: Context) -> Any:
        """Validate, notify, write the row, park: nothing slow happens once the request can be answered."""
        self._ask(context, self._new_state(context))

    def _new_state(self, context: Context) -> RequestState:
        """Read the rendered arguments.

        :raises InvalidQuestion: if they make no question.
        """
        ti = context["ti"]
        # No option is no answer: as without defaults, a timeout then fails the task.
        defaults = asking.texts(self.defaults) or None if self.defaults is not None else None
        question = asking.question(
            subject=self.subject,
            body=self.body,
            options=self.options,
            defaults=defaults,
            multiple=self.multiple,
            form=self.form,
            assigned_users=self.assigned_users,
        )
        return RequestState(
            approval_key=asking.key(self.approval_key or self.task_id),
            kind=self.kind,
            question=question,
            defaults=None if defaults is None else tuple(defaults),
            digest=question.digest,
            try_number=ti.try_number,
            ti_id=str(ti.id),
            deadline=self._deadline(),
        )

    def _deadline(self, start: datetime | None = None) -> datetime | None:
        wait = asking.timeout(self.response_timeout)
        return None if wait is None else (start or _utcnow()) + wait

    def _ask(self, context: Context, state: RequestState) -> NoReturn:
        """Notify, write the row and park; the deadline moves on by what the notifiers took."""
        self._show(state)
        before = _utcnow()
        self._notify(context)
        if state.deadline is not None:
            state = state.model_copy(update={"deadline": state.deadline + (_utcnow() - before)})
        self._show(state)
        settles = settle_time()
        self._write_row(context, state)
        now = _utcnow()
        # A timeout that resumes the task before the park has settled would be as fatal as such an answer.
        ends = None if state.deadline is None else max(state.deadline, now + settles)
        park(
            self,
            trigger=lambda: self._trigger(context, state, ends),
            method_name="execute_complete",
            kwargs=state.to_kwargs(),
            timeout=None if ends is None else ends - now,
        )

    def _write_row(self, context: Context, state: RequestState) -> None:
        """Make the request answerable."""
        self.log.info("Asking %s: %s", state.approval_key, state.question.subject)
        row = comms.upsert_hitl_detail(
            ti_id=context["ti"].id,
            subject=state.question.subject,
            body=state.question.body,
            options=state.question.options,
            defaults=_row_defaults(state),
            multiple=state.question.multiple,
            params=self.serialized_params,
            assigned_users=[person.model_dump() for person in state.question.assigned_users],
        )
        self._warn_if_stale(row, state.question)

    def _trigger(self, context: Context, state: RequestState, ends: datetime | None) -> BaseTrigger:
        from airflow_handoff.triggers.hitl import HITLTrigger

        defaults = _row_defaults(state)
        return HITLTrigger(
            ti_id=context["ti"].id,
            options=list(state.question.options),
            params=self.serialized_params,
            defaults=None if defaults is None else list(defaults),
            multiple=state.question.multiple,
            timeout_datetime=ends,
        )

    def _warn_if_stale(self, row: Any, question: Question) -> None:
        """Say so where the reader sees an earlier round's question: Airflow keeps the first one for ever."""
        subject = getattr(row, "subject", question.subject)
        options = list(getattr(row, "options", question.options))
        if (subject, options) != (question.subject, list(question.options)):
            self.log.warning(
                "The reader will see the question of an earlier round, %r with the options %s, because the "
                "api-server has not loaded the plugin of airflow-provider-handoff.",
                subject,
                options,
            )

    def _show(self, state: RequestState) -> None:
        """Let notifiers and listeners see what is asked, not how it was written."""
        self.options = list(state.question.options)
        self.defaults = None if state.defaults is None else list(state.defaults)
        users = [person.model_dump() for person in state.question.assigned_users]
        self.assigned_users = users or None
        self.form = state.question.form
        deadline = state.deadline.isoformat() if state.deadline else None
        self.hitl_summary_extra["timeout_datetime"] = deadline

    def _notify(self, context: Context) -> None:
        if not self.notifiers:
            return
        standard.register_virtual_subclasses(STANDS_FOR, load=True)
        with execution_timeout_paused():
            for notifier in self.notifiers:
                try:
                    notifier(context)
                except (Exception, SystemExit):
                    self.log.exception("Notifier %s failed; the request opens all the same.", _name(notifier))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after the wait; an answer that Airflow could not hand over opens the request again."""
        reason = unusable_answer(next_method, next_kwargs)
        if reason is None:
            # Kept here, so that a subclass may override execute_complete as it is in the standard operators.
            self._parked = RequestState.from_kwargs(next_kwargs)
            kwargs = {name: value for name, value in (next_kwargs or {}).items() if name != HANDOFF_KEY}
            return super().resume_execution(next_method, kwargs, context)
        state = self._new_state(context)
        ti = context["ti"]
        # Without the index Airflow returns what all instances of a mapped task have pushed.
        known = ti.xcom_pull(key=outcomes.REFUSED_KEY, task_ids=self.task_id, map_indexes=_index(ti)) or []
        refused = tuple(Refusal.model_validate(item) for item in known)
        deadline = self._deadline(ti.start_date)
        state = state.model_copy(update={"refused": refused, "deadline": deadline})
        self._refuse(context, state, Refusal(reasons=(f"the form input cannot be stored: {reason}.",)))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Judge the answer and finish, or ask again.

        :param event: what the scheduler, the api-server or the trigger says of the wait.
        :raises HumanTimeout: if nobody answered in time and there are no defaults.
        """
        # Another package that parked the task has left no state.
        state = self._parked or self._new_state(context)
        self._show(state)
        if "error" in event:
            return self._error(context, state, event)
        if event.get("timedout"):
            return self._time_out(context, state, event)
        answer = outcomes.answer_from(event)
        verdict = judge(state, answer)
        if isinstance(verdict, Refused):
            self._refuse(context, state, _refusal(answer, verdict.reasons))
        if reasons := self._own_reasons(verdict.answer):
            self._refuse(context, state, _refusal(answer, reasons))
        return self._finish(context, state, verdict.answer, timedout=False)

    def _error(self, context: Context, state: RequestState, event: dict[str, Any]) -> Any:
        self.hitl_summary_extra["error_type"] = event.get("error_type")
        if event.get("error_type") == "timeout":
            return self._time_out(context, state, event)
        if event.get("error_type") == "validation":
            self._refuse(context, state, Refusal(reasons=(str(event["error"]),)))
        self.process_trigger_event_error(event)
        raise RequestLost(f"The wait for an answer to {state.approval_key!r} was lost: {event['error']}")

    def _time_out(self, context: Context, state: RequestState, event: Mapping[str, Any]) -> Any:
        """Take the defaults, or fail: what a timeout does is always written by the Dag author."""
        verdict = judge_defaults(state)
        reasons = verdict.reasons if isinstance(verdict, Refused) else self._own_reasons(verdict.answer)
        if isinstance(verdict, Refused) or reasons:
            self.hitl_summary_extra["error_type"] = "timeout"
            self._keep(context, state, "timed_out", HumanTimeout.__name__, None, timedout=True)
            if "error" in event:
                self.process_trigger_event_error(dict(event))
            raise HumanTimeout(state.approval_key, " ".join(reasons))
        answered_at = outcomes.answer_from(event).responded_at or _utcnow()
        answer = verdict.answer.model_copy(update={"responded_at": answered_at})
        self.log.info("Nobody answered in time: the defaults %s are taken.", list(answer.chosen_options))
        return self._finish(context, state, answer, timedout=True)

    def _refuse(self, context: Context, state: RequestState, refusal: Refusal) -> NoReturn:
        """Open the request again and say why, or give up after too many refused answers."""
        refused = (*state.refused, refusal)
        self.log.warning("The answer was refused, number %d of %d. %s", len(refused), MAX_REFUSED, refusal)
        context["ti"].xcom_push(
            key=outcomes.REFUSED_KEY, value=[item.model_dump(mode="json") for item in refused]
        )
        state = state.model_copy(update={"refused": refused})
        if len(refused) >= MAX_REFUSED:
            self._keep(context, state, "refused", TooManyRefused.__name__, None, timedout=False)
            raise TooManyRefused(state.approval_key, refused)
        self.hitl_summary_extra["refused"] = [str(item) for item in refused]
        self._ask(context, state)

    def _finish(self, context: Context, state: RequestState, answer: Answer, *, timedout: bool) -> Any:
        returned = outcomes.result(answer, timedout=timedout)
        responded_at = answer.responded_at
        self.hitl_summary_extra.update(
            chosen_options=returned["chosen_options"],
            params_input=returned["params_input"],
            responded_at=responded_at.isoformat() if responded_at else None,
            responded_by_user=returned["responded_by_user"],
        )
        outcome, code = self._outcome(answer)
        self._keep(context, state, outcome, code, answer, timedout=timedout)
        self._conclude(context, state, answer, returned)
        return returned

    def _keep(
        self,
        context: Context,
        state: RequestState,
        outcome: str,
        code: str | None,
        answer: Answer | None,
        *,
        timedout: bool,
    ) -> None:
        """Push what outlives the task, before anything is raised."""
        kept = outcomes.record(state, outcome, code, answer if self.do_xcom_push else None, timedout=timedout)
        context["ti"].xcom_push(key=outcomes.OUTCOME_KEY, value=kept)

    def _outcome(self, answer: Answer) -> tuple[str, str | None]:
        """Name the outcome of *answer* and, if it fails the task, the error."""
        return "answered", None

    def _conclude(
        self, context: Context, state: RequestState, answer: Answer, returned: dict[str, Any]
    ) -> None:
        """Do what follows from the answer; what raises here pushes *returned* first."""


def _row_defaults(state: RequestState) -> tuple[str, ...] | None:
    """The defaults that Airflow itself may take on a timeout."""
    return state.defaults if isinstance(judge_defaults(state), Accepted) else None


def _index(ti: Any) -> int:
    return -1 if ti.map_index is None else int(ti.map_index)


def _utcnow() -> datetime:
    return datetime.now(timezone.utc)


def _refusal(answer: Answer, reasons: tuple[str, ...]) -> Refusal:
    return Refusal(
        reasons=reasons,
        # Airflow 3.1 and 3.2 record any text; what cannot be stored again would fail the task.
        chosen_options=tuple(text[:200] for text in answer.chosen_options[:20] if not json_problems(text)),
        respondent=answer.respondent,
        at=answer.responded_at,
    )


def _name(notifier: Notifier) -> str:
    named = notifier if hasattr(notifier, "__qualname__") else type(notifier)
    return f"{named.__module__}.{named.__qualname__}"
