"""The commands that only read: ls, show, history, cat, files, inspect. They read logs and need no Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice, takewhile
from typing import Any

import click
import msgspec

from lakelog.catalog import HistoryEntry, PartitionSpec, Schema, Table
from lakelog.catalog.choices import CHANGES_MAX, METADATA_TABLE_NAMES
from lakelog.catalog.engine import schema_to_spark
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.catalog.times import moment_of
from lakelog.cli import answer
from lakelog.cli.operations import counted
from lakelog.cli.options import (
    LOG,
    REFERENCE,
    TABLE,
    Choice,
    Place,
    is_location,
    limit_option,
    on_ref,
    takes_place,
    version_option,
    with_columns,
)
from lakelog.cli.view import picture
from lakelog.log import FormatError, NotedCommit, NotFound, open_store
from lakelog.log.keys import LogKeys
from lakelog.log.secrets import masked_facts


@click.command()
@click.argument("namespace", default="", type=REFERENCE)
@takes_place
def ls(place: Place, namespace: str) -> None:
    """List the namespaces and tables in a namespace.

    Without NAMESPACE, it lists the warehouse's root.
    """
    catalog = place.catalog()
    parts = identifier(namespace)
    entries = [("namespace", child) for child in catalog.list_namespaces(parts)]
    entries += [("table", table) for table in catalog.list_tables(parts)]
    if place.as_json:
        answer.list_in_json({"kind": kind, "name": answer.name_in_json(name)} for kind, name in entries)
    else:
        lines = [(kind, quoted_where_needed(name)) for kind, name in entries]
        answer.rows(("kind", "name"), lines, empty="Empty.")


@click.command()
@click.argument("table", type=TABLE)
@version_option()
@on_ref
@takes_place
def show(place: Place, table: str, version: int | None, ref: str | None) -> None:
    """Show a table: its columns, size, properties and version.

    Its location, partitioning and comment are shown too, and the features of the format that its readers and
    its writers have to know. If Iceberg cannot express something of TABLE, that is named.
    """
    loaded_table = load(place, table, version, ref)
    partitioning = [
        {
            "name": field.name,
            "transform": str(field.transform),
            "column": _column(loaded_table.schema, field.source_id),
        }
        for field in loaded_table.spec.fields
    ]
    if place.as_json:
        answer.in_json(
            {
                "name": answer.name_in_json(loaded_table.identifier or None),
                "location": loaded_table.location,
                "id": loaded_table.id,
                "version": loaded_table.version,
                "committed_at": loaded_table.committed_at.isoformat(),
                "provider": loaded_table.provider,
                "comment": loaded_table.comment,
                "features": list(loaded_table.features),
                "writer_features": list(loaded_table.writer_features),
                "rows": loaded_table.row_count,
                "files": loaded_table.file_count,
                "size_bytes": loaded_table.size_bytes,
                "columns": schema_to_spark(loaded_table.schema, internal=False)["fields"],
                "partitioning": partitioning,
                "properties": dict(loaded_table.properties),
                "iceberg": [asdict(obstacle) for obstacle in loaded_table.iceberg_obstacles()],
            }
        )
        return
    facts = {
        "name": quoted_where_needed(loaded_table.identifier) if loaded_table.identifier else None,
        "location": loaded_table.location,
        "id": loaded_table.id,
        "version": f"{loaded_table.version}, {answer.time(loaded_table.committed_at)}",
        "contents": f"{counted(loaded_table.row_count, 'row')} in "
        f"{counted(loaded_table.file_count, 'file')}, "
        f"{answer.size(loaded_table.size_bytes)}",
        "partitioned by": ", ".join(
            part["column"] if part["transform"] == "identity" else f"{part['transform']} of {part['column']}"
            for part in partitioning
        ),
        "provider": loaded_table.provider,
        "comment": loaded_table.comment,
        "features of readers": ", ".join(loaded_table.features),
        "features of writers": ", ".join(loaded_table.writer_features),
    }
    answer.pairs({name: value for name, value in facts.items() if value})
    answer.rows(
        ("column", "type", "", "comment"),
        [
            (field.name, str(field.type), "" if field.nullable else "NOT NULL", field.comment or "")
            for field in loaded_table.schema.fields
        ],
        empty="No columns.",
    )
    if loaded_table.properties:
        answer.rows(("property", "value"), sorted(loaded_table.properties.items()), empty="")
    if obstacles := loaded_table.iceberg_obstacles():
        effects = {"blocks": "Iceberg: no export", "lost": "Iceberg: not known there"}
        answer.rows(
            ("for readers of", "of", "because"),
            [(effects[obstacle.effect], obstacle.where, obstacle.why) for obstacle in obstacles],
            empty="",
        )


@click.command()
@click.argument("name", metavar="TABLE|NAMESPACE", type=REFERENCE)
@limit_option("commits")
@click.option(
    "--graph", is_flag=True, help="Draw branches, rebases and transactions as lines, on verified commits."
)
@takes_place
def history(place: Place, name: str, limit: int | None, graph: bool) -> None:
    """Show the commits of a table or a namespace, newest first.

    The name "" stands for the warehouse's root namespace.

    \b
    With --graph, each branch has a column. The signs mean:
      ●  a change
      ◆  a change that was prepared on an older version, and rebased
      ■  a change of a transaction over several tables
      ○  a change that was aborted
      ┄  versions that have expired or were not read
      ✗  damage
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
        answer.list_in_json(entry_in_json(entry) for entry, _ in lines)
    else:
        answer.rows(
            (">version", "time", "what", "who"),
            [
                (str(entry.version), answer.time(entry.committed_at), text, who(entry))
                for entry, text in lines
            ],
            empty="Nothing has happened.",
        )


