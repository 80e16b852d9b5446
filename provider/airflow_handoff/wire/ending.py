"""How a run ends: the terminal message that counts, or why there is none."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_handoff.wire.requests import RetryTask, SucceedTask, TaskState, Terminal


@dataclass(frozen=True)
class Outcome:
    """What became of the task, once its process has ended.

    :param report: the terminal message that counts, or ``None`` where there is none.
    :param failure: one line for the task log that says why there is none, else ``None``.
    :param exit_code: as the caller gave it; negative for a signal.
    :param should_retry: whether Airflow would try a failed attempt again.
    """

    report: Terminal | None
    failure: str | None
    exit_code: int | None
    should_retry: bool

    def terminal(self, now: datetime) -> Terminal:
        """Return the report, or the message that stands for the failure.

        :param now: an aware time, the end of a failed attempt.
        """
        if self.report is not None:
            return self.report
        if self.should_retry:
            return RetryTask(end_date=now, retry_reason=self.failure)
        return TaskState(state="failed", end_date=now)


#: How a failure begins where a program ended without a terminal message.
SILENT = "The program ended without reporting a result"


def settle(
    message: Terminal, body: dict[str, Any], *, should_retry: bool
) -> tuple[Terminal, dict[str, Any], str | None]:
    """Turn a terminal message into one that Airflow takes.

    Lists that the API server refuses as null become empty, and a retry that Airflow would not stop becomes a
    failure.

    :returns: the message, its map, and one line for the task log where its meaning changed.
    """
    if isinstance(message, SucceedTask):
        outlets, events = message.task_outlets or [], message.outlet_events or []
        filled = SucceedTask(
            end_date=message.end_date,
            task_outlets=outlets,
            outlet_events=events,
            rendered_map_index=message.rendered_map_index,
        )
        return (
            filled,
            {**body, "task_outlets": body.get("task_outlets") or [], "outlet_events": events},
            None,
        )
    if isinstance(message, RetryTask) and not should_retry:
        failed = TaskState(
            state="failed", end_date=message.end_date, rendered_map_index=message.rendered_map_index
        )
        reason = f": {message.retry_reason}" if message.retry_reason else ""
        return failed, failed.to_body(), f"The task asked for a retry and has none left; it failed{reason}."
    return message, body, None


def describe_exit(exit_code: int | None) -> str:
    """Say in words how a process ended."""
    if exit_code is None:
        return "its exit code is not known"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"
