"""Where the plugin is not loaded, the task log says what the reader will see."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.execution_time import comms
from tests.unit.operators.harness import PARKED, Driver

from airflow_handoff.operators.hitl import HITLOperator


@pytest.mark.parametrize(("kept", "told"), [("try 1", True), ("try 2", False)])
def test_case_fresh_question(driver: Driver, caplog: Any, capsys: Any, kept: str, told: bool) -> None:
    """Airflow answers the upsert with the row as it is: an older question is named, the task parks anyway."""

    def row(msg: Any) -> Any:
        return comms.HITLDetailRequestResult(
            ti_id=msg.ti_id, options=msg.options, subject=kept, body=None, params={}, assigned_users=[]
        )

    driver.supervisor._CreateHITLDetailPayload = row  # type: ignore[attr-defined]
    with DAG("d"):
        task = HITLOperator(task_id="ask", subject="try 2", options=["a", "b"])
    assert driver.start(task).state == PARKED
    said = caplog.text + capsys.readouterr().out
    assert ("question of an earlier round" in said) is told
