"""How one task is launched: the command, the schema it speaks and what the task log should say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from airflow_handoff.exceptions import HandoffError

SchemaPolicy = Literal["strict", "newest-known", "unmigrated"]
SCHEMA_POLICIES: tuple[str, ...] = get_args(SchemaPolicy)


class CoordinatorMisconfigured(HandoffError, ValueError):
    """A coordinator that cannot run tasks as it was configured."""


class SchemaRefused(HandoffError):
    """A runtime whose schema Airflow does not know, under the policy ``strict``."""


@dataclass(frozen=True)
class Launch:
    """What is started for one task.

    :param command: the program and its arguments; ``--comm`` and ``--logs`` are appended.
    :param schema_version: the supervisor schema that the runtime speaks, where it says so.
    :param environment: set for this launch, beyond what the coordinator sets.
    :param directory: where the program starts; the worker's directory by default.
    :param execution_timeout: seconds; goes before the coordinator's own.
    :param what: the artifact, in words for the log.
    :param notes: further lines for the task log, artifacts that were passed over and why, say.
    """

    command: Sequence[str]
    schema_version: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None
    execution_timeout: float | None = None
    what: str = ""
    notes: Sequence[str] = ()


def apply_policy(policy: str, spoken: str | None, known: Sequence[str]) -> tuple[str | None, str]:
    """Choose the schema that messages are translated to.

    :param policy: one of :data:`SCHEMA_POLICIES`.
    :param spoken: what the runtime says it speaks.
    :param known: what this Airflow can translate, newest first.
    :returns: the schema, or None for no translation; and what was decided, in words for the log.
    :raises SchemaRefused: under ``strict``, for a schema that is not known.
    """
    says = f"speaks schema {spoken}" if spoken else "names no schema"
    if policy == "unmigrated":
        return None, f"it {says}, messages are not translated (schema_policy unmigrated)"
    if spoken in known:
        return spoken, f"it {says} (schema_policy {policy})"
    if policy == "strict":
        raise SchemaRefused(
            f"the bundle {says} and this Airflow knows {', '.join(known)}: "
            'rebuild it with another SDK version, or set schema_policy to "newest-known"'
        )
    # Newer than Airflow: what Airflow itself speaks. Older than all: the oldest there is.
    older = [version for version in known if spoken is None or version <= spoken]
    chosen = older[0] if older else known[-1]
    return chosen, f"it {says}, served as {chosen} (schema_policy {policy})"