@click.command()
@click.argument("table", type=LOG)
@click.argument("version", type=click.IntRange(min=1))
@takes_place
def cat(place: Place, table: str, version: int) -> None:
    """Print the commit that made a version of a table.

    It is indented. With --json it is printed byte by byte, as it is stored. TABLE may be the folder or URL of a
    namespace or of the warehouse, too.
    """
    # A log that is given by its place is not replayed, so that a damaged or dropped log can still be inspected.
    location = table if is_location(table) else load(place, table, None).location
    data = open_store(location, place.store_options).get(LogKeys("").commit(version))
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
@version_option()
@on_ref
@limit_option("files")
@takes_place
def files(place: Place, table: str, version: int | None, ref: str | None, limit: int | None) -> None:
    """List the data files of a table.

    Each has its path in the table's location, its live rows, its rows that are deleted but still in the file, its size
    and its partition.
    """
    loaded_table = load(place, table, version, ref)
    plan = loaded_table.plan()
    total = plan.num_rows
    specs = {spec.id: spec for spec in loaded_table.specs}
    rows = plan.slice(0, limit).to_pylist()
    unknown_ids = {row["spec"] for row in rows} - specs.keys()
    if unknown_ids:
        raise FormatError(
            f"{loaded_table.location} has files of the partition spec {min(unknown_ids)}, which the table does not "
            "have: find out which client wrote them"
        )
    data_files = [_file(row, specs[row["spec"]]) for row in rows]
    if place.as_json:
        answer.list_in_json(data_files)
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
            for file in data_files
        ],
        empty="No files.",
    )
    if total > len(data_files):
        answer.say(f"… and {total - len(data_files):,} more")


@click.command()
@click.argument("table", type=TABLE)
@click.argument("name", metavar="NAME", type=Choice(sorted(METADATA_TABLE_NAMES)))
@version_option()
@with_columns
@limit_option("rows")
@takes_place
def inspect(
    place: Place, table: str, name: str, version: int | None, columns: str | None, limit: int | None
) -> None:
    """Show a metadata table, for example snapshots or files.

    NAME is detail, history, snapshots, files, partitions, manifests, refs or log.
    """
    loaded_table = load(place, table, version)
    reader = loaded_table.inspect(name, None if columns is None else columns.split(","))
    first_rows = list(islice((row for batch in reader for row in answer.python_rows(batch)), limit))
    if place.as_json:
        answer.list_in_json(answer.plain(row) for row in first_rows)
    else:
        lines = [[answer.cell(row[column]) for column in reader.schema.names] for row in first_rows]
        answer.rows(reader.schema.names, lines, empty="No rows.")


COMMANDS = (ls, show, history, cat, files, inspect)


def load(place: Place, reference: str, version: int | None, ref: str | None = None) -> Table:
    """Return the table that a command names, at `version`, or on the tag or branch `ref`, or else at its newest."""
    catalog = place.catalog_for(reference)
    table = (
        catalog.table_at(reference) if is_location(reference) else catalog.load_table(identifier(reference))
    )
    table = table if version is None else table.at(version=version)
    return table if ref is None else table.at(ref=ref)


def details_of(
    noted_commits: Iterable[NotedCommit], table_before: Table, table_after: Table
) -> list[dict[str, Any]]:
    """Return the details of the noted commits between two versions, without the commits of other clients."""
    ids = {commit.commit_id for commit in noted_commits}
    newer_entries = takewhile(lambda entry: entry.version > table_before.version, table_after.history())
    return [entry.details for entry in newer_entries if entry.commit_id in ids]


def _history(place: Place, reference: str, limit: int | None) -> tuple[Table | None, list[HistoryEntry]]:
    """Return the history of a table or, if no table has that name, of a namespace."""
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
    for lanes, change, names in graph_lines(facts):
        rebase_note = "" if change.base is None else f" (prepared on {change.base}, rebased)"
        writer = None if change.writer is None else facts.writers[change.writer]
        writer_facts = (
            "" if writer is None else " ".join(filter(None, (writer.user, writer.engine, writer.host)))
        )
        log = "" if facts.kind == "table" or change.kind == "older" else f"{facts.logs[change.log].name}: "
        when = "" if change.time_us is None else answer.time(moment_of(change.time_us))
        where = f"[{names}] " if names else ""
        lines.append(
            (
                lanes,
                str(change.version or ""),
                when,
                f"{where}{log}{change.text}{rebase_note}",
                writer_facts,
            )
        )
    answer.rows(("=", ">version", "time", "what", "who"), lines, empty="Nothing has happened.")


def _schema_at(table: Table, version: int) -> Schema | None:
    try:
        return table.at(version=version).schema
    except NotFound:
        # An expired version must not hide the rest.
        return None


def entry_in_json(entry: HistoryEntry) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry) | {"writer": masked_facts(entry.writer)}
    return plain | {"committed_at": entry.committed_at.isoformat()}


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
