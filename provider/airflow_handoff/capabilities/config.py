"""``handoff.toml`` or ``[tool.handoff]``: which SDKs a project has, and where their tables go."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_handoff.capabilities.document import read_text
from airflow_handoff.capabilities.locate import BuildFile, load_toml
from airflow_handoff.exceptions import CapabilitiesError

FORMATS = ("md", "rst", "html", "json")


@dataclass(frozen=True)
class SdkSource:
    """One SDK of a project.

    :param manifest: its claim file.
    :param build_file: its own build file; ``None`` where none is named.
    :param unmet: the MUST dimensions that it is admitted not to meet.
    """

    manifest: Path
    build_file: BuildFile | None = None
    unmet: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """One file with generated tables.

    :param path: the file.
    :param format: ``md``, ``rst``, ``html`` or ``json``.
    """

    path: Path
    format: str


@dataclass(frozen=True)
class Config:
    """What a project has.

    :param path: the configuration file.
    :param sdks: its SDKs, in the order of the columns.
    :param targets: the files with generated tables.
    :param features: the file that lists features by Airflow version; ``None`` where there is none.
    """

    path: Path
    sdks: tuple[SdkSource, ...] = ()
    targets: tuple[Target, ...] = ()
    features: Path | None = None


def find_config(start: Path) -> Config | None:
    """Return the nearest configuration at or above a folder, or ``None``.

    :param start: the folder from which to look upwards.
    :raises CapabilitiesError: when one is there and cannot be used.
    """
    for above in (start, *start.parents):
        folder = Path(
            os.path.relpath(above)
        )  # what a person reads in a finding is relative, as they would type it
        own, project = folder / "handoff.toml", folder / "pyproject.toml"
        if own.is_file():
            return read_config(own)
        if project.is_file() and "handoff" in _toml(project).get("tool", {}):
            return read_config(project)
    return None


def read_config(path: Path) -> Config:
    """Read a configuration file; its paths are relative to its folder.

    :param path: ``handoff.toml``, or a pyproject.toml with ``[tool.handoff]``.
    :raises CapabilitiesError: for an unknown key, a value of another kind, or a pattern that matches no file.
    """
    data = _toml(path)
    if path.name == "pyproject.toml":
        data = data.get("tool", {}).get("handoff", {})
    _known(path, "the configuration", data, ("sdks", "targets", "features"))
    folder = path.parent
    sdks = [sdk for item in _list(path, data, "sdks") for sdk in _sdks(path, folder, item)]
    targets = [one for item in _list(path, data, "targets") for one in _targets(path, folder, item)]
    features = data.get("features")
    return Config(
        path, tuple(sdks), tuple(targets), folder / _string(path, "features", features) if features else None
    )


def target(path: Path, form: str | None = None) -> Target:
    """Return a target whose format, where it is not given, is told by the file's name.

    :param path: the file.
    :param form: ``md``, ``rst``, ``html`` or ``json``.
    :raises CapabilitiesError: when neither says.
    """
    named = {"markdown": "md", "htm": "html"}.get(path.suffix[1:], path.suffix[1:])
    found = form or named
    if found not in FORMATS:
        raise CapabilitiesError(
            str(path), f"the name does not say the format; name one of {', '.join(FORMATS)}"
        )
    return Target(path, found)


def _sdks(path: Path, folder: Path, item: Any) -> Iterator[SdkSource]:
    table = {"manifest": item} if isinstance(item, str) else item
    _known(path, "an item of `sdks`", table, ("manifest", "build_file", "key", "release_file", "unmet"))
    name = _string(path, "manifest", table.get("manifest"))
    build = table.get("build_file")
    build_file = None
    if build is not None:
        key, release = table.get("key"), table.get("release_file")
        build_file = BuildFile(
            folder / _string(path, "build_file", build),
            None if key is None else _string(path, "key", key),
            None if release is None else folder / _string(path, "release_file", release),
        )
    unmet = tuple(_string(path, "unmet", dimension) for dimension in _list(path, table, "unmet"))
    yield from (SdkSource(manifest, build_file, unmet) for manifest in _matching(path, folder, name))


def _matching(path: Path, folder: Path, name: str) -> list[Path]:
    """Return the file of a name, or the files of a pattern; a pattern that matches none is a slip."""
    if "*" not in name:
        return [folder / name]
    found = sorted(folder.glob(name))
    if not found:
        raise CapabilitiesError(str(path), f"`{name}` matches no file; name one that exists")
    return found


def _targets(path: Path, folder: Path, item: Any) -> list[Target]:
    table = {"path": item} if isinstance(item, str) else item
    _known(path, "an item of `targets`", table, ("path", "format"))
    name = _string(path, "path", table.get("path"))
    try:
        return [target(file, table.get("format")) for file in _matching(path, folder, name)]
    except CapabilitiesError as error:
        raise CapabilitiesError(str(path), f"{name}: {error.reason}") from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return load_toml(read_text(path))
    except ValueError as error:
        raise CapabilitiesError(str(path), f"expected TOML: {error}") from None


def _known(path: Path, what: str, table: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(table, Mapping):
        raise CapabilitiesError(str(path), f"expected {what} to be a table or a path, and it holds {table!r}")
    unknown = [key for key in table if key not in keys]
    if unknown:
        raise CapabilitiesError(
            str(path), f"`{unknown[0]}` is not a key of {what}; the keys are {', '.join(keys)}"
        )


def _list(path: Path, table: Mapping[str, Any], key: str) -> list[Any]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise CapabilitiesError(str(path), f"expected a list for `{key}`, and it holds {found!r}")
    return found


def _string(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise CapabilitiesError(str(path), f"expected a text for `{key}`, and it holds {value!r}")
    return value
