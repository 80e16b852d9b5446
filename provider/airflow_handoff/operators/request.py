"""A request as a Dag author writes it and as notifiers see it: arguments, checks, summary, links."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from airflow_handoff.compat.errors import AirflowProviderDeprecationWarning
from airflow_handoff.compat.params import own_params
from airflow_handoff.compat.structure import checked_partial
from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.hitl.links import required_actions_url
from airflow_handoff.hitl.state import Kind
from airflow_handoff.operators import asking, dagchecks, form
from airflow_handoff.operators.hooks import OwnRules
from airflow_handoff.operators.mapping import known_instances

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_handoff.compat.structure import MappedOperator, RuntimeTaskInstanceProtocol

Notifier = Callable[[Any], Any]
_CHECKED = ("options", "defaults", "multiple", "assigned_users", "response_timeout", "approval_key")
_MAPPED = (*_CHECKED, "params", "options_mapping")


class RequestOperator(OwnRules, BaseOperator):
    """The arguments of a request; see :class:`airflow_handoff.operators.hitl.HITLOperator`."""

    template_fields: Collection[str] = (
        "subject",
        "body",
        "options",
        "defaults",
        "assigned_users",
        "response_timeout",
        "approval_key",
    )
    kind: ClassVar[Kind] = "hitl"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the field by which the api-server tells our tasks, where a subclass has fields of its own."""
        super().__init_subclass__(**kwargs)
        if "approval_key" not in cls.template_fields:
            cls.template_fields = (*cls.template_fields, "approval_key")

    def __new__(cls, *args: Any, **kwargs: Any) -> RequestOperator:
        """Remember which params were passed: Airflow 3.1 merges the Dag's in before the constructor runs."""
        self: RequestOperator = super().__new__(cls)
        given = () if kwargs.get("_airflow_from_mapped") else kwargs.get("params") or ()
        object.__setattr__(self, "_given_params", frozenset(given))
        return self

    def __init__(
        self,
        *,
        subject: str,
        options: Sequence[str],
        body: str | None = None,
        defaults: str | Sequence[str] | None = None,
        multiple: bool = False,
        params: Mapping[str, Any] | None = None,
        notifiers: Sequence[Notifier] | Notifier | None = None,
        assigned_users: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None,
        response_timeout: timedelta | None = None,
        approval_key: str | None = None,
        comment: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.subject = subject
        self.body = body
        self.options = options
        self.defaults = [defaults] if isinstance(defaults, str) else defaults
        self.multiple = multiple
        self.assigned_users = [assigned_users] if isinstance(assigned_users, Mapping) else assigned_users
        self.response_timeout = self._response_timeout(response_timeout)
        self.approval_key = approval_key
        self.comment = comment
        self.notifiers: list[Notifier] = (
            [notifiers] if callable(notifiers) else list(notifiers) if notifiers else []
        )
        if wrong := [notifier for notifier in self.notifiers if not callable(notifier)]:
            raise InvalidQuestion(f'"notifiers" has to be one or several notifiers, not {wrong!r}.')
        dag = self.get_dag()
        given: frozenset[str] = self._given_params  # type: ignore[attr-defined]
        self.form = form.form_fields(own_params(params, dag, given))
        self.params = form.template_params(self.form.values())
        self.hitl_summary_extra: dict[str, Any] = {}
        asking.check_literals(self._asked(), self.form)
        self.validate_options()
        self.validate_params()
        self.validate_defaults()
        if dag is not None:
            dagchecks.check_key_is_free(dag, RequestOperator, self.task_id, approval_key or self.task_id)

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """Begin to map the operator; what is literal is checked at once, as without mapping."""
        cls._check_arguments(kwargs)
        begun = super().partial(**kwargs)
        task_id, dag = begun.kwargs["task_id"], begun.kwargs.get("dag")
        if dag is not None:
            dagchecks.check_key_is_free(dag, RequestOperator, task_id, kwargs.get("approval_key") or task_id)

        def look(mapped: Any, final: bool) -> Callable[[MappedOperator], None]:
            known = [cls._completed(a) for a in known_instances(kwargs, mapped, _MAPPED, final=final)]
            for arguments in known:
                cls._check_arguments(arguments)
            return lambda task: cls._check_mapped_in_dag(task, known)

        return checked_partial(begun, look)

    @classmethod
    def _check_arguments(cls, arguments: Mapping[str, Any]) -> None:
        """Check literal arguments of a mapped request; those that are missing are not known yet."""
        params = arguments.get("params")
        given = params if isinstance(params, Mapping) else {}
        fields = form.form_fields(own_params(given, None, frozenset(given)))
        asking.check_literals({name: arguments[name] for name in _CHECKED if name in arguments}, fields)

    @classmethod
    def _completed(cls, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add what the operator takes for arguments that neither ``partial`` nor ``expand`` has."""
        return arguments

    @classmethod
    def _check_mapped_in_dag(cls, task: MappedOperator, known: Sequence[Mapping[str, Any]]) -> None:
        """Check what needs the tasks around a mapped one.

        :param known: the arguments of its instances, as far as they are known.
        """
        for arguments in known:
            key = arguments.get("approval_key") or task.task_id
            dagchecks.check_key_is_free(task.get_dag(), RequestOperator, task.task_id, key)

    def _asked(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _CHECKED}

    def _response_timeout(self, response_timeout: timedelta | None) -> timedelta | None:
        if self.execution_timeout is None or response_timeout is not None:
            return response_timeout
        warnings.warn(
            "execution_timeout as the time to answer is deprecated: use response_timeout. It is cleared, "
            "so that it does not end the task before somebody can answer.",
            AirflowProviderDeprecationWarning,
            stacklevel=4,
        )
        moved, self.execution_timeout = self.execution_timeout, None
        return moved

    def resolve_template_files(self) -> None:
        """Airflow calls this for each task when a Dag is complete: the last moment for checks at parse."""
        super().resolve_template_files()
        self._check_in_dag()

    def _check_in_dag(self) -> None:
        """Check what needs the tasks around this one."""
        dag = self.get_dag()
        if dag is not None:
            dagchecks.check_key_is_free(dag, RequestOperator, self.task_id, self.approval_key or self.task_id)

    @property
    def serialized_params(self) -> dict[str, dict[str, Any]]:
        """The form as the request's row holds it."""
        return form.row_params(self.form.values(), comment=self.comment)

    @property
    def hitl_summary(self) -> dict[str, Any]:
        """A snapshot of the request for notifiers and listeners; add to it with ``hitl_summary_extra``."""
        return {
            "subject": self.subject,
            "body": self.body,
            "options": self.options,
            "defaults": self.defaults,
            "multiple": self.multiple,
            "assigned_users": self.assigned_users,
            "serialized_params": self.serialized_params or None,
            **self.hitl_summary_extra,
        }

    def generate_link_to_ui(
        self,
        *,
        task_instance: RuntimeTaskInstanceProtocol,
        base_url: str | None = None,
        options: str | Sequence[str] | None = None,
        params_input: Mapping[str, Any] | None = None,
        params_inputs: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the address of Airflow's page for this request.

        :param base_url: where people reach Airflow; ``[api] base_url`` where left out.
        :param options: one or several options that the page preselects.
        :param params_input: values that the page fills into the form; *params_inputs* is the same.
        :raises ValueError: if an option or a field is not of this request, or if there is no base_url.
        """
        fields = {**(params_input or {}), **(params_inputs or {})}
        chosen = [options] if isinstance(options, str) else list(options or ())
        if unknown := [option for option in chosen if option not in self.options]:
            raise ValueError(f"options {unknown!r} are not valid options: these are {list(self.options)!r}.")
        if unknown := [name for name in fields if name not in self.serialized_params]:
            raise ValueError(f"params {unknown!r} are not valid params: these are {list(self.form)!r}.")
        return required_actions_url(
            base_url or _configured_base_url(),
            dag_id=task_instance.dag_id,
            run_id=task_instance.run_id,
            task_id=task_instance.task_id,
            map_index=-1 if task_instance.map_index is None else task_instance.map_index,
            options=chosen,
            params_input=fields,
        )

    @staticmethod
    def generate_link_to_ui_from_context(
        *,
        context: Context,
        base_url: str | None = None,
        options: str | Sequence[str] | None = None,
        params_input: Mapping[str, Any] | None = None,
        params_inputs: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the address of Airflow's page for the request of a task's context.

        :raises ValueError: if the context is not of a human-in-the-loop task, and as
            :meth:`generate_link_to_ui`.
        """
        task = context["task"]
        if not hasattr(task, "generate_link_to_ui"):
            raise ValueError(f"task {task.task_id!r} asks nobody: a link needs a human-in-the-loop operator.")
        link: str = task.generate_link_to_ui(
            task_instance=context["task_instance"],
            base_url=base_url,
            options=options,
            params_input={**(params_input or {}), **(params_inputs or {})},
        )
        return link


def _configured_base_url() -> str:
    from airflow.configuration import conf

    url: str | None = conf.get("api", "base_url", fallback=None)
    if not url:
        raise ValueError("There is no base_url: pass one or set [api] base_url.")
    return url
