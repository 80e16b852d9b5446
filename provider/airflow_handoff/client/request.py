"""One request for input as a client sees it, read from Airflow's own detail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from airflow_handoff.client.reference import RequestRef

#: States in which a task waits for a person: the scheduler's own (3.3 and later), and deferred before that.
WAITING_STATES = frozenset({"awaiting_input", "deferred"})


@dataclass(frozen=True)
class Request:
    """A question that was put to people, with its answer once there is one.

    :param form: field name to ``{"value", "description", "schema"}``, as Airflow stores it.
    :param created_at: when it was asked, RFC 3339.
    :param handoff: what the plugin knows of it; ``None`` where it knows nothing.
    """

    ref: RequestRef
    ti_id: str
    state: str | None
    try_number: int
    subject: str
    body: str | None
    options: tuple[str, ...]
    defaults: tuple[str, ...] | None
    multiple: bool
    form: Mapping[str, Any]
    assigned_users: tuple[Mapping[str, str], ...]
    created_at: str
    response_received: bool
    chosen_options: tuple[str, ...] | None
    params_input: Mapping[str, Any] = field(default_factory=dict)
    responded_at: str | None = None
    responded_by: Mapping[str, str] | None = None
    handoff: Mapping[str, Any] | None = None

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any]) -> Request:
        """Read one entry of Airflow's ``hitlDetails``."""
        task = detail["task_instance"]
        chosen, defaults = detail.get("chosen_options"), detail.get("defaults")
        return cls(
            ref=RequestRef(task["dag_id"], task["dag_run_id"], task["task_id"], task["map_index"]),
            ti_id=str(task.get("id") or task.get("task_instance_id") or ""),
            state=task.get("state"),
            try_number=task.get("try_number") or 0,
            subject=detail["subject"],
            body=detail.get("body"),
            options=tuple(detail["options"]),
            defaults=None if defaults is None else tuple(defaults),
            multiple=bool(detail.get("multiple")),
            form=detail.get("params") or {},
            assigned_users=tuple(detail.get("assigned_users") or ()),
            created_at=detail["created_at"],
            response_received=bool(detail.get("response_received")),
            chosen_options=None if chosen is None else tuple(chosen),
            params_input=detail.get("params_input") or {},
            responded_at=detail.get("responded_at"),
            responded_by=detail.get("responded_by_user"),
            handoff=detail.get("handoff"),
        )

    @property
    def waiting(self) -> bool:
        """Whether an answer would be taken now: nobody answered and the task is parked."""
        return not self.response_received and self.state in WAITING_STATES

    @property
    def digest(self) -> str | None:
        """Digest of the question, which an answer can name."""
        return (self.handoff or {}).get("digest")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the server doubts about the request, such as an assignee whom nobody is called."""
        return tuple((self.handoff or {}).get("warnings") or ())

    @property
    def identity(self) -> tuple[str, str]:
        """What tells this question from the next one of the same task."""
        return (self.ti_id, self.created_at)

    def open_to(self, user: str) -> bool:
        """Whether ``user`` (an id or a name) may answer: the request names them, or nobody."""
        return not self.assigned_users or any(
            user in (person.get("id"), person.get("name")) for person in self.assigned_users
        )

    def page(self, base_url: str) -> str:
        """URL of Airflow's own page for it."""
        dag, run, task = (quote(p, safe="") for p in (self.ref.dag_id, self.ref.run_id, self.ref.task_id))
        mapped = "" if self.ref.map_index < 0 else f"/mapped/{self.ref.map_index}"
        return f"{base_url}/dags/{dag}/runs/{run}/tasks/{task}{mapped}/required_actions"

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-safe mapping; the shape that every ``--json`` output uses."""
        return {
            "request": str(self.ref),
            "dag_id": self.ref.dag_id,
            "run_id": self.ref.run_id,
            "task_id": self.ref.task_id,
            "map_index": self.ref.map_index,
            "state": self.state,
            "try_number": self.try_number,
            "subject": self.subject,
            "body": self.body,
            "options": list(self.options),
            "defaults": None if self.defaults is None else list(self.defaults),
            "multiple": self.multiple,
            "form": dict(self.form),
            "assigned_users": [dict(person) for person in self.assigned_users],
            "created_at": self.created_at,
            "response_received": self.response_received,
            "chosen_options": None if self.chosen_options is None else list(self.chosen_options),
            "params_input": dict(self.params_input),
            "responded_at": self.responded_at,
            "responded_by": None if self.responded_by is None else dict(self.responded_by),
            "digest": self.digest,
            "warnings": list(self.warnings),
        }
