"""What a task knows about itself, and what it can ask for."""

from __future__ import annotations

from airflow_handoff_sdk import requests
from airflow_handoff_sdk.errors import ApiServerError, NotFound, SdkError
from airflow_handoff_sdk.human import Replay
from airflow_handoff_sdk.jsonsafe import check, revive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Dict, Mapping, Sequence

    from airflow_handoff_sdk.client import Client
    from airflow_handoff_sdk.outcomes import Duration
    from airflow_handoff_sdk.replies import AssetEventResponse, AssetResult, StartupDetails

    Body = Dict[str, Any]

UNSET = requests.UNSET
_current: list[Context] = []


def current_context() -> Context:
    """Return the context of the task that this process runs.

    :raises SdkError: outside a task.
    """
    if not _current:
        raise SdkError("there is no running task here: call this from a function that Airflow started")
    return _current[-1]


class Context:
    """The running task instance.

    :param startup: the body of ``StartupDetails``; kept as :attr:`startup`.
    """

    def __init__(self, client: Client, startup: StartupDetails) -> None:
        self.client = client
        self.startup = startup
        ti, server = startup["ti"], startup["ti_context"]
        self.ti_id: str = ti["id"]
        self.dag_id: str = ti["dag_id"]
        self.task_id: str = ti["task_id"]
        self.run_id: str = ti["run_id"]
        self.try_number: int = ti["try_number"]
        self.map_index: int = ti.get("map_index", -1)
        #: Tries that the task has in all, the first one included.
        self.max_tries: int = server.get("max_tries", 0)
        #: Whether a failure now would be tried again.
        self.should_retry: bool = bool(server.get("should_retry"))
        self.reschedule_count: int = server.get("task_reschedule_count") or 0
        self.dag_run: Mapping[str, Any] = server["dag_run"]
        self.next_method: str | None = server.get("next_method")
        self.next_kwargs: Body | None = server.get("next_kwargs")
        self.replay = Replay(self.next_method, self.next_kwargs)
        if self.replay.asker is not None:
            self.next_method, self.next_kwargs = self.replay.asker
        self.map_index_label: str | None = None
        self.xcom = XComs(self)
        self.variables = Variables(self)
        self.assets = Assets(self)

    @property
    def conf(self) -> Body:
        """The configuration that the run was triggered with."""
        return self.dag_run.get("conf") or {}

    @property
    def logical_date(self) -> datetime | None:
        """The run's logical date; ``None`` where it has none."""
        return self.dag_run.get("logical_date")

    @property
    def state(self) -> TaskStore:
        """Values that outlive a try of this task instance."""
        return TaskStore(self)

    def asset_state(self, *, name: str | None = None, uri: str | None = None) -> AssetStore:
        """Return the values kept with an asset, which is given by name or by URI."""
        return AssetStore(self, name, uri)

    def request(self, body: Body) -> Body:
        """Send any request of :mod:`airflow_handoff_sdk.requests` and return the body of the reply."""
        return self.client.request(body)

    def connection(self, conn_id: str) -> Connection:
        """Return a connection.

        :raises NotFound: where there is none of that id.
        """
        return Connection(self.request(requests.GetConnection(conn_id=conn_id)))

    def mask_secret(self, value: Any) -> None:
        """Have a value hidden in the task log from now on."""
        self.request(requests.MaskSecret(value=value))

    def set_map_index_label(self, label: str) -> None:
        """Name this mapped instance in Airflow's pages."""
        self.request(requests.SetRenderedMapIndex(rendered_map_index=label))
        self.map_index_label = label

    def skip_downstream(self, tasks: Sequence[str | tuple[str, int]]) -> None:
        """Skip downstream tasks, each given as an id or as ``(id, map_index)``."""
        self.request(
            requests.SkipDownstreamTasks(tasks=[t if isinstance(t, str) else list(t) for t in tasks])
        )


class Connection:
    """A connection; :attr:`extra` is its text, :meth:`extra_json` what that text says."""

    def __init__(self, body: Body) -> None:
        self.conn_id: str = body["conn_id"]
        self.conn_type: str = body["conn_type"]
        self.host: str | None = body.get("host")
        self.schema: str | None = body.get("schema")
        self.login: str | None = body.get("login")
        self.password: str | None = body.get("password")
        self.port: int | None = body.get("port")
        self.extra: str | None = body.get("extra")

    def extra_json(self) -> Body:
        """Return the extra field, read as JSON; ``{}`` where it is empty."""
        import json

        return json.loads(self.extra) if self.extra else {}

    def __repr__(self) -> str:
        return f"Connection({self.conn_id!r}, {self.conn_type!r})"


