"""The coordinator for the JVM."""

from __future__ import annotations

from airflow_handoff.coordinators.base import SubprocessCoordinator
from airflow_handoff.coordinators.languages import Jars


class JavaCoordinator(Jars, SubprocessCoordinator):
    """Runs a class of the jars below a root; takes the keywords of Airflow's own, and more.

    Its keywords are those of :class:`~airflow_handoff.coordinators.languages.Jars` and of
    :class:`~airflow_handoff.coordinators.base.SubprocessCoordinator`.
    """
