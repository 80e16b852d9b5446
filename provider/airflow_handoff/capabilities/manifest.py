"""The claim file as pydantic models, and the JSON Schema that editors complete it with.

The same shape is checked, line by line and without pydantic, by
:mod:`airflow_handoff.capabilities.checks.shape`; a test holds the two together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from airflow_handoff.capabilities.dimensions import Dimension, DimensionList, known_dimensions
from airflow_handoff.capabilities.document import read_document
from airflow_handoff.capabilities.patterns import AIRFLOW_VERSION, SCHEMA_VERSION, VISIBLE_TEXT
from airflow_handoff.exceptions import CapabilitiesError

SCHEMA_FILE = Path(__file__).with_name("capabilities.schema.json")


class Entry(BaseModel):
    """What an SDK says of one dimension.

    :param supported: whether the SDK does it.
    :param since: the Airflow version from which it works, such as ``3.3``; ``None`` where it does not.
    :param sdk_version: the SDK's release that brought it.
    :param note: a remark for readers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    supported: bool = Field(description="Whether the SDK does it.")
    since: str | None = Field(
        default=None,
        pattern=AIRFLOW_VERSION,
        description="The Airflow version from which it works, such as '3.3'; left out where not supported.",
    )
    sdk_version: str | None = Field(default=None, description="The SDK's release that brought it.")
    note: str | None = Field(default=None, description="A remark for readers, in plain text.")


class Manifest(BaseModel):
    """All claims of one language SDK.

    :param sdk: the SDK's short name, such as ``rust``.
    :param min_airflow_version: the oldest Airflow that it runs under.
    :param supervisor_schema_version: the schema that it speaks, a date.
    :param states: one entry for each state that a task process can report.
    :param capabilities: one entry for each runtime or native dimension.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    json_schema: str | None = Field(default=None, alias="$schema", description="For editors.")
    sdk: str = Field(pattern=VISIBLE_TEXT, description="The SDK's short name, such as 'rust'.")
    min_airflow_version: str = Field(
        pattern=AIRFLOW_VERSION, description="The oldest Airflow that the SDK runs under, such as '3.3'."
    )
    supervisor_schema_version: str = Field(
        pattern=SCHEMA_VERSION, description="The supervisor schema that the SDK speaks, such as '2026-06-16'."
    )
    states: dict[str, Entry] = Field(description="What a task process can report.")
    capabilities: dict[str, Entry] = Field(description="What a task body or a whole Dag can do.")


def read_manifest(path: Path) -> Manifest:
    """Read a claim file as a model.

    :param path: a YAML or JSON file.
    :raises CapabilitiesError: when it cannot be read or has another shape, with the line of the first fault.
    """
    document = read_document(path)
    try:
        return Manifest.model_validate(document.data)
    except ValidationError as error:
        first = error.errors()[0]
        keys = tuple(str(key) for key in first["loc"])
        raise CapabilitiesError(
            str(path),
            f"{'.'.join(keys) or 'the file'}: {first['msg']}; `handoff capabilities check` names every fault",
            document.line(*keys),
        ) from None


def json_schema(dimensions: DimensionList | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a claim file, with every dimension as a property.

    :param dimensions: the list; the shipped one by default.
    """
    listed = dimensions or known_dimensions()
    schema = Manifest.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "capabilities.yaml: what a language SDK for Airflow claims"
    for model in (schema, *schema["$defs"].values()):
        model["description"] = model.get("description", "").split("\n")[0]
        for field in model["properties"].values():
            field.pop("title", None)
    for section in ("states", "capabilities"):
        described = schema["properties"][section]
        described["additionalProperties"] = False
        described["properties"] = {
            dimension.name: {"$ref": "#/$defs/Entry", "description": _describe(dimension)}
            for dimension in listed.dimensions
            if dimension.section == section
        }
    return schema


def schema_text() -> str:
    """Return the JSON Schema as it is published, in ``capabilities.schema.json``."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _describe(dimension: Dimension) -> str:
    condition = " while native-dag-authoring is supported" if dimension.conditional else ""
    return f"{dimension.tier}{condition}: {dimension.means}"
