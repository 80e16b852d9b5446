"""AFBNDL01: what is packed, what is read back, and what is refused."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.bundles.artifacts import executable, metadata

from airflow_handoff.bundles.footer import MAGIC, TRAILER, read_footer, read_verified, write_tail
from airflow_handoff.bundles.metadata import InvalidBundle, VerifiedBundle
from airflow_handoff.bundles.readers import pack_executable, read_executable, read_python_bundle
from airflow_handoff.compat.versions import HAS_COORDINATORS
from airflow_handoff.exceptions import BundleError


def test_the_trailer_has_the_documented_layout(tmp_path: Path) -> None:
    """Every field lies at its offset, and the digest is of the binary alone."""
    data = executable(tmp_path / "b", "d").read_bytes()
    trailer = data[-64:]
    source_length, manifest_length, version = struct.unpack_from("<III", trailer)
    assert (source_length, version, trailer[44:56], trailer[56:]) == (10, 1, bytes(12), b"AFBNDL01")
    assert data[-64 - manifest_length - source_length :].startswith(b"int main;\n")
    assert b"supervisor_schema_version: '2026-06-16'" in data[-64 - manifest_length :]


def test_what_was_packed_is_read_back_and_verified(tmp_path: Path) -> None:
    """All three regions have a checked digest, and the metadata is what was given."""
    bundle = read_executable(executable(tmp_path / "b", "d", "e"))
    assert isinstance(bundle, VerifiedBundle)
    assert sorted(bundle.digests) == ["binary", "manifest", "source"]
    assert bundle.metadata.dags == metadata("d", "e").dags
    assert (bundle.kind, bundle.metadata.schema_version, bundle.metadata.source) == (
        "executable",
        "2026-06-16",
        "main.c",
    )


def test_packing_again_replaces_the_old_regions(tmp_path: Path) -> None:
    """A bundle can be packed from a bundle, in place, and does not grow."""
    path = executable(tmp_path / "b", "d")
    before = path.read_bytes()
    pack_executable(path, path, metadata("e"), b"int main;\n")
    bundle = read_executable(path)
    assert bundle is not None
    assert list(bundle.metadata.dags) == ["e"]
    assert len(path.read_bytes()) == len(before)
    assert path.stat().st_mode & 0o111 == 0o111
    assert [entry.name for entry in tmp_path.iterdir()] == ["b"]


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the bytes of a file."""
    path.write_bytes(change(path.read_bytes()))


def trailer(data: bytes, offset: int, new: bytes) -> bytes:
    """Return the file with some bytes of its trailer replaced."""
    at = len(data) - 64 + offset
    return data[:at] + new + data[at + len(new) :]


def with_manifest(data: bytes, manifest: bytes) -> bytes:
    """Return the file with another manifest."""
    old = struct.unpack_from("<I", data, len(data) - 60)[0]
    moved = data[: len(data) - 64 - old] + manifest + data[-64:]
    return trailer(moved, 4, struct.pack("<I", len(manifest)))


UNQUOTED = b"sdk: {supervisor_schema_version: 2026-06-16}\ndags: {d: {tasks: [one]}}\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"?" + data[1:], "the binary was changed after packing"),
        (lambda data: trailer(data, 12, b"\0\0"), "the binary was changed after packing"),
        (lambda data: trailer(data, 8, struct.pack("<I", 2)), "footer version 1 is known here and 2 came"),
        (lambda data: trailer(data, 44, b"\1"), "reserved bytes"),
        (lambda data: trailer(data, 0, b"\xff\xff\xff\xff"), "are before the trailer"),
        (lambda data: trailer(data[-64 - 80 :], 0, struct.pack("<II", 40, 40)), "no executable before"),
        (lambda data: with_manifest(data, b"[1]"), "must be a mapping and a list came"),
        (lambda data: with_manifest(data, b"{"), "not YAML"),
        (lambda data: with_manifest(data, b"\xff"), "not UTF-8"),
        (lambda data: with_manifest(data, b""), "must be a mapping and nothing came"),
        (lambda data: with_manifest(data, UNQUOTED), "a text in quotes was expected and 2026-06-16 came"),
        (lambda data: with_manifest(data, b"dags: {d: {}}"), "no sdk.supervisor_schema_version"),
        (lambda data: with_manifest(data, UNQUOTED.replace(b"2026-06-16", b"x").split(b"\n")[0]), "no Dags"),
        (
            lambda data: with_manifest(data, b"airflow_bundle_metadata_version: '2.0'"),
            "1.0 is known here and 2.0",
        ),
    ],
)
def test_case_bundle_rejected_names_the_file_and_the_reason(
    tmp_path: Path, change: Callable[[bytes], bytes], reason: str
) -> None:
    """Whatever is wrong, the error says with which file, and what."""
    path = executable(tmp_path / "b", "d")
    rewrite(path, change)
    with pytest.raises(BundleError, match=reason) as caught:
        read_executable(path)
    assert caught.value.path == str(path)


