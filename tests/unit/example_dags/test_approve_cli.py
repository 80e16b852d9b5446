"""The script that runs the expense example with curl alone, against a curl that only pretends."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "example_dags" / "approve_cli.sh"
CURL = """#!/bin/sh
for argument; do
  case $previous in -d) printf '%s' "$argument" > "$SENT" ;; esac
  previous=$argument
done
case "$*" in
  */approve/*) touch "$SENT.approved"; printf '{}' ;;
  */handoff/v1/runs/*)
    if [ -e "$SENT.approved" ]; then
      printf '{"run_id":"r","status":"Completed","result":{"post":{"status":"Paid"}}}'
    else
      printf '{"run_id":"r","status":"Interrupted","interrupt":{}}'
    fi ;;
esac
"""


def test_any_comment_and_any_result_are_taken(tmp_path: Path) -> None:
    """Quotes in the comment do not break the JSON, and a status within the result is not the run's."""
    curl = tmp_path / "curl"
    curl.write_text(CURL)
    curl.chmod(0o755)
    comment = 'he said "fine", \\o/\nreally'
    done = subprocess.run(
        ["sh", str(SCRIPT), "yes", comment],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "AIRFLOW_URL": "http://airflow.test",
            "TOKEN": "t",
            "SENT": str(tmp_path / "sent"),
        },
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    sent = json.loads((tmp_path / "sent").read_text())
    assert sent == {
        "approved": True,
        "data": {"cost_center": "4712"},
        "comment": comment.replace("\n", " "),
    }
