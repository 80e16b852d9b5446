"""What a language is: which files are its bundles and how one is run. No Airflow is needed here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_handoff.bundles.index import BundleIndex, Catalogue
from airflow_handoff.bundles.metadata import Bundle
from airflow_handoff.coordinators.launch import CoordinatorMisconfigured, Launch

#: How many bundles that could not be used a task log names.
NAMED = 20


def several(value: Any) -> tuple[Any, ...]:
    """Return one value or several as several, whatever they are: a constructor must not raise.

    Airflow tells an error of a constructor to nobody who looks at a task.
    """
    if value is None or value == "":
        return ()
    single = isinstance(value, (str, bytes, os.PathLike, Mapping)) or not isinstance(value, Iterable)
    return (value,) if single else tuple(value)


class Language:
    """Finds the bundle that holds a Dag and says how it is run; safe to use from many threads.

    :param bundles_root: a folder, or several, that are searched with everything below them.
    """

    #: How messages call the roots, and the bundles in them.
    root_name = "bundles_root"
    kind = ""
    #: Attributes that hold a text, or several.
    texts: tuple[str, ...] = ()

    def __init__(self, *, bundles_root: Any = ()) -> None:
        self.roots = tuple(Path(os.path.expanduser(str(root))) for root in several(bundles_root))

    def read_bundle(self, path: Path) -> Bundle | None:
        """Return what a file says about itself, or None where it is no bundle of this language.

        :raises BundleError: where it is one and cannot be used.
        """
        raise NotImplementedError(f"{type(self).__name__} must say which files are bundles")

    def command(self, bundle: Bundle) -> Sequence[str]:
        """Return the command that runs a bundle; ``--comm`` and ``--logs`` are appended to it."""
        raise NotImplementedError(f"{type(self).__name__} must say how a bundle is run")

    @cached_property
    def index(self) -> BundleIndex:
        """What is remembered of the bundles below the roots, by all processes of this user.

        :raises CoordinatorMisconfigured: where there are no roots.
        """
        if not self.roots:
            raise CoordinatorMisconfigured(
                f"{type(self).__name__} has no {self.root_name}: name the folder that holds the bundles"
            )
        # Two readers must not share what they remember, so a subclass with a reader of its own has its own.
        reader = type(self).read_bundle
        shared = self.kind and reader.__module__.startswith("airflow_handoff.")
        return BundleIndex(
            self.roots,
            self.read_bundle,
            self.kind if shared else f"{reader.__module__}.{reader.__qualname__}",
        )

    def find(self, dag_id: str, task_id: str) -> Launch:
        """Find the one bundle that holds a Dag.

        :raises BundleError: where none does, or several do; every bundle that was passed over is named.
        """
        catalogue = self.index.scan()
        bundle = catalogue.find(dag_id)
        sdk = bundle.metadata.sdk
        notes = list(passed_over(catalogue))
        tasks = bundle.metadata.dags[dag_id].tasks
        if tasks and task_id not in tasks:
            notes.append(f"{bundle.path} declares {', '.join(tasks)} for this Dag and not {task_id}")
        return Launch(
            command=self.command(bundle),
            schema_version=bundle.metadata.schema_version,
            execution_timeout=bundle.metadata.execution_timeout(dag_id, task_id),
            what=f"{bundle.path} ({' '.join(word for word in (sdk.language, sdk.version) if word)})",
            notes=notes,
        )


def passed_over(catalogue: Catalogue) -> Iterable[str]:
    """Yield a line for each bundle that cannot be used."""
    for item in catalogue.rejected[:NAMED]:
        yield f"Not used: {item}"
    if len(catalogue.rejected) > NAMED:
        yield f"Not used: {len(catalogue.rejected) - NAMED} more bundles"
    for item in catalogue.unreadable[:NAMED]:
        yield f"Not searched: {item}"
