"""The commands about a table's versions and rows: head, diff, restore."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from lakelog.catalog import Table
from lakelog.catalog.looking.pictures import definition_of, differences
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import TABLE, Count, Place, takes_place

_SIGNS = {"added": "+", "removed": "−", "changed": "~"}


@click.command()
@click.argument("table", type=TABLE)
@click.option("--limit", type=Count(), default=10, show_default=True, metavar="N", help="So many rows.")
@click.option("--columns", metavar="A,B", help="These columns only.")
@click.option("--where", metavar="CONDITION", help="Only rows for which it is true.")
@click.option("--version", type=int, metavar="N", help="As they were at that version.")
@click.option("--ref", metavar="NAME", help="On that tag or branch.")
@takes_place
def head(
    place: Place,
    table: str,
    limit: int,
    columns: str | None,
    where: str | None,
    version: int | None,
    ref: str | None,
) -> None:
    """Show some rows of TABLE.

    Which ones come first is not promised. As few files are read as hold that many.
    """
    loaded = load(place, table, version, ref)
    chosen = None if columns is None else columns.split(",")
    found = loaded.scan(chosen, where, limit).to_arrow()
    rows = answer.python_rows(found)
    if place.as_json:
        answer.in_json([answer.plain(row) for row in rows])
    else:
        names = found.schema.names
        answer.rows(names, [[answer.cell(row[name]) for name in names] for row in rows], empty="No rows.")


@click.command()
@click.argument("table", type=TABLE)
@click.argument("first", metavar="VERSION", type=click.IntRange(min=1))
@click.argument("last", metavar="[VERSION]", type=click.IntRange(min=1), required=False)
@takes_place
def diff(place: Place, table: str, first: int, last: int | None) -> None:
    """Show what differs between two versions of TABLE.

    Columns, by their ids, so that a rename is one; properties, partitioning, order, constraints; and how many rows,
    files and bytes there are. Without the second VERSION, the newest. No row is read: CHANGES in SQL and
    Table.changes in Python give the rows.
    """
    before = load(place, table, first)
    after = load(place, table, last)
    found = differences(
        definition_of(before.metadata, before.version), definition_of(after.metadata, after.version)
    )
    counts = [
        (name, getattr(before, member), getattr(after, member))
        for name, member in (("rows", "row_count"), ("files", "file_count"), ("bytes", "size_bytes"))
    ]
    if place.as_json:
        answer.in_json(
            {
                "first": before.version,
                "last": after.version,
                "differences": msgspec.to_builtins(found),
                **{name: {"before": was, "after": now} for name, was, now in counts},
            }
        )
        return
    answer.rows(
        ("", "what", "name", f"at {before.version}", f"at {after.version}"),
        [(_SIGNS[each.kind], each.what, each.name, each.before, each.after) for each in found],
        empty=f"Nothing of its definition differs between version {before.version} and version {after.version}.",
    )
    answer.rows(
        ("", f">at {before.version}", f">at {after.version}", ">difference"),
        [(name, answer.count(was), answer.count(now), f"{now - was:+,}") for name, was, now in counts],
        empty="",
    )


@click.command()
@click.argument("table", type=TABLE)
@click.argument("version", type=click.IntRange(min=1))
@click.option("--rows-only", is_flag=True, help="Its rows alone: columns, partitioning and properties stay.")
@takes_place
def restore(place: Place, table: str, version: int, rows_only: bool) -> None:
    """Make TABLE what it was at VERSION, as a new version.

    Nothing is lost: the versions since then stay in the history, and can be restored in the same way until they expire.
    """
    loaded = load(place, table, None)
    done: Table = (loaded.set_current_version if rows_only else loaded.rollback_to_version)(version)
    if place.as_json:
        said: dict[str, Any] = {"restored": version, "version": done.version, "rows": done.row_count}
        answer.in_json(said)
    else:
        what = "has the rows of" if rows_only else "is as it was at"
        answer.say(f"{table} {what} version {version} again, in version {done.version}.")


COMMANDS = (head, diff, restore)
