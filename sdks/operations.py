"""Write the table of ``docs/sdks.md`` from ``operations.yaml``; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "sdks.md"
BEGIN, END = "<!-- operations:begin -->\n", "<!-- operations:end -->\n"


def table() -> str:
    """Return the operations as a Markdown table."""
    lines = ["| to | Python | Rust |", "|---|---|---|"]
    for operation in yaml.safe_load((HERE / "operations.yaml").read_text()):
        names = [", ".join(f"`{name}`" for name in operation[sdk]) for sdk in ("python", "rust")]
        lines.append(f"| {operation['do']} | {names[0]} | {names[1]} |")
    return "\n".join(lines) + "\n"


def rendered(page: str) -> str:
    """Return the page with the table between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def main() -> int:
    """Write or compare."""
    page = PAGE.read_text()
    wanted = rendered(page)
    if "--check" not in sys.argv:
        PAGE.write_text(wanted)
    elif page != wanted:
        sys.stdout.write("run: python sdks/operations.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
