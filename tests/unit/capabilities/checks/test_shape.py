"""One test for each rule on the shape of a claim file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.unit.capabilities.samples import changed, found, line_of, sound, subject

from airflow_handoff.capabilities.checks.shape import (
    SHAPE_RULES,
    malformed_version,
    missing_key,
    not_a_boolean,
    not_a_manifest,
    not_a_mapping,
    not_a_text,
    repeated_key,
    unknown_key,
)
from airflow_handoff.capabilities.manifest import Manifest


def test_a_sound_manifest_has_no_fault_of_shape() -> None:
    """No rule speaks without a reason."""
    assert not [finding for rule in SHAPE_RULES for finding in rule(subject(sound()))]


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "", "42\n"])
def test_not_a_manifest(text: str) -> None:
    """A file that holds no mapping is told which keys to write."""
    (finding,) = found(not_a_manifest, text)
    assert (finding.line, finding.rule) == (1, "not-a-manifest")
    assert "`min_airflow_version:`" in finding.write


def test_repeated_key() -> None:
    """The second of two equal keys is named with its line."""
    (finding,) = found(
        repeated_key, "sdk: zig\nstates:\n  failed: {supported: true}\n  failed: {supported: false}\n"
    )
    assert (finding.line, finding.rule) == (4, "repeated-key")
    assert "`states.failed`" in finding.message


def test_missing_key() -> None:
    """A missing top-level key and an entry that says nothing are both told, with what to write."""
    data = changed(sdk=..., skipped={"note": "soon"})
    top, entry = found(missing_key, data)
    assert (top.rule, top.write) == ("missing-key", "Write `sdk: 'rust'`.")
    assert entry.line == line_of(data, "skipped:")
    assert entry.write == "Write `supported: true` or `supported: false` below it."


def test_unknown_key() -> None:
    """A misspelt key is answered with the nearest one, a strange one with the list."""
    data = changed(skipped={"supported": False, "sdk_versoin": "1"}, owner="me")
    strange, misspelt = found(unknown_key, data)
    assert (misspelt.line, misspelt.write) == (line_of(data, "sdk_versoin"), "Write `sdk_version:`.")
    assert strange.line == line_of(data, "owner")
    assert strange.write.startswith("Remove it; the keys here are sdk,")


def test_not_a_mapping() -> None:
    """A bare boolean and a list where a mapping belongs are told apart."""
    data = changed(skipped=True)
    data["capabilities"] = ["task-logging"]
    entry, section = found(not_a_mapping, data)
    assert (entry.line, entry.write) == (line_of(data, "skipped"), "Write `skipped: {supported: true}`.")
    assert (section.line, section.message) == (
        line_of(data, "capabilities:"),
        "expected dimensions below `capabilities`, and it holds a list",
    )


@pytest.mark.parametrize("value", ["yes please", 1, None])
def test_not_a_boolean(value: object) -> None:
    """``supported`` is not guessed from a text or a number."""
    data = changed(skipped={"supported": value})
    (finding,) = found(not_a_boolean, data)
    assert (finding.line, finding.rule) == (line_of(data, "skipped") + 1, "not-a-boolean")


def test_not_a_text() -> None:
    """An unquoted version keeps the digits that its author typed: 3.10 is not 3.1."""
    text = "sdk: zig\nmin_airflow_version: 3.10\nsupervisor_schema_version: 2026-06-16\n"
    version, schema = found(not_a_text, text)
    assert (version.line, version.write) == (2, "Write `min_airflow_version: '3.10'`, with the quotes.")
    assert (schema.line, schema.write) == (
        3,
        "Write `supervisor_schema_version: '2026-06-16'`, with the quotes.",
    )


def test_malformed_version() -> None:
    """Versions and dates that are none are shown one that is."""
    data = changed(min_airflow_version="latest", failed={"supported": True, "since": "3"})
    top, entry = found(malformed_version, data)
    assert (top.line, top.message) == (
        2,
        "expected an Airflow version for `min_airflow_version`, and it holds 'latest'",
    )
    assert (entry.line, entry.write) == (
        line_of(data, "since: '3'\n"[:-1]),
        "Write `since: '3.3'`, with your own value.",
    )


def test_an_empty_note_and_a_null_since_are_sound() -> None:
    """The first generation of manifests wrote both."""
    data = changed(skipped={"supported": False, "since": None, "note": ""})
    assert not [finding for rule in SHAPE_RULES for finding in rule(subject(data))]


def is_a_manifest(data: object) -> bool:
    """Tell whether the pydantic model accepts plain data."""
    try:
        Manifest.model_validate(data)
    except ValidationError:
        return False
    return True


SMALL = {**sound(), "states": {"failed": {"supported": True, "since": "3.3"}}, "capabilities": {}}
_values = st.one_of(
    st.none(), st.booleans(), st.integers(0, 4), st.sampled_from(["3.3", "3", "2026-06-16", "", "x", "3.3\n"])
)
_entry = st.one_of(
    _values,
    st.dictionaries(
        st.sampled_from(["supported", "since", "sdk_version", "note", "nope"]), _values, max_size=4
    ),
)
_section = st.one_of(_values, st.dictionaries(st.sampled_from(["failed", "skipped"]), _entry, max_size=2))
_KEYS = (
    "sdk",
    "min_airflow_version",
    "supervisor_schema_version",
    "states",
    "capabilities",
    "$schema",
    "nope",
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from(_KEYS), st.one_of(_values, _section), max_size=3),
    st.sampled_from([*_KEYS, None]),
)
def test_the_rules_and_the_models_agree(changes: dict[str, object], removed: str | None) -> None:
    """What the light rules accept, the pydantic model accepts, and the other way round."""
    data = {**SMALL, **changes}
    data.pop(removed, None) if removed else None
    faults = [finding for rule in SHAPE_RULES for finding in rule(subject(data))]
    assert bool(faults) is not is_a_manifest(data)
