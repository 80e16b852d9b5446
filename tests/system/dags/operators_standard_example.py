"""The Dag that the standard provider brings as an example, with only the import prefix changed."""

from __future__ import annotations

from pathlib import Path

import airflow.providers.standard

(folder,) = airflow.providers.standard.__path__
source = (Path(folder) / "example_dags" / "example_hitl_operator.py").read_text()
ours = source.replace("airflow.providers.standard.operators.hitl", "airflow_handoff.operators.hitl")
exec(compile(ours, __file__, "exec"))
