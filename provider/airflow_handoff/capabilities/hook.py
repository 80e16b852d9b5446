"""The entry points of the hooks in ``.pre-commit-hooks.yaml``, for prek and pre-commit."""

from __future__ import annotations

import sys

from airflow_handoff.capabilities.cli import check, matrix


def capabilities_hook() -> None:
    """Check the SDKs whose files changed: ``handoff-capabilities [OPTIONS] [FILES]``."""
    check.main(args=["--changed", *sys.argv[1:]], prog_name="handoff-capabilities")


def matrix_hook() -> None:
    """Rewrite the tables and fail if anything changed: ``handoff-matrix [OPTIONS] [FILES]``."""
    matrix.main(args=["--fail-on-change", *sys.argv[1:]], prog_name="handoff-matrix")
