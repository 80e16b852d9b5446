"""What stands between the markers is generated, everything else is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_handoff.capabilities.config import Target
from airflow_handoff.capabilities.render.html import GENERATED
from airflow_handoff.capabilities.targets import generate, rewrite
from airflow_handoff.exceptions import CapabilitiesError

README = Target(Path("README.md"), "md")


def section(what: str) -> str:
    """Render a region as its own name, in two lines."""
    return f"<{what}>\n."


def test_only_the_regions_change() -> None:
    """Any number of them in one file, each with what its marker asks for."""
    text = (
        "a\n<!-- handoff:begin matrix -->\nold\n<!-- handoff:end -->\nb\n"
        "<!--handoff:begin  sdk  rust-->\n<!-- handoff:end -->\nc"
    )
    once = rewrite(text, README, section)
    assert once == (
        "a\n<!-- handoff:begin matrix -->\n\n<matrix>\n.\n\n<!-- handoff:end -->\nb\n"
        "<!--handoff:begin  sdk  rust-->\n\n<sdk rust>\n.\n\n<!-- handoff:end -->\nc"
    )
    assert rewrite(once, README, section) == once


def test_the_other_formats_have_markers_too() -> None:
    """A comment of reStructuredText, and an indented one of HTML."""
    rst = rewrite(".. handoff:begin matrix\n.. handoff:end\n", Target(Path("a.rst"), "rst"), section)
    assert rst == ".. handoff:begin matrix\n\n<matrix>\n.\n\n.. handoff:end\n"
    page = rewrite(
        "  <!-- handoff:begin matrix -->\n  <!-- handoff:end -->\n", Target(Path("a"), "html"), section
    )
    assert "<matrix>" in page


def test_markers_in_an_example_are_text() -> None:
    """Documentation shows them in a fence, also in a longer one around another."""
    example = "````md\n```\n<!-- handoff:begin matrix -->\n```\n<!-- handoff:begin matrix -->\n````\n"
    real = "<!-- handoff:begin matrix -->\n<!-- handoff:end -->\n"
    assert rewrite(example + real, README, section).startswith(
        example + "<!-- handoff:begin matrix -->\n\n<matrix>"
    )
    with pytest.raises(CapabilitiesError, match="there are no markers"):
        rewrite(example, README, section)


def test_the_ends_of_lines_stay_as_they_are(tmp_path: Path) -> None:
    """A file with carriage returns keeps them, and gets no mixture."""
    path = tmp_path / "README.md"
    path.write_bytes(b"\xef\xbb\xbfa\r\n<!-- handoff:begin matrix -->\r\n<!-- handoff:end -->\r\n")
    held, wanted = generate(Target(path, "md"), section, None)
    assert held.startswith("\ufeffa\r\n")
    assert (
        wanted
        == "\ufeffa\r\n<!-- handoff:begin matrix -->\r\n\r\n<matrix>\r\n.\r\n\r\n<!-- handoff:end -->\r\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<!-- handoff:begin matrix -->\n", 1),
        ("a\n<!-- handoff:end -->\n", 2),
        ("<!-- handoff:begin a -->\n<!-- handoff:begin b -->\n<!-- handoff:end -->\n", 2),
    ],
)
def test_a_lonely_marker_is_told_with_its_line(text: str, line: int) -> None:
    """Nothing is written past a marker whose partner was deleted."""
    with pytest.raises(CapabilitiesError, match="has no `handoff:") as raised:
        rewrite(text, README, section)
    assert raised.value.line == line


def test_a_file_without_markers_is_told_which_to_write() -> None:
    """In the comment of its own format."""
    with pytest.raises(
        CapabilitiesError, match=r"write the lines `\.\. handoff:begin matrix` and `\.\. handoff:end`"
    ):
        rewrite("text\n", Target(Path("a.rst"), "rst"), section)


def test_a_new_file_and_a_page_of_our_own_are_generated_whole(tmp_path: Path) -> None:
    """Somebody else's page is never overwritten."""
    new, page = Target(tmp_path / "new.md", "md"), Target(tmp_path / "page.html", "html")
    assert generate(new, section, None) == (
        "",
        "<!-- handoff:begin matrix -->\n\n<matrix>\n.\n\n<!-- handoff:end -->\n",
    )
    assert generate(page, section, lambda: "whole") == ("", "whole")
    page.path.write_text(f"<!doctype html>\n{GENERATED}\nold")
    assert generate(page, section, lambda: "whole")[1] == "whole"
    page.path.write_text("<!doctype html>\nmine")
    with pytest.raises(CapabilitiesError, match="somebody else wrote this file"):
        generate(page, section, lambda: "whole")
    page.path.write_text("mine\n<!-- handoff:begin matrix -->\n<!-- handoff:end -->\n")
    assert generate(page, section, lambda: "whole")[1].startswith("mine\n")
