"""Blocks as Markdown that GitHub and MyST read alike."""

from __future__ import annotations

import re

from airflow_handoff.capabilities.render.blocks import Block, Cell, Heading, Paragraph, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#!^@])")


def to_markdown(blocks: tuple[Block, ...]) -> str:
    """Return Markdown.

    :param blocks: what to say.
    """
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is.

    :param text: plain text.
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text)


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_inline(block)}"
    if isinstance(block, Paragraph):
        text = escape(block.text)
        return re.sub(r"^(\d+)([.)])|^([-+=])", r"\1\\\2\3", text)
    return _table(block)


def _table(table: Table) -> str:
    lines = [_line(table.header), "|" + " --- |" * len(table.header)]
    for row in table.rows:
        if row.heading:
            first = Cell(row.cells[0].text)
            lines.append(_line((first, *row.cells[1:]), strong=True))
        else:
            lines.append(_line(row.cells))
    return "\n".join(lines)


def _line(cells: tuple[Cell, ...], *, strong: bool = False) -> str:
    shown = []
    for cell in cells:
        text = _inline(cell)
        shown.append(f"**{text}**" if strong and text else text)
    return "| " + " | ".join(shown) + " |"


def _inline(part: Cell | Heading) -> str:
    return f"`{part.text}`" if part.code else escape(part.text)
