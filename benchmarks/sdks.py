"""How long an SDK takes to reach user code, and how many requests a second it makes.

``python benchmarks/sdks.py`` builds what it needs (with cc and cargo), runs every contestant in turns, and
prints medians, best runs, and the ratios that the SDKs promise: Rust within 20 % of C, Python at most 1.3
times a script with nothing but the standard library. It exits 1 where a promise is broken. Medians are
judged; ``--judge best`` compares best runs instead, for a machine that does other work as well, which makes a
run slower and never faster. Round trips are measured with both ends on one core. The Rust program is built
with the settings of its README, word for word: statically linked. The C program is built as ``cc -O2`` does
it; one that is linked statically as well is measured beside it, and no promise is about that one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "benchmarks" / "sdks"
RUST = ROOT / "sdks" / "rust"

Command = list[str]


def build(folder: Path) -> dict[str, Command]:
    """Build the programs and return the command of each contestant."""
    wire, static = folder / "wire", folder / "wire-static"
    compiler = ["cc", "-O2", "-s", "-D_GNU_SOURCE", str(HERE / "wire.c"), "-o"]
    subprocess.run([*compiler, str(wire)], check=True)
    subprocess.run([*compiler, str(static), "-static"], check=True)
    python = getattr(sys, "_base_executable", sys.executable)
    return {
        "c": [str(wire)],
        "c-static": [str(static)],
        "rust": [str(build_rust(folder))],
        "bare-python": [python, str(HERE / "bare.py")],
        "python": [python, "-m", "airflow_handoff_sdk.run", str(HERE / "round_trips.py")],
    }


def readme_config(host: str) -> str:
    """Return the cargo configuration that the Rust README tells its reader to write, for this machine."""
    blocks = re.findall(r"^```toml\n(.*?)^```", (RUST / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (config,) = (block for block in blocks if "rustflags" in block)
    return str(config).replace("x86_64-unknown-linux-gnu", host)


def build_rust(folder: Path) -> Path:
    """Build the Rust example as the README builds a program, and return it."""
    about = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line.split()[1] for line in about.splitlines() if line.startswith("host:"))
    config = folder / "config.toml"
    config.write_text(readme_config(host))
    cargo = ["cargo", "build", "--quiet", "--release", "--example", "tasks", "--config", str(config)]
    # It would come before the configuration.
    environment = {name: value for name, value in os.environ.items() if name != "RUSTFLAGS"}
    subprocess.run(cargo, cwd=RUST, check=True, env=environment)
    target = Path(os.environ.get("CARGO_TARGET_DIR", RUST / "target"))
    return target / host / "release" / "examples" / "tasks"


def first_frame() -> bytes:
    """Return a captured ``StartupDetails`` frame, made out to the task of this benchmark."""
    vector = json.loads((ROOT / "tests" / "vectors" / "StartupDetails.json").read_text())[0]
    payload = bytes.fromhex(vector["hex"])[4:]
    for old, new in ((b"\xa8n_timing", b"\xabround_trips"), (b"\xa6dag_id\xa1d", b"\xa6dag_id\xa3dag")):
        payload = payload.replace(old, new)
    return len(payload).to_bytes(4, "big") + payload


def environment(rounds: int) -> dict[str, str]:
    """Return what a contestant is started with."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "sdks" / "python" / "src"),
        "HANDOFF_ROUNDS": str(rounds),
    }


