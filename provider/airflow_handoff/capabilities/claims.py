"""What is known of each dimension of one SDK, once claim, list and evidence are put side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from airflow_handoff.capabilities.dimensions import Dimension, DimensionList
from airflow_handoff.capabilities.evidence import Evidence, Proof
from airflow_handoff.capabilities.locate import BuildFile, LocatorError, locate_sdk_version
from airflow_handoff.capabilities.versions import is_older, newest

NO_PROOF = Proof()


class Status(Enum):
    """What can be said of a claim."""

    PROVEN = "proven"  # claimed, and every case of this release and schema passed
    FAILING = "failing"  # claimed, and a case failed
    UNPROVEN = "unproven"  # claimed, and no case of this release and schema says so
    UNSUPPORTED = "unsupported"  # said not to be supported
    NOT_APPLICABLE = "not applicable"  # conditional, and the gate is not supported
    UNDECLARED = "undeclared"  # the manifest does not mention it


@dataclass(frozen=True)
class Claim:
    """What is known of one dimension.

    :param dimension: which.
    :param status: what can be said of it.
    :param since: the Airflow version from which it works.
    :param sdk_version: the SDK's release that brought it.
    :param note: the author's remark, in one line.
    :param proof: its cases.
    """

    dimension: Dimension
    status: Status
    since: str = ""
    sdk_version: str = ""
    note: str = ""
    proof: Proof = NO_PROOF


@dataclass(frozen=True)
class Claims:
    """What is known of one SDK.

    :param sdk: its name.
    :param min_airflow_version: the oldest Airflow that it runs under.
    :param supervisor_schema_version: the schema that it speaks.
    :param claims: one for each dimension, in display order.
    :param evidence: what a run showed, ``None`` where none was recorded.
    :param outdated: the evidence is of another SDK, schema or earlier release, and proves nothing.
    """

    sdk: str
    min_airflow_version: str
    supervisor_schema_version: str
    claims: tuple[Claim, ...]
    evidence: Evidence | None = None
    outdated: bool = False

    @property
    def by_name(self) -> dict[str, Claim]:
        """The claims by the names of their dimensions."""
        return {claim.dimension.name: claim for claim in self.claims}


def join_claims(
    data: Mapping[str, Any],
    dimensions: DimensionList,
    evidence: Evidence | None = None,
    version: str | None = None,
) -> Claims:
    """Put claim, list and evidence side by side.

    :param data: a manifest's plain data that the shape rules have accepted.
    :param dimensions: what can be claimed.
    :param evidence: what a run of the cases showed.
    :param version: the SDK's release, to which the evidence must be no older; not compared by default.
    """
    schema = str(data["supervisor_schema_version"])
    fits = (
        evidence is not None
        and evidence.sdk == data["sdk"]
        and evidence.supervisor_schema_version == schema
        and not (version and is_older(evidence.sdk_version, version))
    )
    entries = {**data["states"], **data["capabilities"]}
    gate_open = entries.get(dimensions.gate.name, {}).get("supported", False)
    claims = []
    for dimension in dimensions.dimensions:
        proof = evidence.dimensions.get(dimension.name, NO_PROOF) if evidence and fits else NO_PROOF
        claims.append(_claim(dimension, entries.get(dimension.name), proof, gate_open))
    outdated = evidence is not None and not fits
    return Claims(data["sdk"], data["min_airflow_version"], schema, tuple(claims), evidence, outdated)


def _claim(dimension: Dimension, entry: Mapping[str, Any] | None, proof: Proof, gate_open: bool) -> Claim:
    if dimension.conditional and not gate_open:
        status = Status.NOT_APPLICABLE
    elif entry is None:
        status = Status.UNDECLARED
    elif not entry["supported"]:
        status = Status.UNSUPPORTED
    elif proof.failed:
        status = Status.FAILING
    else:
        status = Status.PROVEN if proof.passed else Status.UNPROVEN
    fields = entry or {}
    return Claim(
        dimension,
        status,
        since=fields.get("since") or "",
        sdk_version=fields.get("sdk_version") or "",
        note=" ".join((fields.get("note") or "").split()),
        proof=proof,
    )


def current_version(data: Any, build_file: BuildFile | None) -> str | None:
    """Return the SDK's release: of its build file, else the newest that an entry names, else ``None``.

    :param data: the manifest's plain data, of any shape.
    :param build_file: the SDK's own build file.
    """
    try:
        located = locate_sdk_version(build_file.release or build_file.path) if build_file else None
    except LocatorError:
        located = None
    if located is not None:
        return located.value
    found = []
    for section in ("states", "capabilities"):
        entries = data.get(section) if isinstance(data, dict) else None
        for fields in entries.values() if isinstance(entries, dict) else ():
            if isinstance(fields, dict) and isinstance(fields.get("sdk_version"), str):
                found.append(fields["sdk_version"])
    return newest(found)