def test_case_bundle_rejected_without_the_execute_bit(tmp_path: Path) -> None:
    """A bundle that cannot be started is named before anybody tries."""
    path = executable(tmp_path / "b", "d")
    path.chmod(0o644)
    with pytest.raises(BundleError, match=r"chmod \+x"):
        read_executable(path)


@pytest.mark.parametrize("region", [b"int main", b"language: c", b"# manifest-sha256: "])
def test_case_bundle_edited_is_seen_in_every_region(tmp_path: Path, region: bytes) -> None:
    """An edit of the source or of the manifest after packing is refused, not only one of the binary."""
    path = executable(tmp_path / "b", "d")
    data = path.read_bytes()
    at = data.index(region) + len(region)
    edited = data[: at - 1] + bytes([data[at - 1] ^ 1]) + data[at:]
    path.write_bytes(edited)
    with pytest.raises(BundleError):
        read_executable(path)


def test_a_bundle_without_our_digests_is_taken_as_airflow_takes_it(tmp_path: Path) -> None:
    """Other packers record the binary's digest only."""
    path = executable(tmp_path / "b", "d")
    manifest = (
        b'sdk: {supervisor_schema_version: "2026-06-16", x: 1}\ndags: {d: {tasks: [one], y: 2}}\nz: 3\n'
    )
    rewrite(path, lambda data: with_manifest(data, manifest))
    bundle = read_executable(path)
    assert isinstance(bundle, VerifiedBundle)
    assert list(bundle.digests) == ["binary"]


@settings(deadline=None, max_examples=150)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_single_flipped_bit_is_ever_accepted(at: int, bit: int) -> None:
    """Any one bit, anywhere in a bundle of ours: refused, or no bundle any more."""
    import hashlib

    binary = b"#!/bin/sh\nexit 0\n"
    data = bytearray(binary + write_tail(hashlib.sha256(binary).digest(), metadata("d"), b"source\n"))
    at %= len(data)
    data[at] ^= 1 << bit
    stream = io.BytesIO(bytes(data))
    try:
        footer = read_footer(stream, len(data))
        accepted = footer is not None and bool(read_verified(stream, footer))
    except InvalidBundle:
        accepted = False
    assert not accepted


@settings(deadline=None, max_examples=200)
@given(
    head=st.binary(max_size=80),
    fields=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 100)),
    version=st.integers(0, 2),
)
def test_any_trailer_is_a_footer_or_one_error(head: bytes, fields: tuple[int, int], version: int) -> None:
    """No trailer makes the reader raise anything else or read far."""
    data = head + TRAILER.pack(*fields, version, bytes(32), bytes(12), MAGIC)
    stream = io.BytesIO(data)
    try:
        footer = read_footer(stream, len(data))
        if footer:
            read_verified(stream, footer)
    except InvalidBundle as error:
        text = str(error)
    else:
        text = "read"
    assert text


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", MAGIC, b"x" * 200])
def test_other_files_are_no_bundles(tmp_path: Path, data: bytes) -> None:
    """Without the magic at its end a file is left alone."""
    path = tmp_path / "f"
    path.write_bytes(data)
    path.chmod(0o755)
    assert read_executable(path) is None


def test_a_packed_python_bundle_is_known_by_its_language(tmp_path: Path) -> None:
    """The Python coordinator takes an AFBNDL01 file of its own language, and no other."""
    path = executable(tmp_path / "b", "d")
    assert read_python_bundle(path) is None
    python = metadata("d").model_copy(
        update={"sdk": metadata().sdk.model_copy(update={"language": "python"})}
    )
    pack_executable(path, path, python)
    bundle = read_python_bundle(path)
    assert isinstance(bundle, VerifiedBundle)
    assert bundle.kind == "python"


def test_a_source_must_be_text(tmp_path: Path) -> None:
    """What cannot be shown is refused by the packer, and no half-written file stays behind."""
    binary = tmp_path / "in"
    binary.write_bytes(b"#!/bin/sh\n")
    with pytest.raises(BundleError, match="not UTF-8"):
        pack_executable(binary, tmp_path / "out", metadata("d"), b"\xff")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.skipif(not HAS_COORDINATORS, reason="Airflow reads bundles from 3.3 on")
def test_airflows_own_reader_takes_our_bundles(tmp_path: Path) -> None:
    """The added digests are in places that the released reader passes over."""
    from airflow.sdk.coordinators.executable import coordinator

    path = executable(tmp_path / "b", "d")
    found = coordinator._Bundle.find([tmp_path], "d")
    assert (found.path, found.schema_version) == (path.resolve(), "2026-06-16")
    rewrite(path, lambda data: with_manifest(data, UNQUOTED))
    with pytest.raises(FileNotFoundError, match="supervisor_schema_version"):
        coordinator._Bundle.find([tmp_path], "d")
