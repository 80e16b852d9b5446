"""What this package itself does on each Airflow version, with ticks that only its system tests write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from airflow_handoff.capabilities.document import Document, read_document, read_text
from airflow_handoff.capabilities.evidence import FORMAT, evidence_path
from airflow_handoff.exceptions import CapabilitiesError


class FeatureStatus(Enum):
    """What can be said of a feature on one version."""

    PROVEN = "proven"
    FAILING = "failing"
    UNPROVEN = "unproven"
    ABSENT = "absent"


@dataclass(frozen=True)
class Support:
    """A feature on one Airflow version.

    :param status: what can be said of it.
    :param how: how it works there, or why it is absent.
    :param airflow: the full version that the tests ran on.
    :param passed: the tests that passed.
    """

    status: FeatureStatus
    how: str
    airflow: str = ""
    passed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Feature:
    """One feature.

    :param name: its short name, which tests cite.
    :param title: for readers.
    :param support: by Airflow version.
    """

    name: str
    title: str
    support: Mapping[str, Support]


@dataclass(frozen=True)
class Features:
    """Every feature, in display order.

    :param versions: the Airflow versions, in the order of the columns.
    :param features: in the order of the rows.
    """

    versions: tuple[str, ...]
    features: tuple[Feature, ...]


@dataclass(frozen=True)
class FeatureRun:
    """What the system tests showed of one feature on one Airflow version.

    :param airflow: the full version, such as ``3.3.2``.
    :param passed: ids of the tests that passed, sorted.
    :param failed: ids of the tests that failed, sorted.
    """

    airflow: str
    passed: tuple[str, ...] = field(default=())
    failed: tuple[str, ...] = field(default=())


Runs = Mapping[tuple[str, str], FeatureRun]


def read_features(path: Path) -> Features:
    """Read a features file and the evidence beside it.

    :param path: YAML with ``versions`` and ``features``: each has ``name``, ``title`` and ``airflow``, which
        says how it works on each version, or ``{absent: why}``.
    :raises CapabilitiesError: when one of the two cannot be used.
    """
    document = read_document(path)
    beside = evidence_path(path)
    runs = parse_runs(read_text(beside), str(beside)) if beside.is_file() else {}
    return join_features(document, runs)


def join_features(document: Document, runs: Runs) -> Features:
    """Put the list of features and what the tests showed side by side.

    :param document: the features file.
    :param runs: what the system tests showed.
    :raises CapabilitiesError: when the file has another shape, or the tests cite a feature that it lacks.
    """
    try:
        versions = tuple(document.data["versions"])
        features = tuple(
            Feature(
                item["name"],
                item["title"],
                {
                    version: _support(item["airflow"][version], runs.get((item["name"], version)))
                    for version in versions
                },
            )
            for item in document.data["features"]
        )
    except (KeyError, TypeError) as error:
        raise CapabilitiesError(
            document.path,
            f"expected `versions` and `features` with name, title and `airflow`; wrong: {error}",
        ) from None
    unknown = {name for name, _ in runs} - {feature.name for feature in features}
    if unknown:
        raise CapabilitiesError(
            document.path, f"the tests cite unknown features: {', '.join(sorted(unknown))}"
        )
    return Features(versions, features)


def parse_runs(text: str, path: str) -> dict[tuple[str, str], FeatureRun]:
    """Read the evidence of features.

    :param text: JSON.
    :param path: the file's name, for messages.
    :raises CapabilitiesError: when it is not that.
    """
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}")
        return {
            (name, version): FeatureRun(run["airflow"], tuple(run["passed"]), tuple(run["failed"]))
            for name, by_version in data["features"].items()
            for version, run in by_version.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CapabilitiesError(
            path, f"expected evidence of format {FORMAT}, and found {error}; record the system tests again"
        ) from None


def runs_text(runs: Runs) -> str:
    """Return the text of the evidence file: sorted, without times.

    :param runs: what the system tests showed.
    """
    features: dict[str, dict[str, Any]] = {}
    for (name, version), run in sorted(runs.items()):
        features.setdefault(name, {})[version] = {
            "airflow": run.airflow,
            "passed": sorted(run.passed),
            "failed": sorted(run.failed),
        }
    return json.dumps({"format": FORMAT, "features": features}, indent=2) + "\n"


def _support(how: Any, run: FeatureRun | None) -> Support:
    if isinstance(how, dict):
        return Support(FeatureStatus.ABSENT, str(how["absent"]))
    if run is None or not (run.passed or run.failed):
        return Support(FeatureStatus.UNPROVEN, str(how))
    status = FeatureStatus.FAILING if run.failed else FeatureStatus.PROVEN
    return Support(status, str(how), run.airflow, run.passed)
