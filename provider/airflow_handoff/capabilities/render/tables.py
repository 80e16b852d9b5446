"""Claims, dimensions and features as blocks."""

from __future__ import annotations

from dataclasses import replace

from airflow_handoff.capabilities.claims import Claim, Claims, Status
from airflow_handoff.capabilities.dimensions import GROUP_TITLES, GROUPS, Dimension, DimensionList
from airflow_handoff.capabilities.features import Features, FeatureStatus
from airflow_handoff.capabilities.render.blocks import Block, Cell, Heading, Paragraph, Row, Table

LEGEND = (
    "✓ is shown only with its evidence: the cases that passed, the SDK version that ran them, and the "
    "supervisor schema. “unproven” is claimed, and no case of that version and schema shows it. “undeclared” "
    "is not mentioned by the SDK. “n/a” needs native-dag-authoring, which the SDK does not support; a tier "
    "with † applies only with it."
)
_FEATURE_LEGEND = (
    "✓ is shown only where the system tests ran the feature on a real Airflow of that version and passed."
)
_KINDS = {
    Status.PROVEN: "proven",
    Status.FAILING: "failing",
    Status.UNPROVEN: "unproven",
    Status.UNSUPPORTED: "quiet",
    Status.NOT_APPLICABLE: "quiet",
    Status.UNDECLARED: "quiet",
}


def matrix_blocks(sdks: tuple[Claims, ...], dimensions: DimensionList) -> tuple[Block, ...]:
    """Return one table across SDKs: a row for each dimension, a column for each SDK.

    :param sdks: in the order of the columns.
    :param dimensions: what can be claimed.
    """
    header = (Cell("Dimension"), Cell("Tier"), *(Cell(claims.sdk) for claims in sdks))
    rows = [
        Row((Cell("Oldest Airflow"), Cell(""), *(Cell(claims.min_airflow_version) for claims in sdks))),
        Row(
            (
                Cell("Supervisor schema"),
                Cell(""),
                *(Cell(claims.supervisor_schema_version) for claims in sdks),
            )
        ),
        Row((Cell("Evidence"), Cell(""), *(Cell(_run(claims)) for claims in sdks))),
    ]
    for group in GROUPS:
        rows.append(_group_row(group, len(header)))
        for dimension in dimensions.in_group(group):
            cells = (support_cell(claims, claims.by_name[dimension.name]) for claims in sdks)
            rows.append(Row((_name(dimension), Cell(_tier(dimension)), *cells)))
    return Table(header, tuple(rows)), Paragraph(LEGEND)


def sdk_blocks(claims: Claims) -> tuple[Block, ...]:
    """Return the table of one SDK, with what it says of each dimension.

    :param claims: what is known of it.
    """
    header = tuple(map(Cell, ("Dimension", "Tier", "Support", "Since Airflow", "Since SDK", "Note")))
    rows: list[Row] = []
    for group in GROUPS:
        rows.append(_group_row(group, len(header)))
        for claim in claims.claims:
            if claim.dimension.group == group:
                rows.append(
                    Row(
                        (
                            _name(claim.dimension),
                            Cell(_tier(claim.dimension)),
                            replace(support_cell(claims, claim), title=""),
                            Cell(claim.since),
                            Cell(claim.sdk_version),
                            Cell(claim.note),
                        )
                    )
                )
    facts = (
        f"{claims.sdk}: Airflow {claims.min_airflow_version} or later, supervisor schema "
        f"{claims.supervisor_schema_version}, evidence: {_run(claims)}."
    )
    return Paragraph(facts), Table(header, tuple(rows)), Paragraph(LEGEND)


def page_blocks(sdks: tuple[Claims, ...], dimensions: DimensionList) -> tuple[Block, ...]:
    """Return the matrix and, below it, the table of each SDK.

    :param sdks: in the order of the columns.
    :param dimensions: what can be claimed.
    """
    blocks: tuple[Block, ...] = matrix_blocks(sdks, dimensions)
    for claims in sdks:
        blocks += (Heading(claims.sdk), *sdk_blocks(claims)[:-1])
    return blocks


