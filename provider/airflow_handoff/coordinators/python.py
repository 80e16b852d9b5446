"""The coordinator for Python in an interpreter other than the worker's."""

from __future__ import annotations

from airflow_handoff.coordinators.base import SubprocessCoordinator
from airflow_handoff.coordinators.languages import PythonPrograms


class PythonCoordinator(PythonPrograms, SubprocessCoordinator):
    """Runs a task with the SDK that this package carries, in any Python from 3.8 on.

    Its keywords are those of :class:`~airflow_handoff.coordinators.languages.PythonPrograms` and of
    :class:`~airflow_handoff.coordinators.base.SubprocessCoordinator`.
    """
