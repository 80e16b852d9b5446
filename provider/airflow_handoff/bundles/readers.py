"""Open one file and say what it is: a bundle, a bundle that cannot be used, or something else.

Each reader takes a path and returns a :class:`~airflow_handoff.bundles.metadata.Bundle`, or ``None`` where
the file is no bundle of its kind; it raises :class:`~airflow_handoff.exceptions.BundleError` where the file
is one and cannot be used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from airflow_handoff.bundles.footer import read_footer, read_verified, write_tail
from airflow_handoff.bundles.jar import read_jar
from airflow_handoff.bundles.metadata import (
    MAX_MANIFEST,
    Bundle,
    BundleMetadata,
    InvalidBundle,
    VerifiedBundle,
    parse_manifest,
    rejected,
)
from airflow_handoff.bundles.script import read_node, read_python

Reader = Callable[[Path], "Bundle | None"]
#: The member of a Python archive that holds its manifest.
ARCHIVE_MANIFEST = "airflow-metadata.yaml"
_CHUNK = 1024 * 1024


def read_executable(path: Path) -> Bundle | None:
    """Read an AFBNDL01 file, and check that it may be executed."""
    return _open(path, _executable)


def read_node_bundle(path: Path) -> Bundle | None:
    """Read a Node bundle, a file that ends in ``.mjs``, of either generation."""
    return _open(path, _node) if path.name.endswith(".mjs") else None


def read_python_bundle(path: Path) -> Bundle | None:
    """Read a Python script, a ``.pyz`` archive with an ``airflow-metadata.yaml``, or an AFBNDL01 file."""
    return _open(path, {".py": _python, ".pyz": _archive}.get(path.suffix, _packed_python))


def read_jar_file(path: Path) -> Bundle | None:
    """Read a jar."""
    return _open(path, _jar) if path.suffix == ".jar" else None


def _open(path: Path, read: Callable[[BinaryIO, Path], Bundle | None]) -> Bundle | None:
    try:
        with path.open("rb") as stream:
            before = identity(os.fstat(stream.fileno()))
            bundle = read(stream, path)
            if identity(os.fstat(stream.fileno())) != before:
                raise InvalidBundle("it changed while it was read")
            return bundle
    except (InvalidBundle, OSError) as error:
        raise rejected(path, error) from error


def identity(found: os.stat_result) -> tuple[int, int, int, int, int]:
    """Return what tells one state of a file from another without reading it."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _executable(stream: BinaryIO, path: Path) -> Bundle | None:
    found = os.fstat(stream.fileno())
    footer = read_footer(stream, found.st_size)
    if footer is None:
        return None
    if not os.access(path, os.X_OK):
        raise InvalidBundle(f"it may not be executed: chmod +x (its mode is {stat.filemode(found.st_mode)})")
    metadata, digests = read_verified(stream, footer)
    return VerifiedBundle(path, "executable", metadata, digests)


def _node(stream: BinaryIO, path: Path) -> Bundle | None:
    found = read_node(stream)
    if found is None:
        return None
    metadata, digests = found
    return (
        Bundle(path, "node", metadata) if digests is None else VerifiedBundle(path, "node", metadata, digests)
    )


def _python(stream: BinaryIO, path: Path) -> Bundle | None:
    metadata = read_python(stream)
    return None if metadata is None else Bundle(path, "python", metadata)


def _packed_python(stream: BinaryIO, path: Path) -> Bundle | None:
    footer = read_footer(stream, os.fstat(stream.fileno()).st_size)
    if footer is None:
        return None
    metadata, digests = read_verified(stream, footer)
    # An executable of another language may lie in the same folder; it is none of ours.
    return VerifiedBundle(path, "python", metadata, digests) if metadata.sdk.language == "python" else None


def _archive(stream: BinaryIO, path: Path) -> Bundle | None:
    try:
        with zipfile.ZipFile(stream) as archive, archive.open(ARCHIVE_MANIFEST) as member:
            content = member.read(MAX_MANIFEST + 1)
    except KeyError:
        return None
    except Exception as error:  # each decompressor has errors of its own
        raise InvalidBundle(f"not a readable archive: {error or type(error).__name__}") from error
    return Bundle(path, "python", parse_manifest(content))


def _jar(stream: BinaryIO, path: Path) -> Bundle | None:
    return Bundle(path, "jar", read_jar(stream))


def pack_executable(
    binary: Path, target: Path, metadata: BundleMetadata, source: bytes = b""
) -> VerifiedBundle:
    """Pack a native binary, or a script that starts with ``#!``, into an AFBNDL01 file.

    A binary that is packed already is packed again, without its old regions.

    :param target: replaced atomically; gets the execute bits.
    :param source: shown in Airflow's code view, UTF-8.
    :returns: the bundle as it was read back.
    :raises BundleError: where the result could not be read back.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb+") as out:
            with binary.open("rb") as stream:
                shutil.copyfileobj(stream, out)
                footer = read_footer(stream, out.tell())
            if footer:
                out.truncate(footer.source_start)
            out.seek(0)
            digest = hashlib.sha256()
            while chunk := out.read(_CHUNK):
                digest.update(chunk)
            out.write(write_tail(digest.digest(), metadata, source))
        mode = binary.stat().st_mode
        temporary.chmod(0o755 | stat.S_IMODE(mode) & 0o777)
        temporary.replace(target)
    except (InvalidBundle, OSError) as error:
        temporary.unlink(missing_ok=True)
        raise rejected(target, error) from error
    bundle = read_executable(target)
    if not isinstance(bundle, VerifiedBundle):
        raise rejected(target, "what was packed could not be read back")
    return bundle
