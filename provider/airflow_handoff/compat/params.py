"""Reading a task's ``params``: which are the task's own, and what each of them says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

if TYPE_CHECKING:
    from airflow.sdk import DAG


def own_params(params: Mapping[str, Any] | None, dag: DAG | None, given: Collection[str]) -> dict[str, Param]:
    """Return the params of the task itself, without those that Airflow has merged in from the Dag.

    Since Airflow 3.2 each param says where it comes from. Before, a param that was not *given* to the task
    and equals the Dag's is taken for the Dag's.

    :param params: as the constructor got them.
    :param given: names that the Dag author passed to the task.
    """
    merged = params if isinstance(params, ParamsDict) else ParamsDict(dict(params or {}))
    entries = {name: merged.get_param(name) for name in merged}
    if hasattr(ParamsDict, "filter_params_by_source"):
        return {name: param for name, param in entries.items() if param.source != "dag"}
    inherited = dag.params if dag is not None else ParamsDict()
    return {
        name: param
        for name, param in entries.items()
        if name in given or name not in inherited or not _same(param, inherited.get_param(name))
    }


def _same(one: Param, other: Param) -> bool:
    return (one.value, one.schema, one.description) == (other.value, other.schema, other.description)


def has_default(param: Param) -> bool:
    """Say whether *param* was given a default value, ``None`` included."""
    from airflow.sdk.definitions._internal.types import NOTSET

    return param.value is not NOTSET
