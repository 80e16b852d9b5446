"""The classes of a Dag's parts that Airflow does not export, for checks and annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.mappedoperator import MappedOperator, OperatorPartial
from airflow.sdk.definitions.param import ParamsDict

if TYPE_CHECKING:
    from airflow.sdk.types import Operator, RuntimeTaskInstanceProtocol

__all__ = [
    "CheckedPartial",
    "MappedOperator",
    "Operator",
    "OperatorPartial",
    "ParamsDict",
    "RuntimeTaskInstanceProtocol",
    "checked_partial",
]

#: Checks what is mapped at once, and returns the check for the time when the Dag is complete.
Look = Callable[[Any, bool], Callable[[MappedOperator], None]]


class CheckedPartial(OperatorPartial):
    """An operator that is about to be mapped; what it is mapped over is checked when the Dag is parsed."""

    look: Look

    def expand(self, **mapped_kwargs: Any) -> MappedOperator:
        """Map over lists; see Airflow's ``expand``."""
        in_dag = self._looked_at(mapped_kwargs, True)
        return _when_dag_is_complete(super().expand(**mapped_kwargs), in_dag)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """Map over dictionaries of arguments; see Airflow's ``expand_kwargs``."""
        in_dag = self._looked_at(kwargs, strict)
        return _when_dag_is_complete(super().expand_kwargs(kwargs, strict=strict), in_dag)

    def _looked_at(self, mapped: Any, strict: bool) -> Callable[[MappedOperator], None]:
        self._expand_called = True  # also where the look raises: "never mapped" would be a second complaint
        return self.look(mapped, strict)


def checked_partial(begun: OperatorPartial, look: Look) -> CheckedPartial:
    """Let *look* see what *begun* will be mapped over."""
    begun._expand_called = True
    checked = CheckedPartial(operator_class=begun.operator_class, kwargs=begun.kwargs, params=begun.params)
    checked.look = look
    return checked


def _when_dag_is_complete(task: MappedOperator, check: Callable[[MappedOperator], None]) -> MappedOperator:
    """Call *check* with a mapped task when its Dag is complete.

    Airflow then resolves the template files of every task; a mapped one is of Airflow's own class, so the
    check is put before that method of this one instance.
    """
    resolve = task.resolve_template_files

    def check_and_resolve() -> None:
        check(task)
        resolve()

    task.resolve_template_files = check_and_resolve  # type: ignore[method-assign]
    return task
