"""Which function runs which task."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from airflow_handoff_sdk.context import Context

    Function = Callable[..., Any]
    RetryPolicy = Callable[[BaseException, Context], Optional[Exception]]

#: Every task that this process can run, by Dag and task id.
REGISTRY: dict[tuple[str, str], Task] = {}


class Task:
    """A function that runs one task; calling it calls the function.

    :param retry_policy: called with the error and the context when the function fails. It returns
        ``Retry(...)`` or ``Fail(...)`` to decide, or ``None`` to leave the decision to Airflow.
    """

    def __init__(
        self, dag_id: str, task_id: str, function: Function, retry_policy: RetryPolicy | None = None
    ) -> None:
        self.dag_id = dag_id
        self.task_id = task_id
        self.function = function
        self.retry_policy = retry_policy
        self.resumes: dict[str, Function] = {}
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", task_id)
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as a unit test does."""
        return self.function(*args, **kwargs)

    def resume(self, name: str) -> Callable[[Function], Function]:
        """Register the function that runs when a deferral with ``resume=name`` ends.

        :param name: ``"__fail__"`` receives ``error`` where the trigger failed; without such a function
            :class:`~airflow_handoff_sdk.TriggerFailed` fails the attempt.
        """

        def register(function: Function) -> Function:
            if name in self.resumes:
                raise ValueError(f"{self.dag_id}.{self.task_id} resumes in {name!r} twice")
            self.resumes[name] = function
            return function

        return register


def task(
    dag_id: str, task_id: str | None = None, *, retry_policy: RetryPolicy | None = None
) -> Callable[[Function], Task]:
    """Register a function as the body of a task.

    Parameters are bound by name to the arguments of the stub call; one called ``ctx`` or ``context`` gets
    the :class:`~airflow_handoff_sdk.Context`.

    :param task_id: the function's name where it is left out.
    :param retry_policy: see :class:`Task`.
    :raises ValueError: where the task has a function already.
    """

    def register(function: Function) -> Task:
        made = Task(dag_id, task_id or function.__name__, function, retry_policy)
        key = (made.dag_id, made.task_id)
        if key in REGISTRY:
            raise ValueError(f"two functions for the task {key[0]}.{key[1]}")
        REGISTRY[key] = made
        return made

    return register


def by_dag() -> dict[str, list[str]]:
    """Return the task ids of each Dag, in the order of their registration."""
    found: dict[str, list[str]] = {}
    for dag_id, task_id in REGISTRY:
        found.setdefault(dag_id, []).append(task_id)
    return found
