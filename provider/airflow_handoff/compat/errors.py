"""Airflow's control-flow exceptions, wherever the installed version keeps them."""

from __future__ import annotations

try:
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        DownstreamTasksSkipped,
        TaskDeferred,
    )
except ImportError:  # Airflow 3.1 still has them in the core's own module.
    from airflow.exceptions import (  # type: ignore[attr-defined,no-redef]
        AirflowException,
        AirflowFailException,
        DownstreamTasksSkipped,
        TaskDeferred,
    )

from airflow.exceptions import AirflowProviderDeprecationWarning

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowProviderDeprecationWarning",
    "DownstreamTasksSkipped",
    "TaskDeferred",
]
