"""How the campaign's Airflow reaches other languages: its coordinators and their queues."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

from tests.system.node import NODE
from tests.system.stack import ROOT

#: Where the tests of published SDKs build: inside the checkout, ignored by git, kept between runs.
CACHE = ROOT / ".airflow" / "languages"
RUNTIMES = ROOT / "tests" / "runtimes"
SOURCES = ROOT / "tests" / "languages"
SDKS = ROOT / "sdks"


def oldest_python() -> tuple[str, str]:
    """Return the oldest CPython from 3.8 on that the machine has, and its minor version."""
    homes = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    homes.append(Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python"))
    found = {}
    for path in (path for home in homes for path in _interpreters(home)):
        version = re.search(r"3\.(\d+)", path.parts[-3])
        if version and int(version[1]) >= 8:
            found[int(version[1])] = str(path)
    for minor in range(8, sys.version_info.minor):
        on_path = shutil.which(f"python3.{minor}")
        if on_path and "/shims/" not in on_path:
            found.setdefault(minor, on_path)
    found.setdefault(sys.version_info.minor, sys.executable)
    minor = min(found)
    return found[minor], f"3.{minor}"


def _interpreters(home: Path) -> list[Path]:
    """Return what lies in a folder of interpreters; nothing where another user may not look into it."""
    try:
        return list(home.glob("*3.*/bin/python3"))
    except OSError:
        return []


OLDEST_PYTHON = oldest_python()

_FIXTURE = "fixture_coordinator.FixtureCoordinator"
_OURS = "airflow_handoff.coordinators"
COORDINATORS = {
    "fixture": {"classpath": _FIXTURE, "kwargs": {"kill_grace": 1.0}},
    # Long enough for a program to start its children, also where all tasks of a worker start at once.
    "impatient": {"classpath": _FIXTURE, "kwargs": {"kill_grace": 1.0, "execution_timeout": 6.0}},
    "misspelt-class": {"classpath": f"{_OURS}.JavaCordinator", "kwargs": {}},
    "misspelt-keyword": {"classpath": _FIXTURE, "kwargs": {"execution_timout": 2.0}},
    "node": {
        "classpath": f"{_OURS}.NodeCoordinator",
        "kwargs": {"bundles_root": [str(CACHE / "node" / "root")], "node_executable": str(NODE)},
    },
    "java": {
        "classpath": f"{_OURS}.JavaCoordinator",
        "kwargs": {"jars_root": [str(CACHE / "java" / "root")], "jvm_args": ["-Xmx64m"]},
    },
    "go": {
        "classpath": f"{_OURS}.ExecutableCoordinator",
        "kwargs": {"executables_root": [str(CACHE / "go" / "root")]},
    },
    # What Maven Central and the Go module proxy serve, where they do.
    "java_published": {
        "classpath": f"{_OURS}.JavaCoordinator",
        "kwargs": {"jars_root": [str(CACHE / "java_published" / "root")]},
    },
    "go_published": {
        "classpath": f"{_OURS}.ExecutableCoordinator",
        "kwargs": {"executables_root": [str(CACHE / "go_published" / "root")]},
    },
    "python": {
        "classpath": f"{_OURS}.PythonCoordinator",
        "kwargs": {"module": str(SOURCES / "python" / "tasks.py")},
    },
    "sdk-python": {
        "classpath": f"{_OURS}.PythonCoordinator",
        "kwargs": {
            "module": str(ROOT / "sdks" / "python" / "examples" / "states.py"),
            "python_executable": OLDEST_PYTHON[0],
        },
    },
    "stock-executable": {
        "classpath": "airflow.sdk.coordinators.executable.ExecutableCoordinator",
        "kwargs": {"executables_root": [str(CACHE / "sdk-rust" / "root")]},
    },
    "sdk-rust": {
        "classpath": f"{_OURS}.ExecutableCoordinator",
        "kwargs": {"executables_root": [str(CACHE / "sdk-rust" / "root")]},
    },
}
#: Where the programs of the READMEs of our SDKs are built.
README_ROOT = CACHE / "sdk-readme"
_OLD_PYTHON = {"python_executable": OLDEST_PYTHON[0]}
COORDINATORS |= {
    "readme-module": {
        "classpath": f"{_OURS}.PythonCoordinator",
        "kwargs": {"module": str(README_ROOT / "module.py"), **_OLD_PYTHON},
    },
    "readme-bundles": {
        "classpath": f"{_OURS}.PythonCoordinator",
        "kwargs": {"bundles_root": [str(README_ROOT / "bundles")], **_OLD_PYTHON},
    },
    "readme-executable": {
        "classpath": f"{_OURS}.ExecutableCoordinator",
        "kwargs": {
            "executables_root": [str(README_ROOT / "executables")],
            "env": {
                "AIRFLOW_HANDOFF_PYTHON": OLDEST_PYTHON[0],
                "PYTHONPATH": str(SDKS / "python" / "src"),
            },
        },
    },
    "readme-static": {
        "classpath": f"{_OURS}.ExecutableCoordinator",
        "kwargs": {"executables_root": [str(README_ROOT / "static")]},
    },
}
QUEUES = {name: name for name in COORDINATORS}

#: Environment of an Airflow that runs foreign tasks; versions before 3.3 take no notice of it.
FOREIGN_ENV = {
    "AIRFLOW__SDK__COORDINATORS": json.dumps(COORDINATORS),
    "AIRFLOW__SDK__QUEUE_TO_COORDINATOR": json.dumps(QUEUES),
    "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "noisy=ERROR quiet=DEBUG",
    "PYTHONPATH": str(RUNTIMES),
}
