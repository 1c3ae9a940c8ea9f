"""The commands that let readers of other formats read tables, and take in tables of other formats: export, publish,
serve, import."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import click
import msgspec

from lakelog.catalog import Imported
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import REFERENCE, TABLE, Place, takes_place
from lakelog.cli.progress import Progress
from lakelog.log.grammar import PUBLISHED_FOLDER
from lakelog.rest import Answers, BucketTree
from lakelog.rest import publish as publish_tree
from lakelog.rest import serve as run_server
from lakelog.rest.server import LOOPBACK, PORT


@click.command()
@click.argument("table", type=TABLE)
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
    with Progress() as progress:
        done = load(place, table, None).export_iceberg(to, progress=progress)
    if place.as_json:
        answer.in_json(msgspec.to_builtins(done))
    else:
        answer.say(done.url)


@click.command()
@click.argument("namespace", default="", type=REFERENCE)
@click.option(
    "--to", metavar="URL", help=f"An s3:// URL for the tree. [default: {PUBLISHED_FOLDER}/ in the warehouse]"
)
@takes_place
def publish(place: Place, namespace: str, to: str | None) -> None:
    """Let clients of Iceberg's REST catalog read a warehouse from its bucket, without a server.

    What lakelog serve would answer is written there as objects, for all tables, or for those in NAMESPACE and below
    it, which needs --to. Clients read what was published last. Only what has changed is written, and what is gone is
    removed, so run it as often as clients need it. They have to be allowed to read these objects and the tables, by
    requests that are signed or by a policy of the bucket. A folder cannot hold the tree: use lakelog serve.

    Fails where a table or a namespace could not be brought up to date; the others are then.
    """
    path = identifier(namespace)
    if path and to is None:
        raise click.UsageError("A namespace is published to a place of its own: give --to")
    catalog = place.catalog()
    tree = BucketTree(catalog.places, to or f"{catalog.warehouse}/{PUBLISHED_FOLDER}", place.store_options)
    done = publish_tree(catalog, tree, path)
    names = {"left_out": done.left_out, "failed": done.failed}
    if place.as_json:
        said = {
            key: [{"name": name, "why": why} for name, why in sorted(each.items())]
            for key, each in names.items()
        }
        answer.in_json({"uri": tree.uri, **asdict(done), **said})
    else:
        answer.say(tree.uri)
        answer.say(
            f"{done.tables:,} tables and {done.views:,} views in {done.namespaces:,} namespaces; "
            f"{done.written:,} objects written ({answer.size(done.written_bytes)}), {done.removed:,} removed.",
            err=True,
        )
        for key, each in names.items():
            for name, why in sorted(each.items()):
                answer.say(f"{key.replace('_', ' ')}: {quoted_where_needed(name)}: {why}", err=True)
    if done.failed:
        raise click.ClickException(f"{len(done.failed):,} tables or namespaces were not brought up to date")


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


@click.command("import")
@click.argument("source")
@click.argument("table", type=TABLE)
@click.option(
    "--format",
    "format_",
    required=True,
    type=click.Choice(("iceberg", "delta", "parquet"), case_sensitive=False),
    help="What the source is.",
)
@click.option(
    "--versions",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="How many of its newest versions come along; older ones are in the first of these.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@click.option(
    "--copy", is_flag=True, help="Copy the files, of all these versions, so that SOURCE may delete its own."
)
@click.option(
    "--time-zone",
    metavar="ZONE",
    help="Of a Delta table's writers, as Europe/Berlin: for partitions by times without one.",
)
@takes_place
def import_(
    place: Place,
    source: str,
    table: str,
    format_: str,
    versions: int,
    dry_run: bool,
    copy: bool,
    time_zone: str | None,
) -> None:
    """Make TABLE of the table or folder at SOURCE, whose files stay where they are.

    SOURCE is the folder of an Iceberg table, or its metadata file, of a Delta table or of Parquet files. It is read,
    and never changed. Where TABLE was made of it before, what SOURCE did since is taken over, as one commit.
    """
    with Progress() as progress:
        done = place.catalog().import_table(
            source,
            table,
            format=format_,
            versions=versions,
            dry_run=dry_run,
            copy=copy,
            time_zone=time_zone,
            progress=progress,
        )
    if place.as_json:
        answer.in_json(msgspec.to_builtins(done))
    else:
        answer.say(_said(done))


def _said(done: Imported) -> str:
    """Return what an import did, or would do, in words."""
    whole = f"Version {done.snapshot} of {done.source} has {done.rows:,} rows, {done.size_bytes:,} bytes"
    files = f"{done.added_files:,} files more, {done.removed_files:,} fewer"
    if done.changed_files:
        files += f", {done.changed_files:,} with other deleted rows"
    if done.dry_run:
        versions = f", in {done.versions:,} versions" if done.is_new else ""
        return f"{whole}. An import would bring {files}{versions}. Nothing was changed."
    if not done.versions:
        return f"{whole}. Nothing has changed since the last import."
    return f"{whole}. The import brought {files}; the table is at version {done.version}."


@click.command()
@click.argument("table", type=TABLE)
@click.option("--apply", is_flag=True, help="Do it. Without this, nothing is changed, only reported.")
@takes_place
def adopt(place: Place, table: str, apply: bool) -> None:
    """Make the files that TABLE was imported with its own, once its source is gone.

    From then on lakelog vacuum deletes those that no version of TABLE has any more, and TABLE catches up with nothing.

    The source has to be dropped in its own catalog, with its files kept, and its metadata moved away: the folder
    _delta_log of a Delta table, or metadata of an Iceberg table. Refused where that is there, and where another table
    of the warehouse has one of the files. What reads the files beside that (clones, snapshots, jobs that know their
    paths) is not known here.
    """
    with Progress() as progress:
        done = place.catalog().adopt_files(table, dry_run=not apply, progress=progress)
    if place.as_json:
        answer.in_json(msgspec.to_builtins(done))
        return
    left = f"; {done.left_out:,} others stay what they are" if done.left_out else ""
    answer.say(f"{done.files:,} files of {done.source}, {done.size_bytes:,} bytes{left}.")
    answer.say(
        f"They are the table's own from version {done.version} on."
        if apply
        else "Nothing was changed. Add --apply."
    )


COMMANDS = (export, publish, serve, import_, adopt)
