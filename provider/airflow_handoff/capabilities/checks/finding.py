"""What a rule is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_handoff.capabilities.dimensions import DimensionList
from airflow_handoff.capabilities.document import Document
from airflow_handoff.capabilities.evidence import Evidence
from airflow_handoff.capabilities.locate import BuildFile

SECTIONS = ("states", "capabilities")


@dataclass(frozen=True, order=True)
class Finding:
    """One fault of a claim file.

    :param path: the file.
    :param line: where, counted from 1.
    :param rule: the rule's name.
    :param message: what was expected and what came.
    :param write: what to write instead.
    """

    path: str
    line: int
    rule: str
    message: str
    write: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}\n    {self.write}"


@dataclass(frozen=True)
class Subject:
    """A claim file and what is known around it.

    :param document: the file.
    :param dimensions: what can be claimed.
    :param schemas: the supervisor schema versions that each Airflow release accepts.
    :param evidence: what a run of the cases showed; ``None`` where none was recorded.
    :param build_file: the SDK's own build file; ``None`` where none was named.
    :param unmet: the MUST dimensions that the SDK is known, and admitted, not to meet.
    """

    document: Document
    dimensions: DimensionList
    schemas: Mapping[tuple[int, int], tuple[str, ...]]
    evidence: Evidence | None = None
    build_file: BuildFile | None = None
    unmet: tuple[str, ...] = ()

    @property
    def top(self) -> Mapping[Any, Any]:
        """The file's top mapping; empty where it is not one."""
        data = self.document.data
        return data if isinstance(data, dict) else {}

    def section(self, name: str) -> Mapping[Any, Any]:
        """Return ``states`` or ``capabilities``; empty where it is not a mapping.

        :param name: which.
        """
        found = self.top.get(name)
        return found if isinstance(found, dict) else {}

    def entries(self) -> Iterator[tuple[str, str, Mapping[Any, Any]]]:
        """Yield section, name and fields of each entry that is a mapping."""
        for section in SECTIONS:
            for name, fields in self.section(section).items():
                if isinstance(fields, dict):
                    yield section, str(name), fields

    def supported(self, name: str) -> bool | None:
        """Return what is claimed of a dimension, or ``None`` where nothing is.

        :param name: a known dimension.
        """
        fields = self.section(self.dimensions.by_name[name].section).get(name)
        claimed = fields.get("supported") if isinstance(fields, dict) else None
        return claimed if isinstance(claimed, bool) else None

    def text(self, key: str) -> str | None:
        """Return a top-level text, or ``None`` where it is missing or not one.

        :param key: such as ``min_airflow_version``.
        """
        found = self.top.get(key)
        return found if isinstance(found, str) else None

    def finding(self, rule: str, keys: tuple[str, ...], message: str, write: str) -> Finding:
        """Return a finding on the line of a key.

        :param rule: the rule's name.
        :param keys: the key's path from the top.
        :param message: what was expected and what came.
        :param write: what to write instead.
        """
        return Finding(self.document.path, self.document.line(*keys), rule, message, write)


Rule = Callable[[Subject], Iterator[Finding]]


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that a misspelt one most likely means, or ``None``.

    :param name: as written.
    :param known: what it may mean.
    """
    # difflib costs a hook's start more than the checks of a sound manifest.
    from difflib import get_close_matches

    folded = {known_name.replace("_", "-").lower(): known_name for known_name in known}
    close = get_close_matches(name.replace("_", "-").lower(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None
