"""Whether the file has the shape of a manifest at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_handoff.capabilities.checks.finding import SECTIONS, Finding, Rule, Subject, nearest
from airflow_handoff.capabilities.patterns import AIRFLOW_VERSION, SCHEMA_VERSION, VISIBLE_TEXT

_PATTERNS = {
    "sdk": (VISIBLE_TEXT, "a name", "rust"),
    "min_airflow_version": (AIRFLOW_VERSION, "an Airflow version", "3.3"),
    "supervisor_schema_version": (SCHEMA_VERSION, "a date", "2026-06-16"),
    "since": (AIRFLOW_VERSION, "an Airflow version", "3.3"),
}
REQUIRED = ("sdk", "min_airflow_version", "supervisor_schema_version", *SECTIONS)
TOP_KEYS = (*REQUIRED, "$schema")
ENTRY_KEYS = ("supported", "since", "sdk_version", "note")


def not_a_manifest(subject: Subject) -> Iterator[Finding]:
    """The file holds one mapping."""
    if not isinstance(subject.document.data, dict):
        yield subject.finding(
            "not-a-manifest",
            (),
            f"expected a mapping, and the file holds {_kind(subject.document.data)}",
            "Write the keys " + ", ".join(f"`{key}:`" for key in REQUIRED) + ".",
        )


def repeated_key(subject: Subject) -> Iterator[Finding]:
    """A key stands once in a mapping: parsers keep only the last."""
    for keys, line in subject.document.repeated:
        yield Finding(
            subject.document.path,
            line,
            "repeated-key",
            f"`{'.'.join(keys)}` stands twice, and only this one counts",
            "Remove one of the two.",
        )


def missing_key(subject: Subject) -> Iterator[Finding]:
    """Every required key is there."""
    for key in REQUIRED if isinstance(subject.document.data, dict) else ():
        if key not in subject.top:
            example = f" '{_PATTERNS[key][2]}'" if key in _PATTERNS else ""
            yield subject.finding("missing-key", (), f"`{key}` is missing", f"Write `{key}:{example}`.")
    for section, name, fields in subject.entries():
        if "supported" not in fields:
            yield subject.finding(
                "missing-key",
                (section, name),
                f"`{name}` does not say whether it is supported",
                "Write `supported: true` or `supported: false` below it.",
            )


def unknown_key(subject: Subject) -> Iterator[Finding]:
    """No key is misspelt."""
    places: list[tuple[tuple[str, ...], Mapping[Any, Any], tuple[str, ...]]] = [((), subject.top, TOP_KEYS)]
    places += [((section, name), fields, ENTRY_KEYS) for section, name, fields in subject.entries()]
    for keys, mapping, known in places:
        for key in mapping:
            if key not in known:
                close = nearest(str(key), known)
                yield subject.finding(
                    "unknown-key",
                    (*keys, str(key)),
                    f"`{key}` is not a key of a manifest",
                    f"Write `{close}:`." if close else f"Remove it; the keys here are {', '.join(known)}.",
                )


def not_a_mapping(subject: Subject) -> Iterator[Finding]:
    """The two sections and each entry are mappings."""
    for section in SECTIONS:
        if section not in subject.top:
            continue
        if not isinstance(subject.top[section], dict):
            yield subject.finding(
                "not-a-mapping",
                (section,),
                f"expected dimensions below `{section}`, and it holds {_kind(subject.top[section])}",
                f"Write `{section}: {{}}` where nothing is declared yet.",
            )
        for name, fields in subject.section(section).items():
            if not isinstance(fields, dict):
                yield subject.finding(
                    "not-a-mapping",
                    (section, str(name)),
                    f"expected fields below `{name}`, and it holds {_kind(fields)}",
                    f"Write `{name}: {{supported: {'true' if fields is True else 'false'}}}`.",
                )


def not_a_boolean(subject: Subject) -> Iterator[Finding]:
    """``supported`` is true or false, not a text or a number."""
    for section, name, fields in subject.entries():
        if "supported" in fields and not isinstance(fields["supported"], bool):
            yield subject.finding(
                "not-a-boolean",
                (section, name, "supported"),
                f"expected true or false for `{name}`, and it holds {_kind(fields['supported'])}",
                "Write `supported: true` or `supported: false`, without quotes.",
            )


def not_a_text(subject: Subject) -> Iterator[Finding]:
    """Names, versions and notes are texts: YAML reads an unquoted 3.10 as the number 3.1."""
    places: list[tuple[tuple[str, ...], object, bool]] = [
        ((key,), subject.top[key], key == "$schema")
        for key in ("sdk", "min_airflow_version", "supervisor_schema_version", "$schema")
        if key in subject.top
    ]
    for section, name, fields in subject.entries():
        places += [((section, name, key), fields[key], True) for key in ENTRY_KEYS[1:] if key in fields]
    for keys, value, may_be_null in places:
        if not isinstance(value, str) and not (value is None and may_be_null):
            written = subject.document.written.get(keys, "")
            yield subject.finding(
                "not-a-text",
                keys,
                f"expected a text for `{keys[-1]}`, and YAML reads {_kind(value)}",
                f"Write `{keys[-1]}: '{written}'`, with the quotes."
                if written and value is not None
                else f"Write a text after `{keys[-1]}:`.",
            )


def malformed_version(subject: Subject) -> Iterator[Finding]:
    """Versions and dates look like ones."""
    places: list[tuple[tuple[str, ...], object]] = [
        ((key,), subject.top.get(key)) for key in ("sdk", "min_airflow_version", "supervisor_schema_version")
    ]
    places += [((section, name, "since"), fields.get("since")) for section, name, fields in subject.entries()]
    for keys, value in places:
        pattern, kind, example = _PATTERNS[keys[-1]]
        # fullmatch where anchored: alone, `$` would let a trailing newline pass.
        matches = re.fullmatch if pattern.startswith("^") else re.search
        if isinstance(value, str) and not matches(pattern, value):
            yield subject.finding(
                "malformed-version",
                keys,
                f"expected {kind} for `{keys[-1]}`, and it holds {value[:40]!r}",
                f"Write `{keys[-1]}: '{example}'`, with your own value.",
            )


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "a mapping",
    }
    return names.get(type(value), f"a {type(value).__name__}")


SHAPE_RULES: tuple[Rule, ...] = (
    not_a_manifest,
    repeated_key,
    missing_key,
    unknown_key,
    not_a_mapping,
    not_a_boolean,
    not_a_text,
    malformed_version,
)
