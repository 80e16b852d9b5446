"""What a page says, before any format: headings, paragraphs and tables of plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    :param text: plain text, in one line; each format escapes it.
    :param code: a name from a file.
    :param kind: what it means, for colours; empty for nothing.
    :param title: shown where a format can when somebody points at it.
    """

    text: str
    code: bool = False
    kind: str = ""
    title: str = ""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    :param cells: as many as the header has.
    :param heading: the first cell names the rows that follow; the others are empty.
    """

    cells: tuple[Cell, ...]
    heading: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    :param header: the names of the columns.
    :param rows: in order.
    """

    header: tuple[Cell, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Heading:
    """A heading.

    :param text: plain text.
    :param level: 2 or 3.
    :param code: a name from a file.
    """

    text: str
    level: int = 2
    code: bool = False


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    :param text: plain text.
    """

    text: str


Block: TypeAlias = Table | Heading | Paragraph
