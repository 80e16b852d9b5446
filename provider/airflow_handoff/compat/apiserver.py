"""The api-server's HTTP side: who calls, what they may, and Airflow's own models of a request."""

from __future__ import annotations

import functools
import logging
import math
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

#: No number of the section ``[handoff]`` is larger; the workers take no larger one either.
MAX_SETTING = 3_600.0
#: What is accessed of a Dag, as Airflow names it.
Entity = Literal["HITL_DETAIL", "RUN", "XCOM", "AUDIT_LOG", "TASK_INSTANCE"]
Method = Literal["GET", "PUT", "POST"]


def user_dependency() -> Callable[..., Any]:
    """Return Airflow's FastAPI dependency that reads bearer or cookie and answers 401 or 403."""
    from airflow.api_fastapi.core_api.security import get_user

    return get_user


def access_dependency(method: Method, entity: Entity) -> Callable[..., Any]:
    """Return Airflow's FastAPI dependency that answers 403 unless the caller may access the path's Dag."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.security import requires_access_dag

    return requires_access_dag(method=method, access_entity=DagAccessEntity[entity])


def may_access(user: Any, method: Method, entity: Entity, dag_id: str) -> bool:
    """Say whether *user* may access this part of a Dag; asks the database for the Dag's team."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
    from airflow.models.dag import DagModel

    return bool(
        get_auth_manager().is_authorized_dag(
            method=method,
            access_entity=DagAccessEntity[entity],
            details=DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id)),
            user=user,
        )
    )


def readable_dag_ids(user: Any) -> set[str]:
    """Return the ids of the Dags that *user* may read."""
    from airflow.api_fastapi.app import get_auth_manager

    return set(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))


def known_users() -> frozenset[str] | None:
    """Return the ids and names of all users; ``None`` where the auth manager does not list them in public.

    Of Airflow's own auth managers only the simple one does, unless everybody is an admin there.
    """
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.configuration import conf

    manager = get_auth_manager()
    if type(manager) is not SimpleAuthManager or conf.getboolean("core", "simple_auth_manager_all_admins"):
        return None
    # Dictionaries on Airflow 3.1 and 3.2, objects later.
    return frozenset(
        str(user["username"] if isinstance(user, dict) else user.username) for user in manager.get_users()
    )


def answer_payload_model() -> Any:
    """Return Airflow's own model of an answer: ``chosen_options`` and ``params_input``."""
    from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload

    return UpdateHITLDetailPayload


def base_url() -> str:
    """Return ``[api] base_url`` or an empty text."""
    from airflow.configuration import conf

    return str(conf.get("api", "base_url", fallback="") or "")


def setting(name: str, default: float) -> float:
    """Read a number of the section ``[handoff]``, 0 or above; the default where it is none."""
    from airflow.configuration import conf
    from airflow.exceptions import AirflowConfigException

    try:
        value = float(conf.getfloat("handoff", name, fallback=default))
    except (AirflowConfigException, ValueError):
        value = math.nan
    if 0 <= value <= MAX_SETTING:
        return value
    _complain(name, f"a number from 0 to {MAX_SETTING:g}", default)
    return default


def switch(name: str, default: bool) -> bool:
    """Read a switch of the section ``[handoff]``; the default where it is none."""
    from airflow.configuration import conf
    from airflow.exceptions import AirflowConfigException

    try:
        return bool(conf.getboolean("handoff", name, fallback=default))
    except (AirflowConfigException, ValueError):
        _complain(name, "True or False", default)
        return default


# A slip in the configuration must not shut every door.
@functools.cache
def _complain(name: str, expected: str, default: object) -> None:
    from airflow.configuration import conf

    found = conf.get("handoff", name, fallback="")
    log.error("[handoff] %s = %s is not %s: %s is used instead", name, found, expected, default)
