"""Skip what a decision rules out: in the decision's own map index, or for the whole run.

Airflow's own mixin skips nothing inside a mapped task group since 3.2, so every task instance is named here.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airflow_handoff.compat.comms import count_instances, pull_of_all_indexes
from airflow_handoff.compat.errors import DownstreamTasksSkipped
from airflow_handoff.compat.structure import MappedOperator
from airflow_handoff.operators.outcomes import SkipImpossible

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from airflow_handoff.compat.structure import Operator, RuntimeTaskInstanceProtocol

log = logging.getLogger(__name__)

RejectPolicy = Literal["any", "majority", "all"]
#: Where Airflow's scheduler looks for tasks to skip when they are cleared later.
SKIP_KEY = "skipmixin_key"
#: What one map index wants to be skipped of the tasks that all indexes share.
VOTES_KEY = "handoff_skip"
EXPANSION_WAIT = 120.0
EXPANSION_POLL = 0.25
_UNTOUCHABLE = ("running", "success", "failed")


@dataclass(frozen=True)
class Reach:
    """The tasks to skip, by how they relate to the deciding task instance.

    :param own_index: tasks of the same mapped group: only this map index is skipped.
    :param index_wise: mapped tasks downstream of a mapped task: the same map index is skipped.
    :param whole: tasks that all map indexes share: skipped in all their instances, if the policy says so.
    :param expanded: those of *whole* that have several instances.
    """

    own_index: tuple[str, ...] = ()
    index_wise: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    expanded: frozenset[str] = frozenset()


def reach(task: BaseOperator, targets: Iterable[Operator]) -> Reach:
    """Sort *targets* by how they relate to *task*."""
    group = task.get_closest_mapped_task_group()
    mapped = isinstance(task.get_dag().task_dict.get(task.task_id), MappedOperator)  # type: ignore[union-attr]
    own_index, index_wise, whole = [], [], []
    for target in targets:
        if group is not None and target.get_closest_mapped_task_group() is group:
            own_index.append(target.task_id)
        elif mapped and _is_mapped(target):
            index_wise.append(target.task_id)
        else:
            whole.append(target)
    return Reach(
        own_index=tuple(own_index),
        index_wise=tuple(index_wise),
        whole=tuple(target.task_id for target in whole),
        expanded=frozenset(target.task_id for target in whole if _is_mapped(target)),
    )


def _is_mapped(target: Operator) -> bool:
    return isinstance(target, MappedOperator) or target.get_closest_mapped_task_group() is not None


def skip(ti: RuntimeTaskInstanceProtocol, where: Reach, *, policy: RejectPolicy) -> None:
    """Skip the tasks of *where*; return only if there is nothing to skip.

    :param policy: how many map indexes it takes to skip a task that they share.
    :raises DownstreamTasksSkipped: to make the task runner skip them and end the task successfully.
    """
    index = -1 if ti.map_index is None else ti.map_index
    whole = list(where.whole) if index < 0 or policy == "any" else _agreed(ti, where.whole, policy)
    names = sorted({*where.own_index, *where.index_wise, *whole})
    if not names:
        return
    ti.xcom_push(key=SKIP_KEY, value={"skipped": names})
    instances = [(name, index) for name in (*where.own_index, *where.index_wise)]
    for name in whole:
        instances += _instances(ti, name, expanded=name in where.expanded, shared=index >= 0)
    if where.own_index:
        _wait_for_expansion(ti, where.own_index, index)
    log.info("Skipping %s", instances)
    raise DownstreamTasksSkipped(tasks=instances)  # type: ignore[no-untyped-call]


def _instances(
    ti: RuntimeTaskInstanceProtocol, name: str, *, expanded: bool, shared: bool
) -> list[tuple[str, int]]:
    """Name every instance of a task: one that is mapped may have been expanded already."""
    # Airflow 3.1 skips what runs or has ended, too: another map index may have let it start.
    if shared and count_instances(ti, [name], states=_UNTOUCHABLE):
        log.warning("%s has started already and is not skipped", name)
        return []
    count = count_instances(ti, [name]) if expanded else 0
    return [(name, index) for index in range(-1, count)]


def _agreed(ti: RuntimeTaskInstanceProtocol, names: Sequence[str], policy: RejectPolicy) -> list[str]:
    """Add the vote of this map index and return the tasks that enough indexes want to be skipped.

    Each index writes before it counts, so the last one sees all votes.
    """
    if not names:
        return []
    ti.xcom_push(key=VOTES_KEY, value={"tasks": list(names)})
    total = count_instances(ti, [ti.task_id])
    votes: Counter[str] = Counter()
    for vote in pull_of_all_indexes(ti, VOTES_KEY):
        votes.update(set(vote.get("tasks", ())))
    needed = total if policy == "all" else total // 2 + 1
    return [name for name in names if votes[name] >= needed]


def _wait_for_expansion(ti: RuntimeTaskInstanceProtocol, names: Sequence[str], index: int) -> None:
    """Wait until the tasks exist at this map index: before, Airflow ignores a skip silently.

    :raises SkipImpossible: if they do not appear in time: what was rejected must not run.
    """
    end = time.monotonic() + EXPANSION_WAIT
    while (found := count_instances(ti, names, map_index=index)) < len(names):
        if time.monotonic() >= end:
            raise SkipImpossible(names, found, index)
        time.sleep(EXPANSION_POLL)
