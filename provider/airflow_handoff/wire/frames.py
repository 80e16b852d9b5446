"""Length-prefixed MessagePack frames: bytes in, payloads out.

A frame is a 4-byte big-endian length followed by that many bytes of MessagePack. Memory grows with the bytes
that were received, never with the length that a peer claims, and every byte is looked at once.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from airflow_handoff.exceptions import WireError

#: Bytes of the length in front of every frame.
HEADER_SIZE = 4
#: The largest payload that is read or written unless the caller says otherwise, in bytes.
DEFAULT_MAX_FRAME = 512 * 1024 * 1024
#: The largest payload that the 4-byte length can name, in bytes.
LARGEST_FRAME = 2**32 - 1


class FrameViolation(WireError):
    """The peer broke the framing or the MessagePack inside it; the peer is at fault.

    :param reason: what was expected and what came, without a full stop.
    :param offset: bytes of the stream before the first byte of the offending frame.
    :param in_sync: whether the stream can still be read after this frame.
    """

    def __init__(self, reason: str, offset: int, *, in_sync: bool) -> None:
        super().__init__(f"broken frame at byte {offset} of the comm channel: {reason}")
        self.reason = reason
        self.offset = offset
        self.in_sync = in_sync


class UnencodableFrame(WireError):
    """A value that cannot be sent: too large for a frame, or of a type that MessagePack has no form for.

    The sender is at fault, and nothing was written.

    :param reason: what was expected and what came.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Frame(NamedTuple):
    """One complete payload and where it began.

    :param offset: bytes of the stream before the frame's length.
    :param payload: the MessagePack bytes; owned by the receiver.
    """

    offset: int
    payload: bytes | bytearray


class FrameDecoder:
    """Cut a byte stream into frames.

    :param max_frame: the largest payload that is accepted, in bytes.
    """

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self.max_frame = max_frame
        self._offset = 0
        # A length of zero means that the header is being read; what came of header or body is in _partial.
        self._length = 0
        self._partial = bytearray()
        self._violation: FrameViolation | None = None

    @property
    def offset(self) -> int:
        """Bytes of the stream before the frame that is being read."""
        return self._offset

    @property
    def pending(self) -> int:
        """Bytes that were received of a frame that is not complete yet, its length included."""
        return len(self._partial) + (HEADER_SIZE if self._length else 0)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        """Take bytes as they come and yield every frame that they complete.

        The iterator must be exhausted before the next call.

        :param data: the next bytes of the stream, cut anywhere.
        :raises FrameViolation: for a length of zero or above ``max_frame``, after the frames in front of it;
            and again on every later call.
        """
        if self._violation is not None and len(data):
            raise self._violation
        size = len(data)
        if not self._partial and not self._length and size > HEADER_SIZE:
            length = int.from_bytes(data[:HEADER_SIZE], "big")
            if length == size - HEADER_SIZE and length <= self.max_frame:  # most come alone and in one piece
                frame = Frame(self._offset, bytes(data[HEADER_SIZE:]))
                self._offset += size
                yield frame
                return
        view = memoryview(data)
        position = 0
        while position < size:
            wanted = (self._length or HEADER_SIZE) - len(self._partial)
            piece = view[position : position + wanted]
            position += len(piece)
            if len(piece) < wanted:
                self._partial += piece
                return
            # What arrived in one piece is copied once and never joined.
            whole: bytes | bytearray = bytes(piece)
            if self._partial:
                self._partial += piece
                whole, self._partial = self._partial, bytearray()
            if not self._length:
                self._announce(int.from_bytes(whole, "big"))
                continue
            frame = Frame(self._offset, whole)
            self._offset += HEADER_SIZE + self._length
            self._length = 0
            del whole
            yield frame

    def _announce(self, length: int) -> None:
        if length == 0:
            self._break("a frame holds at least one byte and this one says it holds none")
        if length > self.max_frame:
            self._break(f"a frame holds at most {self.max_frame} bytes, this one claims {length}")
        self._length = length

    def _break(self, reason: str) -> None:
        self._violation = FrameViolation(reason, self._offset, in_sync=False)
        raise self._violation

    def end(self) -> None:
        """Say that the stream has ended.

        :raises FrameViolation: where it ended inside a frame.
        """
        if self._violation is None and self.pending:
            claimed = f"{self._length} bytes were announced" if self._length else "an unfinished length"
            self._break(f"the stream ended inside a frame: {claimed}, {len(self._partial)} bytes came")


_SCALARS: tuple[Any, ...] = (str, int, float, bytes)


def plain(value: Any) -> Any:
    """Reduce a subclass of a builtin, a mapping, a sequence or a pydantic model to what MessagePack can hold.

    :raises TypeError: for anything else.
    """
    if isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value.date(), value.timetz())
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta(value.days, value.seconds, value.microseconds)
    for builtin in _SCALARS:
        if isinstance(value, builtin):
            return builtin(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Sequence, Set)):
        return list(value)
    if hasattr(value, "__fspath__"):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump()
    raise TypeError(f"values of type {type(value).__qualname__} cannot be sent")


_encoder = msgspec.msgpack.Encoder(enc_hook=plain)
_decoder = msgspec.msgpack.Decoder()


def encode_frame(content: Sequence[Any], max_frame: int = DEFAULT_MAX_FRAME) -> bytearray:
    """Return the bytes of one frame, its length included.

    :param content: ``[id, body]``, ``[id, body, carrier]`` or ``[id, body, error]``.
    :param max_frame: the largest payload to produce, in bytes; never more than 2**32 - 1.
    :raises UnencodableFrame: for a larger payload or a value that MessagePack cannot hold.
    """
    buffer = bytearray(256)
    try:
        _encoder.encode_into(content, buffer, HEADER_SIZE)
    except (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError) as error:
        raise UnencodableFrame(f"only what MessagePack can hold is sent: {error}") from error
    length = len(buffer) - HEADER_SIZE
    limit = min(max_frame, LARGEST_FRAME)
    if length > limit:
        raise UnencodableFrame(f"a frame holds at most {limit} bytes, this one would hold {length}")
    buffer[:HEADER_SIZE] = length.to_bytes(HEADER_SIZE, "big")
    return buffer


def decode_payload(frame: Frame) -> list[Any]:
    """Return the array in a frame, whose first element is an integer id and which has at least two elements.

    :raises FrameViolation: for anything else; the stream stays readable.
    """
    try:
        content = _decoder.decode(frame.payload)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
        raise FrameViolation(f"not MessagePack: {error}", frame.offset, in_sync=True) from error
    if not isinstance(content, list):
        raise _shape(frame, f"an array was expected and {_kind(content)} came")
    if len(content) < 2:
        raise _shape(frame, f"an array of two or three was expected and one of {len(content)} came")
    if type(content[0]) is not int:
        raise _shape(frame, f"an integer id was expected and {_kind(content[0])} came")
    return content


def _shape(frame: Frame, reason: str) -> FrameViolation:
    return FrameViolation(reason, frame.offset, in_sync=True)


_KINDS = {
    dict: "a map",
    list: "an array",
    str: "a text",
    bytes: "binary",
    bool: "a boolean",
    float: "a float",
}


def _kind(value: Any) -> str:
    return "nil" if value is None else _KINDS.get(type(value), type(value).__name__)
