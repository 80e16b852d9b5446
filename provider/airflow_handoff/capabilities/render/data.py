"""Claims as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from airflow_handoff.capabilities.claims import Claim, Claims


def to_data(sdks: tuple[Claims, ...]) -> dict[str, Any]:
    """Return plain data.

    :param sdks: in order.
    """
    return {
        "generated_by": "handoff capabilities matrix",
        "format": 1,
        "sdks": [_sdk(claims) for claims in sdks],
    }


def to_json(sdks: tuple[Claims, ...]) -> str:
    """Return JSON text.

    :param sdks: in order.
    """
    return json.dumps(to_data(sdks), indent=2, ensure_ascii=False) + "\n"


def _sdk(claims: Claims) -> dict[str, Any]:
    evidence = claims.evidence
    return {
        "sdk": claims.sdk,
        "min_airflow_version": claims.min_airflow_version,
        "supervisor_schema_version": claims.supervisor_schema_version,
        "evidence": evidence
        and {
            "outdated": claims.outdated,
            "sdk_version": evidence.sdk_version,
            "supervisor_schema_version": evidence.supervisor_schema_version,
            "supervisor": evidence.supervisor,
        },
        "dimensions": {claim.dimension.name: _claim(claim) for claim in claims.claims},
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "group": claim.dimension.group,
        "tier": claim.dimension.tier,
        "conditional": claim.dimension.conditional,
        "status": claim.status.value,
        "since": claim.since or None,
        "sdk_version": claim.sdk_version or None,
        "note": claim.note,
        "passed": list(claim.proof.passed),
        "failed": list(claim.proof.failed),
    }
