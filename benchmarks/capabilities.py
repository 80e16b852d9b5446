"""How long the hooks take to start, and fifty manifests to render: ``make bench-capabilities``.

The start is compared, run by run in turns, with ``python -c "import pydantic, yaml, click"`` of the same
Python: at most 1.5 times as long. Also the whole run of a hook is measured against it. Fifty manifests, each
with evidence, are read, checked and rendered in every format: at most 0.5 s of CPU for the rendering.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from airflow_handoff.capabilities.checks import check
from airflow_handoff.capabilities.config import SdkSource, Target
from airflow_handoff.capabilities.dimensions import known_dimensions
from airflow_handoff.capabilities.evidence import Evidence, Proof, write_evidence_beside
from airflow_handoff.capabilities.project import Project, read_subject

MANIFESTS = 50
START_LIMIT = 1.5
RENDER_LIMIT = 0.5
BASE = "import pydantic, yaml, click"
HOOK = "from airflow_handoff.capabilities.hook import {0}; {0}()"


def main(rounds: int = 21) -> int:
    """Measure, print a table, and return 1 where a limit is broken."""
    with tempfile.TemporaryDirectory() as folder:
        sources = write_manifests(Path(folder))
        first = str(sources[0].manifest)
        runs = {
            "import pydantic, yaml, click": [BASE],
            "handoff-capabilities --help": [HOOK.format("capabilities_hook"), "--help"],
            "handoff-matrix --help": [HOOK.format("matrix_hook"), "--help"],
            "handoff-capabilities FILE": [HOOK.format("capabilities_hook"), first],
            "handoff-matrix FILE": [HOOK.format("matrix_hook"), first],
        }
        times = measure_starts(runs, folder, rounds)
        base = statistics.median(times["import pydantic, yaml, click"])
        good = True
        print(f"{'start':32} median ms   ratio (limit {START_LIMIT})")
        for name, taken in times.items():
            median = statistics.median(taken)
            good &= median <= START_LIMIT * base
            print(f"{name:32} {median * 1000:9.0f}   {median / base:.2f}")
        good &= measure_rendering(sources)
    return 0 if good else 1


def write_manifests(folder: Path) -> list[SdkSource]:
    """Write fifty manifests with notes, evidence beside each."""
    sources = []
    for number in range(MANIFESTS):
        lines = [f"sdk: sdk{number}", "min_airflow_version: '3.3'", "supervisor_schema_version: '2026-06-16'"]
        for section in ("states", "capabilities"):
            lines.append(f"{section}:")
            for name in known_dimensions().in_section(section):
                lines += [f"  {name}:", "    supported: true", "    since: '3.3'", "    sdk_version: 1.0.0"]
                lines.append(f"    note: 'note | {number} of *{name}*'")
        manifest = folder / f"sdk{number}" / "capabilities.yaml"
        manifest.parent.mkdir()
        manifest.write_text("\n".join(lines) + "\n")
        proofs = {name: Proof((f"cases/{name}/a", f"cases/{name}/b")) for name in known_dimensions().by_name}
        write_evidence_beside(manifest, Evidence(f"sdk{number}", "1.0.0", "2026-06-16", "benchmark", proofs))
        sources.append(SdkSource(manifest))
    return sources


def measure_starts(runs: dict[str, list[str]], folder: str, rounds: int) -> dict[str, list[float]]:
    """Run each program in turns, so that a busy moment meets all of them."""
    # An installed package is compiled: the first round does that for all of them, and is not counted.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, arguments in runs.items():
            started = time.perf_counter()
            command = [sys.executable, "-c", *arguments]
            subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
            if number:
                times[name].append(time.perf_counter() - started)
    return times


def measure_rendering(sources: list[SdkSource]) -> bool:
    """Print how long fifty manifests take, step by step."""
    started = time.process_time()
    findings = [
        finding for source in sources for finding in check(read_subject(source), require_evidence=True)
    ]
    checked = time.process_time()
    project = Project(tuple(sources))
    assert len(project.sdks) == MANIFESTS
    assert not findings
    read = time.process_time()
    print(f"\n{MANIFESTS} manifests (limit {RENDER_LIMIT} s)")
    print(f"{'read and checked, with evidence':32} {checked - started:9.3f} s")
    print(f"{'read and joined with evidence':32} {read - checked:9.3f} s")
    good = True
    for form in ("md", "rst", "html", "json"):
        began = time.process_time()
        target = Target(Path(f"matrix.{form}"), form)
        whole = project.whole(target)
        if whole:
            size = len(whole())
        else:
            section = project.section(target)
            size = len(section("matrix")) + sum(len(section(f"sdk {one.sdk}")) for one in project.sdks)
        taken = time.process_time() - began
        good &= taken + (read - checked) <= RENDER_LIMIT
        print(f"{f'matrix and each table as {form}':32} {taken:9.3f} s   {size / 1e6:.2f} MB")
    return good


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
