"""Notes are shown as they were written, in every format."""

from __future__ import annotations

import html
import io
import re

import pytest
from docutils.core import publish_doctree
from docutils.nodes import Element, entry, literal
from docutils.utils import Reporter
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from airflow_handoff.capabilities.render import render
from airflow_handoff.capabilities.render.blocks import Cell, Heading, Paragraph, Row, Table

NASTY = [
    "a | b",
    "**not bold** and _not_ *emphasis* and __neither__",
    "`not code` ``nor this`` trailing \\",
    "<script>alert(1)</script> & &amp; <!-- handoff:end -->",
    "[link](http://example.org) ![image](x) [1]_ |sub| http://example.org/a_b",
    "# not a heading",
    "- not a list",
    "1. not a list",
    "(a) not a list",
    ":field: not a field",
    ".. note:: not a directive",
    "ends like a literal block::",
    ">>> not a doctest",
    "====",
    "$x$ ~~no~~ ^no^ {no}`no`",
    "--option like an option",
    "~ é ✓ 漢字",
]


def one_cell(text: str, form: str) -> str:
    """Return a table whose second row holds a text."""
    return render((Table((Cell("Note"), Cell("x")), (Row((Cell(text), Cell("-"))),)),), form)


def shown_by_markdown(text: str) -> str:
    """Return the text that a reader of the Markdown sees in the cell."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(one_cell(text, "md"))
    cells = re.findall(r"<td>(.*?)</td>", page, re.DOTALL)
    assert len(cells) == 2, page
    assert "<" not in cells[0], page
    return html.unescape(cells[0])


def shown_by_rst(text: str) -> str:
    """Return the text that a reader of the reStructuredText sees in the cell; a warning is a failure."""
    warnings = io.StringIO()
    settings_ = {"warning_stream": warnings, "report_level": Reporter.INFO_LEVEL}
    tree = publish_doctree(one_cell(text, "rst"), settings_overrides=settings_)
    assert not warnings.getvalue()
    cells = list(tree.findall(entry))
    assert len(cells) == 4
    assert {type(node).__name__ for node in cells[2].findall(Element)} <= {"entry", "paragraph", "reference"}
    return str(cells[2].astext())


@pytest.mark.parametrize("text", NASTY)
def test_notes_survive_every_format(text: str) -> None:
    """What looks like markup stays text."""
    assert shown_by_markdown(text) == text
    assert shown_by_rst(text) == text
    cells = re.findall("<td>(.*?)</td>", one_cell(text, "html"))
    assert html.unescape(cells[0]) == text
    assert "<script" not in cells[0]


_printable = st.text(st.sampled_from(list("ab1 .|*_`\\:<>[](){}#-+=~$^&!@/'\"\n\té✓")), max_size=14)


@settings(max_examples=400, deadline=None)
@given(_printable)
def test_any_note_survives_every_format(text: str) -> None:
    """Also those that nobody thought of; white space counts as one space."""
    wanted = " ".join(text.split())
    assert shown_by_markdown(text) == wanted
    assert shown_by_rst(text) == wanted


def test_blocks_of_each_kind() -> None:
    """Headings, paragraphs, names of dimensions and rows that head others, in each format."""
    heading = Row((Cell("Group"), Cell("")), heading=True)
    table = Table(
        (Cell("Name"), Cell("Is")), (heading, Row((Cell("a-b", code=True), Cell("yes", kind="proven"))))
    )
    blocks = (Heading("Title"), Heading("Sub_title", 3), Paragraph("1. Text."), table)
    assert render(blocks, "md").split("\n") == [
        *("## Title", "", "### Sub\\_title", "", "1\\. Text.", ""),
        *("| Name | Is |", "| --- | --- |", "| **Group** |  |", "| `a-b` | yes |"),
    ]
    assert render(blocks, "rst").split("\n") == [
        *("Title", "-----", "", "Sub\\_title", "~~~~~~~~~~", "", "\\1. Text.", ""),
        *(".. list-table::", "   :header-rows: 1", ""),
        *("   * - Name", "     - Is", "   * - **Group**", "     -", "   * - ``a-b``", "     - yes"),
    ]
    page = render(blocks, "html")
    assert "<h2>Title</h2>\n<h3>Sub_title</h3>\n<p>1. Text.</p>" in page
    assert '<tr><th scope="rowgroup" colspan="2">Group</th></tr>' in page
    assert '<td><code>a-b</code></td><td><span class="proven">yes</span></td>' in page
    tree = publish_doctree(render(blocks[2:], "rst"))
    assert [node.astext() for node in tree.findall(literal)] == ["a-b"]
