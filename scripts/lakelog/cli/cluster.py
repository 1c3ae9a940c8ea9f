"""The command that puts a table's rows in the order of its clustering."""

from __future__ import annotations

from itertools import takewhile

import click

from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.maintain import size
from lakelog.cli.maintenance import counted
from lakelog.cli.options import Place, names_of_tables, takes_place
from lakelog.cli.progress import Progress


@click.command()
@click.argument("table", shell_complete=names_of_tables)
@click.option(
    "--limit-bytes", callback=size, metavar="SIZE", help="Stop once about so much was rewritten, as 20GB."
)
@click.option("--where", metavar="CONDITION", help="Only files that may have rows for which it is true.")
@click.option("--full", is_flag=True, help="Leave no two files that overlap, whatever that rewrites.")
@takes_place
def cluster(place: Place, table: str, limit_bytes: int | None, where: str | None, full: bool) -> None:
    """Put the rows of TABLE in the order of its CLUSTER BY, as far as that is worth its writing.

    No row changes. Files without that order are rewritten, together with others where these are not much larger, so
    that a call after some new rows rewrites little more than these. What a limit leaves is for the next call. Rows are
    read and written here: for very large tables, CALL lake.system.cluster in Spark does the same by its executors.
    """
    before = load(place, table, None)
    with Progress() as progress:
        after = before.cluster(where, limit_bytes=limit_bytes, full=full, progress=progress)
    changed = takewhile(lambda entry: entry.version > before.version, after.history())
    own = [entry.details for entry in changed if entry.operation == "compact"]
    added, removed, size_bytes = (
        sum(int(each.get(name, 0)) for each in own)
        for name in ("added_files", "removed_files", "added_bytes")
    )
    if place.as_json:
        found = {
            "version": after.version,
            "added_files": added,
            "removed_files": removed,
            "added_bytes": size_bytes,
        }
        answer.in_json(found)
    elif not own:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(f"{counted(removed, 'file')} became {counted(added, 'file')}, in version {after.version}.")


COMMANDS = (cluster,)
