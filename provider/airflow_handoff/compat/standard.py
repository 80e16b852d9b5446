"""The standard provider's human-in-the-loop classes, as far as they are installed."""

from __future__ import annotations

import sys
from typing import Any

from airflow_handoff.compat.errors import AirflowException

try:
    from airflow.providers.standard.exceptions import (
        HITLRejectException,
        HITLTimeoutError,
        HITLTriggerEventError,
    )
except ImportError:

    class HITLTriggerEventError(Exception):  # type: ignore[no-redef]
        """Stands in where the standard provider is not installed."""

    class HITLTimeoutError(HITLTriggerEventError):  # type: ignore[no-redef]
        """Stands in where the standard provider is not installed."""

    class HITLRejectException(AirflowException):  # type: ignore[no-redef]
        """Stands in where the standard provider is not installed."""


try:
    from airflow.sdk import SkipMixin
except ImportError:  # Airflow 3.1
    from airflow.providers.standard.utils.skipmixin import SkipMixin  # type: ignore[assignment]

__all__ = [
    "HITLRejectException",
    "HITLTimeoutError",
    "HITLTriggerEventError",
    "SkipMixin",
    "register_virtual_subclasses",
]

_MODULE = "airflow.providers.standard.operators.hitl"


def register_virtual_subclasses(classes: dict[str, type], *, load: bool) -> bool:
    """Let the standard operators' ``isinstance`` checks accept ours.

    :param classes: our classes by the name of the standard class each stands for.
    :param load: import the standard operators for it; otherwise do it only if they are imported already.
    :returns: whether it was done.
    """
    if load:
        try:
            __import__(_MODULE)
        except ImportError:
            return False
    module: Any = sys.modules.get(_MODULE)
    if module is None:
        return False
    for name, ours in classes.items():
        standard = getattr(module, name, None)
        if standard is not None and not issubclass(ours, standard):
            standard.register(ours)
    return True