class XComs:
    """Values that tasks hand to each other."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def _where(self, task_id: str | None, dag_id: str | None, run_id: str | None) -> dict[str, str]:
        context = self._context
        return {
            "task_id": task_id or context.task_id,
            "dag_id": dag_id or context.dag_id,
            "run_id": run_id or context.run_id,
        }

    def pull(
        self,
        task_id: str | None = None,
        key: str = "return_value",
        *,
        map_index: int | None = None,
        dag_id: str | None = None,
        run_id: str | None = None,
        include_prior_dates: bool = False,
        default: Any = None,
    ) -> Any:
        """Return a value, ``default`` where there is none.

        :param task_id: this task where it is left out.
        :param map_index: the instance of a mapped task; :meth:`pull_all` reads them all.
        """
        reply = self._context.request(
            requests.GetXCom(
                key=key,
                map_index=map_index,
                include_prior_dates=include_prior_dates,
                **self._where(task_id, dag_id, run_id),
            )
        )
        value = revive(reply.get("value"))
        return default if value is None else value

    def pull_all(
        self,
        task_id: str,
        key: str = "return_value",
        *,
        dag_id: str | None = None,
        run_id: str | None = None,
    ) -> list[Any]:
        """Return the values of every instance of a mapped task, in their order."""
        where: Any = self._where(task_id, dag_id, run_id)
        reply = self._context.request(
            requests.GetXComSequenceSlice(key=key, start=None, stop=None, step=None, **where)
        )
        return [revive(item) for item in reply["root"]]

    def push(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key of this task.

        :raises NotJsonSafe: where it is not JSON.
        """
        self._set(key, check(value))

    def push_result(self, value: Any) -> None:
        """Keep what the function returned, with the length that downstream tasks expand over."""
        check(value)
        length = (
            len(value) if self._context.map_index < 0 and isinstance(value, (list, tuple, dict)) else None
        )
        if length is None:
            return self._set("return_value", value)
        try:
            return self._set("return_value", value, mapped_length=length)
        except ApiServerError as error:
            # Longer than [core] max_map_length. That is fatal only where somebody expands over it, and the
            # wire does not say whether anybody does.
            if "unmappable_return_value_length" not in str(error.detail):
                raise
        self._set("return_value", value)

    def delete(self, key: str) -> None:
        """Remove a value of this task."""
        where = self._where(None, None, None)
        self._context.request(requests.DeleteXCom(key=key, map_index=self._context.map_index, **where))

    def _set(self, key: str, value: Any, **more: Any) -> None:
        where: Any = self._where(None, None, None)
        self._context.request(
            requests.SetXCom(key=key, value=value, map_index=self._context.map_index, **where, **more)
        )


class Variables:
    """Airflow's variables."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def get(self, key: str, default: Any = UNSET, *, deserialize_json: bool = False) -> Any:
        """Return a variable, as text or read as JSON.

        :raises NotFound: where there is none and no default is given.
        """
        try:
            value = self._context.request(requests.GetVariable(key=key)).get("value")
        except NotFound:
            if default is UNSET:
                raise
            return default
        if not deserialize_json or value is None:
            return value
        import json

        return json.loads(value)

    def set(
        self, key: str, value: Any, *, description: str | None = None, serialize_json: bool = False
    ) -> None:
        """Write a variable; anything but text needs ``serialize_json``."""
        if serialize_json:
            import json

            value = json.dumps(value)
        elif not isinstance(value, str):
            raise TypeError(f"a variable is text, not {type(value).__name__}; pass serialize_json=True")
        self._context.request(requests.PutVariable(key=key, value=value, description=description))

    def delete(self, key: str) -> None:
        """Remove a variable."""
        self._context.request(requests.DeleteVariable(key=key))

    def keys(self, prefix: str | None = None) -> list[str]:
        """Return the names of all variables, or of those with a prefix."""
        found: list[str] = []
        while True:
            page = self._context.request(
                requests.GetVariableKeys(prefix=prefix, limit=1000, offset=len(found))
            )
            found += page["keys"]
            if not page["keys"] or len(found) >= page["total_entries"]:
                return found


class TaskStore:
    """Values that outlive a try of this task instance."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, ``default`` where there is none."""
        body = requests.GetTaskStateStore(ti_id=self._context.ti_id, key=key)
        return _stored(self._context, body, default)

    def set(self, key: str, value: Any, *, expires: datetime | Duration | None = None) -> None:
        """Keep a JSON value.

        :param expires: an aware moment, or seconds or a ``timedelta`` from now; without it, never.
        """
        body = requests.SetTaskStateStore(
            ti_id=self._context.ti_id, key=key, value=check(value), expires_at=_expiry(expires)
        )
        self._context.request(body)

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._context.request(requests.DeleteTaskStateStore(ti_id=self._context.ti_id, key=key))

    def clear(self) -> None:
        """Remove every value."""
        self._context.request(requests.ClearTaskStateStore(ti_id=self._context.ti_id))


