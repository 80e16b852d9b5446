"""Where an SDK's own build file says which supervisor schema it speaks, and which release it is.

Found by the folded name of the key, so that ``airflowSupervisorSchemaVersion`` (gradle.properties),
``supervisor-schema-version`` (TOML), ``supervisorSchemaVersion`` (package.json) and
``SUPERVISOR_SCHEMA_VERSION`` (source) are one. A search that finds nothing is an error of the search, never a
mismatch.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_handoff.capabilities.document import read_text
from airflow_handoff.exceptions import CapabilitiesError

SCHEMA_KEY = "supervisor_schema_version"
_SOURCES = (".go", ".rs", ".ts", ".mts", ".js", ".mjs", ".kt", ".kts", ".java", ".py")
_VERSION_KEYS = {
    "gradle.properties": ("version", "sdkVersion"),
    "Cargo.toml": ("package.version", "workspace.package.version"),
    "package.json": ("version",),
    "pyproject.toml": ("project.version", "tool.poetry.version"),
}
# One alternative for what may hold comment signs, one for comments: strings are kept, comments are dropped.
_STRING = r'(?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`)'
_COMMENT_OR_STRING = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_PYTHON_COMMENT_OR_STRING = re.compile(_STRING + r"|#[^\n]*")
# The name may stand before its type (Go, Rust) or after it (Java): every word before the `=` is tried.
_ASSIGNMENT = re.compile(r"""([^\n;={}()"`]*?)\s*:?=\s*["'`]([^"'`\n]*)["'`]""")


class LocatorError(CapabilitiesError):
    """The search in a build file found nothing, or two answers: the search is at fault, not the manifest."""


@dataclass(frozen=True)
class BuildFile:
    """The SDK's own build file, which the manifest must agree with.

    :param path: the file, or a folder of Go sources.
    :param key: the key of the schema version; found by its usual names by default.
    :param release: the file that says which release the SDK is at; the same one by default.
    """

    path: Path
    key: str | None = None
    release: Path | None = None


@dataclass(frozen=True)
class Located:
    """A value found in a build file.

    :param path: the file.
    :param key: the key or constant under which it stands.
    :param value: the text.
    """

    path: str
    key: str
    value: str


def locate_schema_version(build_file: Path, key: str | None = None) -> Located:
    """Find the supervisor schema version in an SDK's build file.

    :param build_file: gradle.properties, a TOML or JSON file, a source file, or a folder of Go sources.
    :param key: the key's name, compared without case and punctuation; any that ends in
        ``supervisor_schema_version`` by default.
    :raises LocatorError: when nothing, or more than one value, is found.
    """
    wanted = _fold(key or SCHEMA_KEY)
    found = [
        located
        for located in _values(build_file)
        if (_fold(located.key) == wanted if key else _fold(located.key).endswith(wanted))
    ]
    if not found:
        raise LocatorError(
            str(build_file),
            f"no key that is called {key or SCHEMA_KEY} in any spelling was found; "
            "set `key` or another `build_file` for this SDK in handoff.toml",
        )
    if len({located.value for located in found}) > 1:
        listed = ", ".join(f"{located.key} = {located.value}" for located in found)
        raise LocatorError(
            str(build_file), f"more than one answer was found ({listed}); set `key` in handoff.toml"
        )
    return found[0]


def locate_sdk_version(build_file: Path) -> Located | None:
    """Find the SDK's own release in its build file, or return ``None`` where that kind of file has none.

    :param build_file: gradle.properties, Cargo.toml, package.json or pyproject.toml.
    :raises LocatorError: when the file cannot be read.
    """
    wanted = _VERSION_KEYS.get(build_file.name, ())
    found = {located.key: located for located in _values(build_file)} if wanted else {}
    return next((found[key] for key in wanted if key in found), None)


def _fold(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _values(path: Path) -> Iterator[Located]:
    """Yield every key with a text value, by the kind of the file."""
    if path.is_dir():
        sources = sorted(file for file in path.rglob("*.go") if not file.name.endswith("_test.go"))
        if not sources:
            raise LocatorError(str(path), "expected Go sources in this folder and found none")
        for source in sources:
            yield from _values(source)
        return
    try:
        text = read_text(path)
    except CapabilitiesError as error:
        raise LocatorError(str(path), error.reason) from None
    for key, value in _pairs(path, text):
        yield Located(str(path), key, value)


def _pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    if path.suffix == ".properties":
        return _properties(text)
    if path.suffix == ".toml":
        return _flatten(_parsed(path, load_toml, text))
    if path.suffix == ".json":
        return _flatten(_parsed(path, json.loads, text))
    if path.suffix in _SOURCES:
        return _assignments(text, _PYTHON_COMMENT_OR_STRING if path.suffix == ".py" else _COMMENT_OR_STRING)
    raise LocatorError(
        str(path), f"expected .properties, .toml, .json or a source file ({', '.join(_SOURCES)}); set another"
    )


def load_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    :param text: TOML.
    :raises ValueError: when it is not TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return dict(tomllib.loads(text))


def _parsed(path: Path, parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise LocatorError(str(path), f"the file cannot be read: {error}") from None


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        key, _, value = re.sub(r"\s*[=:\s]\s*", "\0", stripped, count=1).partition("\0")
        yield key, value


def _flatten(data: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else str(key))
    elif prefix and not isinstance(data, (list, bool)) and data is not None:
        yield prefix, str(data)


def _assignments(text: str, comments: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    bare = comments.sub(lambda match: match["string"] or " ", text)
    for left, value in _ASSIGNMENT.findall(bare):
        for word in re.findall(r"[A-Za-z_]\w*", left):
            yield word, value
