"""What Airflow's provider discovery reads; imports nothing, because discovery runs very early."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Return the provider metadata as one literal."""
    return {
        "package-name": "airflow-provider-handoff",
        "name": "Handoff",
        "description": "Airflow tasks that leave Python and come back: to a person, or to another language.",
    }
