"""MessagePack, as much of it as the wire uses: every core type, and ext -1 for moments in time."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from airflow_handoff_sdk.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Callable

_U16, _U32, _U64 = Struct(">H"), Struct(">I"), Struct(">Q")
_I8, _I16, _I32, _I64 = Struct(">b"), Struct(">h"), Struct(">i"), Struct(">q")
_F32, _F64 = Struct(">f"), Struct(">d")
_T96 = Struct(">Iq")
_MAX_DEPTH = 200


class Ext:
    """An extension value other than a moment in time."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ext) and (self.code, self.data) == (other.code, other.data)

    def __hash__(self) -> int:
        return hash((self.code, self.data))


def packb(value: Any) -> bytes:
    """Encode a value.

    :raises TypeError: for a type that MessagePack has not.
    :raises OverflowError: for an integer outside 64 bits.
    """
    out: list[bytes] = []
    _pack(value, out.append, 0)
    return b"".join(out)


def _pack(value: Any, put: Callable[[bytes], None], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise TypeError(f"a value nested deeper than {_MAX_DEPTH} levels, or one that holds itself")
    kind = type(value)
    if kind is str:
        _pack_str(value, put)
    elif value is None:
        put(b"\xc0")
    elif kind is bool:
        put(b"\xc3" if value else b"\xc2")
    elif kind is int:
        _pack_int(value, put)
    elif kind is float:
        put(b"\xcb" + _F64.pack(value))
    elif isinstance(value, dict):
        put(_head(len(value), 0x80, 16, 0xDE))
        for key, item in value.items():
            _pack(key, put, depth + 1)
            _pack(item, put, depth + 1)
    elif isinstance(value, (list, tuple)):
        put(_head(len(value), 0x90, 16, 0xDC))
        for item in value:
            _pack(item, put, depth + 1)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _pack_bytes(bytes(value), put)
    else:
        _pack_rare(value, put)


def _pack_rare(value: Any, put: Callable[[bytes], None]) -> None:
    if isinstance(value, str):
        return _pack_str(str.__str__(value), put)
    if isinstance(value, int):
        return _pack_int(int(value), put)
    if isinstance(value, float):
        return put(b"\xcb" + _F64.pack(value))
    if isinstance(value, Ext):
        return _pack_ext(value.code, value.data, put)
    from datetime import datetime

    if isinstance(value, datetime):
        return _pack_ext(-1, _pack_moment(value), put)
    raise TypeError(f"{type(value).__name__} is not a type that the wire has: {value!r}")


def _head(size: int, fix: int, limit: int, wide: int) -> bytes:
    if size < limit:
        return bytes((fix | size,))
    if size <= 0xFFFF:
        return bytes((wide,)) + _U16.pack(size)
    if size > 0xFFFFFFFF:
        raise OverflowError(f"{size} items, and a frame holds at most 4294967295")
    return bytes((wide + 1,)) + _U32.pack(size)


def _pack_str(value: str, put: Callable[[bytes], None]) -> None:
    data = _utf8(value)
    size = len(data)
    put(bytes((0xD9, size)) if 31 < size < 256 else _head(size, 0xA0, 32, 0xDA))
    put(data)


def _utf8(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise TypeError(f"text that UTF-8 cannot carry: {value!r}") from error


def _pack_bytes(data: bytes, put: Callable[[bytes], None]) -> None:
    size = len(data)
    if size < 256:
        put(bytes((0xC4, size)))
    elif size <= 0xFFFF:
        put(b"\xc5" + _U16.pack(size))
    else:
        put(b"\xc6" + _U32.pack(size))
    put(data)


def _pack_int(value: int, put: Callable[[bytes], None]) -> None:
    if -32 <= value < 128:
        put(_I8.pack(value) if value < 0 else bytes((value,)))
    elif value >= 0:
        if value <= 0xFF:
            put(bytes((0xCC, value)))
        elif value <= 0xFFFF:
            put(b"\xcd" + _U16.pack(value))
        elif value <= 0xFFFFFFFF:
            put(b"\xce" + _U32.pack(value))
        elif value <= 0xFFFFFFFFFFFFFFFF:
            put(b"\xcf" + _U64.pack(value))
        else:
            raise OverflowError(f"an integer of more than 64 bits: {value}")
    elif value >= -0x80:
        put(b"\xd0" + _I8.pack(value))
    elif value >= -0x8000:
        put(b"\xd1" + _I16.pack(value))
    elif value >= -0x80000000:
        put(b"\xd2" + _I32.pack(value))
    elif value >= -0x8000000000000000:
        put(b"\xd3" + _I64.pack(value))
    else:
        raise OverflowError(f"an integer of more than 64 bits: {value}")


def _pack_ext(code: int, data: bytes, put: Callable[[bytes], None]) -> None:
    size = len(data)
    fixed = {1: b"\xd4", 2: b"\xd5", 4: b"\xd6", 8: b"\xd7", 16: b"\xd8"}.get(size)
    if fixed:
        put(fixed)
    elif size < 256:
        put(bytes((0xC7, size)))
    elif size <= 0xFFFF:
        put(b"\xc8" + _U16.pack(size))
    else:
        put(b"\xc9" + _U32.pack(size))
    put(_I8.pack(code) + data)


def _pack_moment(value: datetime) -> bytes:
    from datetime import datetime, timezone

    if value.utcoffset() is None:
        raise TypeError(f"a datetime without a time zone: {value!r}")
    delta = value - datetime(1970, 1, 1, tzinfo=timezone.utc)
    seconds = delta.days * 86400 + delta.seconds
    nanoseconds = delta.microseconds * 1000
    if 0 <= seconds < 1 << 34:
        if not nanoseconds and seconds <= 0xFFFFFFFF:
            return _U32.pack(seconds)
        return _U64.pack(nanoseconds << 34 | seconds)
    return _T96.pack(nanoseconds, seconds)


def unpackb(data: bytes) -> Any:
    """Decode one value that fills ``data``.

    :raises WireError: with the offset of the first byte that breaks the format.
    """
    try:
        value, end = _unpack(data, 0, 0)
    except (IndexError, StructError) as error:
        raise WireError(f"MessagePack ends early, after {len(data)} bytes") from error
    if end != len(data):
        raise WireError(f"{len(data) - end} bytes follow the value at offset {end}")
    return value


_NUMBERS = {
    0xCA: (_F32, 4), 0xCB: (_F64, 8), 0xCC: (Struct(">B"), 1), 0xCD: (_U16, 2), 0xCE: (_U32, 4),
    0xCF: (_U64, 8), 0xD0: (_I8, 1), 0xD1: (_I16, 2), 0xD2: (_I32, 4), 0xD3: (_I64, 8),
}  # fmt: skip
_WIDTHS = {0: (Struct(">B"), 1), 1: (_U16, 2), 2: (_U32, 4)}


def _unpack(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    byte = data[at]
    at += 1
    if 0xA0 <= byte < 0xC0:
        return _text(data, at, byte & 31)
    if byte < 0x80:
        return byte, at
    if byte < 0x90:
        return _map(data, at, byte & 15, depth)
    if byte < 0xA0:
        return _array(data, at, byte & 15, depth)
    if byte == 0xC0:
        return None, at
    if byte in (0xC2, 0xC3):
        return byte == 0xC3, at
    if byte >= 0xE0:
        return byte - 256, at
    if byte in _NUMBERS:
        layout, width = _NUMBERS[byte]
        return layout.unpack_from(data, at)[0], at + width
    if byte == 0xC1:
        raise WireError(f"byte c1 at offset {at - 1} begins no value")
    return _unpack_sized(data, at, byte, depth)


def _unpack_sized(data: bytes, at: int, byte: int, depth: int) -> tuple[Any, int]:
    if 0xD4 <= byte <= 0xD8:
        return _ext(data, at, 1 << (byte - 0xD4))
    base = next(b for b in (0xDE, 0xDC, 0xD9, 0xC7, 0xC4) if byte >= b)
    layout, width = _WIDTHS[byte - base + (1 if base >= 0xDC else 0)]
    size = layout.unpack_from(data, at)[0]
    at += width
    if base == 0xD9:
        return _text(data, at, size)
    if base == 0xC4:
        return _slice(data, at, size), at + size
    if base == 0xC7:
        return _ext(data, at, size)
    return _map(data, at, size, depth) if base == 0xDE else _array(data, at, size, depth)


def _slice(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise WireError(f"{size} bytes announced at offset {at}, {len(data) - at} are there")
    return bytes(data[at : at + size])


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    try:
        return _slice(data, at, size).decode(), at + size
    except UnicodeDecodeError as error:
        raise WireError(f"text at offset {at} is not UTF-8") from error


def _array(data: bytes, at: int, size: int, depth: int) -> tuple[list[Any], int]:
    if depth > _MAX_DEPTH:
        raise WireError(f"nested deeper than {_MAX_DEPTH} levels at offset {at}")
    items = []
    for _ in range(size):
        item, at = _unpack(data, at, depth + 1)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, size: int, depth: int) -> tuple[dict[Any, Any], int]:
    if depth > _MAX_DEPTH:
        raise WireError(f"nested deeper than {_MAX_DEPTH} levels at offset {at}")
    items = {}
    for _ in range(size):
        start = at
        key, at = _unpack(data, at, depth + 1)
        value, at = _unpack(data, at, depth + 1)
        try:
            items[key] = value
        except TypeError as error:
            raise WireError(f"a key at offset {start} that cannot be one") from error
    return items, at


def _ext(data: bytes, at: int, size: int) -> tuple[Any, int]:
    code = _I8.unpack_from(data, at)[0]
    body = _slice(data, at + 1, size)
    return (_moment(body, at) if code == -1 else Ext(code, body)), at + 1 + size


def _moment(body: bytes, at: int) -> datetime:
    from datetime import datetime, timedelta, timezone

    if len(body) == 4:
        seconds, nanoseconds = _U32.unpack(body)[0], 0
    elif len(body) == 8:
        both = _U64.unpack(body)[0]
        seconds, nanoseconds = both & 0x3FFFFFFFF, both >> 34
    elif len(body) == 12:
        nanoseconds, seconds = _T96.unpack(body)
    else:
        raise WireError(f"a moment of {len(body)} bytes at offset {at}")
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    try:
        return epoch + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise WireError(f"a moment at offset {at} outside the years 1 to 9999") from error
