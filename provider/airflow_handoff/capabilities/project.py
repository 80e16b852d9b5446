"""Reads what the pure parts work on: manifests, evidence and build files, by configuration or by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from airflow_handoff.capabilities.checks import Finding, Subject, check
from airflow_handoff.capabilities.checks.shape import SHAPE_RULES
from airflow_handoff.capabilities.claims import Claims, current_version, join_claims
from airflow_handoff.capabilities.config import Config, SdkSource, Target
from airflow_handoff.capabilities.dimensions import known_dimensions, known_schemas
from airflow_handoff.capabilities.document import read_document
from airflow_handoff.capabilities.evidence import evidence_path, manifest_of, read_evidence_beside
from airflow_handoff.exceptions import CapabilitiesError

_MANIFEST_NAME = re.compile(r"capabilities\.(ya?ml|json)")


def check_sdk(source: SdkSource, *, require_evidence: bool = False) -> tuple[Finding, ...]:
    """Read one SDK's files and return every fault; a file that cannot be read is a fault too.

    :param source: the SDK.
    :param require_evidence: also ask that each tick is proven.
    """
    try:
        return check(read_subject(source), require_evidence=require_evidence)
    except CapabilitiesError as error:
        what = "evidence" if error.path == str(evidence_path(source.manifest)) else "manifest"
        write = "The other checks of this SDK run once it can be read."
        return (Finding(error.path, error.line or 1, f"unreadable-{what}", error.reason, write),)


def read_subject(source: SdkSource) -> Subject:
    """Read one SDK's manifest and evidence.

    :param source: the SDK.
    :raises CapabilitiesError: when one of the two cannot be read.
    """
    return Subject(
        read_document(source.manifest),
        known_dimensions(),
        known_schemas(),
        read_evidence_beside(source.manifest),
        source.build_file,
        source.unmet,
    )


def read_claims(source: SdkSource) -> Claims:
    """Read one SDK's manifest and evidence, and put them side by side.

    :param source: the SDK.
    :raises CapabilitiesError: when one of the two cannot be read, or the manifest has another shape.
    """
    subject = read_subject(source)
    for rule in SHAPE_RULES:
        for finding in rule(subject):
            raise CapabilitiesError(finding.path, f"{finding.message}. {finding.write}", finding.line)
    data = subject.document.data
    return join_claims(data, subject.dimensions, subject.evidence, current_version(data, source.build_file))


@dataclass(frozen=True)
class Project:
    """The SDKs whose tables are rendered, read when they are first needed.

    :param sources: the SDKs, in the order of the columns.
    :param features: the file that lists features by Airflow version.
    """

    sources: tuple[SdkSource, ...]
    features: Path | None = None

    @cached_property
    def sdks(self) -> tuple[Claims, ...]:
        """What is known of each SDK.

        :raises CapabilitiesError: when two have one name, or one cannot be read.
        """
        found: dict[str, Path] = {}
        sdks = []
        for source in self.sources:
            claims = read_claims(source)
            if claims.sdk in found:
                raise CapabilitiesError(
                    str(source.manifest),
                    f"`sdk: {claims.sdk}` is also the name in {found[claims.sdk]}; rename one",
                )
            found[claims.sdk] = source.manifest
            sdks.append(claims)
        return tuple(sdks)

    def section(self, target: Target) -> Callable[[str], str]:
        """Return what renders a region of a target, by the region's name.

        :param target: the file and its format.
        """
        from airflow_handoff.capabilities.features import read_features
        from airflow_handoff.capabilities.render import render
        from airflow_handoff.capabilities.render.tables import (
            dimension_blocks,
            feature_blocks,
            matrix_blocks,
            sdk_blocks,
        )

        def named(name: str) -> Claims:
            claims = next((claims for claims in self.sdks if claims.sdk == name), None)
            if claims is None:
                listed = ", ".join(claims.sdk for claims in self.sdks) or "none"
                raise CapabilitiesError(
                    str(target.path), f"a marker asks for the SDK `{name}`, and the SDKs here are: {listed}"
                )
            return claims

        def text(region: str) -> str:
            what, _, name = region.partition(" ")
            if what == "matrix" and not name:
                blocks = matrix_blocks(self.sdks, known_dimensions())
            elif what == "sdk" and name:
                blocks = sdk_blocks(named(name))
            elif what == "dimensions" and not name:
                blocks = dimension_blocks(known_dimensions())
            elif what == "features" and not name and self.features:
                blocks = feature_blocks(read_features(self.features))
            else:
                raise CapabilitiesError(
                    str(target.path),
                    f"a marker asks for `{region}`; write `matrix`, `sdk NAME`, `dimensions`, or `features` "
                    "where the configuration names a features file",
                )
            return render(blocks, target.format)

        return text

    def whole(self, target: Target) -> Callable[[], str] | None:
        """Return what renders a whole file, or ``None`` for a format that lives between markers only.

        :param target: the file and its format.
        """
        from airflow_handoff.capabilities.render.data import to_json
        from airflow_handoff.capabilities.render.html import to_page
        from airflow_handoff.capabilities.render.tables import page_blocks

        if target.format == "json":
            return lambda: to_json(self.sdks)
        if target.format == "html":
            return lambda: to_page("What language SDKs can do", page_blocks(self.sdks, known_dimensions()))
        return None


def sources_of(files: Iterable[Path], config: Config | None) -> tuple[SdkSource, ...]:
    """Return the SDKs of some manifests, each with what the configuration says of it.

    :param files: manifests; every SDK of the configuration where there are none.
    :param config: the project's configuration.
    """
    listed = config.sdks if config else ()
    known = {source.manifest.resolve(): source for source in listed}
    named = tuple(known.get(path.resolve(), SdkSource(path)) for path in files)
    return named or listed


def manifests_of_changes(files: Iterable[Path], config: Config | None) -> tuple[Path, ...] | None:
    """Return the manifests that a hook's changed files concern, or ``None`` when they concern every SDK.

    Evidence stands for its manifest. Any other file, such as a build file, stands for every SDK.

    :param files: the changed files.
    :param config: the project's configuration.
    """
    configured = {source.manifest.resolve() for source in config.sdks} if config else set()
    found: list[Path] = []
    for path in files:
        manifest = manifest_of(path) if path.name.endswith(".evidence.json") else path
        is_one = manifest is not None and (
            manifest.resolve() in configured or _MANIFEST_NAME.fullmatch(manifest.name)
        )
        if manifest and is_one:
            found.append(manifest)
        elif configured:
            return None
    return tuple(dict.fromkeys(found))
