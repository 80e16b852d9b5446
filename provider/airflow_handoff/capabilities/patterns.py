"""The regular expressions that a manifest's texts match, in the dialect that pydantic and ``re`` share."""

from __future__ import annotations

#: ``3.3``, ``3.3.2`` or a pre-release of one.
AIRFLOW_VERSION = r"^[0-9]+\.[0-9]+(\.[0-9]+)?((a|b|rc)[0-9]+)?$"
#: A date such as ``2026-06-16``.
SCHEMA_VERSION = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
#: Anything that a reader can see.
VISIBLE_TEXT = r"[^\s\x00-\x1f]"
