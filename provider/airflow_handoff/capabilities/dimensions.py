"""The list of dimensions, and the supervisor schemas that each Airflow release accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow_handoff.capabilities.document import load_yaml
from airflow_handoff.exceptions import CapabilitiesError

TIERS = ("MUST", "SHOULD", "MAY")
GROUPS = ("states", "runtime", "native")
#: Headings of the groups, as they appear in every table.
GROUP_TITLES = {
    "states": "Task instance states",
    "runtime": "While a task runs",
    "native": "Writing a whole Dag",
}


@dataclass(frozen=True)
class Dimension:
    """One thing that a language SDK can claim.

    :param name: as written in a manifest; unique over all groups.
    :param group: ``states``, ``runtime`` or ``native``.
    :param tier: ``MUST``, ``SHOULD`` or ``MAY``.
    :param since: the revision of Airflow's specification in which it appeared.
    :param conditional: the tier applies only while the gate is supported.
    :param gate: while it is not supported, the conditional dimensions are n/a.
    :param means: one line for readers.
    """

    name: str
    group: str
    tier: str
    since: str
    conditional: bool
    gate: bool
    means: str

    @property
    def section(self) -> str:
        """The mapping of a manifest in which it stands: ``states`` or ``capabilities``."""
        return "states" if self.group == "states" else "capabilities"


@dataclass(frozen=True)
class DimensionList:
    """Every dimension, in display order.

    :param revisions: the revisions of the specification, oldest first.
    :param dimensions: in display order.
    """

    revisions: tuple[str, ...]
    dimensions: tuple[Dimension, ...]

    @property
    def by_name(self) -> dict[str, Dimension]:
        """The dimensions by their names."""
        return {dimension.name: dimension for dimension in self.dimensions}

    @property
    def gate(self) -> Dimension:
        """The one dimension on which the conditional ones depend."""
        return next(dimension for dimension in self.dimensions if dimension.gate)

    def in_group(self, group: str) -> tuple[Dimension, ...]:
        """Return the dimensions of one group.

        :param group: ``states``, ``runtime`` or ``native``.
        """
        return tuple(dimension for dimension in self.dimensions if dimension.group == group)

    def in_section(self, section: str) -> tuple[str, ...]:
        """Return the names that a manifest may use in one of its two mappings.

        :param section: ``states`` or ``capabilities``.
        """
        return tuple(dimension.name for dimension in self.dimensions if dimension.section == section)


def parse_dimensions(data: Mapping[str, Any], path: str) -> DimensionList:
    """Build the list from the plain data of a dimensions file.

    :param data: what the YAML file holds.
    :param path: the file's name, for messages.
    :raises CapabilitiesError: for an unknown tier or revision, a name used twice, or not exactly one gate.
    """
    revisions = tuple(data["revisions"])
    dimensions: list[Dimension] = []
    for group in GROUPS:
        for name, fields in data[group].items():
            dimensions.append(
                Dimension(
                    name=name,
                    group=group,
                    tier=fields["tier"],
                    since=fields.get("since", revisions[0]),
                    conditional=fields.get("conditional", False),
                    gate=fields.get("gate", False),
                    means=fields.get("means") or fields.get("report", ""),
                )
            )
    _require_sound(dimensions, revisions, path)
    return DimensionList(revisions, tuple(dimensions))


def _require_sound(dimensions: list[Dimension], revisions: tuple[str, ...], path: str) -> None:
    names = [dimension.name for dimension in dimensions]
    for dimension in dimensions:
        if dimension.tier not in TIERS:
            raise CapabilitiesError(
                path, f"{dimension.name}: the tier is one of {', '.join(TIERS)}, not {dimension.tier}"
            )
        if dimension.since not in revisions:
            raise CapabilitiesError(
                path, f"{dimension.name}: since is one of {', '.join(revisions)}, not {dimension.since}"
            )
        if names.count(dimension.name) > 1:
            raise CapabilitiesError(
                path, f"{dimension.name} is listed twice: a name stands for one dimension"
            )
    if sum(dimension.gate for dimension in dimensions) != 1:
        raise CapabilitiesError(path, "exactly one dimension has `gate: true`")


@lru_cache(maxsize=1)
def known_dimensions() -> DimensionList:
    """Return the list that ships with this package."""
    path = Path(__file__).with_name("dimensions.yaml")
    return parse_dimensions(load_yaml(path.read_text(encoding="utf-8")), path.name)


@lru_cache(maxsize=1)
def known_schemas() -> dict[tuple[int, int], tuple[str, ...]]:
    """Return the supervisor schema versions that each Airflow release accepts, keyed by (major, minor)."""
    path = Path(__file__).with_name("schemas.yaml")
    data = load_yaml(path.read_text(encoding="utf-8"))
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    for release, versions in data.items():
        major, minor = release.split(".")
        found[int(major), int(minor)] = tuple(versions)
    return found
