"""The api-server's HTTP side: who calls, what they may, and Airflow's own models of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

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


def answer_payload_model() -> Any:
    """Return Airflow's own model of an answer: ``chosen_options`` and ``params_input``."""
    from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload

    return UpdateHITLDetailPayload


def base_url() -> str:
    """Return ``[api] base_url`` or an empty text."""
    from airflow.configuration import conf

    return str(conf.get("api", "base_url", fallback="") or "")


def setting(name: str, default: float) -> float:
    """Read a number of the section ``[handoff]``."""
    from airflow.configuration import conf

    return float(conf.getfloat("handoff", name, fallback=default))


def switch(name: str, default: bool) -> bool:
    """Read a switch of the section ``[handoff]``."""
    from airflow.configuration import conf

    return bool(conf.getboolean("handoff", name, fallback=default))
