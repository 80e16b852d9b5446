"""Blocks as reStructuredText."""

from __future__ import annotations

import re

from airflow_handoff.capabilities.render.blocks import Block, Cell, Heading, Paragraph, Table

_SPECIAL = re.compile(r"([\\`*_|])")
# At the start of a block these are bullets, enumerators, fields, comments, options or underlines.
_BLOCK_START = re.compile(r"(?=[^\w\s\\])|(?=\(?(?:[A-Za-z]|\w+|#)[.)](?:\s|$))")
_UNDERLINES = {2: "-", 3: "~"}


def to_rst(blocks: tuple[Block, ...]) -> str:
    """Return reStructuredText.

    :param blocks: what to say.
    """
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def escape(text: str) -> str:
    """Return text that reStructuredText shows as it is, also at the start of a block.

    :param text: plain text.
    """
    text = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    text = text.replace("::", ":\\:")
    if text and not text.strip("\\"):
        return "\\ " + text  # backslashes alone are an underline; an escaped space is nothing
    return "\\" + text if _BLOCK_START.match(text) else text


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        text = _inline(block)
        return f"{text}\n{_UNDERLINES[block.level] * len(text)}"
    if isinstance(block, Paragraph):
        return escape(block.text)
    return _table(block)


def _table(table: Table) -> str:
    lines = [".. list-table::", "   :header-rows: 1", ""]
    lines += _item(table.header)
    for row in table.rows:
        lines += _item(row.cells, strong=row.heading)
    return "\n".join(lines)


def _item(cells: tuple[Cell, ...], *, strong: bool = False) -> list[str]:
    lines = []
    for number, cell in enumerate(cells):
        text = _inline(cell)
        if strong and text:
            text = f"**{text}**"
        lines.append(f"   {'*' if number == 0 else ' '} - {text}".rstrip())
    return lines


def _inline(part: Cell | Heading) -> str:
    return f"``{part.text}``" if part.code else escape(part.text)
