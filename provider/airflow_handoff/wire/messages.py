"""From the maps inside frames to typed messages and back, as of supervisor schema 2026-06-16.

What a task sends is in ``requests.py``, what it receives in ``responses.py``; the class name is the value of
the message's ``type`` key. Fields that the schema does not know are ignored, except where a message forbids
them. Times travel as MessagePack timestamps or RFC 3339 texts, durations as ISO 8601 texts, UUIDs as texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from airflow_handoff.exceptions import WireError
from airflow_handoff.wire import requests, responses
from airflow_handoff.wire.values import Message, Request, Response

#: The supervisor schema that the messages are written from.
SCHEMA_VERSION = "2026-06-16"


class InvalidMessage(WireError):
    """A message of an unknown type, or a known one whose fields break the schema; its sender is at fault.

    :param type_name: what the message said its type was, or ``None`` where it said nothing usable.
    :param reason: what was expected and what came.
    :param status_code: 400 for an unknown type, 422 for wrong fields, as an HTTP server would say it.
    """

    def __init__(self, type_name: str | None, reason: str, status_code: int) -> None:
        super().__init__(f"{type_name or 'message without a type'}: {reason}")
        self.type_name = type_name
        self.reason = reason
        self.status_code = status_code


# -- from and to bodies -------------------------------------------------------------------------------

_M = TypeVar("_M", bound=Message)


def _public(module: Any, base: type[_M]) -> dict[str, type[_M]]:
    return {
        name: cls
        for name, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base and not name.startswith("_")
    }


#: What a task sends, by type name.
REQUESTS: Mapping[str, type[Request]] = _public(requests, Request)
#: What a task receives, by type name.
RESPONSES: Mapping[str, type[Message]] = {
    **_public(responses, Response),
    # Airflow's schema lists the question itself among the answers, too.
    "CreateHITLDetailPayload": requests.CreateHITLDetailPayload,
}
#: Fields of requests whose value must be JSON, by type name.
_JSON_FIELDS: Mapping[str, tuple[str, ...]] = {
    "SetXCom": ("value",),
    "MaskSecret": ("value",),
    "SetRenderedFields": ("rendered_fields",),
    "SetTaskStateStore": ("value",),
    "SetAssetStateStoreByName": ("value",),
    "SetAssetStateStoreByUri": ("value",),
    "DeferTask": ("trigger_kwargs", "next_kwargs"),
    "AwaitInputTask": ("next_kwargs",),
}


def parse_request(body: Any) -> Request:
    """Type what a task sent.

    :param body: the second element of its frame.
    :raises InvalidMessage: for anything that is not one of :data:`REQUESTS`.
    """
    request = _parse(body, REQUESTS)
    for field in _JSON_FIELDS.get(body["type"], ()):
        reason = not_json(body.get(field), f"$.{field}")
        if reason:
            raise InvalidMessage(body["type"], reason, 422)
    return request


def parse_response(body: Any) -> Message:
    """Type what a task received.

    :param body: the second or third element of the supervisor's frame.
    :raises InvalidMessage: for anything that is not one of :data:`RESPONSES`.
    """
    return _parse(body, RESPONSES)


def type_of(body: Any) -> str:
    """Return the type that a body claims.

    :raises InvalidMessage: where it claims none.
    """
    if not isinstance(body, dict):
        came = "nil" if body is None else type(body).__name__
        raise InvalidMessage(None, f"a map with the key `type` was expected and {came} came", 400)
    name = body.get("type")
    if not isinstance(name, str):
        raise InvalidMessage(None, f"`type` must be a text and {type(name).__name__} came", 400)
    return name


def _parse(body: Any, known: Mapping[str, type[_M]]) -> _M:
    name = type_of(body)
    cls = known.get(name)
    if cls is None:
        raise InvalidMessage(name[:100], f"no message of this type is known in schema {SCHEMA_VERSION}", 400)
    try:
        # Not strict: Airflow's own models take "1" for 1 and seconds for a duration, too.
        return msgspec.convert(body, cls, strict=False)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
        raise InvalidMessage(name, str(error), 422) from error


def not_json(value: Any, path: str = "$") -> str | None:
    """Say where a decoded value holds something that JSON cannot, or ``None`` where it is all JSON.

    :param path: how the reason names the place of ``value``.
    """
    # A stack of iterators and not recursion: depth is the peer's choice.
    stack: list[Iterator[tuple[Any, Any]]] = [iter(((path, value),))]
    while stack:
        for where, item in stack[-1]:
            kind = type(item)
            if kind is str or kind is int or kind is bool or item is None:
                continue
            if kind is float:
                if not math.isfinite(item):
                    return f"{_path(path, where)}: a finite number was expected and {item} came"
            elif kind is list or kind is tuple:
                stack.append(iter(enumerate(item)))
                break
            elif kind is dict:
                for key in item:
                    if type(key) is not str:
                        return f"{_path(path, where)}: keys must be texts and {type(key).__name__} came"
                stack.append(iter(item.items()))
                break
            else:
                return f"{_path(path, where)}: JSON was expected and {kind.__name__} came"
        else:
            stack.pop()
    return None


def _path(path: str, where: Any) -> str:
    return path if where == path else f"{path}...[{str(where)[:50]!r}]"
