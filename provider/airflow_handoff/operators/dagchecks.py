"""Checks that need the whole Dag: a key for each gate, a task for each branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_handoff.compat.structure import MappedOperator
from airflow_handoff.exceptions import InvalidQuestion
from airflow_handoff.operators.asking import is_literal

if TYPE_CHECKING:
    from airflow.sdk import DAG, BaseOperator

    from airflow_handoff.compat.structure import Operator


def gate_keys(dag: DAG, operator_class: type[BaseOperator]) -> Iterator[tuple[str, str]]:
    """Yield task id and approval key of each gate of *dag* whose key is known when it is parsed."""
    for task in dag.task_dict.values():
        if isinstance(task, MappedOperator) and issubclass(task.operator_class, operator_class):
            if _maps_over(task, "approval_key"):
                continue
            key: Any = task.partial_kwargs.get("approval_key") or task.task_id
        elif isinstance(task, operator_class):
            key = getattr(task, "approval_key", None) or task.task_id
        else:
            continue
        if isinstance(key, str) and is_literal(key):
            yield task.task_id, key


def _maps_over(task: MappedOperator, name: str) -> bool:
    mapped: Any = task.expand_input.value
    if isinstance(mapped, Mapping):
        return name in mapped
    return isinstance(mapped, (list, tuple)) and any(isinstance(i, Mapping) and name in i for i in mapped)


def check_key_is_free(dag: DAG | None, operator_class: type[BaseOperator], task_id: str, key: Any) -> None:
    """Refuse a second gate with the same key in one Dag; a template is no key yet.

    :raises InvalidQuestion: and names the task that has the key.
    """
    if dag is None or not is_literal(key):
        return
    for other, taken in gate_keys(dag, operator_class):
        if taken == key and other != task_id:
            raise InvalidQuestion(
                f"approval_key {key!r} of task {task_id!r} is taken by task {other!r} of Dag {dag.dag_id!r}: "
                "give each gate a key of its own."
            )


def branch_targets(task: Operator, names: Iterable[str]) -> dict[str, list[str]]:
    """Resolve the names of branches to direct downstream tasks.

    A name is a task id or the id of a task group, whose first tasks are meant; in both cases it may be
    written without the ids of the task groups that *task* itself is in.

    :raises InvalidQuestion: if a name is no direct downstream task.
    """
    resolved = {name: _resolve(task, name) for name in names}
    unknown = [name for name, found in resolved.items() if not found]
    if unknown:
        raise InvalidQuestion(
            f"task {task.task_id!r} offers {unknown!r}, which is no direct downstream task: these are "
            f"{sorted(task.downstream_task_ids)!r}. Rename the option or map it with options_mapping."
        )
    return resolved


def _resolve(task: Operator, name: str) -> list[str]:
    dag = task.get_dag()
    if dag is None:
        return []
    for candidate in _candidates(task, name):
        if candidate in task.downstream_task_ids:
            return [candidate]
        group = dag.task_group_dict.get(candidate)
        roots = [str(root.node_id) for root in group.roots] if group is not None else []
        if roots and task.downstream_task_ids.issuperset(roots):
            return roots
    return []


def _candidates(task: Operator, name: str) -> list[str]:
    """List what *name* may mean: the full id, or a name in one of the task groups around *task*."""
    candidates = [name]
    group = task.task_group
    while group is not None and not group.is_root:
        candidates.append(group.child_id(name))  # type: ignore[no-untyped-call]
        group = group.parent_group
    return candidates


def downstream_of(task: BaseOperator, *, all_levels: bool) -> list[Operator]:
    """List the tasks downstream of *task* that a decision may skip; a teardown always runs.

    :param all_levels: not only the direct ones.
    """
    found = (
        task.get_flat_relatives(upstream=False) if all_levels else task.get_direct_relatives(upstream=False)
    )
    return [node for node in found if not getattr(node, "is_teardown", False)]
