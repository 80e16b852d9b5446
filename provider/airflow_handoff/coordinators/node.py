"""The coordinator for Node."""

from __future__ import annotations

from airflow_handoff.coordinators.base import SubprocessCoordinator
from airflow_handoff.coordinators.languages import NodeBundles


class NodeCoordinator(NodeBundles, SubprocessCoordinator):
    """Runs the Node bundle that holds a task's Dag.

    Its keywords are those of :class:`~airflow_handoff.coordinators.languages.NodeBundles` and of
    :class:`~airflow_handoff.coordinators.base.SubprocessCoordinator`.
    """
