"""Coordinators: run task bodies written in other languages on Airflow 3.3 and later.

The classes are loaded when they are asked for. On an Airflow that has no coordinators that is an
:class:`~airflow_handoff.exceptions.EnvironmentUnfit` which says so, while ``language``, ``languages``
and ``launch``, which know no Airflow, can be imported everywhere.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_handoff.coordinators.base import SubprocessCoordinator as SubprocessCoordinator
    from airflow_handoff.coordinators.direct import DirectCoordinator as DirectCoordinator
    from airflow_handoff.coordinators.executable import ExecutableCoordinator as ExecutableCoordinator
    from airflow_handoff.coordinators.java import JavaCoordinator as JavaCoordinator
    from airflow_handoff.coordinators.node import NodeCoordinator as NodeCoordinator
    from airflow_handoff.coordinators.python import PythonCoordinator as PythonCoordinator

_HOME = {
    "ExecutableCoordinator": "executable",
    "JavaCoordinator": "java",
    "NodeCoordinator": "node",
    "PythonCoordinator": "python",
    "SubprocessCoordinator": "base",
    "DirectCoordinator": "direct",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_HOME)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
