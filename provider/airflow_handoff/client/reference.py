"""The name of one request: ``dag/run/task`` or ``dag/run/task/map_index``."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from airflow_handoff.client.errors import InvalidUse


@dataclass(frozen=True)
class RequestRef:
    """One request of one task instance.

    :param map_index: index in a mapped task; -1 where the task is not mapped.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    @classmethod
    def parse(cls, text: str) -> RequestRef:
        """Read ``dag/run/task[/map_index]``.

        :raises InvalidUse: if it has another shape.
        """
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidUse(f"expected a request as text in UTF-8, got {text!r}") from None
        parts = text.split("/")
        if len(parts) not in (3, 4) or not all(parts):
            raise InvalidUse(
                f"expected a request as dag/run/task or dag/run/task/map_index, got {text!r}; "
                "`handoff pending` lists them as they are written"
            )
        if len(parts) == 3:
            return cls(parts[0], parts[1], parts[2])
        try:
            return cls(parts[0], parts[1], parts[2], int(parts[3]))
        except ValueError:
            raise InvalidUse(f"expected a whole number as the map index, got {parts[3]!r}") from None

    @property
    def path(self) -> str:
        """Path of its human-in-the-loop detail below the public API's prefix."""
        dag, run, task = (quote(part, safe="") for part in (self.dag_id, self.run_id, self.task_id))
        return f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{self.map_index}/hitlDetails"

    def __str__(self) -> str:
        plain = f"{self.dag_id}/{self.run_id}/{self.task_id}"
        return plain if self.map_index < 0 else f"{plain}/{self.map_index}"
