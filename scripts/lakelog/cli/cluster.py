"""The command that puts a table's rows in the order of its clustering."""

from __future__ import annotations

from itertools import takewhile

import click
import msgspec

from lakelog.catalog.keeping.upkeep import ExpectedClustering
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.maintain import size
from lakelog.cli.maintenance import counted
from lakelog.cli.options import TABLE, Place, takes_place
from lakelog.cli.progress import Progress


@click.command()
@click.argument("table", type=TABLE)
@click.option(
    "--limit-bytes", callback=size, metavar="SIZE", help="Stop once about so much was rewritten, as 20GB."
)
@click.option("--where", metavar="CONDITION", help="Only files that may have rows for which it is true.")
@click.option("--full", is_flag=True, help="Leave no two files that overlap, whatever that rewrites.")
@click.option(
    "--dry-run", is_flag=True, help="Only report what it would read and write, and what that saves."
)
@takes_place
def cluster(
    place: Place, table: str, limit_bytes: int | None, where: str | None, full: bool, dry_run: bool
) -> None:
    """Put the rows of TABLE in the order of its CLUSTER BY, as far as that is worth its writing.

    No row changes. Files without that order are rewritten, together with others where these are not much larger, so
    that a call after some new rows rewrites little more than these. What a limit leaves is for the next call. Rows are
    read and written here: for very large tables, CALL lake.system.cluster in Spark does the same by its executors.
    """
    before = load(place, table, None)
    if dry_run:
        _report(before.expected_of_clustering(where, limit_bytes=limit_bytes, full=full), place.as_json)
        return
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


def _report(found: ExpectedClustering, as_json: bool) -> None:
    if as_json:
        answer.in_json({"dry_run": True, **msgspec.to_builtins(found)})
        return
    if not found.read_files:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(
            f"Of {counted(found.files, 'file')} ({answer.size(found.size_bytes)}), {answer.count(len(found.paths))} "
            f"would be rewritten, in about {counted(found.commits, 'commit')}: {answer.size(found.read_bytes)} read, "
            f"about {answer.size(found.written_bytes)} written to {counted(found.written_files, 'file')}."
        )
    if found.new_boundaries:
        answer.say(
            f"First, {', '.join(found.columns)} of some files would be read, for new boundaries of the curve."
        )
    lines = [(each.column, each.before, each.after) for each in found.keys]
    if len(lines) > 1:
        lines.append(("all of them", found.overlap_before, found.overlap_after))
    answer.rows(
        ("a value of", ">files read now", ">then"),
        [(name, f"{before:.1f}", f"{after:.1f}") for name, before, after in lines],
        empty="",
    )
    if found.is_left:
        answer.say("More would be left then: the limit comes before the end.")
    if found.read_files:
        answer.say("Nothing was changed. Leave out --dry-run to do it.")
