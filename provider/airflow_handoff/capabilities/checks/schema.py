"""Whether the schema version can be true: of the Airflow that is claimed, and of the SDK's own build."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_handoff.capabilities.checks.finding import Finding, Rule, Subject
from airflow_handoff.capabilities.locate import Located, LocatorError, locate_schema_version
from airflow_handoff.capabilities.patterns import AIRFLOW_VERSION, SCHEMA_VERSION
from airflow_handoff.capabilities.versions import release_of

_KEY = "supervisor_schema_version"


def schema_unknown_to_airflow(subject: Subject) -> Iterator[Finding]:
    """The oldest Airflow that is claimed accepts the schema.

    An Airflow newer than the package knows is not judged.
    """
    airflow, schema = subject.text("min_airflow_version"), subject.text(_KEY)
    if not airflow or not schema:
        return
    if not re.fullmatch(AIRFLOW_VERSION, airflow) or not re.fullmatch(SCHEMA_VERSION, schema):
        return
    release = release_of(airflow)
    if release > max(subject.schemas):
        return
    accepted = subject.schemas.get(release)
    if accepted is None:
        oldest = ".".join(map(str, min(subject.schemas)))
        yield subject.finding(
            "airflow-without-supervisor",
            ("min_airflow_version",),
            f"Airflow {airflow} cannot run a task in another language",
            f"Write `min_airflow_version: '{oldest}'` or a later one.",
        )
    elif schema not in accepted:
        later = [known for known in sorted(subject.schemas) if schema in subject.schemas[known]]
        message = f"Airflow {airflow} does not know schema {schema}; it accepts {', '.join(accepted)}"
        write = f"Write `{_KEY}: '{accepted[-1]}'`" + (
            f", or `min_airflow_version: '{'.'.join(map(str, later[0]))}'`." if later else "."
        )
        yield subject.finding("schema-unknown-to-airflow", (_KEY,), message, write)


def schema_not_located(subject: Subject) -> Iterator[Finding]:
    """The build file that was named has a schema version; a search that finds none is at fault itself."""
    located = _located(subject)
    if isinstance(located, LocatorError):
        yield Finding(
            located.path,
            located.line or 1,
            "schema-not-located",
            f"the schema version could not be read from the build file: {located.reason}",
            "This says nothing about the manifest: mend the search first.",
        )


def schema_differs_from_build(subject: Subject) -> Iterator[Finding]:
    """The manifest claims the schema that the SDK is built with."""
    located, claimed = _located(subject), subject.text(_KEY)
    if isinstance(located, Located) and claimed and located.value != claimed:
        yield subject.finding(
            "schema-differs-from-build",
            (_KEY,),
            f"the manifest says {claimed}, and {located.path} says {located.key} = {located.value}",
            f"Write `{_KEY}: '{located.value}'`, or change the build file.",
        )


def _located(subject: Subject) -> Located | LocatorError | None:
    if subject.build_file is None:
        return None
    try:
        return locate_schema_version(subject.build_file.path, subject.build_file.key)
    except LocatorError as error:
        return error


SCHEMA_RULES: tuple[Rule, ...] = (schema_unknown_to_airflow, schema_not_located, schema_differs_from_build)
