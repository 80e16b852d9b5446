"""Cut a byte stream into lines, each kept up to a cap, in time linear in the bytes received."""

from __future__ import annotations

from typing import NamedTuple

#: The longest line that is kept whole unless the caller says otherwise, in bytes.
DEFAULT_MAX_LINE = 1024 * 1024


class Line(NamedTuple):
    """One line without its newline.

    :param data: its bytes, at most the cap.
    :param missing: how many more bytes it had.
    """

    data: bytes
    missing: int = 0

    def text(self) -> str:
        """Return the line as text: bytes that are not UTF-8 as ``\\xNN``, and a mark where it was cut."""
        text = self.data.decode("utf-8", "backslashreplace")
        return f"{text}... [cut: {self.missing} more bytes]" if self.missing else text


class LineDecoder:
    """Cut bytes into lines.

    :param max_line: how many bytes of a line are kept.
    """

    def __init__(self, max_line: int = DEFAULT_MAX_LINE) -> None:
        self.max_line = max_line
        self._partial = bytearray()
        self._missing = 0

    def feed(self, data: bytes | bytearray | memoryview) -> list[Line]:
        """Take bytes as they come and return the lines that they complete."""
        first, *rest = bytes(data).split(b"\n")
        self._keep(first)
        if not rest:
            return []
        lines = [self._take(), *map(self._whole, rest[:-1])]
        self._keep(rest[-1])
        return lines

    def end(self) -> list[Line]:
        """Return the last line where it had no newline."""
        return [self._take()] if self._partial or self._missing else []

    def _keep(self, piece: bytes) -> None:
        room = self.max_line - len(self._partial)
        if len(piece) <= room:
            self._partial += piece
        else:
            self._partial += piece[:room]
            self._missing += len(piece) - room

    def _take(self) -> Line:
        line = Line(_without_return(bytes(self._partial), self._missing), self._missing)
        self._partial.clear()
        self._missing = 0
        return line

    def _whole(self, piece: bytes) -> Line:
        missing = max(0, len(piece) - self.max_line)
        kept = piece[: self.max_line] if missing else piece
        return Line(_without_return(kept, missing), missing)


def _without_return(data: bytes, missing: int) -> bytes:
    return data[:-1] if not missing and data.endswith(b"\r") else data
