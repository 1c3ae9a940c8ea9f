"""The commands about backups and copies: backup, backups, verify-backup, delete-backup, restore-backup, copy,
finish-copy."""

from __future__ import annotations

from dataclasses import asdict

import click
import msgspec

from lakelog.catalog import Catalog
from lakelog.catalog.choices import CARRY, LEAVE, REFUSE
from lakelog.catalog.keeping.backups import Backup, Copied, LeftOut, summary
from lakelog.catalog.names import quoted_where_needed
from lakelog.cli import answer
from lakelog.cli.maintenance import counted
from lakelog.cli.options import REFERENCE, Place, takes_place
from lakelog.cli.progress import Progress

_ID = click.option("--backup", "id", metavar="ID", help="Which backup. [default: the newest]")

_OUTSIDE, _OUTSIDE_OF_A_COPY = (
    click.option(
        "--outside",
        type=click.Choice(choices),
        default=REFUSE,
        show_default=True,
        help=f"What to do about tables and files outside of the warehouse's folder: {means}.",
    )
    for choices, means in (
        ([REFUSE, LEAVE], "leave names them in the answer"),
        (
            [REFUSE, LEAVE, CARRY],
            "carry copies them too, without their history, leave names them in the answer",
        ),
    )
)


@click.command()
@click.argument("to", metavar="PLACE")
@click.argument("name", required=False, metavar="[TABLE|NAMESPACE]", type=REFERENCE)
@_OUTSIDE
@takes_place
def backup(place: Place, to: str, name: str | None, outside: str) -> None:
    """Copy the warehouse, a table, or a namespace with all below it to PLACE, another folder or URL.

    It is as of one moment, with all versions that can be read. What is at PLACE already is not copied again, and a run
    that was stopped goes on with the next.
    """
    with Progress() as progress:
        done = place.catalog().backup(to, name, outside=outside, progress=progress)
    if place.as_json:
        answer.in_json(
            {
                **_in_json(done.backup),
                "copied": done.copied,
                "copied_bytes": done.copied_bytes,
                "resumed": done.resumed,
            }
        )
        return
    made = done.backup
    answer.say(
        f"Made the backup {made.id} of {_of(made)}: {len(made.tables):,} tables in {made.objects:,} objects, "
        f"{answer.size(made.size_bytes)}; copied {done.copied:,} of them, {answer.size(done.copied_bytes)}."
    )
    _say_left(made.left)


@click.command()
@click.argument("at", metavar="PLACE")
@takes_place
def backups(place: Place, at: str) -> None:
    """List the backups at PLACE, oldest first."""
    found = _catalog(place, at).backups(at)
    if place.as_json:
        answer.in_json([_in_json(each) for each in found])
        return
    answer.rows(
        ("backup", "as of", "of", ">tables", ">objects", ">size", ">left out"),
        (
            (
                each.id,
                answer.time(each.time_us),
                _of(each),
                answer.count(len(each.tables)),
                answer.count(each.objects),
                answer.size(each.size_bytes),
                answer.count(len(each.left)),
            )
            for each in found
        ),
        empty="no backup is whole yet",
    )


@click.command("verify-backup")
@click.argument("at", metavar="PLACE")
@_ID
@takes_place
def verify_backup(place: Place, at: str, id: str | None) -> None:
    """Read every object of a backup at PLACE, and name those that are missing or were altered (exit code 1)."""
    with Progress() as progress:
        done = _catalog(place, at).verify_backup(at, id, progress=progress)
    if place.as_json:
        answer.in_json(
            {
                "id": done.backup.id,
                "objects": done.objects,
                "size_bytes": done.size_bytes,
                "problems": [asdict(each) for each in done.problems],
            }
        )
    else:
        for each in done.problems:
            answer.say(f"{each.what}: {each.place}, which is {each.key} of the warehouse")
        found = f"{len(done.problems):,} are damaged" if done.problems else "all are as they were"
        answer.say(
            f"Read {done.objects:,} objects of the backup {done.backup.id}, {answer.size(done.size_bytes)}: {found}."
        )
    if done.problems:
        raise click.exceptions.Exit(1)


