"""A client of a deployment's human half, for programs: one class that waits, one that awaits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from airflow_handoff.client import calls
from airflow_handoff.client.calls import Call, Operation, Pause, Reply
from airflow_handoff.client.errors import InvalidUse, ServerUnreachable
from airflow_handoff.client.reference import RequestRef
from airflow_handoff.client.request import Request

T = TypeVar("T")

#: Seconds for one call. The server holds an answer while its park is young and while its task still runs.
TIMEOUT = 60.0


class HandoffClient:
    """Trigger runs, wait for them, and answer what they ask.

    :param base_url: the api-server's URL, with its path where it is served below one.
    :param token: a bearer token of Airflow's API; without one only :meth:`login` works.
    :param timeout: seconds for one call.
    :param transport: another way to the server, for tests.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = _base(base_url)
        self._http = httpx.Client(headers=_headers(token), timeout=timeout, transport=transport)

    def __enter__(self) -> HandoffClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, operation: Operation[T]) -> T:
        """Drive one of :mod:`airflow_handoff.client.calls`' operations."""
        reply: Reply | None = None
        while True:
            try:
                step = operation.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = self._take(step)

    def _take(self, step: Call | Pause) -> Reply | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        request = _request(self._http, self.base_url, step)
        try:
            return _reply(self._http.send(request))
        except httpx.HTTPError as error:
            raise _unreachable(self.base_url, error, request.method) from None

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run and return its id."""
        return self.run(calls.trigger(dag_id, conf, run_id))

    def wait(
        self, run_id: str, dag_id: str | None = None, *, timeout: float | None = None, every: float = 1.0
    ) -> dict[str, Any]:
        """Follow a run until it completes; see :func:`airflow_handoff.client.calls.wait`."""
        return self.run(calls.wait(run_id, dag_id, timeout=timeout, every=every))

    def status(self, run_id: str, dag_id: str | None = None) -> dict[str, Any]:
        """Read where a run stands."""
        return self.run(calls.run_status(run_id, dag_id))

    def pending(
        self, *, dag_id: str = "~", run_id: str = "~", user: str | None = None, **filters: Any
    ) -> list[Request]:
        """List what waits for an answer; ``filters`` are Airflow's own query parameters."""
        return self.run(calls.pending(filters, dag_id=dag_id, run_id=run_id, user=user))

    def show(self, ref: RequestRef | str, try_number: int | None = None) -> Request:
        """Read one request."""
        return self.run(calls.show(_ref(ref), try_number))

    def answer(
        self,
        ref: RequestRef | str,
        options: str | list[str],
        params_input: Mapping[str, Any] | None = None,
        comment: str | None = None,
        *,
        try_number: int | None = None,
        digest: str | None = None,
    ) -> dict[str, Any]:
        """Answer one request; see :func:`airflow_handoff.client.calls.answer`."""
        what = (_ref(ref), _options(options), params_input, comment)
        return self.run(calls.answer(*what, try_number=try_number, digest=digest))

    def approve(self, run_id: str, approval_key: str, **more: Any) -> dict[str, Any]:
        """Approve a gate; see :func:`airflow_handoff.client.calls.decide`."""
        return self.run(calls.decide(run_id, approval_key, True, **more))

    def reject(self, run_id: str, approval_key: str, **more: Any) -> dict[str, Any]:
        """Reject a gate; see :func:`airflow_handoff.client.calls.decide`."""
        return self.run(calls.decide(run_id, approval_key, False, **more))


