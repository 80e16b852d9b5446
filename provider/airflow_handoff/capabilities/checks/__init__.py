"""The checks of a claim file: one small function for each rule, all of them run, all faults told at once."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_handoff.capabilities.checks.finding import Finding, Subject
from airflow_handoff.capabilities.checks.proof import PROOF_RULES
from airflow_handoff.capabilities.checks.schema import SCHEMA_RULES
from airflow_handoff.capabilities.checks.shape import SHAPE_RULES
from airflow_handoff.capabilities.checks.tiers import TIER_RULES

RULES = (*SHAPE_RULES, *TIER_RULES, *SCHEMA_RULES)


def check(subject: Subject, *, require_evidence: bool = False) -> tuple[Finding, ...]:
    """Run every rule and return what they found, in the order of the file.

    :param subject: the claim file and what is known around it.
    :param require_evidence: also ask that each tick is proven, with this SDK version and schema.
    """
    rules = (*RULES, *PROOF_RULES) if require_evidence else RULES
    found: Iterable[Finding] = (finding for rule in rules for finding in rule(subject))
    return tuple(sorted(set(found)))


__all__ = ["RULES", "Finding", "Subject", "check"]