@click.command("delete-backup")
@click.argument("at", metavar="PLACE")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--keep-last",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of each thing, keep the newest N that no ID names, and delete the others.",
)
@click.option("--apply", is_flag=True, help="Do it. Without this, nothing is changed, only reported.")
@takes_place
def delete_backup(place: Place, at: str, ids: tuple[str, ...], keep_last: int | None, apply: bool) -> None:
    """Delete backups at PLACE by their IDs or all but the newest N, and the objects that no other one there needs.

    A deletion that was stopped is finished by the next one, also by one without an ID. While a backup to PLACE has
    begun and not ended, nothing is deleted.
    """
    with Progress() as progress:
        done = _catalog(place, at).delete_backups(
            at, ids, keep_last=keep_last, dry_run=not apply, progress=progress
        )
    if place.as_json:
        answer.in_json({"dry_run": not apply, **msgspec.to_builtins(done)})
        return
    for id in done.backups:
        answer.say(f"Deleted the backup {id}." if apply else f"Would delete the backup {id}.")
    verb = "Deleted" if apply else "Would delete"
    answer.say(
        f"{verb} {done.objects:,} objects, {answer.size(done.size_bytes)}; what stays: {counted(done.kept, 'backup')}."
    )
    if not apply and (done.backups or done.objects):
        answer.say("Nothing was changed. Add --apply to do it.")


@click.command()
@click.argument("to", metavar="URL")
@click.argument("name", required=False, metavar="[TABLE|NAMESPACE]", type=REFERENCE)
@click.option("--unfinished", is_flag=True, help="Only bring what is new: the folder is no warehouse yet.")
@click.option(
    "--as", "as_", metavar="NAME", help="Into a warehouse in use at URL: the TABLE gets that name there."
)
@_OUTSIDE_OF_A_COPY
@takes_place
def copy(place: Place, to: str, name: str | None, unfinished: bool, as_: str | None, outside: str) -> None:
    """Make an empty folder or URL a warehouse with all of this one, or a table, or a namespace with all below it.

    It is as of one moment, with the same history. With --unfinished it may be brought up to date any number of times;
    the last run, without it, or finish-copy makes it a warehouse. With --as a table goes into a warehouse in use,
    with its rows alone and a history of its own.
    """
    if as_ is not None:
        if name is None or unfinished:
            raise click.UsageError("--as is for a TABLE that goes into a warehouse in use, in one run")
        with Progress() as progress:
            table = place.catalog().copy_table(to, name, target=as_, progress=progress)
        if place.as_json:
            answer.in_json(
                {"table": as_, "version": table.version, "files": table.files, "size_bytes": table.size_bytes}
            )
            return
        answer.say(
            f"Made {table.table.name} at {to}, of version {table.version:,}: {table.files:,} files, "
            f"{answer.size(table.size_bytes)}."
        )
        return
    with Progress() as progress:
        done = place.catalog().copy(to, name, finish=not unfinished, outside=outside, progress=progress)
    _say_copied(place, done)


@click.command("finish-copy")
@takes_place
def finish_copy(place: Place) -> None:
    """Make the warehouse's folder, which has an unfinished copy, a warehouse as of its last whole run.

    It needs nothing of what was copied.
    """
    with Progress() as progress:
        catalog = Catalog(place.required_warehouse, options=place.store_options, observe=place.costs)
        done = catalog.finish_copy(progress=progress)
    _say_copied(place, done)


