"""AFBNDL01: an executable that carries its source, its manifest and a digest behind itself.

The format is the one that Airflow 3.3 reads. Two digests are added in places that its reader passes over: one
of the embedded source in the manifest, and one of the manifest in the manifest's last line, a comment.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

from airflow_handoff.bundles.metadata import (
    MAX_MANIFEST,
    BundleMetadata,
    InvalidBundle,
    parse_manifest,
    write_manifest,
)

MAGIC = b"AFBNDL01"
VERSION = 1
TRAILER = struct.Struct("<III32s12s8s")
_CHUNK = 1024 * 1024
_SEAL = re.compile(rb"(?:\A|\n)# manifest-sha256: ([0-9a-f]{64})\n?\Z")


class Footer(NamedTuple):
    """Where the regions of a bundle lie, in bytes from its start.

    :param source_start: the end of the binary.
    :param metadata_start: the end of the source.
    :param trailer_start: the end of the manifest.
    :param binary_sha256: as the trailer records it.
    """

    source_start: int
    metadata_start: int
    trailer_start: int
    binary_sha256: bytes


def read_footer(stream: BinaryIO, size: int) -> Footer | None:
    """Read the trailer of a file.

    :param stream: positioned anywhere.
    :param size: of the whole file, in bytes.
    :returns: ``None`` where the file is no bundle.
    :raises InvalidBundle: where it is one and its trailer breaks the format.
    """
    if size < TRAILER.size:
        return None
    stream.seek(size - TRAILER.size)
    trailer = stream.read(TRAILER.size)
    if len(trailer) != TRAILER.size or not trailer.endswith(MAGIC):
        return None
    source_length, metadata_length, version, digest, reserved, _ = TRAILER.unpack(trailer)
    if version != VERSION:
        raise InvalidBundle(f"footer version {VERSION} is known here and {version} came")
    if any(reserved):
        raise InvalidBundle("the reserved bytes of the trailer must be zero and are not")
    room = size - TRAILER.size
    if source_length + metadata_length > room:
        claimed = source_length + metadata_length
        raise InvalidBundle(f"source and manifest claim {claimed} bytes and {room} are before the trailer")
    if source_length + metadata_length == room:
        raise InvalidBundle("there is no executable before the source and the manifest")
    start = room - metadata_length
    return Footer(start - source_length, start, room, digest)


def read_verified(stream: BinaryIO, footer: Footer) -> tuple[BundleMetadata, Mapping[str, str]]:
    """Check every digest that a bundle records, and read its manifest.

    :returns: the manifest, and the checked digests in hex by region.
    :raises InvalidBundle: for the first thing that is wrong.
    """
    found = _digest(stream, 0, footer.source_start)
    expected = footer.binary_sha256.hex()
    if found != expected:
        raise InvalidBundle(_differs("binary", expected, found))
    digests = {"binary": found}
    length = footer.trailer_start - footer.metadata_start
    if length > MAX_MANIFEST:
        raise InvalidBundle(f"the manifest may hold {MAX_MANIFEST} bytes and holds {length}")
    stream.seek(footer.metadata_start)
    manifest = stream.read(length)
    seal = _SEAL.search(manifest)
    if seal:
        body = manifest[: seal.start(1) - len(b"# manifest-sha256: ")]
        digests["manifest"] = _same("manifest", seal[1].decode(), hashlib.sha256(body).hexdigest())
    metadata = parse_manifest(manifest)
    if metadata.source_sha256:
        if not seal:
            raise InvalidBundle("the manifest was changed after packing: its last line, its digest, is gone")
        actual = _digest(stream, footer.source_start, footer.metadata_start)
        digests["source"] = _same("source", metadata.source_sha256, actual)
    return metadata, digests


def write_tail(binary_sha256: bytes, metadata: BundleMetadata, source: bytes = b"") -> bytes:
    """Return what is appended to a binary in one write: source, manifest and trailer.

    :param binary_sha256: the 32 bytes of the binary's digest.
    :param source: embedded, UTF-8.
    :raises InvalidBundle: where the metadata could not be read back, or the source is not UTF-8.
    """
    try:
        source.decode()
    except UnicodeDecodeError as error:
        raise InvalidBundle(f"the source is not UTF-8: {error}") from error
    recorded = metadata.model_copy(update={"source_sha256": hashlib.sha256(source).hexdigest()})
    body = write_manifest(recorded)
    manifest = body + b"# manifest-sha256: " + hashlib.sha256(body).hexdigest().encode() + b"\n"
    parse_manifest(manifest)
    lengths = (len(source), len(manifest), VERSION)
    return source + manifest + TRAILER.pack(*lengths, binary_sha256, bytes(12), MAGIC)


def _digest(stream: BinaryIO, start: int, end: int) -> str:
    digest = hashlib.sha256()
    stream.seek(start)
    left = end - start
    while left:
        chunk = stream.read(min(_CHUNK, left))
        if not chunk:
            raise InvalidBundle(f"the file ended {left} bytes early while it was read")
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest()


def _same(region: str, expected: str, found: str) -> str:
    if found != expected:
        raise InvalidBundle(_differs(region, expected, found))
    return found


def _differs(region: str, expected: str, found: str) -> str:
    return (
        f"the {region} was changed after packing: its SHA-256 was {expected[:16]}... and is {found[:16]}...; "
        "pack it again"
    )
