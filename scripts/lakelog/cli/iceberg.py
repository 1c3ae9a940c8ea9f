"""The command that lets readers of other formats read a table: export."""

from __future__ import annotations

import click
import msgspec

from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import Place, takes_place


@click.command()
@click.argument("table")
@click.option(
    "--to", metavar="URL", help="Put the metadata into that folder or s3:// URL. [default: the table's own]"
)
@takes_place
def export(place: Place, table: str, to: str | None) -> None:
    """Let readers of Iceberg read TABLE: print the URL of its metadata.

    The newest version comes with the versions before it (100 at most), with tags, branches, and ids of rows. Data files
    stay where they are, and only what has changed since the last export is written. lakelog show says what Iceberg
    cannot say of a table.
    """
    done = load(place, table, None).export_iceberg(to)
    if place.as_json:
        answer.in_json(msgspec.to_builtins(done))
    else:
        answer.say(done.url)


COMMANDS = (export,)
