"""An order over the version texts that SDKs of every language use."""

from __future__ import annotations

import re

#: Spellings of pre-releases, in the order in which they come; a release sorts above all of them.
_STAGES = {"dev": 0, "snapshot": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "m": 2, "rc": 3, "c": 3, "pre": 3}
_RELEASE = 4
_VERSION = re.compile(r"v?(?P<release>\d+(?:\.\d+)*)[-._]?(?:(?P<stage>[a-z]+)[-._]?(?P<number>\d+)?)?", re.I)

Version = tuple[tuple[int, ...], int, int]


def parse_version(text: str) -> Version | None:
    """Return a key that sorts versions, or ``None`` where the text is not one.

    ``1.0.0-beta3`` (Maven), ``1.0.0-beta.3`` (npm, Cargo), ``1.0.0b3`` (Python) and ``v1.0.0-beta3`` (Go) are
    equal. Build metadata after ``+`` does not count.

    :param text: the version as an SDK writes it.
    """
    match = _VERSION.fullmatch(text.strip().split("+")[0])
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    stage = (match["stage"] or "").lower()
    if stage and stage not in _STAGES:
        return None
    return tuple(release), _STAGES[stage] if stage else _RELEASE, int(match["number"] or 0)


def is_older(one: str, other: str) -> bool:
    """Return whether one version came before another; texts without an order are older when they differ.

    :param one: a version.
    :param other: the version to compare it with.
    """
    first, second = parse_version(one), parse_version(other)
    if first is None or second is None:
        return one != other
    return first < second


def newest(versions: list[str]) -> str | None:
    """Return the newest of the versions that can be ordered, or ``None``.

    :param versions: texts in any order.
    """
    found = [(key, text) for text in versions if (key := parse_version(text)) is not None]
    return max(found)[1] if found else None


def release_of(airflow_version: str) -> tuple[int, int]:
    """Return ``(major, minor)`` of an Airflow version such as ``3.3`` or ``3.3.2rc1``.

    :param airflow_version: a text that has matched ``patterns.AIRFLOW_VERSION``.
    """
    major, minor = airflow_version.split(".")[:2]
    return int(major), int(re.match(r"\d+", minor)[0])  # type: ignore[index]
