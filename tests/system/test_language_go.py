"""A Go program through our executable coordinator; the SDK's module where it can be had."""

from __future__ import annotations

import pytest

from tests.system.languages import assert_language, available, build_go, fetch_go_sdk, published

pytestmark = pytest.mark.versions("3.3")


def test_go(stack):
    """Success, XComs both ways, logs and a retry, from a packed Go program."""
    available(build_go)
    logs = assert_language(stack, "go")
    assert "printed by go" in logs["double"]


def test_the_published_go_sdk():
    """``github.com/apache/airflow/go-sdk``; what the module proxy said where it does not serve it."""
    published(fetch_go_sdk)
