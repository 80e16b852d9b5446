"""What a language is: which files are its bundles and how one is run. No Airflow here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow_handoff.coordinators.launch import Launch


class Language:
    """Finds the artifact that holds a Dag and says how to run it."""

    def __init__(self, *, bundles_root: Any = ()) -> None:
        self.roots: tuple[Path, ...] = tuple(Path(root).expanduser() for root in bundles_root)

    def read_bundle(self, path: Path) -> Any:
        """Say what a file is."""
        raise NotImplementedError

    def command(self, bundle: Any) -> Sequence[str]:
        """Say how a bundle is run."""
        raise NotImplementedError

    def schema_of(self, bundle: Any) -> str | None:
        """Return the schema a bundle speaks."""
        return None

    def find(self, dag_id: str, task_id: str) -> Launch:
        """Find what to launch."""
        raise NotImplementedError
