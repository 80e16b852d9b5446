"""The four languages through Airflow's own supervisor code, with scripts in the place of interpreters."""

from __future__ import annotations

import base64
import os
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest

from airflow_handoff.bundles.metadata import BundleMetadata, DagEntry, Sdk, TaskOptions
from airflow_handoff.bundles.readers import pack_executable
from airflow_handoff.compat.versions import HAS_COORDINATORS
from airflow_handoff.coordinators.languages import Executables, Jars, NodeBundles, PythonPrograms
from airflow_handoff.exceptions import HandoffError

needs_33 = pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")
MANIFEST = """
airflow_bundle_metadata_version: "1.0"
sdk: {language: node, version: "9.9", supervisor_schema_version: "2026-06-16"}
dags: {d: {tasks: [t], task_options: {t: {execution_timeout: 0.6}}}}
"""


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember bundles in this test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def interpreter(stage: Any) -> Path:
    """A program that says its arguments and succeeds: stands for node, java or python."""
    script = stage.folder / "interpreter.py"
    script.write_text(stage.runtime + "say('ran', argv=sys.argv[1:]); succeed()")
    program: Path = stage.folder / "interpreter"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\nexit 1\n')
    program.chmod(0o755)
    return program


def arguments(result: Any) -> list[str]:
    """What the interpreter was called with, without the two addresses."""
    assert result.state == "success", result.text
    ran = next(one for one in result.log if one["event"] == "ran")
    found = [word for word in ran["argv"] if not word.startswith(("--comm=", "--logs="))]
    assert len(ran["argv"]) == len(found) + 2
    return found


def metadata(dag_id: str = "d", **more: Any) -> BundleMetadata:
    """A manifest for one Dag."""
    sdk = Sdk(language="go", version="1", supervisor_schema_version=more.pop("schema", "2026-06-16"))
    return BundleMetadata(sdk=sdk, dags={dag_id: DagEntry(tasks=("t",), **more)})


# -- hooks of Airflow's next version


@needs_33
def test_an_artifact_that_airflow_chose_itself(tmp_path: Path) -> None:
    """The next Airflow asks for the metadata of a candidate and for the command of the one that it chose."""
    from airflow_handoff.coordinators import NodeCoordinator
    from airflow_handoff.coordinators.launch import CoordinatorMisconfigured

    bundle, other = tmp_path / "bundle.mjs", tmp_path / "readme.md"
    bundle.write_text("//# airflowMetadata=" + base64.b64encode(MANIFEST.encode()).decode() + "\n")
    other.write_text("no bundle")
    node = NodeCoordinator(node_args=["--no-warnings"])
    found = node._read_task_handler_candidate(path=bundle, rel_path=Path("bundle.mjs"), later=1)
    assert list(found.metadata.dags) == ["d"]
    assert node._read_task_handler_candidate(path=other) is None
    command = (["node", "--no-warnings", str(bundle)], "2026-06-16")
    assert node._build_task_handler_command(path=bundle, later=1) == command
    with pytest.raises(CoordinatorMisconfigured, match=r"readme\.md is not a bundle of NodeCoordinator"):
        node._build_task_handler_command(path=other)


# -- executables


@needs_33
def test_an_executable_bundle_runs(stage: Any, interpreter: Path) -> None:
    """The bundle that holds the Dag is run by itself."""
    from airflow_handoff.coordinators import ExecutableCoordinator

    root = stage.folder / "root"
    pack_executable(interpreter, root / "deep" / "mine", metadata())
    pack_executable(interpreter, root / "other", metadata("another"))
    (root / "README.md").write_text("no bundle")
    result = stage.run(ExecutableCoordinator(executables_root=root))
    assert arguments(result) == []
    assert f"Starting {root / 'deep' / 'mine'} (go 1)" in result.text


def spoil(path: Path, how: str) -> None:
    """Make a good bundle bad in one way."""
    data = bytearray(path.read_bytes())
    trailer = len(data) - 64
    if how == "flipped":
        data[20] ^= 1
    elif how == "no execute bit":
        path.chmod(0o644)
        return
    elif how == "version 2":
        data[trailer + 8] = 2
    elif how == "reserved":
        data[trailer + 50] = 1
    elif how == "regions":
        data[trailer + 3] = 255
    elif how == "edited":
        at = data.index(b"tasks:")
        data[at : at + 5] = b"TASKS"
    path.write_bytes(data)


