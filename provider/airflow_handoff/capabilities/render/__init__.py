"""Tables of claims, as Markdown, reStructuredText, HTML or JSON: pure, and the same for the same claims."""

from __future__ import annotations

from airflow_handoff.capabilities.render.blocks import Block
from airflow_handoff.capabilities.render.html import to_html, to_page
from airflow_handoff.capabilities.render.markdown import to_markdown
from airflow_handoff.capabilities.render.rst import to_rst

RENDERERS = {"md": to_markdown, "rst": to_rst, "html": to_html}


def render(blocks: tuple[Block, ...], form: str) -> str:
    """Return the text of some blocks, without a newline at its end.

    :param blocks: what to say.
    :param form: ``md``, ``rst`` or ``html``.
    """
    return RENDERERS[form](blocks).rstrip("\n")


__all__ = ["render", "to_html", "to_markdown", "to_page", "to_rst"]
