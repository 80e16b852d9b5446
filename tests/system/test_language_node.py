"""The published npm SDK, ``apache-airflow-ts-sdk``, through our Node coordinator."""

from __future__ import annotations

import pytest

from tests.system.languages import assert_language, available, build_node

pytestmark = pytest.mark.versions("3.3")


def test_node(stack):
    """Success, XComs both ways, logs, and a task that throws once, with the SDK's own packer and bundle."""
    available(build_node)
    logs = assert_language(stack, "node")
    assert "it speaks schema 2026-10-30, served as 2026-06-16 (schema_policy newest-known)" in logs["double"]
    assert "the first try never works" in logs["flaky"]
