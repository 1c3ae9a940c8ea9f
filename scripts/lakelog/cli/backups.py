"""The commands about backups, copies of warehouses, and clones of tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from lakelog.catalog import Catalog
from lakelog.catalog.choices import REFUSE
from lakelog.catalog.keeping.backups import Backup, Copied, LeftOut, summary
from lakelog.catalog.names import quoted_where_needed
from lakelog.catalog.operations.copies import (
    BACKUP,
    BACKUPS,
    CLONE,
    COPY,
    DELETE_BACKUP,
    MATERIALIZE,
    RELEASE_CLONE,
    RESTORE_BACKUP,
    VERIFY_BACKUP,
)
from lakelog.cli import answer
from lakelog.cli.operations import command_of, counted, say_nothing_changed
from lakelog.cli.options import Place, takes_place
from lakelog.cli.progress import Progress


@command_of(BACKUP)
def backup(place: Place, at: str, name: str, outside: str) -> None:
    with Progress() as progress:
        outcome = place.catalog().backup(at, name or None, outside=outside, progress=progress)
    if place.as_json:
        answer.in_json(
            {
                **_in_json(outcome.backup),
                "copied": outcome.copied,
                "copied_bytes": outcome.copied_bytes,
                "resumed": outcome.resumed,
            }
        )
        return
    new_backup = outcome.backup
    answer.say(
        f"Made the backup {new_backup.id} of {_of(new_backup)}: {len(new_backup.tables):,} tables in "
        f"{new_backup.objects:,} objects, {answer.size(new_backup.size_bytes)}; copied {outcome.copied:,} of them, "
        f"{answer.size(outcome.copied_bytes)}."
    )
    _say_left(new_backup.left)


@command_of(BACKUPS)
def backups(place: Place, at: str) -> None:
    all_backups = _catalog(place, at).backups(at)
    if place.as_json:
        answer.list_in_json(map(_in_json, all_backups))
        return
    answer.rows(
        ("backup", "as of", "of", ">tables", ">objects", ">size", ">left out"),
        (
            (
                backup_entry.id,
                answer.time(backup_entry.as_of),
                _of(backup_entry),
                answer.count(len(backup_entry.tables)),
                answer.count(backup_entry.objects),
                answer.size(backup_entry.size_bytes),
                answer.count(len(backup_entry.left)),
            )
            for backup_entry in all_backups
        ),
        empty="no backup is whole yet",
    )


@command_of(VERIFY_BACKUP)
def verify_backup(place: Place, at: str, backup: str | None) -> None:
    with Progress() as progress:
        check = _catalog(place, at).verify_backup(at, backup, progress=progress)
    if place.as_json:
        answer.in_json(
            {
                "id": check.backup.id,
                "objects": check.objects,
                "size_bytes": check.size_bytes,
                "problems": [asdict(problem) for problem in check.problems],
            }
        )
    else:
        for problem in check.problems:
            answer.say(f"{problem.what}: {problem.place}, which is {problem.key} of the warehouse")
        verdict = f"{len(check.problems):,} are damaged" if check.problems else "all are as they were"
        answer.say(
            f"Read {check.objects:,} objects of the backup {check.backup.id}, {answer.size(check.size_bytes)}: "
            f"{verdict}."
        )
    if check.problems:
        raise click.exceptions.Exit(1)


@command_of(DELETE_BACKUP, click.argument("ids", metavar="[ID]...", nargs=-1), without=("backups",))
def delete_backup(place: Place, at: str, ids: tuple[str, ...], keep_last: int | None, dry_run: bool) -> None:
    with Progress() as progress:
        deletion = _catalog(place, at).delete_backups(
            at, ids, keep_last=keep_last, dry_run=dry_run, progress=progress
        )
    if place.as_json:
        answer.in_json({"dry_run": dry_run, **answer.facts(deletion)})
        return
    verb = "Would delete" if dry_run else "Deleted"
    for id in deletion.backups:
        answer.say(f"{verb} the backup {id}.")
    answer.say(
        f"{verb} {deletion.objects:,} objects, {answer.size(deletion.size_bytes)}; what stays: "
        f"{counted(deletion.kept, 'backup')}."
    )
    if dry_run and (deletion.backups or deletion.objects):
        say_nothing_changed()


@command_of(COPY)
def copy(place: Place, url: str, name: str, finish: bool, as_table: str | None, outside: str) -> None:
    if as_table is not None:
        if not name or not finish:
            raise click.UsageError("--as is for a TABLE that goes into a warehouse in use, in one run")
        if outside != REFUSE:
            raise click.UsageError(
                "--as copies all files of the TABLE, wherever they are: leave --outside out"
            )
        with Progress() as progress:
            table = place.catalog().copy_table(url, name, target=as_table, progress=progress)
        if place.as_json:
            answer.in_json(
                {
                    "table": as_table,
                    "version": table.version,
                    "files": table.files,
                    "size_bytes": table.size_bytes,
                }
            )
            return
        answer.say(
            f"Made {table.table.name} at {url}, of version {table.version:,}: {table.files:,} files, "
            f"{answer.size(table.size_bytes)}."
        )
        return
    with Progress() as progress:
        outcome = place.catalog().copy(url, name or None, finish=finish, outside=outside, progress=progress)
    _say_copied(place, outcome)


@click.command("finish-copy")
@takes_place
def finish_copy(place: Place) -> None:
    """Make an unfinished copy a warehouse, as of its last run.

    The folder of the warehouse has the copy, made by lakelog copy --unfinished. Only runs that came to their end
    count. The source of the copy is not needed.
    """
    with Progress() as progress:
        catalog = Catalog(place.required_warehouse, options=place.store_options, observe=place.costs)
        outcome = catalog.finish_copy(progress=progress)
    _say_copied(place, outcome)


def _say_copied(place: Place, done: Copied) -> None:
    new_backup = done.backup
    if place.as_json:
        answer.in_json(
            {
                **_in_json(new_backup),
                "url": done.url,
                "copied": done.copied,
                "copied_bytes": done.copied_bytes,
                "resumed": done.resumed,
                "finished": done.finished,
                "carried": [answer.name_in_json(table.name) for table in done.carried],
            }
        )
        return
    text = (
        f"Copied {_of(new_backup)} to {done.url}"
        if done.finished
        else f"Brought {_of(new_backup)} to {done.url}"
    )
    answer.say(
        f"{text}, as of {answer.time(new_backup.as_of)}: {len(new_backup.tables):,} tables in "
        f"{new_backup.objects:,} objects, {answer.size(new_backup.size_bytes)}; copied {done.copied:,} of them, "
        f"{answer.size(done.copied_bytes)}."
    )
    if not done.finished:
        answer.say("It is no warehouse yet: run copy without --unfinished, or finish-copy.")
    _say_clones(new_backup)
    for copied_table in done.carried:
        answer.say(f"{quoted_where_needed(copied_table.name)} has files and a history of its own now.")
    _say_left(done.left)


@command_of(
    RESTORE_BACKUP,
    click.argument("table", required=False, metavar="[TABLE]"),
    click.option("--replace", is_flag=True, help="Drop the table that has the name; undrop brings it back."),
    without=("table",),
)
def restore_backup(
    place: Place, at: str, table: str | None, to: str | None, replace: bool, backup: str | None
) -> None:
    if table is None and (to is not None or replace):
        raise click.UsageError(
            "--to and --replace are for a TABLE: a warehouse is restored to an empty folder"
        )
    with Progress() as progress:
        if table is None:
            catalog = Catalog(place.required_warehouse, options=place.store_options, observe=place.costs)
            outcome = catalog.restore_warehouse(at, backup, progress=progress)
        else:
            restored_table = place.catalog().restore_table(
                at, table, to=to, backup=backup, replace=replace, progress=progress
            )
    if table is not None:
        if place.as_json:
            answer.in_json(
                {
                    "backup": restored_table.backup.id,
                    "table": to or table,
                    "version": restored_table.table.version,
                    "files": restored_table.files,
                    "size_bytes": restored_table.size_bytes,
                }
            )
        else:
            answer.say(
                f"Made {restored_table.table.name} of the backup {restored_table.backup.id}: "
                f"{restored_table.files:,} files, {answer.size(restored_table.size_bytes)}."
            )
        return
    if place.as_json:
        answer.in_json(
            {
                **_in_json(outcome.backup),
                "copied": outcome.copied,
                "copied_bytes": outcome.copied_bytes,
            }
        )
        return
    answer.say(
        f"Restored the backup {outcome.backup.id} to {place.required_warehouse}: {outcome.tables:,} tables in "
        f"{outcome.objects:,} objects; copied {outcome.copied:,} of them, {answer.size(outcome.copied_bytes)}."
    )
    _say_clones(outcome.backup)
    _say_left(outcome.left)


@command_of(CLONE)
def clone(place: Place, source: str, target: str, **how: Any) -> None:
    catalog = place.catalog()
    was_there = how["if_not_exists"] and catalog.table_exists(target)
    table = catalog.clone(source, target, **how)
    if place.as_json:
        answer.in_json(
            {"table": target, "version": table.version, "rows": table.row_count, "files": table.file_count}
        )
    elif was_there:
        answer.say(f"{table.name} was there before, and stays as it is: nothing was cloned.")
    else:
        answer.say(
            f"Made {table.name}, with {table.row_count:,} rows in {table.file_count:,} files of {source}."
        )


@command_of(MATERIALIZE)
def materialize(place: Place, table: str, limit_bytes: int | None) -> None:
    with Progress() as progress:
        outcome = place.catalog().load_table(table).materialize(limit_bytes=limit_bytes, progress=progress)
    if place.as_json:
        answer.in_json(asdict(outcome))
        return
    answer.say(
        f"Copied {outcome.files:,} files, {answer.size(outcome.size_bytes)}; the table is at version {outcome.version}."
    )
    if outcome.is_left:
        answer.say("The limit was reached before the end: run it again.")
    if outcome.tags:
        answer.say(f"The tags {', '.join(outcome.tags)} still have files of other tables.")
    if outcome.owners:
        answer.say(f"These tables still keep files for older versions or tags: {', '.join(outcome.owners)}.")


@command_of(RELEASE_CLONE)
def release_clone(place: Place, table: str, clone: str, dry_run: bool) -> None:
    released_from = place.catalog().load_table(table).release_clone(clone, dry_run=dry_run)
    if place.as_json:
        answer.in_json({"dry_run": dry_run, "table": table, "clone": clone, "version": released_from.version})
    elif dry_run:
        answer.say(f"{released_from.name} keeps files for the clone {clone}, whose log is gone.")
        say_nothing_changed()
    else:
        answer.say(
            f"{released_from.name} keeps no more files for the clone {clone}, as of version {released_from.version}."
        )


COMMANDS = (
    backup,
    backups,
    verify_backup,
    delete_backup,
    restore_backup,
    copy,
    finish_copy,
    clone,
    materialize,
    release_clone,
)


def _catalog(place: Place, at: str) -> Catalog:
    """Return a catalog that can read a place of backups, with or without a warehouse."""
    return Catalog(place.warehouse or at, options=place.store_options, observe=place.costs)


def _of(backup: Backup) -> str:
    return f"the {backup.kind} {quoted_where_needed(backup.name)}" if backup.name else "the warehouse"


def _in_json(backup: Backup) -> dict[str, object]:
    facts = {
        **summary(backup),
        "name": answer.name_in_json(backup.name),
    }
    facts["left"] = [
        {"kind": part.kind, "name": answer.name_in_json(part.name), "place": part.place, "files": part.files}
        for part in backup.left
    ]
    return facts


def _say_clones(backup: Backup) -> None:
    for clone in backup.clones:
        answer.say(f"{quoted_where_needed(clone)} was a clone, and has files and a history of its own now.")


def _say_left(left: tuple[LeftOut, ...]) -> None:
    for part in left:
        answer.say(f"Not in the backup: {part.text}.")
