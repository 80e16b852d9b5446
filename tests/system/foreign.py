"""How the campaign's Airflow reaches other languages: its coordinators and their queues."""

from __future__ import annotations

import json

from tests.system.stack import ROOT

#: Where the tests of published SDKs build: inside the checkout, ignored by git, kept between runs.
CACHE = ROOT / ".airflow" / "languages"
RUNTIMES = ROOT / "tests" / "runtimes"

_FIXTURE = "fixture_coordinator.FixtureCoordinator"
_OURS = "airflow_handoff.coordinators"
COORDINATORS = {
    "fixture": {"classpath": _FIXTURE, "kwargs": {"kill_grace": 1.0}},
    "impatient": {"classpath": _FIXTURE, "kwargs": {"kill_grace": 1.0, "execution_timeout": 2.0}},
    "misspelt-keyword": {"classpath": _FIXTURE, "kwargs": {"execution_timout": 2.0}},
}
QUEUES = {name: name for name in COORDINATORS}

#: Environment of an Airflow that runs foreign tasks; versions before 3.3 take no notice of it.
FOREIGN_ENV = {
    "AIRFLOW__SDK__COORDINATORS": json.dumps(COORDINATORS),
    "AIRFLOW__SDK__QUEUE_TO_COORDINATOR": json.dumps(QUEUES),
    "PYTHONPATH": str(RUNTIMES),
}
