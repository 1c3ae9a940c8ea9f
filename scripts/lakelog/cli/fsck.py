"""The command that checks every object of a warehouse, or of a part of it, and makes the safe repairs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from lakelog.catalog.engine import LogCache, WarehouseStores
from lakelog.catalog.keeping.maintenance import Findings, Severity, check_warehouse, holds_a_table
from lakelog.catalog.names import identifier
from lakelog.catalog.operations.maintaining import FSCK
from lakelog.cli import answer
from lakelog.cli.locations import warehouse_above
from lakelog.cli.operations import command_of, counted
from lakelog.cli.options import Place, is_location
from lakelog.cli.progress import Progress
from lakelog.log import LogOptions, NotFound

EXIT_CODES = {None: 0, Severity.NOTE: 0, Severity.REPAIRABLE: 3, Severity.DAMAGE: 4}


@command_of(
    FSCK,
    click.argument("what", metavar="[PLACE]", default=""),
    click.argument("name", metavar="[NAME]", default=""),
    without=("table",),
)
def fsck(place: Place, what: str, name: str, **how: Any) -> None:
    findings = _check(place, what, name, **how)
    sorted_findings = findings.by_severity()
    if place.as_json:
        answer.in_json(
            {
                "findings": [asdict(finding) for finding in sorted_findings],
                "checked": dict(sorted(findings.checked.items())),
                "repaired": findings.repaired,
            }
        )
    else:
        for line in findings.repaired:
            answer.say(f"repaired: {line}")
        for finding in sorted_findings:
            answer.say(f"{finding.severity}: {finding.kind}: {finding.where}")
            answer.say(f"    {finding.what}. {finding.todo[:1].upper()}{finding.todo[1:]}.")
        answer.say(_summary(findings))
    raise click.exceptions.Exit(EXIT_CODES[findings.worst])


COMMANDS = (fsck,)


def _check(place: Place, what: str, name: str, **how: Any) -> Findings:
    warehouse, location = place.warehouse, None
    if name:
        warehouse = what
    elif what and is_location(what):
        warehouse, location = _home(place, what), what
    elif what:
        name = what
    if warehouse is None:
        warehouse = place.required_warehouse
    logs = LogCache(WarehouseStores(warehouse, place.store_options), {"engine": "lakelog fsck"}, LogOptions())
    if location is None:
        logs.places.check_there()
    with Progress() as progress:
        return check_warehouse(
            logs,
            identifier(name),
            location=location,
            **how,
            progress=progress,
        )


def _home(place: Place, what: str) -> str:
    """Return the warehouse that has the place, as its objects show.

    If fsck judged the place by another warehouse, all of it would seem to be damaged.
    """
    home = warehouse_above(what, place.store_options)
    if home is not None or place.warehouse is None:
        return home or what
    try:
        is_table = holds_a_table(LogCache(WarehouseStores(what, place.store_options), {}, LogOptions()), "")
    except NotFound:
        is_table = True  # so that it is looked for
    return place.warehouse if is_table else what


def _counted(number: int, severity: Severity) -> str:
    return counted(number, "note") if severity is Severity.NOTE else f"{answer.count(number)} {severity}"


def _summary(findings: Findings) -> str:
    object_counts = ", ".join(
        f"{answer.count(number)} {kind}" for kind, number in sorted(findings.checked.items())
    )
    finding_counts = ", ".join(
        _counted(len(findings.of(severity)), severity) for severity in Severity if findings.of(severity)
    )
    return f"checked {object_counts or 'nothing: the warehouse is empty'}: {finding_counts or 'nothing to report'}"
