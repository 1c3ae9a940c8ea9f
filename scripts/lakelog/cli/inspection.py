"""The commands that only read: ls, show, history, cat, files, inspect. They read logs and need no Spark."""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import islice
from typing import Any

import click
import msgspec

from lakelog.catalog import Table
from lakelog.catalog.choices import CHANGES_MAX, METADATA_TABLES
from lakelog.catalog.core.schema import PartitionSpec, Schema, schema_to_spark
from lakelog.catalog.core.state import HistoryEntry
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.cli import answer
from lakelog.cli.options import LOG, REFERENCE, TABLE, Count, Place, is_location, takes_place
from lakelog.cli.view import picture
from lakelog.log import FormatError, NotFound, open_store
from lakelog.log.keys import Keys
from lakelog.log.secrets import masked_facts

_on_ref = click.option("--ref", metavar="NAME", help="On that tag or branch.")


@click.command()
@click.argument("namespace", default="", type=REFERENCE)
@takes_place
def ls(place: Place, namespace: str) -> None:
    """List the namespaces and tables in NAMESPACE.

    Without NAMESPACE, those in the warehouse's root.
    """
    catalog = place.catalog()
    parts = identifier(namespace)
    found = [("namespace", child) for child in catalog.list_namespaces(parts)]
    found += [("table", table) for table in catalog.list_tables(parts)]
    if place.as_json:
        answer.in_json([{"kind": kind, "name": list(name)} for kind, name in found])
    else:
        lines = [(kind, quoted_where_needed(name)) for kind, name in found]
        answer.rows(("kind", "name"), lines, empty="Empty.")


@click.command()
@click.argument("table", type=TABLE)
@click.option("--version", type=int, metavar="N", help="As it was at that version.")
@_on_ref
@takes_place
def show(place: Place, table: str, version: int | None, ref: str | None) -> None:
    """Show what TABLE is.

    Its place, version, size, columns, partitioning and properties, and the
    features of the format that its clients have to know.
    """
    loaded = load(place, table, version, ref)
    partitioning = [
        {
            "name": field.name,
            "transform": str(field.transform),
            "column": _column(loaded.schema, field.source_id),
        }
        for field in loaded.spec.fields
    ]
    if place.as_json:
        answer.in_json(
            {
                "name": list(loaded.identifier) if loaded.identifier else None,
                "location": loaded.location,
                "id": loaded.id,
                "version": loaded.version,
                "timestamp": answer.iso_time(loaded.timestamp_us),
                "provider": loaded.provider,
                "comment": loaded.comment,
                "features": list(loaded.features),
                "rows": loaded.row_count,
                "files": loaded.file_count,
                "size_bytes": loaded.size_bytes,
                "columns": schema_to_spark(loaded.schema, internal=False)["fields"],
                "partitioning": partitioning,
                "properties": dict(loaded.properties),
                "iceberg": [asdict(each) for each in loaded.iceberg_obstacles()],
            }
        )
        return
    facts = {
        "name": quoted_where_needed(loaded.identifier) if loaded.identifier else None,
        "location": loaded.location,
        "id": loaded.id,
        "version": f"{loaded.version}, {answer.time(loaded.timestamp_us)}",
        "contents": f"{loaded.row_count:,} rows in {loaded.file_count:,} files, {answer.size(loaded.size_bytes)}",
        "partitioned by": ", ".join(
            part["column"] if part["transform"] == "identity" else f"{part['transform']} of {part['column']}"
            for part in partitioning
        ),
        "provider": loaded.provider,
        "comment": loaded.comment,
        "features": ", ".join(loaded.features),
    }
    answer.pairs({name: value for name, value in facts.items() if value})
    answer.rows(
        ("column", "type", "", "comment"),
        [
            (field.name, str(field.type), "" if field.nullable else "NOT NULL", field.comment or "")
            for field in loaded.schema.fields
        ],
        empty="No columns.",
    )
    if loaded.properties:
        answer.rows(("property", "value"), sorted(loaded.properties.items()), empty="")
    if obstacles := loaded.iceberg_obstacles():
        effects = {"blocks": "Iceberg: no export", "lost": "Iceberg: not known there"}
        answer.rows(
            ("for readers of", "of", "because"),
            [(effects[each.effect], each.where, each.why) for each in obstacles],
            empty="",
        )


