"""The commands that let readers of other formats read tables, and take in tables of other formats: export, publish,
import."""

from __future__ import annotations

from dataclasses import asdict
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
from lakelog.rest import BucketTree
from lakelog.rest import publish as publish_tree


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


COMMANDS = (export, publish, import_, adopt)
