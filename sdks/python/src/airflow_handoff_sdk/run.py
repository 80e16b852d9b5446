"""The program of a task process.

``python -m airflow_handoff_sdk.run TASKS --comm=HOST:PORT --logs=HOST:PORT`` runs one task. ``TASKS`` is a
Python file, a module name, or a bundle made by ``airflow_handoff_sdk.pack``. With ``--airflow-metadata``
instead of the addresses the program prints the manifest of what the file holds.
"""

from __future__ import annotations

import os
import socket
import sys

from airflow_handoff_sdk import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_USAGE = "usage: python -m airflow_handoff_sdk.run FILE_OR_MODULE --comm=HOST:PORT --logs=HOST:PORT"
_PARKS = ("DeferTask", "AwaitInputTask", "RescheduleTask")


def main(argv: list[str] | None = None) -> int:
    """Run one task and return the exit code of the process."""
    target, options = _arguments(sys.argv[1:] if argv is None else argv)
    if target is None or not ("airflow-metadata" in options or {"comm", "logs"} <= set(options)):
        sys.stderr.write(_USAGE + "\n")
        return 2
    if "airflow-metadata" in options:
        from airflow_handoff_sdk.pack import manifest

        load(target)
        sys.stdout.write(manifest(os.path.basename(target)))
        return 0
    return _serve(target, options)


def _arguments(argv: list[str]) -> tuple[str | None, dict[str, str]]:
    target, options = None, {}
    for argument in argv:
        if argument.startswith("--"):
            name, _, value = argument[2:].partition("=")
            options[name] = value
        elif target is None:
            target = argument
    return target, options


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host.strip("[]"), int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _serve(target: str, options: dict[str, str]) -> int:
    handler = logs.install()
    # Printed lines should reach the log when they are printed, between the records around them.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
    try:
        comm = _connect(options["comm"])
        handler.connect(_connect(options["logs"]))
    except (OSError, ValueError) as error:
        handler.give_up()
        sys.stderr.write(f"cannot reach the supervisor at {options['comm']} and {options['logs']}: {error}\n")
        return 1
    # Loaded while the supervisor gets ready: it sends the first frame when both sockets are there.
    problem: BaseException | None = None
    try:
        load(target)
    except BaseException as error:
        problem = error
    return _work(comm, problem)


def _work(comm: socket.socket, problem: BaseException | None) -> int:
    from airflow_handoff_sdk.client import Client
    from airflow_handoff_sdk.context import Context
    from airflow_handoff_sdk.errors import SdkError, WireError
    from airflow_handoff_sdk.execution import log, run_task, unsayable
    from airflow_handoff_sdk.tasks import REGISTRY

    client = Client(comm)
    try:
        startup: Any = client.read_startup()
        try:
            client.carrier = startup["ti"].get("context_carrier")
            context = Context(client, startup)
        except (KeyError, TypeError, AttributeError) as error:
            raise WireError(f"StartupDetails cannot be read: {type(error).__name__} {error}") from error
        message = run_task(context, REGISTRY, problem)
        client.settle()
        try:
            client.request(message)
        except (TypeError, OverflowError) as error:  # it cannot be encoded: nothing was sent yet
            message = unsayable(error, context)
            client.request(message)
    except SdkError:
        log.exception("The end of the task could not be reported.")
        return 1
    if message["type"] in _PARKS:
        # A thread of the user's would keep this process beside the one that resumes.
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)
    return 0


def load(target: str) -> Any:
    """Import the tasks of a file, a bundle or a module, and return the module."""
    if not os.path.exists(target):
        import importlib

        sys.path.insert(0, os.getcwd())
        return importlib.import_module(target)
    path = os.path.abspath(target)
    name = os.path.splitext(os.path.basename(path))[0].replace("-", "_").replace(".", "_")
    sys.path.insert(0, os.path.dirname(path))
    if not path.endswith(".py"):
        from airflow_handoff_sdk.pack import load_bundle

        return load_bundle(path, name)
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as Python")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
