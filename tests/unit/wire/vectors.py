"""The captured frames, as the tests of this room read them."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

VECTORS = Path(__file__).parents[2] / "vectors"


class Vector(NamedTuple):
    """One captured frame."""

    name: str
    from_task: bool
    frame: bytes
    decoded: Any


def revive(value: Any) -> Any:
    """Turn the JSON notation of timestamps and binary back into values."""
    if isinstance(value, dict):
        if set(value) == {"$ts"}:
            return datetime.fromisoformat(value["$ts"])
        if set(value) == {"$bin"}:
            return bytes.fromhex(value["$bin"])
        return {key: revive(item) for key, item in value.items()}
    if isinstance(value, list):
        return [revive(item) for item in value]
    return value


def read(path: Path) -> list[Vector]:
    """Return the frames of one file."""
    return [
        Vector(
            f"{path.stem}-{number}",
            entry["direction"] == "task->supervisor",
            bytes.fromhex(entry["hex"]),
            revive(entry["decoded"]),
        )
        for number, entry in enumerate(json.loads(path.read_text()))
    ]


ALL = [vector for path in sorted(VECTORS.glob("*.json")) for vector in read(path)]
WELL_FORMED = [vector for vector in ALL if vector.decoded is not None]
MALFORMED = [vector for vector in ALL if vector.decoded is None]
