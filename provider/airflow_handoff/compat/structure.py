"""The classes of a Dag's parts that Airflow does not export, for checks and annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.definitions.param import ParamsDict

if TYPE_CHECKING:
    from airflow.sdk.types import Operator, RuntimeTaskInstanceProtocol

__all__ = ["MappedOperator", "Operator", "ParamsDict", "RuntimeTaskInstanceProtocol"]
