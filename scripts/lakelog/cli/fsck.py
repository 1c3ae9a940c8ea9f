"""The command that checks every object of a warehouse, or of one thing in it, and repairs what it safely can."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakelog.catalog.core.logs import LogCache, Places
from lakelog.catalog.keeping.maintenance import Findings, Severity, check_warehouse, holds_a_table
from lakelog.catalog.names import identifier
from lakelog.cli import answer
from lakelog.cli.locations import warehouse_above
from lakelog.cli.options import Place, is_location, takes_place
from lakelog.cli.progress import Progress
from lakelog.log import LogOptions, NotFound

EXIT_CODES = {None: 0, Severity.NOTE: 0, Severity.REPAIRABLE: 3, Severity.DAMAGE: 4}


@click.command()
@click.argument("what", metavar="[PLACE]", default="")
@click.argument("name", metavar="[NAME]", default="")
@click.option("--deep", is_flag=True, help="Read every page of the data files too, and check the values.")
@click.option("--all-versions", is_flag=True, help="Check the data files of all versions that can be read.")
@click.option("--repair", is_flag=True, help="Do what is provably safe, then check again.")
@takes_place
def fsck(place: Place, what: str, name: str, deep: bool, all_versions: bool, repair: bool) -> None:
    """Check every object of a warehouse, and report what is wrong.

    PLACE is a warehouse, or the folder or URL of one table or namespace; NAME is one thing in the warehouse.
    Without PLACE, --warehouse is checked.

    \b
    Findings are of three kinds:
      damage      data or history is lost or wrong: restore the object that is named
      repairable  derived or unfinished: --repair fixes it, and so does normal work
      note        good to know: leftovers of writers that died, foreign objects

    --repair writes hints and snapshots anew, aborts undecided transactions, and removes the names of
    unfinished drops. It never touches commits, decisions, bases or data files. All that can be read before
    can be read after: where it could not be, nothing is changed. What a repair removes or replaces is moved
    to _log/_lost/, with a list of it.

    Exit code: 0 clean (notes at most), 3 something repairable is left, 4 damage; 1 could not check, 2 wrong usage.
    """
    findings = _check(place, what, name, deep=deep, all_versions=all_versions, repair=repair)
    listed = findings.by_severity()
    if place.as_json:
        answer.in_json(
            {
                "findings": [asdict(finding) for finding in listed],
                "checked": dict(sorted(findings.checked.items())),
                "repaired": findings.repaired,
            }
        )
    else:
        for line in findings.repaired:
            answer.say(f"repaired: {line}")
        for finding in listed:
            answer.say(f"{finding.severity}: {finding.kind}: {finding.where}")
            answer.say(f"    {finding.what}. {finding.todo[:1].upper()}{finding.todo[1:]}.")
        answer.say(_summary(findings))
    raise click.exceptions.Exit(EXIT_CODES[findings.worst])


COMMANDS = (fsck,)


def _check(place: Place, what: str, name: str, *, deep: bool, all_versions: bool, repair: bool) -> Findings:
    warehouse, location = place.warehouse, None
    if name:
        warehouse = what
    elif what and is_location(what):
        warehouse, location = _home(place, what), what
    elif what:
        name = what
    if warehouse is None:
        warehouse = place.required_warehouse
    logs = LogCache(Places(warehouse, place.store_options), {"engine": "lakelog fsck"}, LogOptions())
    if location is None:
        logs.places.check_there()
    with Progress() as progress:
        return check_warehouse(
            logs,
            identifier(name),
            location=location,
            deep=deep,
            all_versions=all_versions,
            repair=repair,
            progress=progress,
        )


def _home(place: Place, what: str) -> str:
    """Return the warehouse by whose places what lies there is judged: by those of another one, all of it would seem to
    be damaged. The objects at a place show what it is, so that a warehouse and a table are given alike."""
    home = warehouse_above(what, place.store_options)
    if home is not None or place.warehouse is None:
        return home or what
    try:
        is_table = holds_a_table(LogCache(Places(what, place.store_options), {}, LogOptions()), "")
    except NotFound:
        is_table = True  # so that it is looked for
    return place.warehouse if is_table else what


def _summary(findings: Findings) -> str:
    counted = ", ".join(f"{answer.count(number)} {what}" for what, number in sorted(findings.checked.items()))
    found = ", ".join(
        f"{len(findings.of(severity))} {severity}" for severity in Severity if findings.of(severity)
    )
    return f"checked {counted or 'nothing: the warehouse is empty'}: {found or 'nothing to report'}"
