"""Run this suite with every CPython from 3.8 that the machine has, and say which.

``python run_all.py`` looks at ``PATH``, at pyenv's folder and at what ``uv`` manages. It needs nothing
installed and exits 1 where one interpreter fails, or where there is none but too old ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEAST = (3, 8)
_PROBE = (
    "import sys, platform; print(sys.implementation.name, *sys.version_info[:2], platform.python_version())"
)


def candidates():
    """Yield programs that may be interpreters, the running one first."""
    yield Path(sys.executable)
    homes = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    homes.append(Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python"))
    for home in homes:
        yield from sorted(home.glob("*/bin/python3"))
    names = [f"python3.{minor}" for minor in range(LEAST[1], 21)]
    for folder in os.get_exec_path():
        yield from (Path(folder) / name for name in names)


def interpreters():
    """Return one interpreter for each minor version, by that version."""
    found = {}
    for path in candidates():
        if not path.is_file():
            continue
        done = subprocess.run(
            [str(path), "-c", _PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        words = done.stdout.decode().split()
        if done.returncode or not words or words[0] != "cpython":
            continue
        version = (int(words[1]), int(words[2]))
        if version >= LEAST and version not in found:
            found[version] = (path, words[3])
    return found


def main():
    """Run the suite with each and print a line for each."""
    failed = []
    found = interpreters()
    if not found:
        print("no CPython from 3.8 on was found")
        return 1
    for version, (path, full) in sorted(found.items()):
        done = subprocess.run(
            [str(path), "-m", "unittest", "discover", "-s", str(HERE), "-t", str(HERE)],
            env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        lines = [line for line in done.stdout.decode().splitlines() if line]
        count = next((line for line in lines if line.startswith("Ran ")), "ran nothing")
        passed = done.returncode == 0 and "Ran 0" not in count
        print(f"CPython {full}: {'passed' if passed else 'FAILED'} ({count})", flush=True)
        if not passed:
            failed.append(version)
            print("\n".join(lines[-25:]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
