"""The generated file beside a manifest that proves its claims: ``capabilities.evidence.json``.

Whoever runs the cases of the dimensions writes it; nobody edits it by hand. The format is stable: a reader
accepts ``format: 1`` and ignores keys that it does not know, a writer that changes the meaning of a key
raises the number. There is no time in it, so that the same run writes the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_handoff.capabilities.document import parse_json, read_text
from airflow_handoff.exceptions import CapabilitiesError

FORMAT = 1


@dataclass(frozen=True)
class Proof:
    """The cases that exercised one dimension.

    :param passed: names of the cases that passed, sorted.
    :param failed: names of the cases that failed, sorted.
    """

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What one run of the cases showed of one SDK.

    :param sdk: the manifest's ``sdk``.
    :param sdk_version: the release of the SDK that ran.
    :param supervisor_schema_version: the schema that it spoke.
    :param supervisor: who supervised, such as ``airflow-provider-handoff 0.1.0`` or ``airflow 3.3.2``.
    :param dimensions: the proof of each dimension that a case exercised, claimed or not.
    """

    sdk: str
    sdk_version: str
    supervisor_schema_version: str
    supervisor: str
    dimensions: Mapping[str, Proof]


def evidence_path(manifest: Path) -> Path:
    """Return where the evidence of a manifest lies: beside it, ``<stem>.evidence.json``.

    :param manifest: the manifest's path.
    """
    return manifest.with_name(f"{manifest.stem}.evidence.json")


def manifest_of(evidence: Path) -> Path | None:
    """Return the manifest beside which an evidence file lies, or ``None`` where there is none.

    :param evidence: a path that ends in ``.evidence.json``.
    """
    stem = evidence.name.removesuffix(".evidence.json")
    beside = (evidence.with_name(f"{stem}{suffix}") for suffix in (".yaml", ".yml", ".json"))
    return next((path for path in beside if path.is_file()), None)


def read_evidence_beside(manifest: Path) -> Evidence | None:
    """Return the evidence of a manifest, or ``None`` where no run was recorded.

    :param manifest: the manifest's path.
    :raises CapabilitiesError: when the file is there and is not evidence.
    """
    path = evidence_path(manifest)
    return parse_evidence(read_text(path), str(path)) if path.is_file() else None


def parse_evidence(text: str, path: str) -> Evidence:
    """Read an evidence file's text.

    :param text: JSON.
    :param path: its name, for messages.
    :raises CapabilitiesError: when it is not evidence of this format.
    """
    data = parse_json(text, path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CapabilitiesError(
            path, f'expected `"format": {FORMAT}`; upgrade airflow-provider-handoff or run the cases again'
        )
    try:
        return Evidence(
            sdk=_text(data, "sdk"),
            sdk_version=_text(data, "sdk_version"),
            supervisor_schema_version=_text(data, "supervisor_schema_version"),
            supervisor=_text(data, "supervisor"),
            dimensions={str(name): _proof(proof) for name, proof in data["dimensions"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CapabilitiesError(
            path, f"expected the evidence format, and {error} is missing or wrong; run the cases again"
        ) from None


def evidence_text(evidence: Evidence) -> str:
    """Return the file's text: sorted, so that the same run writes the same bytes.

    :param evidence: what a run showed.
    """
    dimensions = {
        name: {"passed": sorted(proof.passed), "failed": sorted(proof.failed)}
        for name, proof in sorted(evidence.dimensions.items())
    }
    data = {
        "format": FORMAT,
        "sdk": evidence.sdk,
        "sdk_version": evidence.sdk_version,
        "supervisor_schema_version": evidence.supervisor_schema_version,
        "supervisor": evidence.supervisor,
        "dimensions": dimensions,
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def write_evidence_beside(manifest: Path, evidence: Evidence) -> Path:
    """Write the evidence of a manifest and return its path.

    :param manifest: the manifest's path.
    :param evidence: what a run showed.
    """
    path = evidence_path(manifest)
    path.write_text(evidence_text(evidence), encoding="utf-8")
    return path


def _text(data: Mapping[str, Any], key: str) -> str:
    if not isinstance(data[key], str):
        raise TypeError(f"`{key}`")
    return str(data[key])


def _proof(data: Mapping[str, Any]) -> Proof:
    lists = {key: data.get(key, []) for key in ("passed", "failed")}
    for key, names in lists.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"`{key}`")
    return Proof(passed=tuple(sorted(lists["passed"])), failed=tuple(sorted(lists["failed"])))
