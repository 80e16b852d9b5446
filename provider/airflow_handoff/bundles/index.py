"""Walk the roots of bundles, remember what was read, and find the one that holds a Dag.

A file that has not changed since it was last read, by any process of this user, costs one ``stat``. What is
remembered lies in one file per set of roots; it is replaced atomically, and without it, or with a broken
one, everything is simply read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_handoff import __version__
from airflow_handoff.bundles.metadata import Bundle, BundleMetadata, VerifiedBundle
from airflow_handoff.bundles.readers import Reader, identity
from airflow_handoff.exceptions import BundleError

_FORMAT = 1
#: A file that changed less than this many seconds ago may change again without another time stamp.
_SETTLED = 0.1
#: How many bundles that could not be used an error names.
_NAMED = 20


class BundleNotFound(BundleError):
    """No usable bundle holds the Dag; the message names every one that was passed over, with its reason."""


class DuplicateBundle(BundleError):
    """More than one bundle holds the Dag.

    :param paths: all of them.
    """

    def __init__(self, path: str, reason: str, paths: tuple[Path, ...]) -> None:
        super().__init__(path, reason)
        self.paths = paths


@dataclass(frozen=True)
class Rejected:
    """A bundle that cannot be used.

    :param reason: one sentence: what was expected and what was found.
    """

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Catalogue:
    """What lies in the roots, as of one walk.

    :param entries: path to what was read, of everything that is a bundle.
    :param rejected: bundles that cannot be used.
    :param others: how many files are no bundles.
    :param unreadable: folders that could not be walked.
    """

    roots: tuple[Path, ...]
    kind: str
    entries: Mapping[str, Mapping[str, Any]]
    rejected: tuple[Rejected, ...] = ()
    others: int = 0
    unreadable: tuple[Rejected, ...] = field(default=())

    def bundles(self) -> Iterator[Bundle]:
        """Yield every bundle that can be used."""
        return (_bundle(path, entry) for path, entry in self.entries.items())

    def find(self, dag_id: str) -> Bundle:
        """Return the one bundle that holds a Dag.

        :raises BundleNotFound: naming what was passed over and why.
        :raises DuplicateBundle: naming all that hold it.
        """
        found = [path for path, entry in self.entries.items() if dag_id in entry["metadata"].get("dags", ())]
        if len(found) == 1:
            return _bundle(found[0], self.entries[found[0]])
        place = ":".join(map(str, self.roots))
        if not found:
            raise BundleNotFound(place, self._missing(dag_id))
        listed = " and ".join(map(str, found))
        raise DuplicateBundle(
            place,
            f"the Dag {dag_id!r} is in more than one bundle, {listed}: remove all but one",
            tuple(map(Path, found)),
        )

    def _missing(self, dag_id: str) -> str:
        holds = f"{len(self.entries)} {self.kind} bundles were read and none holds the Dag {dag_id!r}"
        passed = [str(item) for item in (*self.rejected, *self.unreadable)]
        if passed:
            more = f"; and {len(passed) - _NAMED} more" if len(passed) > _NAMED else ""
            return f"{holds}; these could not be used: {'; '.join(passed[:_NAMED])}{more}"
        return holds if self.entries else f"{holds}; {self.others} other files lie here"


def _bundle(path: str, entry: Mapping[str, Any]) -> Bundle:
    metadata = BundleMetadata.model_validate(entry["metadata"])
    if entry.get("digests") is None:
        return Bundle(Path(path), entry["kind"], metadata)
    return VerifiedBundle(Path(path), entry["kind"], metadata, entry["digests"])


class BundleIndex:
    """Finds bundles below some roots; safe to use from many threads and processes.

    :param roots: folders, or single files.
    :param reader: says what one file is; see ``readers.py``.
    :param kind: of bundle, for the messages and the memory; two readers must not share one.
    :param cache_dir: where to remember; by default ``airflow-handoff`` in the user's cache folder. It is only
        used where it belongs to this user and nobody else can write to it.
    """

    def __init__(
        self,
        roots: Iterable[Path | str],
        reader: Reader,
        kind: str,
        cache_dir: Path | None = None,
    ) -> None:
        self.roots = tuple(Path(os.path.expanduser(root)).absolute() for root in roots)
        self.kind = kind
        self._reader = reader
        folder = cache_dir or _user_cache()
        name = json.dumps([_FORMAT, __version__, kind, _code(reader), [str(root) for root in self.roots]])
        self._file = folder and folder / f"bundles-{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"

    def scan(self) -> Catalogue:
        """Walk the roots and read what has changed since it was last read."""
        remembered = self._load()
        known: dict[str, Any] = {}
        fresh = False
        unreadable: list[Rejected] = []
        for path, found in walk(self.roots, unreadable):
            key = list(identity(found))
            entry = remembered.get(path)
            if entry is None or entry["key"] != key:
                entry = {"key": key, **self._read(Path(path))}
                fresh = True
                if time.time() - max(found.st_ctime, found.st_mtime) < _SETTLED:
                    entry["unsettled"] = True
            known[path] = entry
        if fresh or known.keys() != remembered.keys():
            kept = {path: entry for path, entry in known.items() if "unsettled" not in entry}
            if kept != remembered:
                self._store(kept)
        return self._catalogue(known, unreadable)

    def _catalogue(self, known: Mapping[str, Any], unreadable: Sequence[Rejected]) -> Catalogue:
        return Catalogue(
            self.roots,
            self.kind,
            {path: entry for path, entry in known.items() if "metadata" in entry},
            tuple(
                Rejected(Path(path), entry["reason"]) for path, entry in known.items() if "reason" in entry
            ),
            sum("metadata" not in entry and "reason" not in entry for entry in known.values()),
            tuple(unreadable),
        )

    def find(self, dag_id: str) -> Bundle:
        """Return the one bundle that holds a Dag; see :meth:`Catalogue.find`."""
        return self.scan().find(dag_id)

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            bundle = self._reader(path)
        except BundleError as error:
            found = {"reason": error.reason}
            # Too many open files, a disk that is away: the same file may be fine the next time.
            return {**found, "unsettled": True} if isinstance(error.__cause__, OSError) else found
        except Exception as error:  # a reader of somebody's own
            return {"reason": f"its reader failed: {type(error).__name__}: {error}", "unsettled": True}
        if bundle is None:
            return {}
        digests = dict(bundle.digests) if isinstance(bundle, VerifiedBundle) else None
        metadata = bundle.metadata.model_dump(mode="json", exclude_defaults=True)
        return {"kind": bundle.kind, "metadata": metadata, "digests": digests}

    # -- what is remembered -------------------------------------------------------------------------------

    def _load(self) -> dict[str, Any]:
        """Return what is remembered; nothing where it cannot be trusted or read."""
        if self._file is None:
            return {}
        try:
            with self._file.open("rb") as stream:
                found = os.fstat(stream.fileno())
                if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    return {}
                digest, _, content = stream.read().partition(b"\n")
        except OSError:
            return {}
        # Whatever has its digest was written here; anything else is read again from the bundles.
        if hashlib.sha256(content).hexdigest().encode() != digest:
            return {}
        entries: dict[str, Any] = json.loads(content)
        return entries

    def _store(self, entries: Mapping[str, Any]) -> None:
        """Remember, where that is possible; a full or read-only disk only costs time."""
        if self._file is None:
            return
        temporary = None
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._file.parent.stat()
            if found.st_uid != os.getuid() or found.st_mode & stat.S_IWOTH:
                return
            # mkstemp makes the file private, which the next reader insists on.
            descriptor, temporary = tempfile.mkstemp(prefix=f".{self._file.stem}.", dir=self._file.parent)
            content = json.dumps(entries, separators=(",", ":")).encode()
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
            Path(temporary).replace(self._file)
        except OSError:
            if temporary:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()


def _code(reader: Any) -> str:
    """Return something that changes when a reader is edited: what the older one found is forgotten then."""
    code = getattr(getattr(reader, "__func__", reader), "__code__", None)
    if code is None:
        return ""
    texts = [item for item in code.co_consts if isinstance(item, (str, bytes, int))]
    return hashlib.sha256(repr((code.co_code, code.co_names, texts)).encode()).hexdigest()


def _user_cache() -> Path | None:
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "airflow-handoff" if base.is_absolute() else None


def walk(
    roots: Iterable[Path], unreadable: list[Rejected] | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every regular file below some roots with its ``stat``, in a stable order.

    Links are followed, and a file or folder that is reached twice is visited once. Names that begin with a
    dot come last, so that a file is known by its public name.

    :param unreadable: gets the folders that could not be read.
    """
    seen: set[tuple[int, int]] = set()
    unread = unreadable if unreadable is not None else []
    # Texts and not paths: with thousands of files, making paths would cost more than the rest.
    waiting = [str(root) for root in reversed(list(roots))]
    while waiting:
        path = waiting.pop()
        try:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) in seen:
                continue
            seen.add((found.st_dev, found.st_ino))
            if stat.S_ISREG(found.st_mode):
                yield path, found
            elif stat.S_ISDIR(found.st_mode):
                names = sorted(os.listdir(path), key=lambda name: (name.startswith("."), name))
                waiting.extend(os.path.join(path, name) for name in reversed(names))
        except OSError as error:
            unread.append(Rejected(Path(path), f"cannot be read: {error.strerror}"))
