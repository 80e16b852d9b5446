"""The SDK that the package carries, through our Python coordinator."""

from __future__ import annotations

import pytest

from tests.system.languages import assert_language

pytestmark = pytest.mark.versions("3.3")


def test_python(stack):
    """Success, XComs both ways, logs and a task that raises once."""
    logs = assert_language(stack, "python")
    assert "the first try never works" in logs["flaky"]
