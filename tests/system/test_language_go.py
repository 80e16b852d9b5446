"""A Go program through our executable coordinator; the SDK's module where it can be had."""

from __future__ import annotations

import pytest

from tests.system.languages import assert_language, available, build_go, build_published_go, published

pytestmark = pytest.mark.versions("3.3")


def test_go(stack):
    """Success, XComs both ways, logs and a retry, from a packed Go program."""
    available(build_go)
    logs = assert_language(stack, "go")
    assert "printed by go" in logs["double"]


def test_the_published_go_sdk(stack):
    """``github.com/apache/airflow/go-sdk``, or what the module proxy said in its place."""
    published(build_published_go)
    logs = assert_language(stack, "go_published")
    assert "the first try never works" in logs["flaky"]
