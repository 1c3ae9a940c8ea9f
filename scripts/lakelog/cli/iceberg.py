"""The commands that let readers of other formats read tables: export, serve."""

from __future__ import annotations

from functools import partial

import click
import msgspec

from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import Place, takes_place
from lakelog.rest import Answers
from lakelog.rest import serve as run_server
from lakelog.rest.server import LOOPBACK, PORT


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


@click.command()
@click.option("--host", default=LOOPBACK, show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free."
)
@click.option("--quiet", is_flag=True, help="Say nothing of requests.")
@takes_place
def serve(place: Place, host: str, port: int, quiet: bool) -> None:
    """Answer clients of Iceberg's REST catalog from a warehouse, until Ctrl-C.

    Clients read: what they ask to change is refused. They get names and metadata here, and read data from the store
    itself, by credentials of their own. A table is exported when a client loads it.

    There is no state beside the warehouse, and any number of servers agree. At another address than this host's own,
    all that reach it can read names, columns and statistics of all tables: put it behind a proxy that knows its users.
    """
    answers = Answers(place.catalog())

    def began(url: str, server: object) -> None:
        answer.say(f"Serving {place.required_warehouse} at {url}, read only. Ctrl-C ends it.", err=True)

    try:
        run_server(
            answers,
            host,
            port,
            began=began,
            asked=(lambda line: None) if quiet else partial(answer.say, err=True),
        )
    except OSError as error:
        raise click.ClickException(
            f"cannot listen at {host}:{port} ({error.strerror}): choose another --host or --port"
        ) from None


COMMANDS = (export, serve)
