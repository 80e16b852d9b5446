"""The one list of what can be claimed."""

from __future__ import annotations

import importlib.util
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.unit.capabilities.samples import DATA, subject

from airflow_handoff.capabilities import dimensions as module
from airflow_handoff.capabilities.checks import check
from airflow_handoff.capabilities.claims import Status, join_claims
from airflow_handoff.capabilities.dimensions import known_dimensions, known_schemas, parse_dimensions
from airflow_handoff.capabilities.document import load_yaml, read_document
from airflow_handoff.exceptions import CapabilitiesError

LIST = Path(module.__file__).with_name("dimensions.yaml")


def listed() -> dict[str, Any]:
    """Return the shipped list as plain data."""
    data: dict[str, Any] = load_yaml(LIST.read_text())
    return data


def test_the_tiers_are_those_of_airflows_specification() -> None:
    """A dimension that changes its tier changes what every SDK must do."""
    found = known_dimensions()
    musts = [
        dimension.name
        for dimension in found.dimensions
        if dimension.tier == "MUST" and not dimension.conditional
    ]
    assert musts == [
        *("success", "failed", "up_for_retry", "mixed-lang-stub-target", "taskflow-binding", "task-logging"),
        *("xcom-read-write", "connection-read", "variable-read-write", "self-contained-bundle"),
    ]
    assert found.gate.name == "native-dag-authoring"
    assert len(found.in_group("states")) == 8
    assert len(found.in_group("runtime")) == 12
    assert [d.name for d in found.in_group("native") if not d.conditional] == ["native-dag-authoring"]
    assert [d.name for d in found.dimensions if d.since == "main"] == ["taskflow-binding", "retry-policy"]
    assert all(dimension.means for dimension in found.dimensions)


def test_a_dimension_that_is_added_breaks_no_manifest() -> None:
    """Older manifests show it as undeclared, and no check complains, though it is a MUST."""
    data = listed()
    data["runtime"]["time-travel"] = {"tier": "MUST", "since": "main", "means": "goes back"}
    longer = parse_dimensions(data, "dimensions.yaml")
    document = read_document(DATA / "java.yaml")
    claims = join_claims(document.data, longer)
    assert claims.by_name["time-travel"].status is Status.UNDECLARED
    before = check(subject((DATA / "java.yaml").read_text()))
    after = check(type(subject("a: b"))(document, longer, known_schemas()))
    assert [finding.rule for finding in after] == [finding.rule for finding in before]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tier": "COULD"}, "the tier is one of MUST, SHOULD, MAY, not COULD"),
        ({"tier": "MAY", "since": "9"}, "since is one of 3.3, main, not 9"),
        ({"tier": "MAY", "gate": True}, "exactly one dimension"),
    ],
)
def test_an_unsound_list_is_refused(change: dict[str, Any], told: str) -> None:
    """The list is data that people edit; a slip is told by name."""
    data = deepcopy(listed())
    data["runtime"]["new"] = change
    with pytest.raises(CapabilitiesError, match=told):
        parse_dimensions(data, "dimensions.yaml")


def test_a_name_stands_for_one_dimension() -> None:
    """States and capabilities share one space of names, as evidence does."""
    data = listed()
    data["runtime"]["skipped"] = {"tier": "MAY"}
    with pytest.raises(CapabilitiesError, match="skipped is listed twice"):
        parse_dimensions(data, "dimensions.yaml")


@pytest.mark.skipif(
    importlib.util.find_spec("airflow.sdk.execution_time.schema") is None
    if importlib.util.find_spec("airflow.sdk.execution_time")
    else True,
    reason="this Airflow has no supervisor schema: the package's operator is the supervisor",
)
def test_the_installed_airflow_accepts_exactly_the_schemas_that_are_listed() -> None:
    """schemas.yaml is measured, not remembered."""
    from airflow.sdk.execution_time.schema.versions import get_bundle
    from airflow.version import version

    major, minor = version.split(".")[:2]
    accepted = {entry.value for entry in get_bundle().versions}
    assert accepted == set(known_schemas()[int(major), int(minor)])