def dimension_blocks(dimensions: DimensionList) -> tuple[Block, ...]:
    """Return the prose that explains each dimension.

    :param dimensions: what can be claimed.
    """
    blocks: list[Block] = []
    for group in GROUPS:
        blocks.append(Heading(GROUP_TITLES[group]))
        for dimension in dimensions.in_group(group):
            blocks += [Heading(dimension.name, 3, code=True), Paragraph(_sentence(dimension, dimensions))]
    return tuple(blocks)


def feature_blocks(features: Features) -> tuple[Block, ...]:
    """Return one table: a row for each feature, a column for each Airflow version.

    :param features: with what the system tests showed.
    """
    header = (Cell("Feature"), *(Cell(f"Airflow {version}") for version in features.versions))
    rows = []
    for feature in features.features:
        cells = []
        for version in features.versions:
            support = feature.support[version]
            if support.status is FeatureStatus.ABSENT:
                cells.append(Cell(f"no: {support.how}", kind="quiet"))
            elif support.status is FeatureStatus.PROVEN:
                ran = f"{_count(len(support.passed), 'test')} on {support.airflow}"
                cells.append(Cell(f"✓ {support.how} ({ran})", kind="proven", title=", ".join(support.passed)))
            elif support.status is FeatureStatus.FAILING:
                cells.append(Cell(f"✗ {support.how} (failing)", kind="failing"))
            else:
                cells.append(Cell(f"{support.how} (unproven)", kind="unproven"))
        rows.append(Row((Cell(feature.title), *cells)))
    return Table(header, tuple(rows)), Paragraph(_FEATURE_LEGEND)


def support_cell(claims: Claims, claim: Claim) -> Cell:
    """Return what to show of one claim: a tick only with its evidence.

    :param claims: the SDK's.
    :param claim: one of them.
    """
    evidence, passed, failed = claims.evidence, len(claim.proof.passed), len(claim.proof.failed)
    if claim.status is Status.PROVEN and evidence is not None:
        cases = _count(passed, "case")
        text = f"✓ {cases}, {evidence.sdk_version}, {evidence.supervisor_schema_version}"
    elif claim.status is Status.FAILING:
        text = f"✗ failing {failed} of {_count(passed + failed, 'case')}"
    else:
        text = {
            Status.UNPROVEN: "unproven",
            Status.UNSUPPORTED: "no",
            Status.NOT_APPLICABLE: "n/a",
            Status.UNDECLARED: "undeclared",
        }[claim.status]
    return Cell(text, kind=_KINDS[claim.status], title=claim.note)


def _run(claims: Claims) -> str:
    if claims.evidence is None:
        return "none"
    outdated = "outdated: " if claims.outdated else ""
    return f"{outdated}{claims.evidence.sdk_version} under {claims.evidence.supervisor}"


def _group_row(group: str, width: int) -> Row:
    return Row((Cell(GROUP_TITLES[group]), *(Cell("") for _ in range(width - 1))), heading=True)


def _name(dimension: Dimension) -> Cell:
    return Cell(dimension.name, code=True, title=dimension.means)


def _tier(dimension: Dimension) -> str:
    return f"{dimension.tier} †" if dimension.conditional else dimension.tier


def _sentence(dimension: Dimension, dimensions: DimensionList) -> str:
    verb = "Reported with" if dimension.group == "states" else "Means:"
    condition = f", while {dimensions.gate.name} is supported" if dimension.conditional else ""
    gate = " While it is not supported, the dimensions that depend on it are n/a." if dimension.gate else ""
    return (
        f"{dimension.tier}{condition}; on the list since {dimension.since}. {verb} {dimension.means}.{gate}"
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
