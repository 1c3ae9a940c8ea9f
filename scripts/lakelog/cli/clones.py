"""The commands about clones of tables: clone, materialize, release-clone."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakelog.cli import answer
from lakelog.cli.options import TABLE, Place, takes_place
from lakelog.cli.progress import Progress


@click.command()
@click.argument("source", type=TABLE)
@click.argument("target")
@click.option("--version", type=int, metavar="N", help="Of that version. [default: the newest]")
@takes_place
def clone(place: Place, source: str, target: str, version: int | None) -> None:
    """Make the table TARGET with the rows of SOURCE, without copying a file.

    From there on each has its own history. SOURCE keeps the files until TARGET is purged, or has none of them in any
    version that can be read: its vacuum leaves them, which takes the right to write in its log now.
    """
    made = place.catalog().clone(source, target, version=version)
    if place.as_json:
        answer.in_json(
            {"table": target, "version": made.version, "rows": made.row_count, "files": made.file_count}
        )
    else:
        answer.say(
            f"Made {made.name}, with {made.row_count:,} rows in {made.file_count:,} files of {source}."
        )


@click.command()
@click.argument("table", type=TABLE)
@click.option(
    "--limit-bytes", type=int, metavar="N", help="Begin nothing more once so many bytes were copied."
)
@takes_place
def materialize(place: Place, table: str, limit_bytes: int | None) -> None:
    """Copy the files that the clone TABLE, and its branches, have of other tables.

    These need not keep them from then on, except for older versions and tags of TABLE: expire and drop them, and run
    lakelog vacuum on TABLE. A run that was stopped goes on with the next one.
    """
    with Progress() as progress:
        done = place.catalog().load_table(table).materialize(limit_bytes=limit_bytes, progress=progress)
    if place.as_json:
        answer.in_json(asdict(done))
        return
    answer.say(
        f"Copied {done.files:,} files, {answer.size(done.size_bytes)}; the table is at version {done.version}."
    )
    if done.is_left:
        answer.say("The limit was reached before the end: run it again.")
    if done.tags:
        answer.say(f"The tags {', '.join(done.tags)} still have files of other tables.")
    if done.owners:
        answer.say(f"These tables still keep files for older versions or tags: {', '.join(done.owners)}.")


@click.command("release-clone")
@click.argument("table", type=TABLE)
@click.argument("clone")
@takes_place
def release_clone(place: Place, table: str, clone: str) -> None:
    """Keep no more files in TABLE for a clone whose log is gone, and that can never say that it needs none.

    CLONE is the id of that log, as lakelog fsck shows it. Refused where the log, or a part of it, is there. Vacuum
    deletes the files then: if the clone is restored later, its rows are lost.
    """
    done = place.catalog().load_table(table).release_clone(clone)
    if place.as_json:
        answer.in_json({"table": table, "clone": clone, "version": done.version})
    else:
        answer.say(f"{done.name} keeps no more files for the clone {clone}, as of version {done.version}.")


COMMANDS = (clone, materialize, release_clone)
