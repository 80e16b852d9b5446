"""The index: what it finds, what it remembers, and what cannot hurt it."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bundles.artifacts import executable, jar, metadata

from airflow_handoff.bundles.footer import write_tail
from airflow_handoff.bundles.index import BundleIndex, BundleNotFound, DuplicateBundle, walk
from airflow_handoff.bundles.metadata import Bundle, VerifiedBundle
from airflow_handoff.bundles.readers import read_executable, read_jar_file
from airflow_handoff.exceptions import BundleError


class CountingReader:
    """A reader that says how often it was asked."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, path: Path) -> Bundle | None:
        """Read one file."""
        self.read.append(path.name)
        return read_executable(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two bundles, one of them below, and a file that is none."""
    executable(tmp_path / "root" / "a", "dag_a")
    executable(tmp_path / "root" / "deep" / "b", "dag_b")
    (tmp_path / "root" / "README").write_text("hello")
    return tmp_path / "root"


@pytest.fixture
def index(root: Path, tmp_path: Path) -> Callable[[], tuple[BundleIndex, CountingReader]]:
    """A maker of indexes over the folder that share their memory, as processes do."""
    settle(root)

    def make() -> tuple[BundleIndex, CountingReader]:
        reader = CountingReader()
        return BundleIndex([root], reader, "executable", cache_dir=tmp_path / "cache"), reader

    return make


def settle(root: Path) -> None:
    """Wait until no file is so young that it could change again without another time stamp."""
    while any(time.time() - found.st_ctime < 0.15 for _, found in walk([root])):
        time.sleep(0.01)


def test_the_bundle_of_a_dag_is_found_and_verified(root: Path, index: Callable[[], tuple]) -> None:
    """The path, the metadata and the checked digests are handed out, remembered or not."""
    for _ in range(2):
        bundle = index()[0].find("dag_b")
        assert isinstance(bundle, VerifiedBundle)
        assert bundle.path == root / "deep" / "b"
        assert sorted(bundle.digests) == ["binary", "manifest", "source"]
        assert bundle.metadata.dags["dag_b"].tasks == ("one", "two")
    assert {bundle.path.name for bundle in index()[0].scan().bundles()} == {"a", "b"}


def test_an_unchanged_file_is_read_once_for_all_processes(root: Path, index: Callable[[], tuple]) -> None:
    """The second index reads nothing; after a change, only what has changed."""
    first, reader = index()
    first.find("dag_a")
    assert sorted(reader.read) == ["README", "a", "b"]
    second, reader = index()
    second.find("dag_a")
    assert reader.read == []
    executable(root / "a", "dag_new")
    third, reader = index()
    third.find("dag_new")
    assert reader.read == ["a"]
    (root / "deep" / "b").unlink()
    with pytest.raises(BundleNotFound):
        index()[0].find("dag_b")


def test_a_file_that_may_still_change_is_not_remembered(root: Path, tmp_path: Path) -> None:
    """Within one tick of the clock a file can change and keep its time stamp."""
    reader = CountingReader()
    index = BundleIndex([root], reader, "executable", cache_dir=tmp_path / "cache")
    fresh = executable(root / "c", "dag_c")
    os.utime(fresh, (time.time() + 3600, time.time() + 3600))
    index.scan()
    index.scan()
    assert reader.read.count("c") == 2


def test_case_bundle_rejected_is_named_when_the_dag_is_not_found(
    root: Path, index: Callable[[], tuple]
) -> None:
    """The error carries every bundle that was passed over, with its reason, also when it is remembered."""
    (root / "a").chmod(0o644)
    data = (root / "deep" / "b").read_bytes()
    (root / "deep" / "b").write_bytes(b"?" + data[1:])
    settle(root)
    for _ in range(2):
        with pytest.raises(BundleNotFound) as caught:
            index()[0].find("dag_a")
        text = str(caught.value)
        assert f"{root / 'a'}: it may not be executed" in text
        assert f"{root / 'deep' / 'b'}: the binary was changed after packing" in text
    assert len(index()[0].scan().rejected) == 2


def test_the_reason_for_an_empty_or_missing_root_is_said(tmp_path: Path) -> None:
    """A root that is not there is named, and so are the files that are no bundles."""
    missing = BundleIndex([tmp_path / "no"], read_executable, "executable", cache_dir=tmp_path / "cache")
    with pytest.raises(BundleNotFound, match="No such file"):
        missing.find("d")
    (tmp_path / "yes").mkdir()
    (tmp_path / "yes" / "f").write_text("x")
    other = BundleIndex([tmp_path / "yes"], read_executable, "executable", cache_dir=tmp_path / "cache")
    with pytest.raises(BundleNotFound, match=r"0 executable bundles were read .* 1 other files lie here"):
        other.find("d")


def test_case_bundle_duplicate_is_refused_naming_both(root: Path, index: Callable[[], tuple]) -> None:
    """Which of two runs is never settled by the order of a folder."""
    executable(root / "z" / "copy", "dag_a", "dag_z")
    with pytest.raises(DuplicateBundle) as caught:
        index()[0].find("dag_a")
    assert caught.value.paths == (root / "a", root / "z" / "copy")
    assert all(str(path) in str(caught.value) for path in caught.value.paths)
    assert index()[0].find("dag_z").path.name == "copy"


def test_one_file_under_two_names_is_no_duplicate(root: Path, index: Callable[[], tuple]) -> None:
    """Links, loops included, are followed once, and the public name counts."""
    (root / "a").rename(root / ".hidden")
    (root / "a").symlink_to(root / ".hidden")
    (root / "hard").hardlink_to(root / "deep" / "b")
    (root / "deep" / "loop").symlink_to(root)
    assert index()[0].find("dag_a").path == root / "a"
    assert index()[0].find("dag_b").path == root / "deep" / "b"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"0" * 64 + b"\n{}", b"\xff" * 100])
def test_a_corrupt_memory_is_no_error(index: Callable[[], tuple], tmp_path: Path, content: bytes) -> None:
    """Everything is simply read again, and the memory is repaired."""
    index()[0].scan()
    (memory,) = (tmp_path / "cache").iterdir()
    memory.write_bytes(content)
    found, reader = index()
    assert found.find("dag_a").path.name == "a"
    assert len(reader.read) == 3
    again, reader = index()
    again.scan()
    assert reader.read == []


def test_a_memory_that_others_may_write_is_not_believed(index: Callable[[], tuple], tmp_path: Path) -> None:
    """Nobody else can tell the worker that a bundle was checked."""
    index()[0].scan()
    (memory,) = (tmp_path / "cache").iterdir()
    memory.chmod(0o666)
    found, reader = index()
    found.scan()
    assert len(reader.read) == 3


@pytest.mark.parametrize("obstacle", ["file", "world-writable"])
def test_no_place_to_remember_is_no_error(root: Path, tmp_path: Path, obstacle: str) -> None:
    """Where the memory cannot be kept, each start reads again."""
    cache = tmp_path / "nowhere"
    if obstacle == "file":
        cache.write_text("in the way")
    else:
        cache.mkdir()
        cache.chmod(0o777)
    for _ in range(2):
        reader = CountingReader()
        index = BundleIndex([root], reader, "executable", cache_dir=cache)
        assert index.find("dag_a").path.name == "a"
        assert len(reader.read) == 3


def test_a_read_only_root_is_no_error(root: Path, index: Callable[[], tuple]) -> None:
    """Nothing is ever written where the bundles lie."""
    before = sorted(path for path, _ in walk([root]))
    root.chmod(0o555)
    try:
        assert index()[0].find("dag_a").path.name == "a"
    finally:
        root.chmod(0o755)
    assert sorted(path for path, _ in walk([root])) == before


def find_all(root: Path, cache: Path, ready: object, dags: list[str], out: object) -> None:
    """Find many Dags, starting together with another process."""
    ready.wait()  # type: ignore[attr-defined]
    index = BundleIndex([root], CountingReader(), "executable", cache_dir=cache)
    catalogue = index.scan()
    out.put([str(catalogue.find(dag_id).path) for dag_id in dags])  # type: ignore[attr-defined]


def test_two_processes_that_index_2000_bundles_at_once_are_both_right(tmp_path: Path) -> None:
    """Both find every bundle, and what they leave behind is a sound memory."""
    binary = b"#!/bin/sh\nexit 0\n"
    digest = hashlib.sha256(binary).digest()
    dags = [f"dag_{number}" for number in range(2000)]
    folder = tmp_path / "root"
    folder.mkdir()
    for dag_id in dags:
        path = folder / dag_id
        path.write_bytes(binary + write_tail(digest, metadata(dag_id), b""))
        path.chmod(0o755)
    settle(folder)
    context = multiprocessing.get_context("spawn")
    ready, out = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=find_all, args=(folder, tmp_path / "cache", ready, dags, out))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    results = [out.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert results == [[str(folder / dag_id) for dag_id in dags]] * 2
    reader = CountingReader()
    index = BundleIndex([folder], reader, "executable", cache_dir=tmp_path / "cache")
    assert index.find("dag_1999").path.name == "dag_1999"
    assert reader.read == []


def test_kinds_do_not_share_a_memory(tmp_path: Path) -> None:
    """Two coordinators on one folder each see their own bundles."""
    executable(tmp_path / "root" / "a", "dag_a")
    (tmp_path / "root" / "b.jar").write_bytes(jar({"Main-Class": "A"}))
    settle(tmp_path / "root")
    for _ in range(2):
        kinds = {}
        for kind, reader in (("executable", read_executable), ("jar", read_jar_file)):
            index = BundleIndex([tmp_path / "root"], reader, kind, cache_dir=tmp_path / "cache")
            kinds[kind] = [bundle.path.name for bundle in index.scan().bundles()]
        assert kinds == {"executable": ["a"], "jar": ["b.jar"]}


def test_an_edited_reader_forgets_what_the_older_one_found(root: Path, tmp_path: Path) -> None:
    """Who corrects a reader of their own is not told what it said before."""
    settle(root)
    found = []
    for body in ("return None", "return read(path)"):
        names: dict[str, Any] = {"read": read_executable}
        exec(f"def reader(path):\n    {body}", names)
        index = BundleIndex([root], names["reader"], "own", cache_dir=tmp_path / "cache")
        found.append(len(list(index.scan().bundles())))
    assert found == [0, 2]


def test_a_file_that_changes_while_it_is_read_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment that copies over a running root never yields a mixture of two bundles."""
    from airflow_handoff.bundles import readers

    path = executable(tmp_path / "a", "dag_a")
    sound = readers.read_verified

    def interrupted(stream: object, footer: object) -> object:
        with path.open("ab") as more:
            more.write(b"x")
        return sound(stream, footer)  # type: ignore[arg-type]

    monkeypatch.setattr(readers, "read_verified", interrupted)
    with pytest.raises(BundleError, match="changed while it was read"):
        read_executable(path)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (OSError(24, "Too many open files"), "Too many open files"),
        (ZeroDivisionError("a fifth language"), "its reader failed: ZeroDivisionError: a fifth language"),
    ],
)
def test_what_went_wrong_once_is_not_remembered(
    root: Path, tmp_path: Path, trouble: Exception, said: str
) -> None:
    """A reader that fails spoils one file, for this one look, and not the others."""
    settle(root)
    troubles = [trouble]

    def reader(path: Path) -> Bundle | None:
        if path.name == "a" and troubles:
            error = troubles.pop()
            if isinstance(error, OSError):
                raise BundleError(str(path), str(error)) from error
            raise error
        return read_executable(path)

    index = BundleIndex([root], reader, "executable", cache_dir=tmp_path / "cache")
    catalogue = index.scan()
    assert [item.path.name for item in catalogue.rejected] == ["a"]
    assert said in catalogue.rejected[0].reason
    assert catalogue.find("dag_b").path.name == "b"
    assert index.find("dag_a").path.name == "a"
