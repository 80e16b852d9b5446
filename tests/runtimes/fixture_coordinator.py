"""A coordinator for the system tests: runs ``scenarios.py`` with the worker's own interpreter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from airflow_handoff.coordinators.base import SubprocessCoordinator
from airflow_handoff.coordinators.launch import Launch


class FixtureCoordinator(SubprocessCoordinator):
    """Runs the scenario that the task's name names."""

    def launch(self, what: Any, **kwargs: Any) -> Launch:
        """Run the script beside this module."""
        script = Path(__file__).with_name("scenarios.py")
        return Launch(
            command=[sys.executable, str(script)], schema_version="2026-06-16", what="the scenarios"
        )
