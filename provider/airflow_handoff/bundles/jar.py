"""Jars: which class is run and which schema it speaks, each perhaps in another jar of the same root."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from airflow_handoff.bundles.metadata import Bundle, BundleMetadata, InvalidBundle, Sdk
from airflow_handoff.exceptions import BundleError

MANIFEST = "META-INF/MANIFEST.MF"
MAIN_CLASS = "Main-Class"
SCHEMA_VERSION = "Airflow-Supervisor-Schema-Version"
_MAX_MANIFEST = 1024 * 1024


def parse_main_section(content: bytes) -> dict[str, str]:
    """Return the attributes of a jar manifest's main section; continued lines are joined."""
    attributes: dict[str, str] = {}
    name = ""
    for line in content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            break
        if line.startswith(" ") and name:
            attributes[name] += line[1:]
        else:
            name, colon, value = line.partition(":")
            attributes[name] = value.removeprefix(" ") if colon else ""
    return attributes


def read_jar(stream: BinaryIO) -> BundleMetadata:
    """Read what one jar says; most say nothing, and that is no fault.

    :raises InvalidBundle: for what is not a jar.
    """
    try:
        with zipfile.ZipFile(stream) as jar:
            try:
                with jar.open(MANIFEST) as manifest:
                    content = manifest.read(_MAX_MANIFEST + 1)
            except KeyError:
                return BundleMetadata(sdk=Sdk(language="java"))
    except Exception as error:  # each decompressor has errors of its own
        raise InvalidBundle(f"not a readable jar: {error or type(error).__name__}") from error
    if len(content) > _MAX_MANIFEST:
        raise InvalidBundle(f"{MANIFEST} may hold {_MAX_MANIFEST} bytes and holds more")
    attributes = parse_main_section(content)
    schema = attributes.get(SCHEMA_VERSION, "").strip() or None
    main_class = attributes.get(MAIN_CLASS, "").strip() or None
    return BundleMetadata(sdk=Sdk(language="java", supervisor_schema_version=schema), main_class=main_class)


@dataclass(frozen=True)
class JavaProgram:
    """What a root of jars amounts to.

    :param main_class: the class that is run.
    :param schema_version: the schema it speaks, or ``None`` where no jar says so.
    :param classpath: all jars of the root, in a stable order.
    """

    main_class: str
    schema_version: str | None
    classpath: tuple[Path, ...]


def assemble(jars: Iterable[Bundle], main_class: str = "", roots: Sequence[Path] = ()) -> JavaProgram:
    """Put the jars of a root together.

    :param main_class: run this one; needed where several jars name one.
    :param roots: named in errors.
    :raises BundleError: where no class or several could be run, or the jars speak several schemas.
    """
    found = sorted(jars, key=lambda jar: jar.path)
    place = ":".join(map(str, roots)) or (str(found[0].path.parent) if found else "jars_root")
    if not found:
        raise BundleError(place, "no jar was found here")
    if not main_class:
        named: dict[str, Path] = {
            jar.metadata.main_class: jar.path for jar in found if jar.metadata.main_class
        }
        main_class = _only(named, place, MAIN_CLASS, "set main_class")
        if not main_class:
            raise BundleError(place, f"none of {len(found)} jars names a {MAIN_CLASS}: set main_class")
    schemas: dict[str, Path] = {
        jar.metadata.schema_version: jar.path for jar in found if jar.metadata.schema_version
    }
    schema = _only(schemas, place, SCHEMA_VERSION, "keep one SDK")
    return JavaProgram(main_class, schema or None, tuple(jar.path for jar in found))


def _only(named: Mapping[str, Path], place: str, what: str, cure: str) -> str:
    if len(named) > 1:
        listed = " and ".join(f"{value} in {path}" for value, path in sorted(named.items(), key=str))
        raise BundleError(place, f"several jars name a {what}, {listed}: {cure}")
    return next(iter(named), "")
