"""What changed between two states of an SDK's claims, for its release notes."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_handoff.capabilities.claims import Claim, Claims, Status

_CLAIMED = (Status.PROVEN, Status.UNPROVEN, Status.FAILING)


@dataclass(frozen=True)
class Change:
    """One change.

    :param kind: ``gained``, ``lost``, ``declared``, ``changed`` or ``requires``.
    :param subject: the dimension, or the fact of the whole SDK.
    :param text: what changed, for readers.
    """

    kind: str
    subject: str
    text: str


def difference(old: Claims, new: Claims) -> tuple[Change, ...]:
    """Return what changed, what is gained first.

    :param old: the earlier claims.
    :param new: the later claims.
    """
    changes = [change for name in new.by_name for change in _claim(old.by_name[name], new.by_name[name])]
    facts = (
        ("oldest Airflow", old.min_airflow_version, new.min_airflow_version),
        ("supervisor schema", old.supervisor_schema_version, new.supervisor_schema_version),
    )
    changes += [
        Change("requires", fact, f"{fact}: {before} → {after}")
        for fact, before, after in facts
        if before != after
    ]
    order = ("gained", "lost", "requires", "changed", "declared")
    return tuple(sorted(changes, key=lambda change: order.index(change.kind)))


def release_notes(old: Claims, new: Claims) -> str:
    """Return the changes as Markdown.

    :param old: the earlier claims.
    :param new: the later claims.
    """
    changes = difference(old, new)
    if not changes:
        return f"No change in what {new.sdk} claims.\n"
    titles = {
        "gained": "Now supported",
        "lost": "No longer supported",
        "requires": "Requirements",
        "changed": "Changed",
        "declared": "Newly declared",
    }
    lines: list[str] = []
    for kind, title in titles.items():
        found = [change for change in changes if change.kind == kind]
        if found:
            lines += [f"### {title}", "", *(f"- {change.text}" for change in found), ""]
    return "\n".join(lines)


def _claim(old: Claim, new: Claim) -> list[Change]:
    name = new.dimension.name
    was, is_now = old.status in _CLAIMED, new.status in _CLAIMED
    if is_now and not was:
        since = f" (since Airflow {new.since})" if new.since else ""
        unproven = "" if new.status is Status.PROVEN else f", {new.status.value}"
        return [Change("gained", name, f"`{name}`{since}{unproven}")]
    if was and not is_now:
        return [Change("lost", name, f"`{name}` is {new.status.value}")]
    if old.status is Status.UNDECLARED and new.status is not Status.UNDECLARED:
        return [Change("declared", name, f"`{name}` is {new.status.value}")]
    if old.status is not new.status:
        return [Change("changed", name, f"`{name}`: {old.status.value} → {new.status.value}")]
    if old.since != new.since:
        return [Change("changed", name, f"`{name}`: since Airflow {old.since or '?'} → {new.since or '?'}")]
    return []