@needs_33
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("flipped", "SHA-256"),
        ("no execute bit", "chmod +x"),
        ("version 2", "2"),
        ("reserved", "reserved"),
        ("regions", "source and manifest claim"),
        ("edited", "SHA-256"),
    ],
)
def test_case_bundle_rejected(stage: Any, interpreter: Path, how: str, words: str) -> None:
    """bundle-rejected, bundle-edited: the task log names the file and the reason."""
    from airflow_handoff.coordinators import ExecutableCoordinator

    root = stage.folder / "root"
    pack_executable(interpreter, root / "bad", metadata(), source=b"package main")
    spoil(root / "bad", how)
    result = stage.run(ExecutableCoordinator(executables_root=[root]))
    assert result.state == "failed"
    (line,) = [line for line in result.lines("error") if str(root / "bad") in line]
    assert words in line, line


@needs_33
def test_case_bundle_rejected_for_its_schema(stage: Any, interpreter: Path) -> None:
    """bundle-rejected: an unknown schema version is named, under the policy strict."""
    from airflow_handoff.coordinators import ExecutableCoordinator

    root = stage.folder / "root"
    pack_executable(interpreter, root / "new", metadata(schema="2031-01-01"))
    result = stage.run(ExecutableCoordinator(executables_root=root, schema_policy="strict"))
    assert result.state == "failed"
    assert "2031-01-01" in result.text


@needs_33
def test_a_bad_bundle_beside_a_good_one_is_named(stage: Any, interpreter: Path) -> None:
    """Nothing is skipped silently: what was passed over is in the log of a task that runs."""
    from airflow_handoff.coordinators import ExecutableCoordinator

    root = stage.folder / "root"
    pack_executable(interpreter, root / "good", metadata())
    pack_executable(interpreter, root / "bad", metadata())
    spoil(root / "bad", "flipped")
    result = stage.run(ExecutableCoordinator(executables_root=root))
    assert result.state == "success"
    assert any("Not used" in line and str(root / "bad") in line for line in result.lines("warning"))


@needs_33
def test_case_bundle_duplicate(stage: Any, interpreter: Path) -> None:
    """bundle-duplicate: refused, naming both."""
    from airflow_handoff.coordinators import ExecutableCoordinator

    root = stage.folder / "root"
    for name in ("one", "two"):
        pack_executable(interpreter, root / name, metadata())
    result = stage.run(ExecutableCoordinator(executables_root=root))
    assert result.state == "failed"
    (line,) = [line for line in result.lines("error") if "more than one" in line]
    assert str(root / "one") in line
    assert str(root / "two") in line


@needs_33
def test_case_deadline_from_the_manifest(stage: Any, interpreter: Path) -> None:
    """deadline: a limit in the bundle's manifest holds for its task."""
    from airflow_handoff.coordinators import ExecutableCoordinator

    (stage.folder / "interpreter.py").write_text(stage.runtime + "time.sleep(600)")
    root = stage.folder / "root"
    options = {"t": TaskOptions(execution_timeout=0.6)}
    pack_executable(interpreter, root / "slow", metadata(task_options=options))
    result = stage.run(ExecutableCoordinator(executables_root=root, execution_timeout=300))
    assert "execution_timeout of 0.6 s" in result.text, result.text
    assert result.state == "failed"


# -- Java


def jar(path: Path, **attributes: str) -> None:
    """Write a jar with a manifest."""
    with zipfile.ZipFile(path, "w") as file:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in attributes.items()]
        file.writestr("META-INF/MANIFEST.MF", "\r\n".join(["Manifest-Version: 1.0", *lines, "", ""]))


