"""The Airflow Dags of the READMEs of both SDKs (airflow.sdk), word for word but for name and queue."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

SDKS = Path(__file__).resolve().parents[3] / "sdks"
#: A language, a Dag and the queue of the coordinator that runs its README's task.
README_DAGS = (
    ("python", "readme_module", "readme-module"),
    ("python", "readme_script", "readme-bundles"),
    ("python", "readme_archive", "readme-bundles"),
    ("python", "readme_footer", "readme-bundles"),
    ("python", "readme_executable", "readme-executable"),
    ("rust", "readme_static", "readme-static"),
)


def readme_dag(language, dag_id, queue):
    """Run the README's block that declares a Dag."""
    text = (SDKS / language / "README.md").read_text()
    block = next(b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "@task.stub" in b)
    block = block.replace("numbers()", f"{dag_id}()")
    block = re.sub(r'queue="\w+"', f'queue="{queue}"', block)
    # A stub looks at its own source, which is in no file.
    name = str(Path(__file__).with_name(f"{dag_id}_block.py"))
    linecache.cache[name] = (len(block), None, block.splitlines(True), name)
    exec(compile(block, name, "exec"), {"__name__": dag_id})


for language, dag_id, queue in README_DAGS:
    readme_dag(language, dag_id, queue)
