"""Files with generated tables: what stands between the markers is replaced, everything else is left alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_handoff.capabilities.config import Target
from airflow_handoff.capabilities.document import read_text
from airflow_handoff.capabilities.render.html import GENERATED
from airflow_handoff.exceptions import CapabilitiesError

_COMMENTS = {
    "md": ("<!-- {} -->", re.compile(r"<!--\s*handoff:(begin|end)\b\s*(.*?)\s*-->\s*$")),
    "html": ("<!-- {} -->", re.compile(r"\s*<!--\s*handoff:(begin|end)\b\s*(.*?)\s*-->\s*$")),
    "rst": (".. {}", re.compile(r"\.\. handoff:(begin|end)\b\s*(.*?)\s*$")),
}
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)$")


@dataclass(frozen=True)
class Region:
    """The lines between two markers.

    :param what: what is generated there, such as ``matrix`` or ``sdk rust``.
    :param begin: the index of the line with the first marker.
    :param end: the index of the line with the second one.
    """

    what: str
    begin: int
    end: int


def rewrite(text: str, target: Target, section: Callable[[str], str]) -> str:
    """Return a file's text with every region generated anew.

    :param text: as it is.
    :param target: the file and its format.
    :param section: what belongs into a region, by its name.
    :raises CapabilitiesError: when there are no markers, or one lacks its partner.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(newline)
    regions = find_regions(lines, target)
    if not regions:
        comment = _COMMENTS[target.format][0]
        begin, end = comment.format("handoff:begin matrix"), comment.format("handoff:end")
        raise CapabilitiesError(
            str(target.path),
            f"there are no markers; write the lines `{begin}` and `{end}` where the table goes",
        )
    for region in reversed(regions):
        generated = section(region.what).split("\n")
        lines[region.begin + 1 : region.end] = ["", *generated, ""]
    return newline.join(lines)


def find_regions(lines: list[str], target: Target) -> list[Region]:
    """Return the regions of a file; markers inside a fenced example are text.

    :param lines: without their newlines.
    :param target: the file and its format.
    :raises CapabilitiesError: when a marker lacks its partner, with the line.
    """
    regions: list[Region] = []
    opened: tuple[str, int] | None = None
    for index, kind, what in _markers(lines, target.format):
        if kind == "begin" and opened is None:
            opened = (" ".join(what.split()), index)
        elif kind == "end" and opened is not None:
            regions.append(Region(opened[0], opened[1], index))
            opened = None
        else:
            raise _lonely(target, index, kind)
    if opened is not None:
        raise _lonely(target, opened[1], "begin")
    return regions


def generate(
    target: Target, section: Callable[[str], str], whole: Callable[[], str] | None
) -> tuple[str, str]:
    """Return what a target holds and what it should hold; ``""`` for a file that is not there.

    A page or JSON file that this package wrote, or that is not there yet, is generated whole.

    :param target: the file and its format.
    :param section: what belongs into a region, by its name.
    :param whole: the whole file, for a format that has one.
    :raises CapabilitiesError: when the file cannot be read, has no markers, or was written by somebody else.
    """
    if not target.path.exists():
        return "", whole() if whole else _new_file(target, section)
    held = _read_exactly(target.path)
    if target.format in _COMMENTS and find_regions(re.split(r"\r?\n", held), target):
        return held, rewrite(held, target, section)
    if whole is None:
        return held, rewrite(held, target, section)
    if GENERATED not in held and '"generated_by": "handoff capabilities matrix"' not in held:
        raise CapabilitiesError(
            str(target.path),
            "somebody else wrote this file; name a new one, or put markers where the table goes",
        )
    return held, whole()


def _new_file(target: Target, section: Callable[[str], str]) -> str:
    comment = _COMMENTS[target.format][0]
    empty = f"{comment.format('handoff:begin matrix')}\n{comment.format('handoff:end')}\n"
    return rewrite(empty, target, section)


def _read_exactly(path: Path) -> str:
    read_text(path)  # tells what is wrong with a file that cannot be read
    return path.read_bytes().decode("utf-8")


def _markers(lines: list[str], form: str) -> Iterator[tuple[int, str, str]]:
    pattern = _COMMENTS[form][1]
    fence = ""
    for index, line in enumerate(lines):
        bar = _FENCE.match(line) if form == "md" else None
        if bar and not fence:
            fence = bar[1]
        elif bar and bar[1].startswith(fence) and not bar[2].strip():
            fence = ""
        elif not fence and (match := pattern.match(line)):
            yield index, match[1], match[2]


def _lonely(target: Target, index: int, kind: str) -> CapabilitiesError:
    partner = "end" if kind == "begin" else "begin"
    return CapabilitiesError(
        str(target.path),
        f"this `handoff:{kind}` marker has no `handoff:{partner}`; add or remove one",
        index + 1,
    )
