"""What Airflow accepts as an XCom, a state value or resume arguments."""

from __future__ import annotations

from airflow_handoff_sdk.errors import NotJsonSafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INFINITIES = (float("inf"), float("-inf"))


def check(value: Any, path: str = "$") -> Any:
    """Return ``value`` if it is JSON.

    The supervisor of Airflow 3.3 never answers a request that holds bytes, a datetime or a key that is not
    text, and the task would hang; so it is refused here.

    :raises NotJsonSafe: with the place and the type of the first part that is not.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if kind is int:
        if not -(1 << 63) <= value < 1 << 64:
            raise NotJsonSafe(path, f"is an integer of more than 64 bits: {value}")
        return value
    if isinstance(value, float):
        if value != value or value in _INFINITIES:
            raise NotJsonSafe(path, f"is {value}, which JSON has not")
        return value
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotJsonSafe(path, f"has the key {key!r}, and JSON keys are text")
            check(item, f"{path}.{key}")
        return value
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            check(item, f"{path}[{index}]")
        return value
    if isinstance(value, (str, int)):
        return value
    hint = "; use .isoformat()" if hasattr(value, "isoformat") else ""
    raise NotJsonSafe(path, f"is a {kind.__name__}, which JSON has not{hint}")


def revive(value: Any) -> Any:
    """Return a value of Airflow's own serialization with its moments, tuples and sets restored.

    Classes that this SDK does not know stay the mappings they are on the wire.
    """
    if isinstance(value, list):
        return [revive(item) for item in value]
    if not isinstance(value, dict):
        return value
    name = value.get("__classname__")
    if name is None:
        return {key: revive(item) for key, item in value.items()}
    data = value.get("__data__")
    if name in ("datetime.datetime", "pendulum.datetime.DateTime"):
        return _moment(data)
    kinds = {"builtins.tuple": tuple, "builtins.set": set, "builtins.frozenset": frozenset}
    if name in kinds and isinstance(data, list):
        return kinds[name](revive(data))
    return value


def _moment(data: Any) -> Any:
    from datetime import datetime, timezone

    if not isinstance(data, dict) or "timestamp" not in data:
        return data
    return datetime.fromtimestamp(data["timestamp"], timezone.utc)