@needs_33
def test_java_runs_a_root_of_jars(stage: Any, interpreter: Path) -> None:
    """The class and the schema may come from different jars; the whole root is the classpath."""
    from airflow_handoff.coordinators import JavaCoordinator

    root = stage.folder / "jars"
    root.mkdir()
    jar(root / "tasks.jar", Main_Class="org.example.Main")
    jar(root / "sdk.jar", Airflow_Supervisor_Schema_Version="2026-06-16")
    jar(root / "lib.jar")
    (root / "broken.jar").write_text("no zip")
    result = stage.run(
        JavaCoordinator(jars_root=[str(root)], java_executable=str(interpreter), jvm_args=["-Xmx64m"])
    )
    classpath = os.pathsep.join(str(root / name) for name in ("lib.jar", "sdk.jar", "tasks.jar"))
    assert arguments(result) == ["-classpath", classpath, "-Xmx64m", "org.example.Main"]
    assert "it speaks schema 2026-06-16" in result.text
    assert str(root / "broken.jar") in result.text


@needs_33
def test_java_runs_the_class_that_was_named(stage: Any, interpreter: Path) -> None:
    """Where several jars name a class, ``main_class`` decides; without it both are named."""
    from airflow_handoff.coordinators import JavaCoordinator

    root = stage.folder / "jars"
    root.mkdir()
    jar(root / "a.jar", Main_Class="org.example.A", Airflow_Supervisor_Schema_Version="2026-06-16")
    jar(root / "b.jar", Main_Class="org.example.B")
    options = {"jars_root": root, "java_executable": str(interpreter)}
    assert arguments(stage.run(JavaCoordinator(**options, main_class="org.example.B")))[-1] == "org.example.B"
    stage.api.calls.clear()
    refused = stage.run(JavaCoordinator(**options))
    assert refused.state == "failed"
    assert any("org.example.A" in line and "org.example.B" in line for line in refused.lines("error"))


# -- Node


@needs_33
def test_node_runs_a_bundle(stage: Any, interpreter: Path) -> None:
    """A bundle of the published SDK is run by the Node that was named, with its arguments."""
    from airflow_handoff.coordinators import NodeCoordinator

    root = stage.folder / "node"
    root.mkdir()
    line = "//# airflowMetadata=" + base64.b64encode(MANIFEST.encode()).decode()
    (root / "bundle.mjs").write_text(f"{line}\nconsole.log(1)\n")
    (root / "plain.mjs").write_text("console.log(2)\n")
    result = stage.run(
        NodeCoordinator(bundles_root=root, node_executable=str(interpreter), node_args=["--no-warnings"])
    )
    assert arguments(result) == ["--no-warnings", str(root / "bundle.mjs")]
    assert "(node 9.9)" in result.text


# -- Python


TASKS = """
from airflow_handoff_sdk import task

@task(dag_id="d", task_id="t")
def t():
    import os, sys
    print("in", sys.executable, os.environ["PYTHONPATH"])
"""


@needs_33
def test_python_runs_a_module_with_the_sdk(stage: Any, interpreter: Path) -> None:
    """A module is run by the interpreter that was named, with the SDK on its path."""
    from airflow_handoff.coordinators import PythonCoordinator

    result = stage.run(
        PythonCoordinator(python_executable=str(interpreter), module="acme.tasks", python_args=["-X", "dev"])
    )
    assert arguments(result) == ["-X", "dev", "-m", "airflow_handoff_sdk.run", "acme.tasks"]


@needs_33
def test_python_runs_a_file_for_real(stage: Any) -> None:
    """The SDK that the package carries runs a file of tasks in the interpreter that was named."""
    from airflow_handoff.coordinators import PythonCoordinator

    tasks = stage.folder / "my_tasks.py"
    tasks.write_text(textwrap.dedent(TASKS))
    result = stage.run(
        PythonCoordinator(
            python_executable=sys.executable, module=str(tasks), env={"PYTHONPATH": "/opt/more", "A": "b"}
        )
    )
    assert result.state == "success", result.text
    (line,) = [line for line in result.lines() if line.startswith("in ")]
    assert line.endswith(f"{os.pathsep}/opt/more")


@needs_33
def test_python_finds_bundles(stage: Any, interpreter: Path) -> None:
    """A script that carries a manifest is found by its Dag."""
    from airflow_handoff.coordinators import PythonCoordinator

    root = stage.folder / "python"
    root.mkdir()
    line = "# airflowMetadata=" + base64.b64encode(MANIFEST.encode()).decode()
    (root / "tasks.py").write_text(f"{line}\nprint(1)\n")
    result = stage.run(PythonCoordinator(bundles_root=[root], python_executable=str(interpreter)))
    assert arguments(result) == ["-m", "airflow_handoff_sdk.run", str(root / "tasks.py")]


