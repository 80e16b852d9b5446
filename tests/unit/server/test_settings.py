"""A slip in the configuration is said, and shuts no door."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("airflow.models.hitl", reason="needs Airflow")

from airflow_handoff.compat import apiserver, park


@pytest.mark.parametrize("value", ["abc", "8s", "nan", "inf", "1e30", "-1"])
def test_a_number_that_is_none_is_the_default(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    """One line in the log names the key and the value."""
    apiserver._complain.cache_clear()
    monkeypatch.setenv("AIRFLOW__HANDOFF__SETTLE_SECONDS", value)
    with caplog.at_level(logging.ERROR):
        assert [apiserver.setting("settle_seconds", 8) for _ in range(3)] == [8, 8, 8]
    (line,) = [record.getMessage() for record in caplog.records if "handoff" in record.name]
    assert f"[handoff] settle_seconds = {value} is not a number" in line


@pytest.mark.parametrize("value", ["0", "3600", "3601", "soon"])
def test_worker_and_door_take_the_same_settle_time(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """What one refuses the other refuses, or the door would hold answers longer than the task allows for."""
    monkeypatch.setenv("AIRFLOW__HANDOFF__SETTLE_SECONDS", value)
    assert apiserver.setting("settle_seconds", 8) == park.settle_time().total_seconds()


def test_a_switch_that_is_none_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard stays on."""
    apiserver._complain.cache_clear()
    monkeypatch.setenv("AIRFLOW__HANDOFF__GUARD_AIRFLOW_API", "ja")
    assert apiserver.switch("guard_airflow_api", True) is True
    monkeypatch.setenv("AIRFLOW__HANDOFF__GUARD_AIRFLOW_API", "False")
    assert apiserver.switch("guard_airflow_api", True) is False
