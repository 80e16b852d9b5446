"""Tasks for the SDK that the package carries."""

import logging

from airflow_handoff_sdk import current_context, task

log = logging.getLogger(__name__)


@task(dag_id="language_python", task_id="double")
def double():
    """Double the numbers of a Python task."""
    log.info("doubling in python")
    return [2 * n for n in current_context().xcom.pull("numbers")]


@task(dag_id="language_python", task_id="flaky")
def flaky():
    """Fail once."""
    if current_context().try_number == 1:
        raise RuntimeError("the first try never works")
    return current_context().try_number
