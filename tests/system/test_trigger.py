"""Requests while the component that looks after them is away: the triggerer, on 3.3 the scheduler."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

#: Seconds that people have, as the Dag says.
DEADLINE = 60
SETTLED = timedelta(seconds=8)
RUN_ID = "while_nobody_looks"
TASKS = ("answered", "both", "late")


def test_case_deadline_race_and_default_replayed_while_nobody_looks(stack):
    """Answers given meanwhile come out, a human answer wins over the deadline, a default is nobody's.

    What looks after the deadline comes back when it has long passed and finds one row answered, one not.
    """
    keeper = "scheduler" if stack.version == "3.3" else "triggerer"
    parked_state = stack.parked_state
    stack.trigger("trigger_restart", run_id=RUN_ID)
    stack.wait_tasks("trigger_restart", RUN_ID, dict.fromkeys(TASKS, parked_state))
    parked = datetime.now(timezone.utc)
    if keeper == "scheduler":  # answers are let through once it has come by after the park has settled
        stack.until("the scheduler to come by", lambda: _scheduler_seen_at(stack) > parked + SETTLED)
    else:
        time.sleep(3)  # the triggers are being read for
    stack.stop(keeper)
    assert stack.answer("trigger_restart", RUN_ID, "both", "yes", user="alice").status_code == 200
    late = (datetime.now(timezone.utc) - parked).total_seconds()
    assert stack.answer("trigger_restart", RUN_ID, "answered", "yes", user="alice").status_code == 200
    assert late < DEADLINE - 5, (
        f"this machine took {late:.0f} s to answer: the case needs an answer before the deadline"
    )
    passed = (datetime.now(timezone.utc) - parked).total_seconds()
    time.sleep(max(DEADLINE + 3 - passed, 0))
    stack.start(keeper)
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
    if keeper == "scheduler":
        return
    # What the trigger says is told to the task it waits for.
    assert "Answered by alice with ['yes']" in stack.task_log("trigger_restart", RUN_ID, "answered")
    assert "going on with the default ['no']" in stack.task_log("trigger_restart", RUN_ID, "late")


def _scheduler_seen_at(stack):
    health = stack.client().get("/api/v2/monitor/health").json()
    return datetime.fromisoformat(health["scheduler"]["latest_scheduler_heartbeat"])
