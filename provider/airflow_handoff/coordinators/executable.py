"""The coordinator for programs in the format AFBNDL01: Go, Rust, C and scripts that start themselves."""

from __future__ import annotations

from airflow_handoff.coordinators.base import SubprocessCoordinator
from airflow_handoff.coordinators.languages import Executables


class ExecutableCoordinator(Executables, SubprocessCoordinator):
    """Runs the bundle that holds a task's Dag; takes the keywords of Airflow's own, and more.

    Its keywords are those of :class:`~airflow_handoff.coordinators.languages.Executables` and of
    :class:`~airflow_handoff.coordinators.base.SubprocessCoordinator`.
    """
