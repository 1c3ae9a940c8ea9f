"""The command that does what is due for tables by their policies, once or again and again."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from lakelog.catalog.keeping.upkeep import Maintained
from lakelog.cli import answer
from lakelog.cli.maintenance import age, counted
from lakelog.cli.options import REFERENCE, Place, is_location, takes_place
from lakelog.cli.progress import Progress
from lakelog.log.errors import LakelogError

_SIZE = re.compile(r"([0-9]{1,6})(B|kB|MB|GB|TB)?")
_UNITS = {None: 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Read a size as people write it: 500MB, 20GB."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not a size: write 500MB or 20GB")
    return int(match[1]) * _UNITS[match[2]]


@click.command()
@click.argument("name", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)
@click.option("--dry-run", is_flag=True, help="Only report what is due.")
@click.option("--limit-time", callback=age, metavar="AGE", help="Begin nothing more after that time, as 30m.")
@click.option(
    "--limit-bytes",
    callback=size,
    metavar="SIZE",
    help="Begin nothing more once compactions have read so much, as 20GB.",
)
@click.option("--watch", is_flag=True, help="Do it again and again, until it is interrupted.")
@click.option(
    "--every", callback=age, default="10m", show_default=True, metavar="AGE", help="With --watch: how often."
)
@takes_place
def maintain(
    place: Place,
    name: str,
    dry_run: bool,
    limit_time: dt.timedelta | None,
    limit_bytes: int | None,
    watch: bool,
    every: dt.timedelta,
) -> None:
    """Do what is due to keep TABLE in shape, or each table of NAMESPACE, by their policies.

    Without either, of the whole warehouse. Small files of about one size are joined, and files with many deleted rows
    rewritten without these. Versions expire, and files are deleted, only where a policy says how long to keep them: the
    properties lakelog.maintenance.keep-for and .vacuum-age of the table, or of a namespace above it. A table whose
    lakelog.maintenance is off is left alone.

    No writer fails or waits because of it. At a limit it stops with all that was done by then, and the next call goes
    on; a step that has begun is completed. Exit code 1 where a table failed; it hides no other.
    """
    if watch and dry_run:
        raise click.UsageError(
            "--watch and --dry-run exclude each other: nothing would change from one time to the next"
        )
    catalog = place.catalog_for(name)
    what: dict[str, Any] = {"location": name} if is_location(name) else {"name": name or None}
    while True:
        found: Sequence[Maintained] = ()
        try:
            with Progress() as progress:
                found = catalog.maintain(
                    **what, dry_run=dry_run, limit_time=limit_time, limit_bytes=limit_bytes, progress=progress
                )
        except LakelogError as error:
            if not watch:
                raise
            answer.say(f"lakelog: {error}", err=True)
        _report(found, place.as_json, dry_run=dry_run, only_done=watch)
        if not watch:
            break
        time.sleep(every.total_seconds())
    if any(each.error is not None for each in found):
        raise click.exceptions.Exit(1)


COMMANDS = (maintain,)


def _report(found: Sequence[Maintained], as_json: bool, *, dry_run: bool, only_done: bool) -> None:
    if as_json:
        answer.in_json({"dry_run": dry_run, "tables": msgspec.to_builtins(found)})
        return
    shown = [each for each in found if _has_done(each) or each.note or each.is_left]
    if shown or not only_done:
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
                    each.name,
                    answer.count(each.compacted.read_files),
                    answer.count(each.compacted.written_files),
                    answer.size(each.compacted.read_bytes),
                    answer.count(each.statistics),
                    answer.count(each.versions),
                    answer.count(each.freed_files),
                    answer.size(each.freed_bytes),
                    each.note or ("more is left" if each.is_left else ""),
                )
                for each in shown
            ],
            empty="Nothing is due.",
        )
    if dry_run and any(map(_has_done, found)):
        answer.say("Nothing was changed. Leave out --dry-run to do it.")
    left = [each for each in found if each.is_left]
    if left:
        answer.say(f"{counted(len(left), 'table')} may have more to do: run this again.")
    for each in found:
        if each.error is not None:
            answer.say(f"lakelog: {each.name} failed: {' '.join(each.error.split())}", err=True)


def _has_done(each: Maintained) -> bool:
    done = each.compacted
    return bool(done.read_files or done.lost or each.statistics or each.versions or each.freed_files)
