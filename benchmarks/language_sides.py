"""The two sides of ``make bench-language``: our coordinators and the stock ones, on the same programs.

Run as a script it measures one scenario and prints JSON; ``language.py`` runs the scenarios and judges.
The API server is played in process, so that its own time does not blur the difference.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
import struct
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KIT = (ROOT / "tests" / "runtimes" / "kit.py").read_text()
SCHEMA = "2026-06-16"
SIDES = ("ours", "stock")


class Client:
    """Airflow's API client as far as the scenarios need it, without HTTP."""

    def __init__(self) -> None:
        self.task_instances = self.variables = self.xcoms = self
        self.stored: Any = None

    def start(self, *_: Any) -> Any:
        """Answer as the API server does."""
        from airflow.sdk.api.datamodels._generated import TIRunContext

        now = datetime.now(tz=timezone.utc).isoformat()
        run = {
            "dag_id": "d", "run_id": "r", "logical_date": None, "data_interval_start": None,
            "data_interval_end": None, "run_after": now, "start_date": now, "end_date": None,
            "run_type": "manual", "state": "running", "conf": {}, "consumed_asset_events": [],
            "partition_key": None, "note": None,
        }  # fmt: skip
        return TIRunContext.model_validate({"dag_run": run, "max_tries": 0, "should_retry": False})

    def heartbeat(self, *_: Any, **__: Any) -> None:
        """Take a heartbeat."""

    def succeed(self, *_: Any, **__: Any) -> None:
        """Take the end."""

    finish = succeed

    def get(self, *arguments: Any, **_: Any) -> Any:
        """Return a variable, or the XCom that was set."""
        from airflow.sdk.api.datamodels._generated import VariableResponse, XComResponse

        if len(arguments) == 1:
            return VariableResponse(key="v", value="x" * 50)
        return XComResponse(key="k", value=self.stored)

    def set(self, *arguments: Any, **_: Any) -> None:
        """Keep an XCom."""
        self.stored = arguments[4]


def coordinator(side: str, script: Path, executable: str = sys.executable) -> Any:
    """One side's coordinator for a script."""
    if side == "ours":
        from airflow_handoff.coordinators.base import SubprocessCoordinator
        from airflow_handoff.coordinators.launch import Launch

        class Ours(SubprocessCoordinator):
            """Runs the script."""

            def launch(self, what: Any, **kwargs: Any) -> Any:
                """Run it."""
                return Launch(command=[executable, str(script)], schema_version=SCHEMA)

        return Ours(pass_env=["NODE_*"])
    from airflow.sdk.coordinators._subprocess import SubprocessCoordinator as Stock

    class Theirs(Stock):
        """Runs the script."""

        def _build_execute_task_command(self, *, what: Any) -> Any:
            return [executable, str(script)], SCHEMA

    return Theirs()


def run(made: Any, folder: Path, client: Client) -> tuple[float, float, list[dict[str, Any]]]:
    """Run one task; return when it was begun, when it was over, and its log."""
    from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance
    from airflow.sdk.execution_time.supervisor import _configure_logging

    ti = TaskInstance(
        id=uuid.uuid4(), task_id="t", dag_id="d", run_id="r", try_number=1, dag_version_id=uuid.uuid4()
    )
    path = folder / f"{uuid.uuid4().hex}.log"
    logger, file = _configure_logging(str(path), client)  # type: ignore[arg-type]
    begun = time.time()
    made.execute_task(
        what=ti, dag_rel_path="x.py", bundle_info=BundleInfo(name="b"), client=client, logger=logger,
        subprocess_logs_to_stdout=False,
    )  # fmt: skip
    over = time.time()
    file.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()[-50:]]
    path.unlink()
    return begun, over, lines


def told(lines: list[dict[str, Any]], event: str) -> float:
    """The time that a program has said."""
    return float(next(line["at"] for line in lines if line["event"] == event))


def interleaved(folder: Path, body: str, pairs: int, look: Callable[..., float]) -> dict[str, list[float]]:
    """Run a script on both sides in turn."""
    script = folder / "program.py"
    script.write_text(KIT + body)
    made = {side: coordinator(side, script) for side in SIDES}
    client = Client()
    found: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(pairs + 1):
        for side in SIDES if number % 2 else SIDES[::-1]:
            value = look(*run(made[side], folder, client))
            if number:  # the first pair imports
                found[side].append(value)
    return found