class AsyncHandoffClient:
    """:class:`HandoffClient` for asyncio; the methods are the same, awaited.

    :param base_url: the api-server's URL, with its path where it is served below one.
    :param token: a bearer token of Airflow's API.
    :param timeout: seconds for one call.
    :param transport: another way to the server, for tests.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = _base(base_url)
        self._http = httpx.AsyncClient(headers=_headers(token), timeout=timeout, transport=transport)

    async def __aenter__(self) -> AsyncHandoffClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, operation: Operation[T]) -> T:
        """Drive one of :mod:`airflow_handoff.client.calls`' operations."""
        reply: Reply | None = None
        while True:
            try:
                step = operation.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = await self._take(step)

    async def _take(self, step: Call | Pause) -> Reply | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        request = _request(self._http, self.base_url, step)
        try:
            return _reply(await self._http.send(request))
        except httpx.HTTPError as error:
            raise _unreachable(self.base_url, error, request.method) from None

    async def trigger(
        self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None
    ) -> str:
        """Start a run and return its id."""
        return await self.run(calls.trigger(dag_id, conf, run_id))

    async def wait(
        self, run_id: str, dag_id: str | None = None, *, timeout: float | None = None, every: float = 1.0
    ) -> dict[str, Any]:
        """Follow a run until it completes; see :func:`airflow_handoff.client.calls.wait`."""
        return await self.run(calls.wait(run_id, dag_id, timeout=timeout, every=every))

    async def status(self, run_id: str, dag_id: str | None = None) -> dict[str, Any]:
        """Read where a run stands."""
        return await self.run(calls.run_status(run_id, dag_id))

    async def pending(
        self, *, dag_id: str = "~", run_id: str = "~", user: str | None = None, **filters: Any
    ) -> list[Request]:
        """List what waits for an answer; ``filters`` are Airflow's own query parameters."""
        return await self.run(calls.pending(filters, dag_id=dag_id, run_id=run_id, user=user))

    async def show(self, ref: RequestRef | str, try_number: int | None = None) -> Request:
        """Read one request."""
        return await self.run(calls.show(_ref(ref), try_number))

    async def answer(
        self,
        ref: RequestRef | str,
        options: str | list[str],
        params_input: Mapping[str, Any] | None = None,
        comment: str | None = None,
        *,
        try_number: int | None = None,
        digest: str | None = None,
    ) -> dict[str, Any]:
        """Answer one request; see :func:`airflow_handoff.client.calls.answer`."""
        what = (_ref(ref), _options(options), params_input, comment)
        return await self.run(calls.answer(*what, try_number=try_number, digest=digest))

    async def approve(self, run_id: str, approval_key: str, **more: Any) -> dict[str, Any]:
        """Approve a gate; see :func:`airflow_handoff.client.calls.decide`."""
        return await self.run(calls.decide(run_id, approval_key, True, **more))

    async def reject(self, run_id: str, approval_key: str, **more: Any) -> dict[str, Any]:
        """Reject a gate; see :func:`airflow_handoff.client.calls.decide`."""
        return await self.run(calls.decide(run_id, approval_key, False, **more))


def _ref(ref: RequestRef | str) -> RequestRef:
    return RequestRef.parse(ref) if isinstance(ref, str) else ref


def _options(options: str | list[str]) -> list[str]:
    return [options] if isinstance(options, str) else list(options)


def _base(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InvalidUse(f"the URL has to begin with http:// or https://, got {url!r}")
    return url.rstrip("/")


def _headers(token: str | None) -> dict[str, str]:
    if token and not (token.isascii() and token.isprintable()):
        raise InvalidUse("the token has characters that no HTTP header takes: copy it again")
    return {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}


def _request(http: httpx.Client | httpx.AsyncClient, base_url: str, call: Call) -> httpx.Request:
    try:
        return http.build_request(
            call.method,
            base_url + call.path,
            params=dict(call.params) or None,
            json=call.json,
            headers=dict(call.headers),
        )
    except httpx.InvalidURL as error:
        raise _unreachable(base_url, error) from None
    except (TypeError, ValueError) as error:
        raise InvalidUse(f"what was to be sent is no JSON or no header: {error}") from None


def _reply(response: httpx.Response) -> Reply:
    try:
        body = response.json()
    except ValueError:
        body = response.text
    header = response.headers.get("retry-after", "")
    patience = float(header) if header.isdecimal() else None
    return Reply(response.status_code, body, patience, response.headers.get("location"))


def _unreachable(base_url: str, error: Exception, method: str = "GET") -> ServerUnreachable:
    what = f"no reply from {base_url}: {error or type(error).__name__}"
    if method != "GET" and isinstance(error, (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError)):
        # It was sent, and a held answer is written later.
        return ServerUnreachable(f"{what}; it may have been taken all the same: look with `handoff show`")
    return ServerUnreachable(f"{what}; is the api-server up?")
