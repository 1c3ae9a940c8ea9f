"""The command that does the work that tables' policies ask for, once or again and again."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from typing import Any

import click

from lakelog.catalog.keeping.upkeep import Maintained
from lakelog.catalog.operations.maintaining import MAINTAIN
from lakelog.cli import answer
from lakelog.cli.operations import age, command_of, counted, say_nothing_changed
from lakelog.cli.options import Place, is_location
from lakelog.cli.progress import Progress
from lakelog.log.errors import LakelogError


@command_of(
    MAINTAIN,
    click.option("--watch", is_flag=True, help="Do it again and again, until it is interrupted."),
    click.option(
        "--every",
        callback=age,
        default="10m",
        show_default=True,
        metavar="AGE",
        help="With --watch: how often.",
    ),
)
def maintain(place: Place, name: str, dry_run: bool, watch: bool, every: dt.timedelta, **limits: Any) -> None:
    if watch and dry_run:
        raise click.UsageError(
            "--watch and --dry-run exclude each other: nothing would change from one time to the next"
        )
    catalog = place.catalog_for(name)
    scope: dict[str, Any] = {"location": name} if is_location(name) else {"name": name or None}
    while True:
        tables: Sequence[Maintained] = ()
        try:
            with Progress() as progress:
                tables = catalog.maintain(**scope, dry_run=dry_run, **limits, progress=progress)
        except LakelogError as error:
            if not watch:
                raise
            answer.complain(str(error), error.kind, 1)
        _report(tables, place.as_json, dry_run=dry_run, only_done=watch)
        if not watch:
            break
        time.sleep(every.total_seconds())
    if any(table.error is not None for table in tables):
        raise click.exceptions.Exit(1)


COMMANDS = (maintain,)


def _report(found: Sequence[Maintained], as_json: bool, *, dry_run: bool, only_done: bool) -> None:
    if as_json:
        answer.in_json({"dry_run": dry_run, "tables": answer.facts(found)})
    else:
        _print_report(found, dry_run=dry_run, only_done=only_done)
    for table in found:
        if table.error is not None:
            answer.complain(f"{table.name} failed: {table.error}", "failed", 1)


def _print_report(found: Sequence[Maintained], *, dry_run: bool, only_done: bool) -> None:
    noted_tables = [table for table in found if _has_done(table) or table.note or table.is_left]
    if noted_tables or not only_done:
        answer.rows(
            (
                "table",
                ">files",
                ">into",
                ">read",
                ">statistics",
                ">versions expired",
                ">files deleted",
                ">freed",
                "",
            ),
            [
                (
                    answer.respelled(table.name),
                    answer.count(table.compacted.read_files),
                    answer.count(table.compacted.written_files),
                    answer.size(table.compacted.read_bytes),
                    answer.count(table.statistics),
                    answer.count(table.versions),
                    answer.count(table.freed_files),
                    answer.size(table.freed_bytes),
                    table.note or ("more is left" if table.is_left else ""),
                )
                for table in noted_tables
            ],
            empty="Nothing is due.",
        )
    if dry_run and any(map(_has_done, found)):
        say_nothing_changed()
    unfinished_tables = [table for table in found if table.is_left]
    if unfinished_tables:
        answer.say(f"{counted(len(unfinished_tables), 'table')} may have more to do: run this again.")


def _has_done(each: Maintained) -> bool:
    compaction = each.compacted
    return bool(
        compaction.read_files or compaction.lost or each.statistics or each.versions or each.freed_files
    )