@click.command()
@click.argument("name", metavar="TABLE|NAMESPACE", type=REFERENCE)
@click.option("--limit", type=Count(), metavar="N", help="The newest N commits only.")
@click.option(
    "--graph", is_flag=True, help="Draw branches, rebases and transactions as lines, on verified commits."
)
@takes_place
def history(place: Place, name: str, limit: int | None, graph: bool) -> None:
    """Show what happened to TABLE or NAMESPACE.

    The newest commit first. "" is the warehouse's root namespace.

    \b
    With --graph, each line of contents has a column; and
      ●  a change      ◆  one that was rebased, prepared on an older version
      ■  one of a transaction over several tables      ○  one that was aborted
      ┄  versions that have expired or were not read      ✗  damage
    """
    from lakelog.catalog.looking.pictures import changes_schema, what

    if graph and not place.as_json:
        _draw(place, name, limit)
        return
    lines: list[tuple[HistoryEntry, str]] = []
    table, entries = _history(place, name, limit)
    for entry in entries:
        around: tuple[Schema | None, Schema | None] = (None, None)
        if table is not None and not place.as_json and changes_schema(entry):
            around = (_schema_at(table, entry.version - 1), _schema_at(table, entry.version))
        lines.append((entry, what(entry, *around)))
    if place.as_json:
        answer.in_json([entry_in_json(entry) for entry, _ in lines])
    else:
        answer.rows(
            (">version", "time", "what", "who"),
            [
                (str(entry.version), answer.time(entry.timestamp_us), text, who(entry))
                for entry, text in lines
            ],
            empty="Nothing has happened.",
        )


@click.command()
@click.argument("table", type=LOG)
@click.argument("version", type=click.IntRange(min=1))
@takes_place
def cat(place: Place, table: str, version: int) -> None:
    """Print the commit that made VERSION of TABLE.

    Indented; or, with --json, the object's very bytes. By its folder or URL, TABLE may be a namespace or the warehouse.
    """
    # A log that is given by its place is not replayed, so that a damaged or dropped one can still be inspected.
    location = table if is_location(table) else load(place, table, None).location
    data = open_store(location, place.store_options).get(Keys("").commit(version))
    if data is None:
        raise NotFound(f"there is no version {version} in the log of {table}: see lakelog history {table}")
    if place.as_json:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        try:
            text = msgspec.json.format(data, indent=2).decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FormatError(
                f"version {version} of {table} cannot be shown ({error}): it was truncated or altered; --json prints "
                "its bytes"
            ) from error
        sys.stdout.write(answer.harmless(text) + "\n")


@click.command()
@click.argument("table", type=TABLE)
@click.option("--version", type=int, metavar="N", help="As they were at that version.")
@_on_ref
@click.option("--limit", type=Count(), metavar="N", help="The first N files only.")
@takes_place
def files(place: Place, table: str, version: int | None, ref: str | None, limit: int | None) -> None:
    """List the data files of TABLE.

    Path in the table's location, live rows, rows that are deleted but still in the file, size and partition.
    """
    loaded = load(place, table, version, ref)
    plan = loaded.plan()
    total = plan.num_rows
    specs = {spec.id: spec for spec in loaded.specs}
    found = [_file(row, specs[row["spec"]]) for row in plan.slice(0, limit).to_pylist()]
    if place.as_json:
        answer.in_json(found)
        return
    answer.rows(
        ("file", ">rows", ">deleted", ">size", "partition"),
        [
            (
                file["path"],
                answer.count(file["rows"]),
                answer.count(file["deleted_rows"]),
                answer.size(file["size_bytes"]),
                ", ".join(f"{name}={value}" for name, value in file["partition"].items()),
            )
            for file in found
        ],
        empty="No files.",
    )
    if total > len(found):
        answer.say(f"… and {total - len(found):,} more")


