"""Where the Python SDK lies that this package carries for foreign interpreters."""

from __future__ import annotations

from pathlib import Path

from airflow_handoff.exceptions import EnvironmentUnfit

_PACKAGE = "airflow_handoff_sdk"


def python_sdk_path() -> Path:
    """Return the folder to put on ``PYTHONPATH`` so that ``airflow_handoff_sdk`` can be imported.

    The wheel carries the SDK in ``airflow_handoff/_sdk``; an editable install uses the source tree.

    :returns: an absolute folder that holds the package ``airflow_handoff_sdk`` and nothing else.
    :raises EnvironmentUnfit: where neither is there.
    """
    here = Path(__file__).resolve().parent
    candidates = (here / "_sdk", here.parents[1] / "sdks" / "python" / "src")
    for folder in candidates:
        if (folder / _PACKAGE / "__init__.py").is_file():
            return folder
    looked = " and ".join(str(folder) for folder in candidates)
    raise EnvironmentUnfit(
        f"the Python SDK was expected in {looked} and is in neither: reinstall airflow-provider-handoff."
    )