def launch(folder: Path, pairs: int) -> dict[str, list[float]]:
    """Seconds from the call to the first line of user code."""
    body = 'say("user", at=time.time()); succeed()'
    return interleaved(folder, body, pairs, lambda begun, over, lines: told(lines, "user") - begun)


def tail(folder: Path, pairs: int) -> dict[str, list[float]]:
    """Seconds from the end of the process to the end of the task."""
    body = 'succeed(); say("exit", at=time.time()); os._exit(0)'
    return interleaved(folder, body, pairs, lambda begun, over, lines: over - told(lines, "exit"))


def logs(folder: Path, pairs: int) -> dict[str, list[float]]:
    """Log lines per second."""
    count = 30_000
    body = f"""
line = b'{{"event":"' + b"x" * 60 + b'","level":"info","logger":"a.b"}}\\n'
begun = time.time()
for _ in range({count} // 100): logs.sendall(line * 100)
say("begun", at=begun); succeed()
"""
    return interleaved(folder, body, pairs, lambda b, over, lines: count / (over - told(lines, "begun")))


def trips(folder: Path, pairs: int) -> dict[str, list[float]]:
    """Round trips per second."""
    count = 3_000
    body = f"""
begun = time.time()
for _ in range({count}): ask("GetVariable", key="v")
say("took", at={count} / (time.time() - begun)); succeed()
"""
    return interleaved(folder, body, pairs, lambda begun, over, lines: told(lines, "took"))


def memory(folder: Path, side: str) -> float:
    """Peak megabytes of this process while a program sets and gets an XCom of 100 MB."""
    script = folder / "program.py"
    script.write_text(
        KIT + '\nset_xcom("x" * 100_000_000); assert len(get_xcom("t")) == 100_000_000; succeed()'
    )
    run(coordinator(side, script), folder, Client())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bundles(folder: Path, side: str) -> float:
    """Seconds to find the command of a task among the bundles of a folder, in this fresh process."""
    from airflow.sdk.api.datamodels._generated import TaskInstance
    from airflow.sdk.execution_time.schema import get_schema_version_migrator

    get_schema_version_migrator()  # half a second of imports, which only one side would pay
    gc.collect()  # what the imports left behind is collected now and not at a chance moment of either side
    ti = TaskInstance(
        id=uuid.uuid4(), task_id="t", dag_id="dag_1000", run_id="r", try_number=1,
        dag_version_id=uuid.uuid4(),
    )  # fmt: skip
    if side == "ours":
        from airflow_handoff.coordinators import ExecutableCoordinator

        ours = ExecutableCoordinator(executables_root=folder)
        begun = time.perf_counter()
        command = list(ours._prepare(ti, {}).launch.command)
    else:
        from airflow.sdk.coordinators.executable import ExecutableCoordinator as Stock

        stock = Stock(executables_root=[folder])
        begun = time.perf_counter()
        command, _ = stock._build_execute_task_command(what=ti)
    taken = time.perf_counter() - begun
    assert command[0].endswith("bundle_1000")
    return taken


def make_bundles(folder: Path, count: int) -> None:
    """Write small bundles in the format of Airflow's own tools."""
    for number in range(count):
        binary = b"#!/bin/sh\nexit 0\n" + os.urandom(20_000)
        metadata = (
            f'airflow_bundle_metadata_version: "1.0"\nsdk:\n  language: go\n  version: "1"\n'
            f'  supervisor_schema_version: "{SCHEMA}"\nsource: main.go\n'
            f"dags:\n  dag_{number}:\n    tasks:\n    - t\n"
        ).encode()
        trailer = struct.pack(
            "<III32s12s8s", 0, len(metadata), 1, hashlib.sha256(binary).digest(), b"", b"AFBNDL01"
        )
        path = folder / f"bundle_{number}"
        path.write_bytes(binary + metadata + trailer)
        path.chmod(0o755)


def main() -> None:
    """Measure what the command line names."""
    scenario, argument = sys.argv[1:3]
    if scenario in ("memory", "bundles"):
        folder = Path(sys.argv[3])
        print(json.dumps(globals()[scenario](folder, argument)))
        return
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(globals()[scenario](Path(name), int(argument))))


if __name__ == "__main__":
    main()
