"""What Airflow's provider discovery reads; imports nothing, because discovery runs very early."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Return the provider metadata as one literal.

    The api-server plugin is not listed: Airflow loads plugins through the ``airflow.plugins`` entry point.
    """
    return {
        "package-name": "airflow-provider-handoff",
        "name": "Handoff",
        "description": "Airflow tasks that leave Python and come back: to a person, or to another language.",
        "integrations": [
            {
                "integration-name": "Handoff to a person",
                "external-doc-url": "https://airflow.apache.org/docs/apache-airflow/stable/tutorial/hitl.html",
                "tags": ["software"],
            },
        ],
        "operators": [
            {
                "integration-name": "Handoff to a person",
                "python-modules": ["airflow_handoff.operators.hitl"],
            },
        ],
        "triggers": [
            {
                "integration-name": "Handoff to a person",
                "python-modules": ["airflow_handoff.triggers.hitl"],
            },
        ],
        "cli": ["airflow_handoff.compat.command.airflow_commands"],
        "config": {
            "handoff": {
                "description": "Requests to people, and how their answers reach the waiting tasks.",
                "options": {
                    "poke_interval": {
                        "description": (
                            "Seconds between two looks of the triggerer for the answer to a request that was "
                            "asked just now (Airflow 3.1 and 3.2; later versions need no triggerer)."
                        ),
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "1.5",
                        "default": "3.0",
                    },
                    "poke_interval_max": {
                        "description": (
                            "Seconds between two looks for the answer to a request that has waited long; in "
                            "between, a fifteenth of its age."
                        ),
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "60.0",
                        "default": "30.0",
                    },
                    "poke_rate": {
                        "description": (
                            "How many times a second one triggerer looks for answers, for all its waiting "
                            "requests together."
                        ),
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "10.0",
                        "default": "6.0",
                    },
                    "settle_seconds": {
                        "description": (
                            "Seconds for which an answer is held after its task has parked. An answer that "
                            "resumes a task earlier can make the scheduler fail it."
                        ),
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "10",
                        "default": "8",
                    },
                    "guard_airflow_api": {
                        "description": (
                            "Whether answers that come in through Airflow's own page and API are judged and "
                            "held like all others. Turn it off to leave that route untouched."
                        ),
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "False",
                        "default": "True",
                    },
                },
            },
        },
    }
