"""The commands that let readers of other formats read tables, and take in tables of other formats: export, publish,
serve, import."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import click

from lakelog.catalog import Imported, engine
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.catalog.operations.formats import ADOPT_FILES, EXPORT_ICEBERG, IMPORT_TABLE
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.operations import command_of, say_nothing_changed
from lakelog.cli.options import REFERENCE, Place, takes_place
from lakelog.cli.progress import Progress
from lakelog.log.grammar import PUBLISHED_FOLDER
from lakelog.rest import BucketTree, WarehouseAnswers, WritableAnswers
from lakelog.rest import publish as publish_tree
from lakelog.rest import serve as run_server
from lakelog.rest.server import LOOPBACK, PORT, is_loopback


@command_of(EXPORT_ICEBERG)
def export(place: Place, table: str, to: str | None) -> None:
    with Progress() as progress:
        outcome = load(place, table, None).export_iceberg(to, progress=progress)
    if place.as_json:
        answer.in_json(answer.facts(outcome))
    else:
        answer.say(outcome.url)


@click.command()
@click.argument("namespace", default="", type=REFERENCE)
@click.option(
    "--to",
    metavar="URL",
    help=f"The s3:// URL that is written to. [default: {PUBLISHED_FOLDER}/ in the warehouse]",
)
@takes_place
def publish(place: Place, namespace: str, to: str | None) -> None:
    """Let clients of Iceberg's REST catalog read from the bucket.

    It writes the answers of lakelog serve there as objects, so that clients need no server. It does so for all tables,
    or for those in NAMESPACE and below it, which needs --to. Clients read what was published last. Only changes are
    written, and objects of dropped tables are removed, so run it as often as clients need it.

    Clients need the right to read these objects and the tables, by signed requests or by the bucket's policy. A
    folder cannot hold the tree: use lakelog serve.

    The exit code is 1 if a table or namespace could not be brought up to date. All others are up to date then.
    """
    path = identifier(namespace)
    if path and to is None:
        raise click.UsageError("A namespace is published to a place of its own: give --to")
    catalog = place.catalog()
    tree = BucketTree(engine.places(catalog), to or f"{catalog.warehouse}/{PUBLISHED_FOLDER}")
    outcome = publish_tree(catalog, tree, path)
    names = {"left_out": outcome.left_out, "failed": outcome.failed}
    if place.as_json:
        members = {
            key: [{"name": answer.name_in_json(name), "why": why} for name, why in sorted(reasons.items())]
            for key, reasons in names.items()
        }
        answer.in_json({"uri": tree.uri, **asdict(outcome), **members})
    else:
        answer.say(tree.uri)
        answer.say(
            f"{outcome.tables:,} tables and {outcome.views:,} views in {outcome.namespaces:,} namespaces; "
            f"{outcome.written:,} objects written ({answer.size(outcome.written_bytes)}), {outcome.removed:,} removed.",
            err=True,
        )
        for key, reasons in names.items():
            for name, why in sorted(reasons.items()):
                answer.say(f"{key.replace('_', ' ')}: {quoted_where_needed(name)}: {why}", err=True)
    if outcome.failed:
        raise click.ClickException(
            f"{len(outcome.failed):,} tables or namespaces were not brought up to date"
        )


@click.command()
@click.option(
    "--host", default=LOOPBACK, show_default=True, metavar="ADDRESS", help="The address to listen at."
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port to listen at; 0 takes a free port.",
)
@click.option("--write", is_flag=True, help="Let clients create, change and drop tables, too.")
@click.option("--quiet", is_flag=True, help="Print no requests.")
@takes_place
def serve(place: Place, host: str, port: int, write: bool, quiet: bool) -> None:
    """Answer clients of Iceberg's REST catalog.

    It runs until Ctrl-C. Without --write, requests that change something are refused. Clients get names and metadata
    here, and read and write data in the store itself, by credentials of their own. A table is exported when a client
    loads it.

    With --write, clients commit to tables, and each commit is a version of the table's log. There is no authentication
    yet, so it listens only at an address of this host.

    There is no state beside the warehouse, and any number of servers agree. At another address than this host's own,
    everyone who reaches it can read names, columns and statistics of all tables. Put it behind a proxy that knows its
    users then.
    """
    if write and not is_loopback(host):
        raise click.UsageError(
            f"with --write everyone who reaches {host} could change all tables, as there is no authentication yet: "
            f"listen at {LOOPBACK}"
        )
    catalog = place.catalog()
    answers = WritableAnswers(catalog) if write else WarehouseAnswers(catalog)
    mode = "for reading and writing" if write else "read only"

    def began(url: str, server: object) -> None:
        answer.say(f"Serving {place.required_warehouse} at {url}, {mode}. Ctrl-C ends it.", err=True)

    try:
        with answer.server_errors_on_stderr():
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


@command_of(IMPORT_TABLE)
def import_(place: Place, source: str, table: str, **how: Any) -> None:
    with Progress() as progress:
        outcome = place.catalog().import_table(source, table, **how, progress=progress)
    if place.as_json:
        answer.in_json(answer.facts(outcome))
    else:
        answer.say(_said(outcome))
        if outcome.dry_run and outcome.versions:
            say_nothing_changed()


def _said(done: Imported) -> str:
    """Return the outcome of an import, or of its dry run, in words."""
    text = f"Version {done.snapshot} of {done.source} has {done.rows:,} rows, {done.size_bytes:,} bytes"
    files = f"{done.added_files:,} files more, {done.removed_files:,} fewer"
    if done.changed_files:
        files += f", {done.changed_files:,} with other deleted rows"
    if not done.versions:
        return f"{text}. Nothing has changed since the last import."
    if done.dry_run:
        versions = f", in {done.versions:,} versions" if done.is_new else ""
        return f"{text}. An import would bring {files}{versions}."
    return f"{text}. The import brought {files}; the table is at version {done.version}."


@command_of(ADOPT_FILES)
def adopt(place: Place, table: str, dry_run: bool) -> None:
    with Progress() as progress:
        adoption = place.catalog().adopt_files(table, dry_run=dry_run, progress=progress)
    if place.as_json:
        answer.in_json(answer.facts(adoption))
        return
    rest_text = f"; {adoption.left_out:,} others stay what they are" if adoption.left_out else ""
    answer.say(f"{adoption.files:,} files of {adoption.source}, {adoption.size_bytes:,} bytes{rest_text}.")
    if dry_run:
        say_nothing_changed()
    else:
        answer.say(f"They are the table's own from version {adoption.version} on.")


COMMANDS = (export, publish, serve, import_, adopt)
