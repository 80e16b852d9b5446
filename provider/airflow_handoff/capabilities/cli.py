"""``handoff capabilities``: check claim files, render their tables, tell what changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

# Nothing else is imported here: a hook starts with this module, and what it needs comes when it is needed.

_F = TypeVar("_F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
_EXISTING = click.Path(path_type=Path, dir_okay=False, exists=True)


def _tells_errors(command: _F) -> _F:
    """Turn this package's errors into one line and exit code 2; with ``--json`` into JSON."""

    @wraps(command)
    def told(*args: Any, **kwargs: Any) -> Any:
        from airflow_handoff.exceptions import HandoffError

        try:
            return command(*args, **kwargs)
        except (HandoffError, OSError) as error:
            if kwargs.get("as_json"):
                click.echo(json.dumps({"error": str(error)}))
            click.echo(f"Error: {error}", err=True)
            raise SystemExit(2) from None

    return told  # type: ignore[return-value]


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
_config = click.option(
    "--config",
    "config_path",
    type=_EXISTING,
    help="handoff.toml, or a pyproject.toml with [tool.handoff]; by default the nearest one upwards.",
)


def _read_config(path: Path | None) -> Any:
    from airflow_handoff.capabilities.config import find_config, read_config

    return read_config(path) if path else find_config(Path.cwd())


@click.group("capabilities")
def capabilities() -> None:
    """What language SDKs claim they can do: check the claim files, render the tables.

    \b
    Examples:
      handoff capabilities check sdks/rust/capabilities.yaml
      handoff capabilities matrix
      handoff capabilities diff old.yaml new.yaml
    """


