"""Make ``.venv-<version>``: one Airflow version with this package and its test tools.

    python scripts/environment.py 3.3          # or several versions, or `all`
    python scripts/environment.py --compile    # write constraints/airflow-*.txt anew

Needs a Python, the network, and nothing else: uv is put into ``.tools`` first. A second run finds nothing to
do and ends at once; a change of pyproject.toml, of the constraints or of this file rebuilds.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"
UV_VERSION = "0.13.9"

#: What each environment is pinned to, beside pyproject.toml; the constraint files hold all the rest.
PINS = {
    "3.1": ["apache-airflow==3.1.8"],
    # Airflow 3.2.2's api-server and dag-processor die on start with later ones.
    "3.2": ["apache-airflow==3.2.2", "fastapi<0.137"],
    "3.3": ["apache-airflow==3.3.2"],
}
#: The Pythons that each Airflow version and the standard provider under test take.
PYTHONS = {"3.1": ">=3.11,<3.14", "3.2": ">=3.11,<3.15", "3.3": ">=3.11,<3.15"}
DEFAULT = "3.3"
EXTRAS = ["airflow", "client", "server"]
#: Only the default environment checks style and builds the documentation.
GROUPS = {"3.1": ["test"], "3.2": ["test"], "3.3": ["test", "lint", "docs", "node"]}


def main() -> int:
    """Make the environments that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="*", default=[DEFAULT], help="3.1, 3.2, 3.3 or all")
    parser.add_argument("--compile", action="store_true", help="write the constraint files anew")
    options = parser.parse_args()
    versions = list(PINS) if options.compile or "all" in options.versions else options.versions
    unknown = [version for version in versions if version not in PINS]
    if unknown:
        parser.error(f"no such Airflow version here: {', '.join(unknown)}; there are {', '.join(PINS)}")
    for version in versions:
        if options.compile:
            compile_constraints(version)
        else:
            make(version)
    return 0


def compile_constraints(version: str) -> None:
    """Resolve everything that an environment of the version may hold, for all its Pythons."""
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    groups = [part for group in GROUPS[version] for part in ("--group", group)]
    command = [
        *(str(uv()), "pip", "compile", "pyproject.toml", "-", *extras, *groups),
        *("--universal", "--python-version", "3.11", "--no-annotate", "--quiet", "--upgrade"),
        *("--custom-compile-command", "make constraints"),
        *("--output-file", str(constraints(version).relative_to(ROOT))),
    ]
    constraints(version).parent.mkdir(exist_ok=True)
    subprocess.run(command, cwd=ROOT, input="\n".join(PINS[version]), text=True, check=True)
    print(f"wrote {constraints(version).relative_to(ROOT)}")


def make(version: str) -> None:
    """Make one environment unless it is there and up to date."""
    venv = ROOT / f".venv-{version}"
    stamp = venv / "handoff-stamp"
    wanted = fingerprint(version)
    if not (stamp.exists() and stamp.read_text() == wanted and (venv / "bin" / "python").exists()):
        started = time.monotonic()
        if not fits(venv / "bin" / "python", version):
            shutil.rmtree(venv, ignore_errors=True)
            run(uv(), "venv", "--quiet", "--seed", "--python", interpreter(version), venv)
        groups = [part for group in GROUPS[version] for part in ("--group", group)]
        extras = ",".join(EXTRAS)
        run(
            *(uv(), "pip", "install", "--quiet", "--compile-bytecode", "--python", venv / "bin" / "python"),
            *("--constraint", constraints(version), "--editable", f".[{extras}]", *groups, *PINS[version]),
        )
        stamp.write_text(wanted)
        print(f"made {venv.name} in {time.monotonic() - started:.0f} s", flush=True)
    if version == DEFAULT:
        link = ROOT / ".venv"
        if not link.is_symlink() and not link.exists():
            link.symlink_to(venv.name)


def fingerprint(version: str) -> str:
    """Return a digest of all that decides what the environment holds."""
    digest = hashlib.sha256(f"{ROOT}\0{PINS[version]}\0{GROUPS[version]}\0{EXTRAS}".encode())
    for path in (ROOT / "pyproject.toml", constraints(version)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def constraints(version: str) -> Path:
    """Return the constraint file of the version."""
    return ROOT / "constraints" / f"airflow-{version}.txt"


def interpreter(version: str) -> str:
    """Return an installed Python that the Airflow version takes, or a request for uv to download one."""
    for candidate in (sys.executable, *(shutil.which(f"python3.{n}") or "" for n in (13, 12, 11))):
        if candidate and fits(Path(candidate), version):
            return candidate
    found = subprocess.run(
        [str(uv()), "python", "find", "--no-python-downloads", PYTHONS[version]],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode == 0:
        return found.stdout.strip()
    print(f"no installed Python {PYTHONS[version]}: downloading one", flush=True)
    return "3.12"


def fits(python: Path, version: str) -> bool:
    """Tell whether a Python program runs, can make environments, and is one the Airflow version takes."""
    low, high = (bound.strip("<>=").split(".") for bound in PYTHONS[version].split(","))
    test = f"import sys, ssl, sqlite3; sys.exit(not ((3, {low[1]}) <= sys.version_info[:2] < (3, {high[1]})))"
    try:
        return subprocess.run([str(python), "-c", test], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def uv() -> Path:
    """Return the path of uv, put into ``.tools`` where it is not there yet."""
    home = TOOLS / f"uv-{UV_VERSION}"
    program = home / "bin" / "uv"
    if not program.exists():
        shutil.rmtree(home, ignore_errors=True)
        print("fetching uv", flush=True)
        pip = [sys.executable, "-m", "pip"]
        # --prefix needs no venv module, which Debian's Python lacks until python3-venv is installed.
        made = subprocess.run([sys.executable, "-m", "venv", str(home)], capture_output=True, check=False)
        if made.returncode == 0:
            pip = [str(home / "bin" / "python"), "-m", "pip"]
            subprocess.run([*pip, "install", "--quiet", f"uv=={UV_VERSION}"], check=True)
        else:
            shutil.rmtree(home, ignore_errors=True)
            at = ["--prefix", str(home), "--ignore-installed"]
            subprocess.run([*pip, "install", "--quiet", *at, f"uv=={UV_VERSION}"], check=True)
            if not program.exists():  # Debian's pip puts it under local/
                (home / "bin").mkdir(exist_ok=True)
                (home / "bin" / "uv").symlink_to(home / "local" / "bin" / "uv")
    return program


def run(*command: str | Path) -> None:
    """Run a command in the project's root; its failure is ours."""
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(str(part) for part in command)}` exited {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
