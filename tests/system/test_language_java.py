"""A JVM through our Java coordinator; the SDK on Maven Central where it can be had."""

from __future__ import annotations

import pytest

from tests.system.languages import assert_language, available, build_java, build_published_java, published

pytestmark = pytest.mark.versions("3.3")


def test_java(stack):
    """Success, XComs both ways, logs at SLF4J's level, and a retry, from two jars on a real JVM."""
    available(build_java)
    logs = assert_language(stack, "java")
    assert "printed by the JVM" in logs["double"]


def test_the_published_java_sdk(stack):
    """``org.apache.airflow:airflow-sdk`` 1.0.0-beta1 of Maven Central, or what Maven said in its place."""
    published(build_published_java)
    logs = assert_language(stack, "java_published")
    assert "the first try never works" in logs["flaky"]