@click.command()
@click.argument("table", type=TABLE)
@click.argument("name", metavar="NAME", type=click.Choice(sorted(METADATA_TABLES)))
@click.option("--version", type=int, metavar="N", help="As it was at that version.")
@click.option("--columns", metavar="A,B", help="These columns only.")
@click.option("--limit", type=Count(), metavar="N", help="The first N rows only.")
@takes_place
def inspect(
    place: Place, table: str, name: str, version: int | None, columns: str | None, limit: int | None
) -> None:
    """Show a metadata table of TABLE.

    NAME is one of detail, history, snapshots, files, partitions, manifests, refs and log.
    """
    loaded = load(place, table, version)
    reader = loaded.inspect(name, None if columns is None else columns.split(","))
    found = list(islice((row for batch in reader for row in answer.python_rows(batch)), limit))
    if place.as_json:
        answer.in_json([answer.plain(row) for row in found])
    else:
        lines = [[answer.cell(row[column]) for column in reader.schema.names] for row in found]
        answer.rows(reader.schema.names, lines, empty="No rows.")


COMMANDS = (ls, show, history, cat, files, inspect)


def load(place: Place, reference: str, version: int | None, ref: str | None = None) -> Table:
    """Return the table that a command names, as it was at `version`, or is on the tag or branch `ref`, or was then."""
    catalog = place.catalog_for(reference)
    table = (
        catalog.table_at(reference) if is_location(reference) else catalog.load_table(identifier(reference))
    )
    table = table if version is None else table.at(version=version)
    return table if ref is None else table.at(ref=ref)


def _history(place: Place, reference: str, limit: int | None) -> tuple[Table | None, list[HistoryEntry]]:
    """Return what happened to a table or, where no table has that name, to a namespace."""
    catalog = place.catalog_for(reference)
    try:
        if reference != "":
            table = load(place, reference, None)
            return table, list(table.history(limit=limit))
    except NoSuchTable:
        if is_location(reference) or not catalog.namespace_exists(identifier(reference)):
            raise
    return None, list(islice(catalog.history(identifier(reference)), limit))


def _draw(place: Place, name: str, limit: int | None) -> None:
    from lakelog.catalog.looking.pictures import graph_lines

    facts = picture(place, name, CHANGES_MAX if limit is None else limit).facts
    lines = []
    for drawing, change, names in graph_lines(facts):
        rebased = "" if change.base is None else f" (prepared on {change.base}, rebased)"
        writer = None if change.writer is None else facts.writers[change.writer]
        who = "" if writer is None else " ".join(filter(None, (writer.user, writer.engine, writer.host)))
        log = "" if facts.kind == "table" or change.kind == "older" else f"{facts.logs[change.log].name}: "
        when = "" if change.time_us is None else answer.time(change.time_us)
        where = f"[{names}] " if names else ""
        lines.append((drawing, str(change.version or ""), when, f"{where}{log}{change.text}{rebased}", who))
    answer.rows(("", ">version", "time", "what", "who"), lines, empty="Nothing has happened.")


def _schema_at(table: Table, version: int) -> Schema | None:
    try:
        return table.at(version=version).schema
    except NotFound:
        # An expired version must not hide the rest.
        return None


def entry_in_json(entry: HistoryEntry) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry) | {"writer": masked_facts(entry.writer)}
    return {"version": entry.version, "timestamp": answer.iso_time(entry.timestamp_us)} | plain


def who(entry: HistoryEntry) -> str:
    facts = masked_facts(entry.writer)
    return " ".join(str(facts[key]) for key in ("user", "engine", "host") if key in facts)


def _column(schema: Schema, source_id: int) -> str:
    return ".".join(schema.path_of(source_id)) if schema.has_id(source_id) else f"dropped column {source_id}"


def _file(row: dict[str, Any], spec: PartitionSpec) -> dict[str, Any]:
    from lakelog.catalog.looking.pictures import partition_value

    partition = {
        field.name: partition_value(row.get(f"p{field.id}"), field.transform) for field in spec.fields
    }
    return {
        "path": row["path"],
        "rows": row["rows"],
        "deleted_rows": row.get("deleted") or 0,
        "size_bytes": row["size"],
        "partition": partition,
    }