class AssetStore:
    """Values kept with an asset that the task declares as inlet or outlet."""

    def __init__(self, context: Context, name: str | None, uri: str | None) -> None:
        self._context = context
        self._which = _by_name_or_uri(name, uri)
        self._suffix = "ByName" if name is not None else "ByUri"

    def _body(self, verb: str, **fields: Any) -> Body:
        build = getattr(requests, f"{verb}AssetStateStore{self._suffix}")
        return build(**self._which, **fields)  # type: ignore[no-any-return]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, ``default`` where there is none."""
        return _stored(self._context, self._body("Get", key=key), default)

    def set(self, key: str, value: Any) -> None:
        """Keep a JSON value."""
        self._context.request(self._body("Set", key=key, value=check(value)))

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._context.request(self._body("Delete", key=key))

    def clear(self) -> None:
        """Remove every value."""
        self._context.request(self._body("Clear"))


class Assets:
    """Asset events: those this task makes, and those that happened."""

    def __init__(self, context: Context) -> None:
        self._context = context
        #: ``task_outlets`` and ``outlet_events`` of the message that ends the task.
        self.outlets: list[Body] = []
        self.outlet_events: list[Body] = []

    def get(self, *, name: str | None = None, uri: str | None = None) -> AssetResult:
        """Return an asset as Airflow knows it.

        :raises NotFound: where it does not.
        """
        which = _by_name_or_uri(name, uri)
        build = requests.GetAssetByName if name is not None else requests.GetAssetByUri
        return self._context.request(build(**which))  # type: ignore[return-value]

    def emit(
        self,
        *,
        name: str | None = None,
        uri: str | None = None,
        extra: Body | None = None,
        partition_key: str | None = None,
        alias: str | None = None,
    ) -> None:
        """Record an event of an asset; it is made when the task succeeds.

        The asset is looked up first: an event under a URI that differs by one character would be lost
        without a word.

        :param partition_key: Airflow 3.3 leaves it out of events through an alias: those have the partition
            of the run.
        :param alias: record it through this alias, which the task declares as an outlet.
        :raises NotFound: where Airflow does not know the asset.
        """
        asset = self.get(name=name, uri=uri)
        key = {"name": asset["name"], "uri": asset["uri"]}
        profile: Body = {**key, "type": "Asset"}
        event: Body = {"dest_asset_key": key, "extra": check(extra or {}, "extra")}
        if partition_key is not None:
            event["partition_key"] = partition_key
        if alias is not None:
            profile = {"name": alias, "uri": None, "type": "AssetAlias"}
            event.update(source_alias_name=alias, dest_asset_extra={})
        if profile not in self.outlets:
            self.outlets.append(profile)
        self.outlet_events.append(event)

    def events(
        self,
        *,
        name: str | None = None,
        uri: str | None = None,
        alias: str | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        limit: int | None = None,
        ascending: bool = True,
    ) -> list[AssetEventResponse]:
        """Return the events of an asset or of an alias, oldest first unless ``ascending`` is false."""
        from airflow_handoff_sdk.outcomes import iso_moment

        window = {
            "after": iso_moment(after) if after else None,
            "before": iso_moment(before) if before else None,
            "limit": limit,
            "ascending": ascending,
        }
        if alias is not None:
            body = requests.GetAssetEventByAssetAlias(alias_name=alias, **window)  # type: ignore[arg-type]
        else:
            _by_name_or_uri(name, uri)
            body = requests.GetAssetEventByAsset(name=name, uri=uri, **window)  # type: ignore[arg-type]
        return self._context.request(body)["asset_events"]  # type: ignore[no-any-return]


def _by_name_or_uri(name: str | None, uri: str | None) -> dict[str, str]:
    if name is not None and uri is None:
        return {"name": name}
    if uri is not None and name is None:
        return {"uri": uri}
    raise TypeError("give an asset by name= or by uri=, one of them")


def _stored(context: Context, body: Body, default: Any) -> Any:
    try:
        return context.request(body).get("value")
    except NotFound:
        return default


def _expiry(expires: Any) -> str | None:
    if expires is None:
        return None
    from datetime import timedelta

    from airflow_handoff_sdk.outcomes import iso_moment, now, seconds

    if hasattr(expires, "utcoffset"):
        return iso_moment(expires)
    return iso_moment(now() + timedelta(seconds=seconds(expires)))
