"""The Rust SDK: its own suite and its bundles."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
import tomllib

from airflow_handoff.bundles.readers import read_executable
from airflow_handoff.compat.versions import HAS_COORDINATORS

ROOT = Path(__file__).resolve().parents[3]
SDK = ROOT / "sdks" / "rust"

pytestmark = pytest.mark.skipif(not HAS_COORDINATORS, reason="once is enough: with the newest Airflow")


def cargo(*arguments: str, **environment: str) -> str:
    """Run cargo; where there is none, fail in CI and skip elsewhere."""
    program = shutil.which("cargo")
    if program is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("cargo is not installed")
    done = subprocess.run(
        [program, *arguments],
        cwd=SDK,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_the_suite_passes():
    """Unit tests, captured frames, the README and the example against a scripted supervisor."""
    results = re.findall(r"test result: ok\. (\d+) passed; (\d+) failed", cargo("test"))
    assert sum(int(passed) for passed, _ in results) >= 50
    assert all(failed == "0" for _, failed in results)


def test_the_api_docs_build_without_a_warning():
    """Every public item is documented, and every link in the text leads somewhere."""
    cargo("doc", "--no-deps", RUSTDOCFLAGS="-D warnings")
    target = Path(os.environ.get("CARGO_TARGET_DIR", SDK / "target"))
    assert (target / "doc" / "airflow_handoff_sdk" / "struct.Context.html").is_file()


def test_the_crate_can_be_packaged():
    """The crate packs with what it needs and without claims, and what is packed builds."""
    files = cargo("package", "--list", "--allow-dirty").splitlines()
    assert {"src/lib.rs", "src/messages.rs", "README.md", "src/bin/airflow-handoff-pack.rs"} <= set(files)
    assert "capabilities.yaml" not in files
    cargo("package", "--allow-dirty", "--quiet")


def test_a_packed_program_is_a_bundle_for_every_reader(tmp_path):
    """Our reader and Airflow's take what the packer makes, and find the tasks in it."""
    from airflow.sdk.coordinators.executable.coordinator import _Bundle

    cargo("build", "--example", "states", "--bin", "airflow-handoff-pack")
    built = Path(os.environ.get("CARGO_TARGET_DIR", SDK / "target")) / "debug"
    bundle, source = tmp_path / "states", SDK / "examples" / "states.rs"
    pack = [built / "airflow-handoff-pack", built / "examples" / "states", "--source", source, "-o", bundle]
    subprocess.run(pack, check=True, capture_output=True)
    found = read_executable(bundle)
    assert set(found.digests) == {"binary", "manifest", "source"}
    assert found.metadata.sdk.supervisor_schema_version == "2026-06-16"
    assert "ask" in found.metadata.dags["sdks_rust"].tasks
    assert _Bundle.find([tmp_path], "sdks_rust").schema_version == "2026-06-16"


def test_the_readmes_configuration_is_what_a_coordinator_takes():
    """The coordinator of the README exists and takes these keywords."""
    from airflow_handoff.coordinators.languages import Executables

    line = re.search(r"^coordinators = (.*)$", (SDK / "README.md").read_text(), re.MULTILINE)
    (entry,) = json.loads(line[1]).values()
    assert entry["classpath"] == "airflow_handoff.coordinators.ExecutableCoordinator"
    Executables(**entry["kwargs"])


def test_the_benchmark_measures_what_the_readme_builds():
    """The profile of the README is the one of the measured program, and so is its cargo configuration."""
    readme = (SDK / "README.md").read_text()
    package, config = re.findall(r"^```toml\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    profile = tomllib.loads(package)["profile"]["release"]
    measured = tomllib.loads((SDK / "Cargo.toml").read_text())["profile"]["release"]
    # Unwinding is cargo's default; here it is named because the reports of panics need it.
    assert measured == {**profile, "panic": "unwind"}
    settings = tomllib.loads(config)
    (triple,) = settings["target"]
    assert settings["build"]["target"] == triple
    assert settings["target"][triple]["rustflags"] == ["-C", "target-feature=+crt-static"]
    assert f"target/{triple}/release/" in readme
    bench = runpy.run_path(str(ROOT / "benchmarks" / "sdks.py"))
    assert bench["readme_config"](triple) == config
