"""Links to Airflow's own page for a request: build one, and read back what it wants filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

from airflow_handoff.hitl.question import json_problems

#: The query key under which Airflow's page looks for the options to preselect.
OPTIONS_KEY = "_options"


def required_actions_url(
    base_url: str,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int = -1,
    options: str | Sequence[str] | None = None,
    params_input: Mapping[str, Any] | None = None,
) -> str:
    """Return the address of Airflow's "required actions" page for one task instance.

    :param base_url: where people reach the api-server; its path, if any, is kept.
    :param map_index: the index of a mapped task instance, -1 for one that is not mapped.
    :param options: one option or several to preselect.
    :param params_input: values to fill into the form; ``None`` values are left out.
    :raises ValueError: when ``base_url`` is not an absolute http or https address.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(
            "base_url must be an absolute http(s) address such as https://airflow.example.org, "
            f"not {base_url!r}"
        )
    route = ["dags", dag_id, "runs", run_id, "tasks", task_id]
    if map_index >= 0:
        route += ["mapped", str(map_index)]
    path = "/".join([parts.path.rstrip("/"), *(quote(part, safe="") for part in route), "required_actions"])
    return urlunsplit((parts.scheme, parts.netloc, path, _query(options, params_input or {}), ""))


def _query(options: str | Sequence[str] | None, params_input: Mapping[str, Any]) -> str:
    query: dict[str, str] = {}
    chosen = [options] if isinstance(options, str) else list(options or ())
    if chosen:
        # The page decodes this value a second time after the query has been parsed.
        query[OPTIONS_KEY] = _json(chosen).replace("%", "%25")
    query.update({name: _text(value) for name, value in params_input.items() if value is not None})
    return urlencode(query, quote_via=quote)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def prefilled(fields: Mapping[str, Any], query: str) -> dict[str, Any]:
    """Return a form's fields with the values that a link's query asks for.

    :param fields: the fields as a request's row has them: ``{name: {"value", "description", "schema"}}``.
    :param query: the query part of the link, without the question mark; names of no field are ignored.
    """
    wanted = parse_qs(query, keep_blank_values=True)
    return {
        name: {**field, "value": _value(wanted[name][-1], field.get("schema") or {})}
        if name in wanted and isinstance(field, Mapping) and "value" in field
        else field
        for name, field in fields.items()
    }


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    types = schema.get("type")
    if "string" in ([types] if isinstance(types, str) else types or ()) or text in (schema.get("enum") or ()):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # Python reads more than JSON has, NaN for one; a browser would not read it back.
    return text if json_problems(value) else value
