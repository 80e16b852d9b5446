"""Private PostgreSQL and Redis servers out of the system's packages, on loopback and free ports."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.system.processes import Component, end, free_port


class ToolMissing(RuntimeError):
    """An optional tool of the test suite is not installed."""

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool} is not installed: run scripts/install-tools.sh")
        self.tool = tool


def _unprivileged() -> str | None:
    """Return the user to run servers as: they refuse root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None


def find_postgres() -> Path | None:
    """Return the folder of the PostgreSQL server programs, newest version first."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: -float(p.parts[4]))
    if candidates:
        return candidates[0].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def has_tool(name: str) -> bool:
    """Tell whether an optional tool is there: a program, or ``postgresql`` for its server."""
    return find_postgres() is not None if name == "postgresql" else shutil.which(name) is not None


class Postgres:
    """A private PostgreSQL cluster in a temporary folder.

    :raises ToolMissing: where the server is not installed.
    """

    def __init__(self) -> None:
        self.port = 0
        self.home = Path()
        self._server: Component | None = None

    def __enter__(self) -> Postgres:
        binaries = find_postgres()
        if binaries is None:
            raise ToolMissing("postgresql")
        self.home = Path(tempfile.mkdtemp(prefix="handoff-pg-"))
        user = _unprivileged()
        if user is not None:
            shutil.chown(self.home, user)
        data = self.home / "data"
        env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        try:
            subprocess.run(
                [
                    str(binaries / "initdb"),
                    "-D",
                    str(data),
                    "-U",
                    "handoff",
                    "--auth=trust",
                    "-E",
                    "UTF8",
                    "--no-sync",
                ],
                check=True,
                capture_output=True,
                user=user,
                env=env,
                cwd=self.home,
            )
            self.port = free_port()
            settings = {
                "listen_addresses": "127.0.0.1",
                "unix_socket_directories": "",
                "fsync": "off",
                "synchronous_commit": "off",
                "full_page_writes": "off",
                "max_connections": "200",
            }
            options = [part for item in settings.items() for part in ("-c", "=".join(item))]
            log = self.home / "postgres.log"
            self._server = Component(
                "postgres",
                [str(binaries / "postgres"), "-D", str(data), "-p", str(self.port), *options],
                env=env,
                log=log,
                cwd=self.home,
                user=user,
            )
            self._wait(binaries)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait(self, binaries: Path) -> None:
        assert self._server is not None
        deadline = time.monotonic() + 60
        ready = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            if self._server.returncode() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self._server.tail()}")
            time.sleep(0.1)
        self._binaries = binaries

    def create(self, name: str) -> str:
        """Create a database and return its SQLAlchemy URL."""
        at = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "handoff"]
        subprocess.run([str(self._binaries / "createdb"), *at, name], check=True, capture_output=True)
        return f"postgresql+psycopg2://handoff@127.0.0.1:{self.port}/{name}"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            end([self._server])
            self._server = None
        shutil.rmtree(self.home, ignore_errors=True)


class Redis:
    """A private Redis server without persistence.

    :raises ToolMissing: where the server is not installed.
    """

    def __init__(self) -> None:
        self.url = ""
        self._server: Component | None = None
        self.home = Path()

    def __enter__(self) -> Redis:
        program = shutil.which("redis-server")
        if program is None:
            raise ToolMissing("redis-server")
        self.home = Path(tempfile.mkdtemp(prefix="handoff-redis-"))
        user = _unprivileged()
        if user is not None:
            shutil.chown(self.home, user)
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._server = Component(
            "redis",
            [program, *options],
            env={"PATH": os.environ.get("PATH", ""), "USER": user or getpass.getuser()},
            log=self.home / "redis.log",
            cwd=self.home,
            user=user,
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait(self) -> None:
        assert self._server is not None
        deadline = time.monotonic() + 30
        while "Ready to accept connections" not in self._server.tail():
            if self._server.returncode() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Redis did not start:\n{self._server.tail()}")
            time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            end([self._server])
            self._server = None
        shutil.rmtree(self.home, ignore_errors=True)
