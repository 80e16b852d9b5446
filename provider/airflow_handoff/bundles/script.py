"""Scripts that carry a manifest in a comment: Node bundles of two generations, and Python scripts.

* Node, published SDK: the first line is ``//# airflowMetadata=`` and the manifest in base64.
* Node, next revision: the first line is ``//# airflowBundle=`` and a JSON layout that gives the byte range
  and the SHA-256 of the manifest, of each embedded source and of the code; the manifest, as JSON, is the next
  line.
* Python: one of the first five lines is ``# airflowMetadata=`` and the manifest, in base64 or as JSON.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from airflow_handoff.bundles.metadata import BundleMetadata, InvalidBundle, parse_manifest

NODE_MANIFEST = b"//# airflowMetadata="
NODE_LAYOUT = b"//# airflowBundle="
PYTHON_MANIFEST = b"# airflowMetadata="
#: How many lines of a Python script are looked at: a shebang, an encoding and a licence may come first.
PYTHON_LINES = 5
#: The longest line that a manifest or a layout may have, in bytes.
MAX_MANIFEST_LINE = 1024 * 1024
_CHUNK = 1024 * 1024


class Region(NamedTuple):
    """A byte range and its digest.

    :param start: its first byte.
    :param end: the byte behind its last.
    :param sha256: in lower-case hex.
    """

    name: str
    start: int
    end: int
    sha256: str


def read_node(stream: BinaryIO) -> tuple[BundleMetadata, Mapping[str, str] | None] | None:
    """Read a Node bundle of either generation.

    :param stream: positioned at its start.
    :returns: ``None`` where the file is no bundle; else the manifest and the checked digests in hex by
        region, or ``None`` in their place where the format has none.
    :raises InvalidBundle: where it is a bundle that breaks its format.
    """
    line = stream.readline(MAX_MANIFEST_LINE + 1)
    if line.startswith(NODE_MANIFEST):
        return parse_manifest(_base64(_whole(line)[len(NODE_MANIFEST) :])), None
    if not line.startswith(NODE_LAYOUT):
        return None
    regions = _layout(_whole(line)[len(NODE_LAYOUT) :])
    second = _whole(stream.readline(MAX_MANIFEST_LINE + 1))
    if not second.startswith(NODE_MANIFEST):
        raise InvalidBundle("the line behind the layout must be the manifest and is not")
    start = len(line) + len(NODE_MANIFEST)
    manifest = second[len(NODE_MANIFEST) :]
    if regions[0][1:3] != (start, start + len(manifest)):
        raise InvalidBundle("the layout gives another place to the manifest than it has")
    _covers(stream, regions)
    digests = {region.name: _check(stream, region) for region in regions}
    return parse_manifest(manifest), digests


def write_node(metadata: bytes, code: bytes) -> bytes:
    """Return a Node bundle of the published generation.

    :param metadata: the manifest, YAML.
    """
    return NODE_MANIFEST + base64.b64encode(metadata) + b"\n" + code


def read_python(stream: BinaryIO) -> BundleMetadata | None:
    """Read the manifest of a Python script.

    :param stream: positioned at its start.
    :returns: ``None`` where the script has none.
    :raises InvalidBundle: where it cannot be read.
    """
    for _ in range(PYTHON_LINES):
        line = stream.readline(MAX_MANIFEST_LINE + 1)
        if line.startswith(PYTHON_MANIFEST):
            content = _whole(line)[len(PYTHON_MANIFEST) :].strip()
            return parse_manifest(content if content.startswith(b"{") else _base64(content))
    return None


def _whole(line: bytes) -> bytes:
    if len(line) > MAX_MANIFEST_LINE:
        raise InvalidBundle(f"a manifest line may hold {MAX_MANIFEST_LINE} bytes and this one holds more")
    return line.rstrip(b"\r\n")


def _base64(content: bytes) -> bytes:
    try:
        return base64.b64decode(content.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidBundle(f"the manifest is not base64: {error}") from error


def _layout(content: bytes) -> list[Region]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidBundle(f"the layout is not JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("sources"), list):
        raise InvalidBundle("the layout must be a mapping with metadata, sources and code")
    sources = [
        _region(f"source {source.get('path') if isinstance(source, dict) else '?'}", source)
        for source in data["sources"]
    ]
    return [_region("manifest", data.get("metadata")), *sources, _region("code", data.get("code"))]


def _region(name: str, data: Any) -> Region:
    try:
        region = Region(name, int(data["start"], 16), int(data["end"], 16), str(data["sha256"]))
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidBundle(f"the layout's {name} needs start and end in hexadecimal, and sha256") from error
    if not 0 <= region.start < region.end or len(region.sha256) != 64:
        raise InvalidBundle(f"the layout's {name} is not a byte range with a SHA-256")
    return region


def _covers(stream: BinaryIO, regions: list[Region]) -> None:
    """Check that the regions follow each other to the end, so that no code lies outside of a digest."""
    for before, behind in itertools.pairwise(regions):
        if behind.start <= before.end:
            raise InvalidBundle(f"the layout's {behind.name} overlaps {before.name}")
        between = _read(stream, before.end, behind.start)
        opener = b"" if behind.name == "code" else f"/*# airflowSource:{behind.name[7:]}\n".encode()
        closer = b"\n" if before.name == "manifest" else b"\n#*/\n"
        if between != closer + opener:
            raise InvalidBundle(
                f"something that no digest covers lies between {before.name} and {behind.name}"
            )
        if behind.name != "code" and b"*/" in _read(stream, behind.start, behind.end):
            raise InvalidBundle(f"{behind.name} closes its comment early and would be executed")
    if stream.seek(0, 2) != regions[-1].end:
        raise InvalidBundle("the layout's code does not reach to the end of the file")


def _read(stream: BinaryIO, start: int, end: int) -> bytes:
    stream.seek(start)
    return stream.read(end - start)


def _check(stream: BinaryIO, region: Region) -> str:
    digest = hashlib.sha256()
    stream.seek(region.start)
    left = region.end - region.start
    while left:
        chunk = stream.read(min(_CHUNK, left))
        if not chunk:
            break
        digest.update(chunk)
        left -= len(chunk)
    if digest.hexdigest() != region.sha256:
        raise InvalidBundle(
            f"the {region.name} was changed after packing: its SHA-256 differs; pack it again"
        )
    return region.sha256
