"""The Python SDK: its own suite, where it travels, what its README shows."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from airflow_handoff.exceptions import EnvironmentUnfit
from airflow_handoff.sdk_path import python_sdk_path

ROOT = Path(__file__).resolve().parents[3]
SDK = ROOT / "sdks" / "python"
BUILDS = importlib.util.find_spec("hatchling") is not None


def test_an_editable_install_finds_the_source_tree():
    """From the checkout the SDK is the one under ``sdks/python``."""
    assert python_sdk_path() == SDK / "src"


def test_nothing_to_be_found_is_said_in_one_sentence(monkeypatch, tmp_path):
    """Where the SDK is in neither place the error names both."""
    monkeypatch.setattr("airflow_handoff.sdk_path.__file__", str(tmp_path / "a" / "b" / "sdk_path.py"))
    with pytest.raises(EnvironmentUnfit, match="reinstall airflow-provider-handoff"):
        python_sdk_path()


@pytest.mark.skipif(not BUILDS, reason="wheels are built in the default environment only")
def test_the_wheel_of_the_provider_runs_tasks_without_the_checkout(tmp_path):
    """Out of the unpacked wheel the SDK's program starts in an interpreter with nothing installed."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    source = (
        "import importlib.util as u; import sys; sys.path.insert(0, sys.argv[1]); "
        "from airflow_handoff.sdk_path import python_sdk_path as p; print(p())"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", source, str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert found == str(tmp_path / "site" / "airflow_handoff" / "_sdk")
    tasks = SDK / "examples" / "states.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {found!r}); "
         "from airflow_handoff_sdk.run import main; sys.exit(main(sys.argv[1:]))",
         str(tasks), "--airflow-metadata"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "sdks_python" in yaml.safe_load(done.stdout)["dags"]


@pytest.mark.skipif(not BUILDS, reason="wheels are built in the default environment only")
def test_the_installed_wheel_starts_a_task(tmp_path, monkeypatch):
    """pip puts the provider's wheel into a fresh environment, and a supervisor runs a task out of it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    # Nothing is fetched: pip comes with Python, and the SDK has no dependencies.
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    source = "from airflow_handoff.sdk_path import python_sdk_path as path; print(path())"
    found = subprocess.run([python, "-I", "-c", source], capture_output=True, text=True, check=True)
    installed = found.stdout.strip()
    assert Path(installed).is_relative_to((tmp_path / "venv").resolve())

    monkeypatch.syspath_prepend(str(SDK / "src"))
    supervisor = runpy.run_path(str(SDK / "tests" / "supervisor.py"))
    tasks = tmp_path / "tasks.py"
    tasks.write_text(
        "import airflow_handoff_sdk\n"
        "@airflow_handoff_sdk.task('dag')\n"
        "def where(ctx):\n"
        "    return [airflow_handoff_sdk.__file__, ctx.variables.get('v')]\n"
    )
    ran = supervisor["run_program"](
        supervisor["startup"]("where"),
        {"GetVariable": {"type": "VariableResult", "key": "v", "value": "text"}},
        command=[str(python), "-m", "airflow_handoff_sdk.run", str(tasks)],
        env={"PYTHONPATH": installed},
    )
    assert (ran.last["type"], ran.code) == ("SucceedTask", 0), ran.stderr
    expected = Path(installed) / "airflow_handoff_sdk" / "__init__.py"
    assert ran.of("SetXCom")[0]["value"] == [str(expected), "text"]


@pytest.mark.skipif(not BUILDS, reason="packages are built in the default environment only")
def test_the_packages_build(tmp_path):
    """Wheel and sdist of the SDK hold its modules and no claims."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, cwd=SDK, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"airflow_handoff_sdk/run.py", "airflow_handoff_sdk/py.typed"} <= set(names)
    assert not [name for name in names if "capabilities" in name]
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1


@pytest.mark.skipif(not BUILDS, reason="the suite brings its own interpreters: once is enough")
def test_the_suite_passes_in_every_interpreter(capsys):
    """The SDK's own suite passes in every CPython from 3.8 on that the machine has; it prints which."""
    done = subprocess.run(
        [sys.executable, str(SDK / "tests" / "run_all.py")], capture_output=True, text=True, check=False
    )
    with capsys.disabled():
        sys.stdout.write("\n" + done.stdout)
    assert done.returncode == 0, done.stdout
    report = re.findall(r"^CPython (3\.\d+)\.\S+: passed \(Ran (\d+) tests", done.stdout, re.MULTILINE)
    found = runpy.run_path(str(SDK / "tests" / "run_all.py"))["interpreters"]()
    assert [version for version, _ in report] == [f"3.{minor}" for _, minor in sorted(found)]
    assert min(int(count) for _, count in report) > 70
    assert sys.version_info[:2] in found


def test_the_start_imports_nothing_that_is_not_needed():
    """Loading the program and a task needs no typing, dataclasses, inspect, asyncio or ssl."""
    source = (
        "import airflow_handoff_sdk.run, airflow_handoff_sdk.execution, airflow_handoff_sdk.tasks; "
        "print(' '.join(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(SDK / 'src')!r}); {source}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    heavy = {"typing", "dataclasses", "inspect", "asyncio", "ssl", "datetime", "subprocess", "pathlib"}
    assert heavy.isdisjoint(loaded)


def test_the_readme_shows_what_is_so(monkeypatch, tmp_path):
    """Every Python block of the README runs, in the interpreter of the tests."""
    monkeypatch.syspath_prepend(str(SDK / "src"))
    blocks = re.findall(r"^```python\n(.*?)^```", (SDK / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    for number, block in enumerate(blocks):
        # A stub looks at its own source: it needs a file.
        path = tmp_path / f"block_{number}.py"
        path.write_text(block)
        runpy.run_path(str(path))


def test_the_readmes_configuration_is_what_a_coordinator_takes():
    """The coordinator of the README exists and takes these keywords."""
    import json

    from airflow_handoff.coordinators.languages import PythonPrograms

    line = re.search(r"^coordinators = (.*)$", (SDK / "README.md").read_text(), re.MULTILINE)
    (entry,) = json.loads(line[1]).values()
    assert entry["classpath"] == "airflow_handoff.coordinators.PythonCoordinator"
    PythonPrograms(**entry["kwargs"])


@pytest.mark.parametrize("language", ["python", "rust"])
def test_the_claims_are_well_formed(language):
    """Each SDK's claim file passes the checks."""
    done = subprocess.run(
        [sys.executable, "-m", "airflow_handoff.cli", "capabilities", "check",
         str(ROOT / "sdks" / language / "capabilities.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
