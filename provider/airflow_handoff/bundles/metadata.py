"""What an artifact says about itself: one model for every kind of bundle."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from airflow_handoff.exceptions import BundleError

#: The manifest's own version that this package writes; any of the same major version is read.
METADATA_VERSION = "1.0"
#: The largest manifest that is read, in bytes.
MAX_MANIFEST = 16 * 1024 * 1024

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class InvalidBundle(ValueError):
    """An artifact that is a bundle by its marks and breaks the rules of its kind.

    Readers that are given a path turn it into a :class:`~airflow_handoff.exceptions.BundleError`.
    """


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Sdk(_Model):
    """Which SDK built the artifact.

    :param supervisor_schema_version: the wire's schema; the manifest must quote it, or YAML makes it a date.
    """

    language: str = ""
    version: str | None = None
    supervisor_schema_version: str | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        if isinstance(value, (datetime.date, int, float)) and not isinstance(value, bool):
            raise ValueError(f"a text in quotes was expected and {value} came without")
        return value


class TaskOptions(_Model):
    """What an artifact asks for one of its tasks.

    :param execution_timeout: seconds, above zero.
    """

    execution_timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class DagEntry(_Model):
    """The tasks of one Dag that the artifact can run."""

    tasks: tuple[str, ...] = ()
    task_options: dict[str, TaskOptions] = {}

    @model_validator(mode="before")
    @classmethod
    def _shape(cls, value: Any) -> Any:
        # Later manifests list handlers by task id, or only their names.
        if isinstance(value, list):
            return {"tasks": value}
        if isinstance(value, Mapping) and "tasks" not in value and "task_options" not in value:
            return {"tasks": list(value)}
        return value if value is not None else {}


class BundleMetadata(_Model):
    """What an artifact says about itself.

    :param source: the display name of the embedded source.
    :param dags: by Dag id.
    :param source_sha256: lower-case hex digest of the embedded source, where the packer recorded one.
    :param main_class: of a jar.
    """

    airflow_bundle_metadata_version: str = METADATA_VERSION
    sdk: Sdk = Sdk()
    source: str | None = None
    dags: dict[str, DagEntry] = {}
    source_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    main_class: str | None = None

    @field_validator("airflow_bundle_metadata_version", mode="before")
    @classmethod
    def _known_version(cls, value: Any) -> str:
        text = str(value)
        if text.partition(".")[0] != METADATA_VERSION.partition(".")[0]:
            raise ValueError(f"metadata version {METADATA_VERSION} is known here and {text} came")
        return text

    @model_validator(mode="before")
    @classmethod
    def _handlers(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "dags" not in value and "task_handlers" in value:
            return {**value, "dags": value["task_handlers"]}
        return value

    @property
    def schema_version(self) -> str | None:
        """The wire's schema that the artifact speaks, where it says so."""
        return self.sdk.supervisor_schema_version

    def execution_timeout(self, dag_id: str, task_id: str) -> float | None:
        """Return the seconds that a task may take, where the artifact says so."""
        entry = self.dags.get(dag_id)
        options = entry.task_options.get(task_id) if entry else None
        return options.execution_timeout if options else None

    def to_manifest(self) -> dict[str, Any]:
        """Return the map that a manifest is written from: what is set, in the order of the format."""
        version = {"airflow_bundle_metadata_version": self.airflow_bundle_metadata_version}
        return version | self.model_dump(exclude_defaults=True)


def parse_metadata(data: Any, *, needs_dags: bool = True) -> BundleMetadata:
    """Check a decoded manifest.

    :param needs_dags: whether a manifest without Dags or without a schema is of no use.
    :raises InvalidBundle: with the place and the reason of the first faults.
    """
    if not isinstance(data, Mapping):
        raise InvalidBundle(f"the manifest must be a mapping and {_kind(data)} came")
    try:
        metadata = BundleMetadata.model_validate(data)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3])
        raise InvalidBundle(f"the manifest is not valid: {'; '.join(faults)}") from error
    if needs_dags and not metadata.dags:
        raise InvalidBundle("the manifest declares no Dags")
    if needs_dags and not metadata.schema_version:
        raise InvalidBundle("the manifest has no sdk.supervisor_schema_version")
    return metadata


def parse_manifest(content: bytes, *, needs_dags: bool = True) -> BundleMetadata:
    """Read a manifest as YAML, of which JSON is a part.

    :raises InvalidBundle: for what is not UTF-8, not YAML or not a valid manifest.
    """
    if len(content) > MAX_MANIFEST:
        raise InvalidBundle(f"the manifest may hold {MAX_MANIFEST} bytes and holds {len(content)}")
    try:
        data = yaml.load(content.decode(), Loader=_Loader)  # noqa: S506  # a safe loader, in C where it is built
    except UnicodeDecodeError as error:
        raise InvalidBundle(f"the manifest is not UTF-8: {error}") from error
    except Exception as error:  # explicit tags make the loader fail in ways of its own
        raise InvalidBundle(f"the manifest is not YAML: {' '.join(str(error).split())[:300]}") from error
    return parse_metadata(data, needs_dags=needs_dags)


def write_manifest(metadata: BundleMetadata) -> bytes:
    """Write a manifest as YAML; texts that YAML would read as something else are quoted."""
    text: str = yaml.dump(_plain(metadata.to_manifest()), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text.encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


@dataclass(frozen=True)
class Bundle:
    """An artifact that can be run and holds no digest of itself.

    :param path: where it lies.
    :param kind: ``executable``, ``node``, ``python`` or ``jar``; other languages name their own.
    """

    path: Path
    kind: str
    metadata: BundleMetadata


@dataclass(frozen=True)
class VerifiedBundle(Bundle):
    """An artifact whose bytes are those that were packed: every digest that it records was checked.

    :param digests: the checked SHA-256 digests in hex, by region.
    """

    digests: Mapping[str, str] = field(default_factory=dict)


def rejected(path: Path | str, reason: object) -> BundleError:
    """Return the error that names a file and says why it cannot be used."""
    return BundleError(str(path), str(reason))
