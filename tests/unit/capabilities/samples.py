"""A sound manifest and what a test changes in it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from airflow_handoff.capabilities.checks import Finding, Subject
from airflow_handoff.capabilities.checks.finding import Rule
from airflow_handoff.capabilities.claims import Claims, join_claims
from airflow_handoff.capabilities.dimensions import known_dimensions, known_schemas
from airflow_handoff.capabilities.document import parse_document
from airflow_handoff.capabilities.evidence import Evidence, Proof

DATA = Path(__file__).parent / "data"
MANIFESTS = ("go.yaml", "java.yaml", "ts.yaml", "java-first-generation.json")


def sound() -> dict[str, Any]:
    """Return a manifest in which every rule finds nothing: each MUST supported, whole Dags not."""
    data: dict[str, Any] = {
        "sdk": "zig",
        "min_airflow_version": "3.3",
        "supervisor_schema_version": "2026-06-16",
        "states": {},
        "capabilities": {},
    }
    for dimension in known_dimensions().dimensions:
        supported = dimension.tier == "MUST" and not dimension.conditional
        entry = (
            {"supported": True, "since": "3.3", "sdk_version": "1.0.0"} if supported else {"supported": False}
        )
        data[dimension.section][dimension.name] = entry
    return data


def changed(**changes: Any) -> dict[str, Any]:
    """Return the sound manifest with entries or top-level keys replaced; ``...`` removes one."""
    data = deepcopy(sound())
    sections = known_dimensions().by_name
    for key, value in changes.items():
        name = key if key in data or key in sections else key.replace("_", "-")
        home = data[sections[name].section] if name in sections else data
        if value is ...:
            del home[name]
        else:
            home[name] = value
    return data


def subject(data: Any, **known: Any) -> Subject:
    """Return a manifest's plain data, or its text, as the rules get it."""
    text = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False)
    document = parse_document(text, known.pop("path", "zig/capabilities.yaml"))
    return Subject(document, known_dimensions(), known_schemas(), **known)


def found(rule: Rule, data: Any, **known: Any) -> list[Finding]:
    """Return what one rule finds."""
    return list(rule(subject(data, **known)))


def line_of(data: Any, text: str) -> int:
    """Return the number of the line of a dumped manifest that holds a text."""
    lines = yaml.safe_dump(data, sort_keys=False).splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def evidence(**proofs: Proof) -> Evidence:
    """Return evidence of the sound manifest's SDK; each claim of it is proven unless a proof is given."""
    claimed = {
        name: Proof(passed=(f"cases/{name}",)) for name, one in entries(sound()).items() if one["supported"]
    }
    named = {name if name in claimed else name.replace("_", "-"): proof for name, proof in proofs.items()}
    return Evidence("zig", "1.0.0", "2026-06-16", "airflow-provider-handoff 0.1.0", {**claimed, **named})


def entries(data: dict[str, Any]) -> dict[str, Any]:
    """Return all entries of a manifest by name."""
    return {**data["states"], **data["capabilities"]}


def claims(data: dict[str, Any] | None = None, proven: Evidence | None = None, **kwargs: Any) -> Claims:
    """Return the claims of a manifest, the sound one by default."""
    return join_claims(data or sound(), known_dimensions(), proven, **kwargs)
