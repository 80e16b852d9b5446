"""What the installed Airflow can do, probed once and exported as capabilities."""

from __future__ import annotations

import importlib.metadata

from airflow_handoff.exceptions import EnvironmentUnfit

MINIMUM = (3, 1)


def installed_airflow() -> tuple[int, int] | None:
    """Return ``(major, minor)`` of the installed ``apache-airflow-core`` or ``None`` where there is none."""
    for distribution in ("apache-airflow-core", "apache-airflow"):
        try:
            text = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        major, minor = text.split(".")[:2]
        return int(major), int(minor)
    return None


def require_airflow(what: str) -> None:
    """Raise unless Airflow 3.1 or later is installed.

    :param what: the name of the thing that needs it, as a user wrote it.
    :raises EnvironmentUnfit: with one sentence that says what to install.
    """
    found = installed_airflow()
    if found is None:
        raise EnvironmentUnfit(
            f"{what} needs Apache Airflow 3.1 or later and none is installed: "
            "run `pip install 'airflow-provider-handoff[airflow]'`."
        )
    if found < MINIMUM:
        raise EnvironmentUnfit(
            f"{what} needs Apache Airflow 3.1 or later and {found[0]}.{found[1]} is installed: "
            "upgrade apache-airflow."
        )


_VERSION = installed_airflow() or (0, 0)

#: Airflow parks a waiting task in the scheduler-owned state ``awaiting_input`` (3.3 and later).
HAS_AWAITING_INPUT = _VERSION >= (3, 3)
#: Airflow runs foreign tasks through coordinators (3.3 and later).
HAS_COORDINATORS = _VERSION >= (3, 3)
#: A provider can add commands to the ``airflow`` command line (3.2 and later).
HAS_PROVIDER_CLI = _VERSION >= (3, 2)
#: Each try's answer can be read back over the REST API (3.2 and later).
HAS_ANSWER_HISTORY = _VERSION >= (3, 2)