def _say_copied(place: Place, done: Copied) -> None:
    made = done.backup
    if place.as_json:
        answer.in_json(
            {
                **_in_json(made),
                "url": done.url,
                "copied": done.copied,
                "copied_bytes": done.copied_bytes,
                "resumed": done.resumed,
                "finished": done.finished,
                "carried": [list(each.name) for each in done.carried],
            }
        )
        return
    what = f"Copied {_of(made)} to {done.url}" if done.finished else f"Brought {_of(made)} to {done.url}"
    answer.say(
        f"{what}, as of {answer.time(made.time_us)}: {len(made.tables):,} tables in {made.objects:,} objects, "
        f"{answer.size(made.size_bytes)}; copied {done.copied:,} of them, {answer.size(done.copied_bytes)}."
    )
    if not done.finished:
        answer.say("It is no warehouse yet: run copy without --unfinished, or finish-copy.")
    _say_clones(made)
    for each in done.carried:
        answer.say(f"{quoted_where_needed(each.name)} has files and a history of its own now.")
    _say_left(done.left)


@click.command("restore-backup")
@click.argument("at", metavar="PLACE")
@click.argument("table", required=False, metavar="[TABLE]")
@click.option("--to", metavar="NAME", help="The name that the table is to have. [default: its own]")
@click.option("--replace", is_flag=True, help="Drop the table that has the name; undrop brings it back.")
@_ID
@takes_place
def restore_backup(
    place: Place, at: str, table: str | None, to: str | None, replace: bool, id: str | None
) -> None:
    """Restore a backup at PLACE to the warehouse.

    Without TABLE the warehouse has to be an empty folder, and becomes what the backup has, with all its history. With
    TABLE, that table comes back into a warehouse in use, with its rows as of the backup and a history of its own.
    """
    if table is None and (to is not None or replace):
        raise click.UsageError(
            "--to and --replace are for a TABLE: a warehouse is restored to an empty folder"
        )
    with Progress() as progress:
        if table is None:
            catalog = Catalog(place.required_warehouse, options=place.store_options, observe=place.costs)
            whole = catalog.restore_warehouse(at, id, progress=progress)
        else:
            made = place.catalog().restore_table(
                at, table, to=to, backup=id, replace=replace, progress=progress
            )
    if table is not None:
        if place.as_json:
            answer.in_json(
                {
                    "backup": made.backup.id,
                    "table": to or table,
                    "version": made.table.version,
                    "files": made.files,
                    "size_bytes": made.size_bytes,
                }
            )
        else:
            answer.say(
                f"Made {made.table.name} of the backup {made.backup.id}: {made.files:,} files, "
                f"{answer.size(made.size_bytes)}."
            )
        return
    if place.as_json:
        answer.in_json({**_in_json(whole.backup), "copied": whole.copied, "copied_bytes": whole.copied_bytes})
        return
    answer.say(
        f"Restored the backup {whole.backup.id} to {place.required_warehouse}: {whole.tables:,} tables in "
        f"{whole.objects:,} objects; copied {whole.copied:,} of them, {answer.size(whole.copied_bytes)}."
    )
    _say_clones(whole.backup)
    _say_left(whole.left)


COMMANDS = (backup, backups, verify_backup, delete_backup, restore_backup, copy, finish_copy)


def _catalog(place: Place, at: str) -> Catalog:
    """Return a catalog to look at a place of backups with, which needs no warehouse."""
    return Catalog(place.warehouse or at, options=place.store_options, observe=place.costs)


def _of(backup: Backup) -> str:
    return f"the {backup.kind} {quoted_where_needed(backup.name)}" if backup.name else "the warehouse"


def _in_json(backup: Backup) -> dict[str, object]:
    return {**summary(backup), "time": answer.iso_time(backup.time_us)}


def _say_clones(made: Backup) -> None:
    for clone in made.clones:
        answer.say(f"{quoted_where_needed(clone)} was a clone, and has files and a history of its own now.")


def _say_left(left: tuple[LeftOut, ...]) -> None:
    for each in left:
        answer.say(f"Not in the backup: {each.text}.")
