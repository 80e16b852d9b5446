"""A real api-server application in this process, on an SQLite database of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("airflow.models.hitl", reason="needs Airflow")

import httpx
from airflow import settings

ROOT_PATH = "/airflow/prod"
USERS = {"admin": "admin", "alice": "user", "bob": "user", "viewer": "viewer"}
_SETTINGS = {
    ("core", "simple_auth_manager_users"): ",".join(f"{name}:{role}" for name, role in USERS.items()),
    ("core", "load_examples"): "False",
    ("api", "base_url"): f"http://airflow.example{ROOT_PATH}",
    ("api_auth", "jwt_secret"): secrets.token_hex(32),
    ("handoff", "settle_seconds"): "0.3",
}


class Api:
    """The application and who may use it.

    :param app: Airflow's, with our plugin loaded as in an api-server.
    """

    def __init__(self, app: Any, tokens: dict[str, str]) -> None:
        self.app = app
        self._tokens = tokens

    def headers(self, user: str | None, cookie: bool = False) -> dict[str, str]:
        """Return the credentials of a user."""
        if user is None:
            return {}
        token = self._tokens[user]
        return {"cookie": f"_token={token}"} if cookie else {"authorization": f"Bearer {token}"}

    async def call(
        self, method: str, path: str, *, user: str | None = "admin", cookie: bool = False, **rest: Any
    ) -> httpx.Response:
        """Send one request."""
        headers = {**self.headers(user, cookie), **rest.pop("headers", {})}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow.example", timeout=60) as c:
            return await c.request(method, ROOT_PATH + path, headers=headers, **rest)

    async def patch(
        self, dag_id: str, task_id: str, options: Any, params: Any = None, **rest: Any
    ) -> httpx.Response:
        """Answer through Airflow's own route, as its page does."""
        payload = {"chosen_options": options, "params_input": params or {}}
        index = rest.pop("map_index", -1)
        path = f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/{task_id}/{index}/hitlDetails"
        return await self.call("PATCH", path, json=payload, **rest)

    async def approve(
        self, dag_id: str, key: str, approved: bool = True, query: str = "", **body: Any
    ) -> httpx.Response:
        """Answer through the approve route."""
        user = body.pop("user", "admin")
        path = f"/handoff/v1/dags/{dag_id}/runs/run/approve/{key}{query}"
        return await self.call("POST", path, json={"approved": approved, **body}, user=user)


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Airflow's application; what it changed in this process is put back at the end."""
    folder = tmp_path_factory.mktemp("airflow")
    changed = {
        **_SETTINGS,
        ("database", "sql_alchemy_conn"): f"sqlite:///{folder / 'airflow.db'}",
        ("core", "simple_auth_manager_passwords_file"): str(folder / "passwords.json"),
        ("core", "plugins_folder"): str(folder / "plugins"),
    }
    with pytest.MonkeyPatch.context() as patch:
        for (section, key), value in changed.items():
            patch.setenv(f"AIRFLOW__{section.upper()}__{key.upper()}", value)
        _connect()
        try:
            yield _build(folder)
        finally:
            settings.dispose_orm()
    _connect()


def _connect() -> None:
    settings.configure_vars()
    settings.dispose_orm()
    settings.configure_orm()


def _build(folder: Any) -> Api:
    from airflow.api_fastapi import app as airflow_app
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.models import import_all_models
    from airflow.models.base import Base

    import_all_models()
    Base.metadata.create_all(settings.engine)
    airflow_app.API_ROOT_PATH = f"{ROOT_PATH}/"
    app = airflow_app.create_app(apps="core")
    manager = airflow_app.get_auth_manager()
    tokens = {
        name: manager.generate_jwt(SimpleAuthManagerUser(username=name, role=role))
        for name, role in USERS.items()
    }
    return Api(app, tokens)


@pytest.fixture
def dag_id(request: pytest.FixtureRequest, api: Api) -> str:
    """A Dag of this test's own with a run named ``run``."""
    from tests.unit.server import rows

    name = "".join(char if char.isalnum() else "_" for char in request.node.name)[:80] + secrets.token_hex(3)
    rows.add_dag(name)
    rows.add_run(name, "run")
    return name
