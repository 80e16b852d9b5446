"""Operators that hand a decision to a person and wait for it at no cost.

Drop-in for the operators of ``airflow.providers.standard.operators.hitl``: the same arguments with the same
meaning, the same returned keys. What is new has a safe default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_handoff.compat.versions import require_airflow

require_airflow("airflow_handoff.operators.hitl")

from airflow_handoff.compat import comms, standard  # noqa: E402
from airflow_handoff.exceptions import InvalidQuestion  # noqa: E402
from airflow_handoff.hitl.question import Answer  # noqa: E402
from airflow_handoff.hitl.state import Kind, RequestState  # noqa: E402
from airflow_handoff.operators import asking, dagchecks, skipping  # noqa: E402
from airflow_handoff.operators.outcomes import (  # noqa: E402
    HumanRejected,
    HumanTimeout,
    RequestLost,
    SkipImpossible,
    TooManyRefused,
)
from airflow_handoff.operators.waiting import STANDS_FOR, WaitingOperator  # noqa: E402

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_handoff.compat.structure import MappedOperator

__all__ = [
    "ApprovalOperator",
    "HITLBranchOperator",
    "HITLEntryOperator",
    "HITLOperator",
    "HumanRejected",
    "HumanTimeout",
    "RequestLost",
    "SkipImpossible",
    "TooManyRefused",
]


class HITLOperator(WaitingOperator):
    """Asks a person to choose among options and, if there are ``params``, to fill in a form.

    :param subject: the headline. Templated, as are *body*, *options*, *defaults*, *assigned_users*,
        *response_timeout* and *approval_key*; all of them take an ``XComArg``, too.
    :param options: what can be chosen.
    :param body: details, as Markdown.
    :param defaults: options that are taken when the time is up; without them a timeout fails the task.
    :param multiple: whether several options may be chosen.
    :param params: the fields of the form, as ``Param`` objects or default values; a ``Param`` without a
        default is a field that has to be filled in.
    :param notifiers: one or several notifiers; they run before the request can be answered. One that raises
        is logged and never fails the request, and ``execution_timeout`` stands still meanwhile.
    :param assigned_users: who may answer: one or several of ``{"id": ..., "name": ...}``.
    :param response_timeout: how long to wait for an answer, from the moment it can be given; ``None`` waits
        for ever.
    :param approval_key: a stable name of this gate for the approve route, unique in the Dag; the task id
        where left out.
    :param comment: whether Airflow's own page offers a field for a comment.
    :raises InvalidQuestion: if a literal argument cannot be asked; what is templated is checked when the task
        runs, before anybody is asked.
    """

    kind: ClassVar[Kind] = "hitl"


class _SkippingOperator(HITLOperator, standard.SkipMixin):
    """A decision that can skip tasks downstream."""

    inherits_from_skipmixin = True

    def _skip(
        self,
        context: Context,
        returned: dict[str, Any],
        targets: Sequence[Any],
        policy: skipping.RejectPolicy,
    ) -> None:
        if not targets:
            self.log.info("There is nothing downstream to skip.")
            return
        comms.push_result(context["ti"], returned, self.log)
        skipping.skip(context["ti"], skipping.reach(self, targets), policy=policy)


class ApprovalOperator(_SkippingOperator):
    """Asks a person to approve or reject; a Reject skips what comes next.

    :param ignore_downstream_trigger_rules: whether a Reject skips all tasks downstream, whatever their
        trigger rules; otherwise the direct ones.
    :param fail_on_reject: whether a Reject fails the task, without retries, instead of skipping.
    :param reject_policy: for a mapped approval, how many map indexes have to reject before a task that they
        share is skipped: ``"any"`` (one is enough), ``"majority"`` (more than half) or ``"all"``.
    """

    kind: ClassVar[Kind] = "approval"
    FIXED_ARGS: ClassVar[list[str]] = ["options", "multiple"]
    APPROVE = "Approve"
    REJECT = "Reject"

    def __init__(
        self,
        *,
        ignore_downstream_trigger_rules: bool = False,
        fail_on_reject: bool = False,
        reject_policy: skipping.RejectPolicy = "any",
        **kwargs: Any,
    ) -> None:
        self._check_fixed({**kwargs, "reject_policy": reject_policy})
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules
        self.fail_on_reject = fail_on_reject
        self.reject_policy = reject_policy
        super().__init__(options=[self.APPROVE, self.REJECT], multiple=False, **kwargs)
        self.hitl_summary_extra["ignore_downstream_trigger_rules"] = ignore_downstream_trigger_rules
        self.hitl_summary_extra["fail_on_reject"] = fail_on_reject

    @classmethod
    def _check_arguments(cls, arguments: Mapping[str, Any]) -> None:
        cls._check_fixed(arguments)
        super()._check_arguments({**arguments, "options": [cls.APPROVE, cls.REJECT]})

    @classmethod
    def _check_fixed(cls, arguments: Mapping[str, Any]) -> None:
        for name in cls.FIXED_ARGS:
            if name in arguments:
                raise ValueError(f"Passing {name} to ApprovalOperator is not allowed.")
        policy = arguments.get("reject_policy", "any")
        if policy not in ("any", "majority", "all"):
            raise InvalidQuestion(f'"reject_policy" has to be "any", "majority" or "all", not {policy!r}.')

    def _outcome(self, answer: Answer) -> tuple[str, str | None]:
        if self.APPROVE in answer.chosen_options:
            return "approved", None
        return "rejected", HumanRejected.__name__ if self.fail_on_reject else None

    def _conclude(
        self, context: Context, state: RequestState, answer: Answer, returned: dict[str, Any]
    ) -> None:
        approved = self.APPROVE in answer.chosen_options
        self.hitl_summary_extra["approved"] = approved
        if approved:
            return
        if self.fail_on_reject:
            comms.push_result(context["ti"], returned, self.log)
            raise HumanRejected(state.approval_key, answer.respondent.name if answer.respondent else None)
        targets = dagchecks.downstream_of(self, all_levels=self.ignore_downstream_trigger_rules)
        self._skip(context, returned, targets, self.reject_policy)


class HITLBranchOperator(_SkippingOperator):
    """Asks a person which of the next tasks are to run; the others are skipped.

    :param options_mapping: the task or task group for each option that is not named like it. Both may be
        written without the ids of the task groups that this task is in.
    """

    kind: ClassVar[Kind] = "branch"

    def __init__(self, *, options_mapping: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options_mapping = options_mapping or {}
        self.validate_options_mapping()
        self.hitl_summary_extra["options_mapping"] = self.options_mapping

    def validate_options_mapping(self) -> None:
        """Check that the mapping has only options as keys and only texts as values.

        :raises InvalidQuestion: if it has others.
        """
        _check_options_mapping(self.options, self.options_mapping)

    @classmethod
    def _check_arguments(cls, arguments: Mapping[str, Any]) -> None:
        super()._check_arguments(arguments)
        _check_options_mapping(arguments.get("options"), arguments.get("options_mapping") or {})

    @classmethod
    def _check_mapped_in_dag(cls, task: MappedOperator, known: Sequence[Mapping[str, Any]]) -> None:
        super()._check_mapped_in_dag(task, known)
        for arguments in known:
            options, renamed = arguments.get("options"), arguments.get("options_mapping") or {}
            if options is not None and asking.is_literal(options) and isinstance(renamed, Mapping):
                dagchecks.branch_targets(task, [renamed.get(name, name) for name in options])

    def _check_in_dag(self) -> None:
        super()._check_in_dag()
        if asking.is_literal(self.options):
            self._targets(self.options)

    def _new_state(self, context: Context) -> RequestState:
        state = super()._new_state(context)
        self._targets(state.question.options)
        return state

    def _targets(self, options: Sequence[str]) -> dict[str, list[str]]:
        return dagchecks.branch_targets(self, [self.options_mapping.get(name, name) for name in options])

    def _outcome(self, answer: Answer) -> tuple[str, str | None]:
        return "branched", None

    def _conclude(
        self, context: Context, state: RequestState, answer: Answer, returned: dict[str, Any]
    ) -> None:
        chosen = [name for names in self._targets(answer.chosen_options).values() for name in names]
        self.hitl_summary_extra["branches_to_execute"] = chosen
        self.log.info("Following %s.", chosen)
        followed = set(chosen)
        dag = self.get_dag()
        for name in chosen:
            # A task that comes after a chosen branch is no alternative to it.
            followed |= dag.get_task(name).get_flat_relative_ids(upstream=False) if dag else set()
        others = [
            task for task in dagchecks.downstream_of(self, all_levels=False) if task.task_id not in followed
        ]
        self._skip(context, returned, others, "all")


def _check_options_mapping(options: Any, renamed: Any) -> None:
    if not isinstance(renamed, Mapping):
        return
    if (
        options is not None
        and asking.is_literal(options)
        and (unknown := sorted(set(renamed) - set(options)))
    ):
        raise InvalidQuestion(f"`options_mapping` contains keys that are not in `options`: {unknown}")
    if wrong := {key: value for key, value in renamed.items() if not isinstance(value, str)}:
        raise InvalidQuestion(
            f"`options_mapping` values must be strings (task_ids).\nInvalid entries: {wrong}"
        )


class HITLEntryOperator(HITLOperator):
    """Asks a person to fill in a form; without *options* there is one, ``OK``.

    When the time is up, ``OK`` is chosen for a form whose fields all have defaults; a field that has to be
    filled in makes it a timeout.
    """

    kind: ClassVar[Kind] = "entry"
    OK = "OK"

    def __init__(self, **kwargs: Any) -> None:
        if "options" not in kwargs:
            kwargs["options"] = [self.OK]
            kwargs.setdefault("defaults", [self.OK])
        super().__init__(**kwargs)

    @classmethod
    def _completed(cls, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments if "options" in arguments else {"options": [cls.OK], **arguments}


STANDS_FOR.update(
    HITLOperator=HITLOperator,
    ApprovalOperator=ApprovalOperator,
    HITLBranchOperator=HITLBranchOperator,
    HITLEntryOperator=HITLEntryOperator,
)
standard.register_virtual_subclasses(STANDS_FOR, load=False)