def listen() -> tuple[socket.socket, str]:
    """Return a listening socket and its address."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(60)
    return server, f"127.0.0.1:{server.getsockname()[1]}"


def read_frame(sock: socket.socket) -> bytes:
    """Return the payload of one frame."""
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
    return sock.recv(size, socket.MSG_WAITALL)


def launch(command: Command, frame: bytes) -> float:
    """Return the milliseconds from the start of a process to the first request of its user code."""
    (comm_server, comm), (logs_server, logs) = listen(), listen()
    reply = bytes.fromhex(
        "83a36b6579a27631a576616c7565a976616c75655f6f6e65a474797065ae5661726961626c65526573756c74"
    )
    with comm_server, logs_server:
        began = time.perf_counter()
        process = subprocess.Popen([*command, f"--comm={comm}", f"--logs={logs}"], env=environment(1))
        peer, _ = comm_server.accept()
        log, _ = logs_server.accept()
        with peer, log:
            peer.sendall(frame)
            read_frame(peer)
            took = (time.perf_counter() - began) * 1000
            for body in (reply, b"\xc0"):
                payload = b"\x93\x01" + body + b"\xc0" if body is reply else b"\x93\x02\xc0\xc0"
                peer.sendall(len(payload).to_bytes(4, "big") + payload)
                if body is reply:
                    read_frame(peer)
        if process.wait(60):
            raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return took


def round_trips(command: Command, frame: bytes, wire: str, rounds: int) -> float:
    """Return the requests per second of one contestant against the C supervisor."""
    supervisor = subprocess.Popen([wire, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    with supervisor:
        supervisor.stdin.write(frame)
        supervisor.stdin.close()
        comm, logs = supervisor.stdout.readline().split()
        addresses = [f"--comm=127.0.0.1:{comm.decode()}", f"--logs=127.0.0.1:{logs.decode()}"]
        subprocess.run([*command, *addresses], env=environment(rounds), check=True, timeout=120)
        count, nanoseconds = supervisor.stdout.readline().split()
    return (int(count) - 1) / int(nanoseconds) * 1e9


def interleaved(contestants: dict[str, Command], runs: int, measure: Callable[[Command], float]) -> Any:
    """Return every contestant's figures, taken in turns; the first turn warms up and does not count."""
    figures: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(runs + 1):
        for name, command in contestants.items():
            figure = measure(command)
            if turn:
                figures[name].append(figure)
    return figures


def best(figures: dict[str, list[float]], pick: Callable[[list[float]], float]) -> dict[str, float]:
    """Return the best figure of each contestant: the least time, or the most requests."""
    return {name: pick(values) for name, values in figures.items()}


def rounded(figures: dict[str, float], digits: int | None) -> dict[str, float]:
    """Return figures as they are printed."""
    return {name: round(figure, digits) for name, figure in figures.items()}


def on_one_core() -> None:
    """Keep this process and what it starts on one core, where the system can.

    A round trip between two cores takes three times as long as one on the same core, and which of them a run
    gets is chance.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def ratios(launch_ms: dict[str, float], per_second: dict[str, float]) -> dict[str, float]:
    """Return what the promises are about."""
    return {
        "rust_launch_to_c": round(launch_ms["rust"] / launch_ms["c"], 3),
        "rust_launch_to_static_c": round(launch_ms["rust"] / launch_ms["c-static"], 3),
        "python_launch_to_bare": round(launch_ms["python"] / launch_ms["bare-python"], 3),
        "rust_round_trips_to_c": round(per_second["rust"] / per_second["c"], 3),
    }


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40, help="launches of each contestant (default: 40)")
    parser.add_argument("--rounds", type=int, default=20000, help="requests of one run (default: 20000)")
    parser.add_argument("--judge", choices=("median", "best"), default="median", help="(default: median)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        contestants = build(Path(folder))
        frame = first_frame()
        wire = contestants["c"][0]
        launches = interleaved(contestants, options.runs, lambda c: launch(c, frame))
        on_one_core()
        natives = {name: contestants[name] for name in ("c", "rust")}
        trips = interleaved(natives, 15, lambda c: round_trips(c, frame, wire, options.rounds))
        both = {name: contestants[name] for name in ("bare-python", "python")}
        trips |= interleaved(both, 3, lambda c: round_trips(c, frame, wire, options.rounds // 10))
    middle = best(launches, statistics.median), best(trips, statistics.median)
    quick = best(launches, min), best(trips, max)
    result: dict[str, Any] = {
        "launch_ms": rounded(middle[0], 2),
        "launch_ms_best": rounded(quick[0], 2),
        "round_trips_per_second": rounded(middle[1], None),
        "round_trips_per_second_best": rounded(quick[1], None),
        "median": ratios(*middle),
        "best": ratios(*quick),
    }
    judged = result[options.judge]
    kept = {
        "rust_launch_to_c <= 1.2": judged["rust_launch_to_c"] <= 1.2,
        "python_launch_to_bare <= 1.3": judged["python_launch_to_bare"] <= 1.3,
        "rust_round_trips_to_c >= 0.8": judged["rust_round_trips_to_c"] >= 0.8,
    }
    if options.json:
        print(json.dumps({**result, "kept": kept}))
    else:
        for name, figure in result.items():
            print(f"{name}: {figure}")
        for promise, holds in kept.items():
            print(f"{'kept' if holds else 'BROKEN'}: {promise}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
