"""A claim file as plain data that remembers the line on which each key stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from airflow_handoff.exceptions import CapabilitiesError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Keys = tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """What a YAML or JSON file holds, and where.

    :param path: the file as the reader was given it.
    :param data: plain data.
    :param lines: the line (from 1) of each key, by its path from the top.
    :param written: the text of each scalar as it stands in the file, by the path of its key.
    :param repeated: the paths and lines of keys that stand twice in one mapping.
    """

    path: str
    data: Any
    lines: Mapping[Keys, int]
    written: Mapping[Keys, str]
    repeated: tuple[tuple[Keys, int], ...] = ()

    def line(self, *keys: str) -> int:
        """Return the line of a key, or of the nearest mapping around it that stands in the file.

        :param keys: the key's path from the top.
        """
        for length in range(len(keys), 0, -1):
            if keys[:length] in self.lines:
                return self.lines[keys[:length]]
        return 1


def load_yaml(text: str) -> Any:
    """Return the plain data of a YAML text, with the fast parser where there is one.

    :param text: one YAML document.
    """
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - both loaders are the safe one


def parse_document(text: str, path: str) -> Document:
    """Read a YAML or JSON text.

    :param text: the file's text.
    :param path: its name; one that ends in ``.json`` is read as JSON.
    :raises CapabilitiesError: when it is neither, with the line.
    """
    as_json = path.endswith(".json")
    data = parse_json(text, path) if as_json else None
    # JSON is YAML but for tabs, which valid JSON has only between its tokens.
    loader = _Loader(text.replace("\t", " ") if as_json else text)
    try:
        node = loader.get_single_node()
        marks = tuple(_walk(node, (), set())) if node is not None else ()
        if not as_json and node is not None:
            data = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise _unreadable(error, path) from None
    except (ValueError, RecursionError) as error:
        raise CapabilitiesError(path, f"expected YAML, and a value cannot be read: {error}") from None
    finally:
        loader.dispose()
    return _with_marks(path, data, marks)


def read_document(path: Path) -> Document:
    """Read a YAML or JSON file.

    :param path: the file.
    :raises CapabilitiesError: when it cannot be read, or is neither YAML nor JSON.
    """
    return parse_document(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file.

    :param path: the file.
    :raises CapabilitiesError: when there is none, or it is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CapabilitiesError(str(path), f"expected a file that can be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CapabilitiesError(str(path), f"expected UTF-8 text, and byte {error.start} is not") from None


def parse_json(text: str, path: str) -> Any:
    """Return the plain data of a JSON text.

    :param text: JSON.
    :param path: its name, for messages.
    :raises CapabilitiesError: when it is not JSON, with the line.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise CapabilitiesError(path, f"expected JSON: {error.msg}", error.lineno) from None
    except ValueError as error:
        raise CapabilitiesError(path, f"expected JSON, and a value cannot be read: {error}") from None
    except RecursionError:
        raise CapabilitiesError(path, "expected JSON of a few levels, and the nesting is too deep") from None


def _unreadable(error: yaml.YAMLError, path: str) -> CapabilitiesError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return CapabilitiesError(path, f"expected YAML: {problem}", mark.line + 1 if mark else 1)


def _walk(node: Any, keys: Keys, seen: set[int]) -> Iterator[tuple[Keys, int, str | None]]:
    """Yield each key's path, line and scalar text; an aliased node is visited once."""
    if not isinstance(node, yaml.MappingNode) or id(node) in seen:
        return
    seen.add(id(node))
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        path = (*keys, key.value)
        yield path, key.start_mark.line + 1, value.value if isinstance(value, yaml.ScalarNode) else None
        yield from _walk(value, path, seen)


def _with_marks(path: str, data: Any, marks: tuple[tuple[Keys, int, str | None], ...]) -> Document:
    lines: dict[Keys, int] = {}
    written: dict[Keys, str] = {}
    repeated: list[tuple[Keys, int]] = []
    for keys, line, text in marks:
        # The keys below a repeated one are repeated with it: one finding says it.
        if keys in lines and keys[:-1] not in {earlier for earlier, _ in repeated}:
            repeated.append((keys, line))
        lines[keys] = line
        if text is not None:
            written[keys] = text
    return Document(path, data, lines, written, tuple(repeated))
