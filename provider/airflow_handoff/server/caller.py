"""Dependencies of our routes: who calls, the way into Airflow, and errors as JSON."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from airflow_handoff.compat import apiserver
from airflow_handoff.exceptions import HandoffError
from airflow_handoff.server.answer import TurnedAway
from airflow_handoff.server.inner import AIRFLOW, Airflow

log = logging.getLogger(__name__)

#: Airflow's user; answers 401 or 403 where there is none.
User = Annotated[Any, Depends(apiserver.user_dependency())]


def _way_in(request: Request) -> Airflow:
    way = request.scope.get(AIRFLOW)
    if not isinstance(way, Airflow):
        raise HTTPException(503, "Airflow has not loaded the middleware of this plugin.")
    return way


def _json_only(request: Request, _user: User) -> None:
    # A page of another site can make a browser send forms, but not this type.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "Send the body as application/json.")


#: The way into Airflow's own routes with the caller's credentials.
Way = Annotated[Airflow, Depends(_way_in)]
JSON_ONLY = Depends(_json_only)

Name = Annotated[str, Path(min_length=1, max_length=1000)]
Index = Annotated[int, Query(ge=-1, le=2**31 - 1)]


def handle_errors(app: FastAPI) -> None:
    """Turn our errors into JSON responses."""
    app.add_exception_handler(TurnedAway, _turned_away)
    app.add_exception_handler(HandoffError, _unreadable)
    app.add_exception_handler(RequestValidationError, _malformed)


class _Ascii(JSONResponse):
    """Takes text that no other encoding does, half a surrogate pair for one."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


async def _malformed(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the registration says so
    # Not what came: it may be large, or no JSON at all, such as NaN.
    found = [{name: item[name] for name in ("type", "loc", "msg")} for item in error.errors()]
    return _Ascii({"detail": found}, 422)


async def _turned_away(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TurnedAway)  # noqa: S101 - the registration says so
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return _Ascii({"detail": error.detail, **error.facts}, error.status, headers)


async def _unreadable(_request: Request, error: Exception) -> JSONResponse:
    log.error("A request cannot be read: %s", error)
    return _Ascii({"detail": str(error)}, 503)
