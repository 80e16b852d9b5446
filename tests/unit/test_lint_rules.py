"""Only ``compat`` knows Airflow's versions and private paths: the lint rules that say so are tried out."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUFF = Path(sys.executable).parent / "ruff"

needs_ruff = pytest.mark.skipif(not RUFF.exists(), reason="the linters are in the default environment only")


def ruff(source: str, path: str) -> subprocess.CompletedProcess[str]:
    """Lint source as if it were the file, with the project's configuration."""
    command = [str(RUFF), "check", "--select", "TID251", "--no-cache", "--stdin-filename", path, "-"]
    return subprocess.run(command, input=source, cwd=ROOT, capture_output=True, text=True, check=False)


def seams(source: str) -> list[str]:
    """Return what the script finds in the source."""
    spec = importlib.util.spec_from_file_location("check_seams", ROOT / "scripts" / "check_seams.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [sentence for _, sentence in module.violations(source)]


BANNED_BY_RUFF = [
    "from airflow import __version__",
    "import airflow\nnew = airflow.__version__ > '3.2'",
    "from airflow.version import version",
    "from airflow.providers.standard.version_compat import AIRFLOW_V_3_1_PLUS",
    "from importlib.metadata import version\nversion('apache-airflow')",
    "import importlib.metadata\nimportlib.metadata.version('apache-airflow-core')",
    "from packaging.version import Version",
    "from airflow.models import TaskInstance",
    "from airflow.models.hitl import HITLDetail",
    "from airflow.sdk.execution_time import task_runner",
    "from airflow.sdk.execution_time.comms import SetXCom",
    "def late():\n    from airflow.utils.session import create_session",
    "from airflow.api_fastapi.app import create_app",
]


@needs_ruff
@pytest.mark.parametrize("source", BANNED_BY_RUFF)
def test_ruff_refuses_a_version_or_a_private_path_in_a_room(source):
    """A version comparison or a private import outside ``compat`` makes ruff fail and name the rule."""
    done = ruff(source + "\n", "provider/airflow_handoff/operators/hitl.py")
    assert done.returncode == 1
    assert "TID251" in done.stdout


@needs_ruff
@pytest.mark.parametrize("source", BANNED_BY_RUFF)
def test_ruff_allows_the_same_in_compat(source):
    """``compat`` is the one room where they stand."""
    assert ruff(source + "\n", "provider/airflow_handoff/compat/park.py").returncode == 0


@pytest.mark.parametrize(
    "source",
    [
        *BANNED_BY_RUFF[:4],
        *BANNED_BY_RUFF[7:],
        "import importlib\nimportlib.import_module('airflow.models.hitl')",
        "from importlib import metadata\nmetadata.version('apache-airflow')",
        "import airflow.jobs.job",
        "from airflow import settings",
        "from airflow.something_new import thing",
        "from airflow.sdk import definitions",
        "import airflow\ngetattr(airflow, '__version__')",
        "import sys\nsys.modules['airflow'].__version__",
        "AIRFLOW_V_3_2_PLUS = True\nif AIRFLOW_V_3_2_PLUS: pass",
    ],
)
def test_the_script_refuses_what_is_not_public(source):
    """What a list of names cannot say: imports by string, new private paths, versions read sideways."""
    assert seams(source)


@pytest.mark.parametrize(
    "source",
    [
        "from airflow.sdk import BaseOperator, Param, Context",
        "from airflow.triggers.base import BaseTrigger, TriggerEvent",
        "from airflow.plugins_manager import AirflowPlugin",
        "from airflow.configuration import conf",
        "from airflow_handoff import __version__",
        "from airflow_handoff.compat.versions import HAS_AWAITING_INPUT",
        "import importlib\nimportlib.import_module('airflow_handoff.client.cli')",
    ],
)
def test_the_script_allows_what_is_public(source):
    """Airflow's documented paths and our own capabilities stay usable in every room."""
    assert seams(source) == []


def test_the_package_itself_is_clean():
    """The script finds nothing in the package as it stands."""
    script = [sys.executable, str(ROOT / "scripts" / "check_seams.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@needs_ruff
def test_an_import_against_the_direction_fails(tmp_path):
    """import-linter refuses a room that imports one it must not know."""
    copy = tmp_path / "provider"
    shutil.copytree(ROOT / "provider", copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (copy / "airflow_handoff" / "wire" / "wrong.py").write_text("import airflow_handoff.server\n")
    done = subprocess.run(
        [str(RUFF.with_name("lint-imports")), "--no-cache"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(copy), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "airflow_handoff.wire.wrong -> airflow_handoff.server" in done.stdout
