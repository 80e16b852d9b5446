"""Fixtures of the operators' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.operators.harness import Driver, supervised


@pytest.fixture
def driver() -> Iterator[Driver]:
    """Airflow's task runner with a double for the supervisor."""
    with supervised() as made:
        yield made
