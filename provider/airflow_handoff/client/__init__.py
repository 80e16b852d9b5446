"""What answers from anywhere: a Python client and the commands, no Airflow needed.

``from airflow_handoff.client import HandoffClient`` needs the extra ``client`` (httpx, rich).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_handoff.client.client import AsyncHandoffClient, HandoffClient
    from airflow_handoff.client.errors import RunInterrupted

__all__ = ["AsyncHandoffClient", "HandoffClient", "RunInterrupted"]


def __getattr__(name: str) -> Any:
    # Lazily: `handoff --help` and the capabilities hooks import this package without httpx.
    if name in ("AsyncHandoffClient", "HandoffClient"):
        from airflow_handoff.client import client

        return getattr(client, name)
    if name == "RunInterrupted":
        from airflow_handoff.client.errors import RunInterrupted

        return RunInterrupted
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
