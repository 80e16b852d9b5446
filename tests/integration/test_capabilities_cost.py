"""The figures that hooks promise, measured on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_hooks_start_quickly_and_fifty_manifests_render_at_once() -> None:
    """At most 1.5 times ``import pydantic, yaml, click``, and half a second."""
    command = [sys.executable, str(ROOT / "benchmarks" / "capabilities.py"), "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "handoff-matrix FILE" in done.stdout
