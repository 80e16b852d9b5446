"""The audit trail of answers, read page by page from the plugin's route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_handoff.client.calls import Call, Operation, ask, part
from airflow_handoff.client.errors import RequestNotFound
from airflow_handoff.client.reference import RequestRef

#: Entries of one page.
PAGE = 500

COLUMNS = (
    *("when", "who", "request", "dag_id", "run_id", "task_id", "map_index", "try_number", "approval_key"),
    *("chosen_options", "params_input", "comment", "door", "digest"),
)


def read(
    *,
    since: str | None = None,
    dag_id: str | None = None,
    run_id: str | None = None,
    task_id: str | None = None,
) -> Operation[list[dict[str, Any]]]:
    """Read every answer that the caller may see, oldest first.

    :param since: RFC 3339; without a zone it is UTC.
    :raises RequestNotFound: where the plugin is not loaded, saying so.
    """
    chosen = {"since": since, "dag_id": dag_id, "run_id": run_id, "task_id": task_id}
    filters = {name: value for name, value in chosen.items() if value is not None}
    entries: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        call = Call("GET", "/handoff/v1/audit", {**filters, "limit": PAGE, "offset": offset})
        try:
            page = yield from ask(call)
        except RequestNotFound:
            raise RequestNotFound(
                "the server has no /handoff routes: the audit trail needs airflow-provider-handoff "
                "installed in the api-server's environment",
                status=404,
            ) from None
        entries += [_named(entry) for entry in part(page, "entries", list) if isinstance(entry, Mapping)]
        offset = page.get("next_offset")
    return entries


def _named(entry: Mapping[str, Any]) -> dict[str, Any]:
    dag_id, run_id, task_id = (str(entry.get(name) or "") for name in ("dag_id", "run_id", "task_id"))
    map_index = entry.get("map_index")
    ref = RequestRef(dag_id, run_id, task_id, map_index if isinstance(map_index, int) else -1)
    return {"request": str(ref), **entry}


def flat(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return one entry as text cells for CSV.

    A cell that a spreadsheet would run as a formula gets a leading apostrophe: comments and form values are
    written by people.
    """
    return {name: _cell(entry.get(name)) for name in COLUMNS}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = " | ".join(value)
    elif isinstance(value, (dict, list)):
        text = json.dumps(value, sort_keys=True)
    else:
        return str(value) if isinstance(value, int) else _safe(str(value))
    return _safe(text)


def _safe(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
