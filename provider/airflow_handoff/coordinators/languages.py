"""The four languages that the package knows, without anything of Airflow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_handoff.bundles.jar import assemble
from airflow_handoff.bundles.metadata import Bundle
from airflow_handoff.bundles.readers import (
    read_executable,
    read_jar_file,
    read_node_bundle,
    read_python_bundle,
)
from airflow_handoff.coordinators.language import Language, passed_over, several
from airflow_handoff.coordinators.launch import CoordinatorMisconfigured, Launch
from airflow_handoff.sdk_path import python_sdk_path
from airflow_handoff.wire.messages import SCHEMA_VERSION


class Executables(Language):
    """Native programs, and scripts that start themselves, in the format AFBNDL01.

    :param executables_root: a folder, or several, that are searched for bundles.
    """

    root_name = "executables_root"
    kind = "executable"

    def __init__(self, *, executables_root: Any = (), **options: Any) -> None:
        options.setdefault("bundles_root", executables_root)
        super().__init__(**options)

    def read_bundle(self, path: Path) -> Bundle | None:
        """Read an AFBNDL01 file and check its digests."""
        return read_executable(path)

    def command(self, bundle: Bundle) -> Sequence[str]:
        """Run the file itself."""
        return [str(bundle.path)]


class Jars(Language):
    """Java, Kotlin or Scala: the jars of a root are the classpath of one program.

    :param jars_root: a folder, or several, that are searched for jars.
    :param java_executable: the JVM, found on ``PATH``.
    :param jvm_args: put before the class.
    :param main_class: what is run; by default what a jar's manifest names.
    """

    root_name = "jars_root"
    kind = "jar"
    texts = ("java_executable", "jvm_args", "main_class")

    def __init__(
        self,
        *,
        jars_root: Any = (),
        java_executable: str = "java",
        jvm_args: Sequence[str] = (),
        main_class: str = "",
        **options: Any,
    ) -> None:
        self.java_executable, self.jvm_args, self.main_class = java_executable, several(jvm_args), main_class
        options.setdefault("bundles_root", jars_root)
        super().__init__(**options)

    def read_bundle(self, path: Path) -> Bundle | None:
        """Read a jar's manifest."""
        return read_jar_file(path)

    def command(self, bundle: Bundle) -> Sequence[str]:
        """Run one jar by itself."""
        return self._run([bundle.path], self.main_class or bundle.metadata.main_class or "")

    def find(self, dag_id: str, task_id: str) -> Launch:
        """Put all jars together; they do not say which Dags they hold."""
        catalogue = self.index.scan()
        program = assemble(catalogue.bundles(), self.main_class, self.roots)
        return Launch(
            command=self._run(program.classpath, program.main_class),
            schema_version=program.schema_version,
            what=f"{program.main_class} with {len(program.classpath)} jars",
            notes=list(passed_over(catalogue)),
        )

    def _run(self, classpath: Sequence[Path], main_class: str) -> list[str]:
        joined = os.pathsep.join(map(str, classpath))
        return [self.java_executable, "-classpath", joined, *self.jvm_args, main_class]


class NodeBundles(Language):
    """JavaScript and TypeScript, in either generation of Node bundles.

    :param bundles_root: a folder, or several, that are searched for bundles.
    :param node_executable: found on ``PATH``.
    :param node_args: put before the bundle.
    """

    kind = "node"
    texts = ("node_executable", "node_args")

    def __init__(
        self,
        *,
        bundles_root: Any = (),
        node_executable: str = "node",
        node_args: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.node_executable, self.node_args = node_executable, several(node_args)
        super().__init__(bundles_root=bundles_root, **options)

    def read_bundle(self, path: Path) -> Bundle | None:
        """Read a ``.mjs`` file and check the digests that it has."""
        return read_node_bundle(path)

    def command(self, bundle: Bundle) -> Sequence[str]:
        """Run Node on the bundle."""
        return [self.node_executable, *self.node_args, str(bundle.path)]


class PythonPrograms(Language):
    """Python in an interpreter of its own, 3.8 or later, with the SDK that this package carries.

    :param python_executable: found on ``PATH``.
    :param bundles_root: a folder, or several, that are searched for bundles.
    :param module: in their place, a module that the interpreter can import, or a file.
    :param python_args: put before ``-m airflow_handoff_sdk.run``.
    :param env: as for every coordinator; a ``PYTHONPATH`` in it comes behind the SDK's folder.
    """

    kind = "python"
    texts = ("python_executable", "module", "python_args")

    def __init__(
        self,
        *,
        python_executable: str = "python3",
        bundles_root: Any = (),
        module: str = "",
        python_args: Sequence[str] = (),
        env: Any = None,
        **options: Any,
    ) -> None:
        self.python_executable, self.module, self.python_args = (
            python_executable,
            module,
            several(python_args),
        )
        own = dict(env) if isinstance(env, Mapping) else env
        has_path = isinstance(own, dict) and isinstance(own.get("PYTHONPATH"), str)
        self._more_path = own.pop("PYTHONPATH") if has_path else None
        if own:
            options["env"] = own
        super().__init__(bundles_root=bundles_root, **options)

    def read_bundle(self, path: Path) -> Bundle | None:
        """Read a script, an archive or an AFBNDL01 file of the Python SDK."""
        return read_python_bundle(path)

    def command(self, bundle: Bundle) -> Sequence[str]:
        """Run the SDK on the bundle."""
        return self._run(str(bundle.path))

    def find(self, dag_id: str, task_id: str) -> Launch:
        """Run the module where there is one, else the bundle that holds the Dag."""
        if self.module and self.roots:
            raise CoordinatorMisconfigured("a module and a bundles_root were given: keep one of them")
        if self.module:
            launch = Launch(
                command=self._run(self.module), schema_version=SCHEMA_VERSION, what=f"module {self.module}"
            )
        else:
            launch = super().find(dag_id, task_id)
        path = os.pathsep.join(filter(None, (str(python_sdk_path()), self._more_path)))
        return replace(launch, environment={**launch.environment, "PYTHONPATH": path})

    def _run(self, target: str) -> list[str]:
        return [self.python_executable, *self.python_args, "-m", "airflow_handoff_sdk.run", target]
