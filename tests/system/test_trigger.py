"""The trigger in a real triggerer, on the versions that need one."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import pytest

RUN_ID = "while_the_triggerer_is_away"
TASKS = ("answered", "both", "late")


@pytest.mark.versions("3.1", "3.2")
def test_nothing_is_lost_while_the_triggerer_is_away(stack):
    """Answers given meanwhile come out, a human answer wins over the deadline, a default is nobody's."""
    stack.trigger("trigger_restart", run_id=RUN_ID)
    stack.wait_tasks("trigger_restart", RUN_ID, dict.fromkeys(TASKS, "deferred"))
    parked = datetime.now(timezone.utc)
    time.sleep(3)  # the triggers are being read for
    stack.stop("triggerer")
    for task_id in ("answered", "both"):
        assert stack.answer("trigger_restart", RUN_ID, task_id, "yes", user="alice").status_code == 200
    late = (datetime.now(timezone.utc) - parked).total_seconds()
    assert late < 35, (
        f"this machine took {late:.0f} s to answer: the case needs an answer before the deadline"
    )
    time.sleep(41 - late)
    stack.start("triggerer")
    stack.wait_healthy()
    stack.wait_tasks("trigger_restart", RUN_ID, dict.fromkeys(TASKS, "success"))
    results = {task_id: stack.xcom("trigger_restart", RUN_ID, task_id) for task_id in TASKS}
    assert {t: r["chosen_options"] for t, r in results.items()} == {
        "answered": ["yes"],
        "both": ["yes"],
        "late": ["no"],
    }
    assert {t: r["timedout"] for t, r in results.items()} == {"answered": False, "both": False, "late": True}
    assert results["both"]["responded_by_user"]["id"] == "alice"
    assert results["late"]["responded_by_user"] is None
    # What the trigger says is told to the task it waits for.
    assert "Answered by alice with ['yes']" in stack.task_log("trigger_restart", RUN_ID, "answered")
    assert "going on with the default ['no']" in stack.task_log("trigger_restart", RUN_ID, "late")
