"""Whether the claims are proven; asked only with ``--require-evidence``."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_handoff.capabilities.checks.finding import Finding, Rule, Subject
from airflow_handoff.capabilities.claims import current_version
from airflow_handoff.capabilities.evidence import Proof
from airflow_handoff.capabilities.versions import is_older

_RUN = "Run the cases against this SDK and commit the evidence file."


def claim_without_evidence(subject: Subject) -> Iterator[Finding]:
    """Each tick has a case that passed."""
    for section, name in _claimed(subject):
        if not _proof(subject, name).passed and not _proof(subject, name).failed:
            yield subject.finding(
                "claim-without-evidence",
                (section, name),
                f"`{name}` is claimed, and no case proves it",
                f"{_RUN} If there is no case for it, write one.",
            )


def claim_failing(subject: Subject) -> Iterator[Finding]:
    """No case of a tick failed."""
    for section, name in _claimed(subject):
        failed = _proof(subject, name).failed
        if failed:
            yield subject.finding(
                "claim-failing",
                (section, name),
                f"`{name}` is claimed, and these cases failed: {', '.join(failed)}",
                "Mend the SDK, or write `supported: false`.",
            )


def stale_claim(subject: Subject) -> Iterator[Finding]:
    """What every case shows is claimed."""
    for name, proof in subject.evidence.dimensions.items() if subject.evidence else ():
        dimension = subject.dimensions.by_name.get(name)
        if dimension and proof.passed and not proof.failed and not subject.supported(name):
            yield subject.finding(
                "stale-claim",
                (dimension.section, name),
                f"`{name}` is not claimed, and all its cases pass ({', '.join(proof.passed)})",
                f"Write `{name}: {{supported: true}}`, with its `since`.",
            )


def evidence_outdated(subject: Subject) -> Iterator[Finding]:
    """The evidence is of this SDK, at this release and this schema."""
    evidence = subject.evidence
    if evidence is None:
        return
    version = current_version(subject.document.data, subject.build_file)
    schema = subject.text("supervisor_schema_version")
    differences = []
    if evidence.sdk != subject.text("sdk"):
        differences.append(f"it is of the SDK {evidence.sdk}")
    if version and is_older(evidence.sdk_version, version):
        differences.append(f"it is of {evidence.sdk_version}, and the SDK is at {version}")
    if evidence.supervisor_schema_version != schema:
        differences.append(f"it was recorded with schema {evidence.supervisor_schema_version}")
    for difference in differences:
        yield subject.finding(
            "evidence-outdated", ("sdk",), f"the evidence does not fit the manifest: {difference}", _RUN
        )


def _claimed(subject: Subject) -> Iterator[tuple[str, str]]:
    for dimension in subject.dimensions.dimensions:
        if subject.supported(dimension.name):
            yield dimension.section, dimension.name


def _proof(subject: Subject, name: str) -> Proof:
    return subject.evidence.dimensions.get(name, Proof()) if subject.evidence else Proof()


PROOF_RULES: tuple[Rule, ...] = (
    claim_without_evidence,
    claim_failing,
    stale_claim,
    evidence_outdated,
)
