"""JSON values as the types a function's annotations ask for."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import typing
import uuid

Any = typing.Any


def convert(value: Any, hint: Any) -> Any:
    """Return ``value`` as ``hint``.

    Known are the JSON types, ``Optional``, ``Union``, ``Literal``, lists, tuples, sets, mappings, datetimes,
    dates, times, timedeltas (seconds), ``Decimal``, ``UUID``, ``Path``, enums, dataclasses and typed dicts.
    Any other annotation leaves the value as it is.

    :raises TypeError: where the value is of another type.
    :raises ValueError: where it is of the right type and cannot be read.
    """
    if hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return value
    origin = getattr(hint, "__origin__", None)
    if origin is not None or type(hint).__name__ == "UnionType":
        return _generic(value, hint, origin)
    if hint is None or hint is type(None):
        return _expect(value, type(None))
    if not isinstance(hint, type):
        return value
    if hint is bool or hint is str:
        return _expect(value, hint)
    if hint is int or hint is float:
        return _number(value, hint)
    reader = _READERS.get(hint)
    if reader is not None:
        return value if isinstance(value, hint) else reader(value)
    return _class(value, hint)


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__} {value!r}")
    return value


def _number(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__} {value!r}")
    if kind is int and value != int(value):
        raise TypeError(f"expected int, got float {value!r}")
    return kind(value)


def _moment(value: Any) -> datetime.datetime:
    text = _expect(value, str)
    # fromisoformat reads the Z only from Python 3.11 on.
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def _decimal(value: Any) -> decimal.Decimal:
    try:
        return decimal.Decimal(str(value))
    except decimal.InvalidOperation as error:
        raise ValueError(f"expected a decimal number, got {value!r}") from error


_READERS: dict[type, typing.Callable[[Any], Any]] = {
    datetime.datetime: _moment,
    datetime.date: lambda value: datetime.date.fromisoformat(_expect(value, str)),
    datetime.time: lambda value: datetime.time.fromisoformat(_expect(value, str)),
    datetime.timedelta: lambda value: datetime.timedelta(seconds=_number(value, float)),
    decimal.Decimal: lambda value: _decimal(value),
    uuid.UUID: lambda value: uuid.UUID(_expect(value, str)),
    pathlib.Path: lambda value: pathlib.Path(_expect(value, str)),
    list: lambda value: _expect(value, list),
    dict: lambda value: _expect(value, dict),
    tuple: lambda value: tuple(_expect(value, list)),
    set: lambda value: set(_expect(value, list)),
}


def _generic(value: Any, hint: Any, origin: Any) -> Any:
    arguments = getattr(hint, "__args__", ())
    if origin is typing.Union or origin is None:
        return _union(value, arguments)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"expected one of {list(arguments)}, got {value!r}")
        return value
    arguments = [a for a in arguments if not isinstance(a, typing.TypeVar)]
    if origin is tuple:
        return _tuple(_expect(value, list), arguments)
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):
        item = arguments[1] if len(arguments) > 1 else Any
        return {key: convert(v, item) for key, v in _expect(value, dict).items()}
    if isinstance(origin, type) and issubclass(origin, typing.Iterable):
        items = [convert(v, arguments[0] if arguments else Any) for v in _expect(value, list)]
        return origin(items) if origin in (set, frozenset) else items
    return value


def _union(value: Any, options: typing.Sequence[Any]) -> Any:
    if value is None and type(None) in options:
        return None
    problems = []
    for option in options:
        if option is type(None):
            continue
        try:
            return convert(value, option)
        except (TypeError, ValueError) as error:
            problems.append(str(error))
    raise TypeError("; ".join(problems) or f"expected None, got {value!r}")


def _tuple(value: list[Any], arguments: typing.Sequence[Any]) -> tuple[Any, ...]:
    if not arguments:
        return tuple(value)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(convert(item, arguments[0]) for item in value)
    if len(arguments) != len(value):
        raise TypeError(f"expected {len(arguments)} items, got {len(value)}")
    return tuple(convert(item, hint) for item, hint in zip(value, arguments))


def _class(value: Any, hint: type) -> Any:
    if issubclass(hint, enum.Enum):
        return hint(value)
    fields = getattr(hint, "__dataclass_fields__", None)
    if fields is not None and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        unknown = sorted(set(value) - set(fields))
        if unknown:
            raise TypeError(f"{hint.__name__} has no field {unknown[0]!r}")
        return hint(**{key: convert(item, hints[key]) for key, item in value.items()})
    if hasattr(hint, "__total__") and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        return {key: convert(item, hints.get(key, Any)) for key, item in value.items()}
    return value
