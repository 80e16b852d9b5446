"""What the reader of a question has seen travels with the answer, so that it cannot answer another one.

Airflow's page sends back every field of the form that it was given, also those that it does not show. So its
copy of one of our open questions gets one hidden field more, which the door takes out again. It belongs to
the form on the screen: two tabs of one browser have one each. Other clients say the same in a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from airflow_handoff.compat.records import RequestRecord
from airflow_handoff.hitl.question import SEEN
from airflow_handoff.server.standing import OpenRequest, Standing

#: Name of the hidden field.
FIELD = SEEN
#: The header of clients that are no page.
HEADER = b"handoff-seen"
#: The mark of a question that is not open any more.
NOTHING = "not open"
_API = ("/api/", "/handoff/", "/execution/")


def mark(request: OpenRequest) -> str:
    """Return what names the question that is open now: the attempt, and the question's digest once parked.

    A vote leaves it as it is; a clear, a retry and another question do not.
    """
    return f"{request.record.ti_id}:{request.digest if request.state is not None else ''}"


def expectation(text: object) -> dict[str, Any]:
    """Read a mark as facts that the open question has to have; one that cannot be read matches none."""
    ti_id, colon, digest = str(text).partition(":")
    return {"ti_id": ti_id if colon else "", "digest": digest or None}


def from_a_page(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Say whether a browser's page asks, rather than a program."""
    found = {name.lower(): value.decode("latin-1") for name, value in headers}
    if found.get(b"sec-fetch-site") == "same-origin":
        return True
    try:
        address = urlsplit(found.get(b"referer", ""))
    except ValueError:
        return False
    return bool(address.netloc) and not any(part in address.path for part in _API)


def add(details: Iterable[Any], requests: Mapping[tuple[Any, ...], OpenRequest]) -> bool:
    """Put the hidden field into Airflow's description of questions; say whether anything was changed.

    :param requests: those of ours, by Dag, run, task and map index, read after the descriptions were.
    """
    changed = False
    for detail in details:
        request = requests.get(place_of(detail) or ())
        if request is None or detail.get("response_received"):
            continue
        if request.standing not in (Standing.OPEN, Standing.BUSY):
            continue
        params = detail.get("params")
        detail["params"] = {**(params if isinstance(params, dict) else {}), FIELD: _field(detail, request)}
        changed = True
    return changed


def place_of(detail: Any) -> tuple[str, str, str, int] | None:
    """Return Dag, run, task and map index of Airflow's description of a question."""
    task = detail.get("task_instance") if isinstance(detail, MutableMapping) else None
    if not isinstance(task, Mapping):
        return None
    return task["dag_id"], task["dag_run_id"], task["task_id"], task["map_index"]


def _field(detail: Mapping[str, Any], request: OpenRequest) -> dict[str, Any]:
    value = mark(request) if _is_shown(detail, request.record) else NOTHING
    # The page hides a field that has a constant.
    return {"value": value, "description": None, "schema": {"type": "string", "const": value}}


def _is_shown(detail: Mapping[str, Any], record: RequestRecord) -> bool:
    """Say whether what Airflow describes is what is open, and not asked again since Airflow read it."""
    task = detail["task_instance"]
    if record.row is None or _asked_at(detail) != record.row.created_at:
        return False
    # The route of one try tells no id.
    return str(task["id"]) == record.ti_id if "id" in task else task.get("try_number") == record.try_number


def _asked_at(detail: Mapping[str, Any]) -> datetime | None:
    text = detail.get("created_at")
    # Python 3.10 reads no Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if isinstance(text, str) else None