@capabilities.command("check")
@click.argument("files", nargs=-1, type=_FILE)
@click.option(
    "--require-evidence", is_flag=True, help="Also ask that each claim is proven, and recently enough."
)
@click.option(
    "--build-file", type=click.Path(path_type=Path), help="The SDK's own build file, for a single FILE."
)
@click.option(
    "--key", help="The key of the schema version in the build file; found by its usual names by default."
)
@click.option(
    "--unmet", multiple=True, metavar="DIMENSION", help="A MUST that is admitted not to be met; repeatable."
)
@click.option("--changed", is_flag=True, hidden=True, help="FILES are what changed, as a hook is given them.")
@_config
@_as_json
@_tells_errors
def check(
    files: tuple[Path, ...],
    require_evidence: bool,
    build_file: Path | None,
    key: str | None,
    unmet: tuple[str, ...],
    changed: bool,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Check claim files; every fault is told at once, with its line and what to write.

    Without FILES, every SDK of the configuration is checked. Exit code 0: sound; 1: faults; 2: nothing could
    be checked.

    \b
    Examples:
      handoff capabilities check
      handoff capabilities check go.yaml --build-file go-sdk/pkg/schema.go
      handoff capabilities check capabilities.yaml --require-evidence --json
    """
    from dataclasses import asdict, replace

    from airflow_handoff.capabilities.locate import BuildFile
    from airflow_handoff.capabilities.project import check_sdk, manifests_of_changes, sources_of

    config = _read_config(config_path)
    if changed and files:
        concerned = manifests_of_changes(files, config)
        if concerned == ():
            return
        files = concerned or ()
    sources = sources_of(files, config)
    if not sources and not config:
        raise click.UsageError("There is nothing to check: name a FILE, or list `sdks` in handoff.toml.")
    if (build_file or unmet) and len(sources) != 1:
        raise click.UsageError("--build-file and --unmet are for a single FILE: name it.")
    if build_file:
        sources = (replace(sources[0], build_file=BuildFile(build_file, key)),)
    if unmet:
        sources = (replace(sources[0], unmet=unmet),)
    findings = [
        finding for source in sources for finding in check_sdk(source, require_evidence=require_evidence)
    ]
    if as_json:
        click.echo(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            click.echo(str(finding))
        faults = f"{len(findings)} fault{'' if len(findings) == 1 else 's'}"
        click.echo(f"{len(sources)} manifest{'' if len(sources) == 1 else 's'} checked: {faults}.")
    raise SystemExit(1 if findings else 0)


@capabilities.command("matrix")
@click.argument("files", nargs=-1, type=_FILE)
@click.option(
    "--target", "targets", multiple=True, type=_FILE, help="A file with markers, or a new one; repeatable."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "rst", "html", "json"]),
    help="By default told by the target's name; md on the terminal.",
)
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 where a file would change.")
@click.option("--fail-on-change", is_flag=True, help="Exit 1 where a file was changed, as the hook does.")
@_config
@_as_json
@_tells_errors
def matrix(
    files: tuple[Path, ...],
    targets: tuple[Path, ...],
    form: str | None,
    only_check: bool,
    fail_on_change: bool,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Render the tables between the markers of each target.

    Without FILES and --target, the SDKs and targets of the configuration. With FILES and no --target, the
    table is printed. Exit code 0: done; 1: a file changed (--fail-on-change) or would change (--check); 2: an
    error.

    \b
    Examples:
      handoff capabilities matrix
      handoff capabilities matrix --check
      handoff capabilities matrix go.yaml java.yaml --target README.md --format md
    """
    from airflow_handoff.capabilities.config import Target, target
    from airflow_handoff.capabilities.project import Project, sources_of
    from airflow_handoff.capabilities.targets import generate

    config = _read_config(config_path)
    project = Project(sources_of(files, config), config.features if config else None)
    chosen = tuple(target(path, form) for path in targets)
    if not chosen and not files and config and not form:
        chosen = config.targets
    if not chosen:
        if not project.sources:
            raise click.UsageError("There is nothing to render: name a FILE, or list `sdks` in handoff.toml.")
        _print(project, Target(Path("-"), "json" if as_json else form or "md"))
        return
    # All are generated before the first is written: an error leaves every file as it was.
    texts = {each.path: generate(each, project.section(each), project.whole(each)) for each in chosen}
    changed = [path for path, (held, wanted) in texts.items() if held != wanted]
    for path in () if only_check else changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(texts[path][1].encode())
    _report(changed, len(chosen), only_check, as_json, (*files, *(f"--target {path}" for path in targets)))
    raise SystemExit(1 if changed and (only_check or fail_on_change) else 0)


@capabilities.command("diff")
@click.argument("old", type=_EXISTING)
@click.argument("new", type=_EXISTING)
@_as_json
@_tells_errors
def diff(old: Path, new: Path, as_json: bool) -> None:
    """Tell what changed between two claim files, as Markdown for release notes.

    \b
    Examples:
      git show v1.0.0:sdks/rust/capabilities.yaml > old.yaml
      handoff capabilities diff old.yaml sdks/rust/capabilities.yaml
    """
    from dataclasses import asdict

    from airflow_handoff.capabilities.config import SdkSource
    from airflow_handoff.capabilities.difference import difference, release_notes
    from airflow_handoff.capabilities.project import read_claims

    before, after = read_claims(SdkSource(old)), read_claims(SdkSource(new))
    if as_json:
        changes = [asdict(change) for change in difference(before, after)]
        click.echo(json.dumps({"sdk": after.sdk, "changes": changes}, indent=2, ensure_ascii=False))
    else:
        click.echo(release_notes(before, after), nl=False)


@capabilities.command("schema")
@click.option("--output", type=_FILE, help="Write to this file instead of the terminal.")
@_as_json
@_tells_errors
def schema(output: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of a claim file, with which editors complete it.

    \b
    Example:
      handoff capabilities schema --output .handoff/capabilities.schema.json
    """
    from airflow_handoff.capabilities.manifest import SCHEMA_FILE

    text = SCHEMA_FILE.read_text(encoding="utf-8")
    if output is None:
        click.echo(text, nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    click.echo(json.dumps({"written": str(output)}) if as_json else f"Wrote {output}.")


def _print(project: Any, printed: Any) -> None:
    whole = project.whole(printed)
    click.echo(whole() if whole else project.section(printed)("matrix") + "\n", nl=False)


def _report(
    changed: list[Path], count: int, only_check: bool, as_json: bool, arguments: tuple[object, ...]
) -> None:
    if as_json:
        click.echo(json.dumps({"targets": count, "changed": [str(path) for path in changed]}))
        return
    for path in changed:
        click.echo(f"{path}: {'is out of date' if only_check else 'rewritten'}")
    if changed:
        command = " ".join(map(str, ("handoff capabilities matrix", *arguments)))
        click.echo(f"Run `{command}` and commit the result.")
    else:
        click.echo(f"{count} target{'' if count == 1 else 's'} up to date.")