# -- all of them, without Airflow


@pytest.mark.parametrize("language", [Executables, Jars, NodeBundles, PythonPrograms])
def test_a_root_is_needed(language: Any) -> None:
    """Without a root the message names the keyword."""
    with pytest.raises(
        HandoffError, match=f"{language.__name__} has no {language.root_name}: name the folder"
    ):
        language().find("d", "t")


def test_a_module_or_bundles() -> None:
    """A module and bundles together are refused."""
    with pytest.raises(HandoffError, match="keep one of them"):
        PythonPrograms(module="a", bundles_root="/b").find("d", "t")


def test_an_undeclared_task_is_noted(tmp_path: Path) -> None:
    """A Dag whose bundle does not declare the task is launched, with a note."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    pack_executable(program, tmp_path / "root" / "b", metadata())
    launch = Executables(executables_root=tmp_path / "root").find("d", "unheard")
    assert any("declares t for this Dag and not unheard" in note for note in launch.notes)


@needs_33
def test_a_command_may_hold_paths(stage: Any, interpreter: Path) -> None:
    """A language of somebody's own that names a path and not its text runs all the same."""
    from airflow_handoff.coordinators.base import SubprocessCoordinator
    from airflow_handoff.coordinators.launch import Launch

    class Ruby(SubprocessCoordinator):
        """Returns paths."""

        def launch(self, what: Any, **kwargs: Any) -> Launch:
            """Start it."""
            return Launch(command=[interpreter, Path("x.rb")], directory=stage.folder)  # type: ignore[list-item, arg-type]

    assert arguments(stage.run(Ruby())) == ["x.rb"]


@needs_33
@pytest.mark.parametrize(
    "value", [None, 5, True, {"a": 1}, [1], [None], "a b", [], ["~nobody-of-that-name/x"]]
)
def test_no_keyword_makes_a_constructor_fail(stage: Any, value: Any) -> None:
    """Airflow would tell the task nothing; what is wrong is in the log of every task instead."""
    from airflow_handoff import coordinators

    words = {
        coordinators.PythonCoordinator: (
            *("bundles_root", "env", "pass_env", "logging_settings", "python_args", "python_executable"),
            "module",
        ),
        coordinators.NodeCoordinator: ("bundles_root", "node_args", "node_executable"),
        coordinators.JavaCoordinator: ("jars_root", "jvm_args", "java_executable", "main_class"),
        coordinators.ExecutableCoordinator: ("executables_root",),
    }
    fine = value is None or value == [] or isinstance(value, str) or value == ["~nobody-of-that-name/x"]
    for cls, names in words.items():
        for name in names:
            problems = " ".join(cls(**{name: value}).problems)
            if not fine and not (name == "env" and value == {"a": 1}):
                assert name in problems, (cls, name)
    for name in ("a", "PYTHONPATH"):
        (problem,) = coordinators.PythonCoordinator(env={name: 12345}).problems
        assert problem == f"env has a value of type int for {name}, a text was expected"
    assert "s3cret" not in str(coordinators.PythonCoordinator(env=["TOKEN=s3cret"]).problems)
    for seconds in (float("nan"), float("inf")):
        assert coordinators.PythonCoordinator(execution_timeout=seconds).problems
    result = stage.run(coordinators.PythonCoordinator(python_args=[7], module="x"))
    assert result.state == "failed"
    assert "PythonCoordinator cannot run tasks: python_args has 7, a text was expected" in result.text


@needs_33
def test_one_argument_need_not_be_in_a_list(stage: Any, interpreter: Path) -> None:
    """A text in the place of a list of arguments is one argument, not as many as it has letters."""
    from airflow_handoff.coordinators import PythonCoordinator

    coordinator = PythonCoordinator(module="m", python_executable=str(interpreter), python_args="-v")
    assert arguments(stage.run(coordinator)) == ["-v", "-m", "airflow_handoff_sdk.run", "m"]
