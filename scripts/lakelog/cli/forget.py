"""The command that erases rows from all that a table has or had. Without --apply it only says what that would do."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from lakelog.catalog.keeping.erasure import Forgotten
from lakelog.cli import answer
from lakelog.cli.maintenance import counted
from lakelog.cli.options import TABLE, Place, takes_place
from lakelog.cli.progress import Progress


@click.command()
@click.argument("table", type=TABLE)
@click.argument("where")
@click.option("--apply", is_flag=True, help="Do it. Without this, nothing is changed, only reported.")
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False),
    metavar="PEM",
    help="Sign the receipt by the Ed25519 key in that file.",
)
@click.option("--reference", metavar="TEXT", help="What the receipt names as the reason, as a ticket.")
@click.option(
    "--receipt", type=click.Path(dir_okay=False), metavar="FILE", help="Write the answer there, as JSON."
)
@click.option(
    "--leave-foreign", is_flag=True, help="Leave such rows in files of another writer, and name these."
)
@takes_place
def forget(
    place: Place,
    table: str,
    where: str,
    apply: bool,
    key: str | None,
    reference: str | None,
    receipt: str | None,
    leave_foreign: bool,
) -> None:
    """Erase the rows of TABLE for which WHERE is true from all that it has or had.

    That is every version, tag, branch and clone, change data, statistics, proposals, Iceberg's metadata, and dropped
    tables of its name. All older versions of these expire; tags that have such rows and saved cuts that need older
    versions are dropped; writes under way fail. All of it is reported first. At the end, every object that is left is
    read, and a receipt is committed to the table's log.

    A call that was stopped is ended by the next one. Exit code 1 where such rows are left somewhere, or may be.
    """
    catalog = place.catalog()
    with Progress() as progress:
        found = catalog.forget(
            table,
            where,
            dry_run=not apply,
            key=key,
            reference=reference,
            leave_foreign=leave_foreign,
            progress=progress,
        )
    if receipt is not None:
        Path(receipt).write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    if place.as_json:
        answer.in_json(msgspec.to_builtins(found))
    else:
        _report(found)
    if found.left and apply:
        raise click.exceptions.Exit(1)


COMMANDS = (forget,)


def _report(found: Forgotten) -> None:
    answer.rows(
        ("what", "name", ">files", ">rows", ">older files", ">versions expire", ">checked", ""),
        [
            (
                each.kind,
                each.name,
                answer.count(each.files),
                answer.count(each.rows),
                answer.count(each.past_files),
                answer.count(each.versions),
                answer.count(each.checked_objects),
                each.details,
            )
            for each in found.tables
            if each.holds_any or each.versions or each.error
        ],
        empty="No such row is anywhere.",
    )
    for lost in found.lost:
        answer.say(f"{'Lost' if not found.dry_run else 'Will be lost'}: {lost.kind} {lost.name}: {lost.why}")
    for left in found.left:
        answer.say(f"Left: {left}")
    if not found.is_needed:
        return
    for each in found.out_of_reach:
        answer.say(f"Out of reach: {each}")
    if found.dry_run:
        answer.say("Nothing was changed. Add --apply to do it.")
    elif found.version is not None:
        checked = sum(each.checked_objects for each in found.tables)
        answer.say(
            f"Forgotten. {counted(checked, 'object')} that are left were read. The receipt is in version "
            f"{found.version} of {found.table}, the commit {found.commit_hash}"
            + ("." if found.signed_by is None else f", signed by {found.signed_by}.")
        )
