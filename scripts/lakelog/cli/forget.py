"""The command that erases rows from all that a table has or had. Without --apply it only reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from lakelog.catalog.keeping.erasure import Forgotten
from lakelog.catalog.operations.maintaining import FORGET
from lakelog.cli import answer
from lakelog.cli.operations import command_of, counted, say_nothing_changed
from lakelog.cli.options import Place
from lakelog.cli.progress import Progress


@command_of(
    FORGET,
    click.option(
        "--receipt", type=click.Path(dir_okay=False), metavar="FILE", help="Write the answer there, as JSON."
    ),
)
def forget(place: Place, table: str, where: str, receipt: str | None, **how: Any) -> None:
    catalog = place.catalog()
    with Progress() as progress:
        erasure = catalog.forget(table, where, **how, progress=progress)
    if receipt is not None:
        Path(receipt).write_bytes(msgspec.json.format(msgspec.json.encode(erasure)))
    if place.as_json:
        answer.in_json(answer.facts(erasure))
    else:
        _report(erasure)
    if erasure.left and not erasure.dry_run:
        raise click.exceptions.Exit(1)


COMMANDS = (forget,)


def _report(forgotten: Forgotten) -> None:
    answer.rows(
        ("what", "name", ">files", ">rows", ">older files", ">versions expire", ">checked", ""),
        [
            (
                table.kind,
                answer.respelled(table.name),
                answer.count(table.files),
                answer.count(table.rows),
                answer.count(table.past_files),
                answer.count(table.versions),
                answer.count(table.checked_objects),
                table.details,
            )
            for table in forgotten.tables
            if table.holds_any or table.versions or table.error
        ],
        empty="No such row is anywhere.",
    )
    for part in forgotten.lost:
        answer.say(
            f"{'Lost' if not forgotten.dry_run else 'Will be lost'}: {part.kind} {part.name}: {part.why}"
        )
    for place in forgotten.left:
        answer.say(f"Left: {place}")
    if not forgotten.is_needed:
        return
    for table in forgotten.out_of_reach:
        answer.say(f"Out of reach: {table}")
    if forgotten.dry_run:
        say_nothing_changed()
    elif forgotten.version is not None:
        object_count = sum(table.checked_objects for table in forgotten.tables)
        answer.say(
            f"Forgotten. {counted(object_count, 'object')} that are left were read. The receipt is in version "
            f"{forgotten.version} of {forgotten.table}, the commit {forgotten.commit_hash}"
            + ("." if forgotten.signed_by is None else f", signed by {forgotten.signed_by}.")
        )
