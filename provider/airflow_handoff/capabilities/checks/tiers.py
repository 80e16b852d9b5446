"""Whether the claims fit the list of dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_handoff.capabilities.checks.finding import SECTIONS, Finding, Rule, Subject, nearest


def unknown_dimension(subject: Subject) -> Iterator[Finding]:
    """Every name is on the list, in its own section."""
    for section in SECTIONS:
        for name in map(str, subject.section(section)):
            dimension = subject.dimensions.by_name.get(name)
            if dimension is not None and dimension.section == section:
                continue
            if dimension is not None:
                message, write = (
                    f"`{name}` is not one of the {section}",
                    f"Move it below `{dimension.section}:`.",
                )
            else:
                known = (*subject.dimensions.in_section(section), *subject.dimensions.by_name)
                close = nearest(name, known)
                message = f"`{name}` is not a known dimension"
                write = (
                    f"Write `{close}:`."
                    if close
                    else "Remove it, or upgrade airflow-provider-handoff if Airflow's list has it."
                )
            yield subject.finding("unknown-dimension", (section, name), message, write)


def since_on_unsupported(subject: Subject) -> Iterator[Finding]:
    """What is not supported works since no version."""
    for section, name, fields in subject.entries():
        if fields.get("supported") is False and fields.get("since") is not None:
            yield subject.finding(
                "since-on-unsupported",
                (section, name, "since"),
                f"`{name}` is not supported, and says since {fields['since']}",
                f"Remove `since`, or write `supported: true` if {name} works.",
            )


def gate_contradiction(subject: Subject) -> Iterator[Finding]:
    """Nothing that needs whole Dags is supported where whole Dags are not."""
    gate = subject.dimensions.gate
    if subject.supported(gate.name):
        return
    for dimension in subject.dimensions.dimensions:
        if dimension.conditional and subject.supported(dimension.name):
            yield subject.finding(
                "gate-contradiction",
                (dimension.section, dimension.name),
                f"`{dimension.name}` is supported, and `{gate.name}`, which it needs, is not",
                f"Write `supported: true` for {gate.name}, or `supported: false` here.",
            )


def must_not_met(subject: Subject) -> Iterator[Finding]:
    """Each dimension of the MUST tier is supported, or listed as a known gap.

    One that appeared after the oldest revision may be left out: the manifest is older than the dimension.
    """
    for name in unmet_musts(subject):
        if name not in subject.unmet:
            section = subject.dimensions.by_name[name].section
            declared = subject.supported(name) is not None
            yield subject.finding(
                "must-not-met",
                (section, name),
                f"`{name}` is a MUST, and {'is not supported' if declared else 'is not declared'}",
                f"Implement it, or admit the gap: add '{name}' to `unmet` of this SDK in handoff.toml.",
            )


def stale_gap(subject: Subject) -> Iterator[Finding]:
    """A gap that is admitted in the configuration is still one."""
    for name in subject.unmet:
        if name not in unmet_musts(subject):
            yield subject.finding(
                "stale-gap",
                (),
                f"'{name}' is listed in `unmet`, and it is no unmet MUST of this SDK",
                f"Remove '{name}' from `unmet` of this SDK in handoff.toml.",
            )


def unmet_musts(subject: Subject) -> tuple[str, ...]:
    """Return the MUST dimensions that the claims do not meet.

    :param subject: the claim file.
    """
    listed = subject.dimensions
    gate_open = subject.supported(listed.gate.name) is True
    return tuple(
        dimension.name
        for dimension in listed.dimensions
        if dimension.tier == "MUST"
        and (gate_open or not dimension.conditional)
        and not subject.supported(dimension.name)
        and (dimension.since == listed.revisions[0] or dimension.name in subject.section(dimension.section))
    )


TIER_RULES: tuple[Rule, ...] = (
    unknown_dimension,
    since_on_unsupported,
    gate_contradiction,
    must_not_met,
    stale_gap,
)
