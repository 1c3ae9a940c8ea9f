"""The commands about rows and versions of tables: head, sql, diff, restore."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import click
import pyarrow as pa

from lakelog.catalog import Catalog, Table
from lakelog.catalog.engine import answer_of
from lakelog.catalog.looking.pictures import definition_of, differences
from lakelog.catalog.names import Identifier, quoted
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import (
    TABLE,
    Place,
    limit_option,
    on_ref,
    takes_place,
    version_option,
    with_columns,
)
from lakelog.log.errors import InvalidInput

Kept = TypeVar("Kept")

CELL_MAX = 10_000
"""The most characters of a cell that `lakelog sql` prints for people."""

_SIGNS = {"added": "+", "removed": "−", "changed": "~"}
_ROW_SIGNS = {"insert": "+", "delete": "−", "update_preimage": "<", "update_postimage": ">"}


@click.command()
@click.argument("table", type=TABLE)
@limit_option("rows", 10)
@with_columns
@click.option("--where", metavar="CONDITION", help="Only rows that match.")
@version_option()
@on_ref
@takes_place
def head(
    place: Place,
    table: str,
    limit: int,
    columns: str | None,
    where: str | None,
    version: int | None,
    ref: str | None,
) -> None:
    """Show some rows of a table.

    Their order is not promised. Only as many files are read as these rows need.
    """
    loaded_table = load(place, table, version, ref)
    column_names = None if columns is None else columns.split(",")
    first_rows = loaded_table.scan(column_names, where, limit).to_arrow()
    rows = answer.python_rows(first_rows)
    if place.as_json:
        answer.list_in_json(answer.plain(row) for row in rows)
    else:
        names = first_rows.schema.names
        answer.rows(names, [[answer.cell(row[name]) for name in names] for row in rows], empty="No rows.")


@click.command()
@click.argument("table", type=TABLE)
@click.argument("first", metavar="VERSION", type=click.IntRange(min=1))
@click.argument("last", metavar="[VERSION]", type=click.IntRange(min=1), required=False)
@click.option("--rows", "with_rows", is_flag=True, help="Show the rows that differ instead.")
@limit_option("rows", 1000)
@takes_place
def diff(place: Place, table: str, first: int, last: int | None, with_rows: bool, limit: int) -> None:
    """Show the differences between two versions of a table.

    It compares columns by their ids, so a renamed column is shown as renamed. It also compares properties,
    partitioning, order and constraints, and the numbers of rows, files and bytes. Without the second VERSION, the
    newest is taken. No row is read, except with --rows.

    \b
    With --rows, the signs mean:
      +  an inserted row
      −  a deleted row
      <  an updated row, as it was
      >  an updated row, as it is
    """
    first_table = load(place, table, first)
    last_table = load(place, table, last)
    if with_rows:
        _show_changed_rows(place, first_table, last_table, limit)
        return
    changes = differences(
        definition_of(first_table.metadata, first_table.version),
        definition_of(last_table.metadata, last_table.version),
    )
    counts = [
        (name, getattr(first_table, member), getattr(last_table, member))
        for name, member in (("rows", "row_count"), ("files", "file_count"), ("bytes", "size_bytes"))
    ]
    if place.as_json:
        answer.in_json(
            {
                "first": first_table.version,
                "last": last_table.version,
                "differences": answer.facts(changes),
                **{name: {"before": old_count, "after": new_count} for name, old_count, new_count in counts},
            }
        )
        return
    answer.rows(
        ("", "what", "name", f"at {first_table.version}", f"at {last_table.version}"),
        [(_SIGNS[change.kind], change.what, change.name, change.before, change.after) for change in changes],
        empty=f"Nothing of its definition differs between version {first_table.version} and version "
        f"{last_table.version}.",
    )
    answer.rows(
        ("", f">at {first_table.version}", f">at {last_table.version}", ">difference"),
        [
            (name, answer.count(old_count), answer.count(new_count), f"{new_count - old_count:+,}")
            for name, old_count, new_count in counts
        ],
        empty="",
    )


def _show_changed_rows(place: Place, first_table: Table, last_table: Table, limit: int) -> None:
    first, last = first_table.version, last_table.version
    if first > last:
        raise InvalidInput(f"rows are compared from an older version to a newer: give {last} before {first}")
    names = [field.name for field in last_table.schema.fields]
    changes = None
    if first < last:
        changes = last_table.changes(first + 1, last, ["_change_type", *names], net=True, updates=True)
    every_row = iter(()) if changes is None else answer.each_row(changes.to_reader())
    rows = islice(every_row, limit)
    if place.as_json:
        with answer.stored_lists() as lists:
            lists.store(rows)
            head_members = {"first": first, "last": last, "columns": ["_change_type", *names]}
            lists.print(head_members, "rows", {"more": next(every_row, None) is not None})
        return
    cells, is_any_cut = _short_cells((_ROW_SIGNS[kind], *values) for kind, *values in rows)
    answer.rows(("", *names), cells, empty=f"No row differs between version {first} and version {last}.")
    _say_what_is_left_out(is_any_cut, next(every_row, None) is not None, limit)


def _say_what_is_left_out(is_any_cut: bool, more: bool, limit: int) -> None:
    if is_any_cut:
        answer.say(f"Cells are cut after {CELL_MAX:,} characters: --json has all of them.", err=True)
    if more:
        answer.say(f"There are more rows: give a --limit above {limit:,}.", err=True)


@click.command()
@click.argument("table", type=TABLE)
@click.argument("version", type=click.IntRange(min=1))
@click.option(
    "--rows-only", is_flag=True, help="Restore its rows only: columns, partitioning and properties stay."
)
@takes_place
def restore(place: Place, table: str, version: int, rows_only: bool) -> None:
    """Make a table as it was at a version, in a new version.

    Nothing is lost: the versions since then stay in the history, and can be restored in the same way until they expire.
    """
    old_table = load(place, table, None)
    new_table: Table = (old_table.set_current_version if rows_only else old_table.rollback_to_version)(
        version
    )
    if place.as_json:
        answer.in_json({"restored": version, "version": new_table.version, "rows": new_table.row_count})
    else:
        deed = "has the rows of" if rows_only else "is as it was at"
        answer.say(f"{table} {deed} version {version} again, in version {new_table.version}.")


@click.command()
@click.argument("query")
@limit_option("rows", 1000)
@click.option(
    "--as-of",
    metavar="TIME|CUT",
    help="Read all tables as of that time (UTC unless it has a time zone) or saved cut.",
)
@takes_place
def sql(place: Place, query: str, limit: int, as_of: str | None) -> None:
    """Answer a SELECT over tables, in DuckDB's SQL.

    For example: lakelog sql 'SELECT count(*) FROM shop.orders'

    Nothing is changed, and only the tables that QUERY names are read. They are read as of the same moment, and their
    versions are printed below the rows. The library duckdb has to be installed.
    """
    catalog = place.catalog() if as_of is None else place.catalog_as_of(as_of)
    of_the_past = as_of is not None
    if place.as_json:
        with answer.stored_lists() as lists:
            stored_result = query_result(catalog, query, limit, lists.store, of_the_past=of_the_past)
            head_members = {"versions": stored_result.versions, "columns": stored_result.schema.names}
            lists.print(head_members, "rows", {"more": stored_result.more})
        return
    result = query_result(catalog, query, limit, _short_cells, cell_max=CELL_MAX + 1, of_the_past=of_the_past)
    cells, is_any_cut = result.rows
    answer.rows(result.schema.names, cells, empty="No rows.")
    _say_what_is_left_out(is_any_cut, result.more, limit)
    if result.versions:
        answer.say(f"Read {result.read}.", err=True)


COMMANDS = (head, sql, diff, restore)


def _short_cells(rows: Iterator[tuple[Any, ...]]) -> tuple[list[list[str]], bool]:
    """Return rows as texts for people, and whether any text is cut."""
    is_any_cut = False
    texts = []
    for row in rows:
        cells = [answer.cell(value) for value in row]
        is_any_cut |= any(len(text) > CELL_MAX for text in cells)
        texts.append([answer.shortened(text, CELL_MAX) for text in cells])
    return texts, is_any_cut


@dataclass(frozen=True, slots=True)
class QueryResult(Generic[Kept]):
    """The first rows of an answer in a caller's form, whether there are more, and the version of each table that
    was read."""

    schema: pa.Schema
    rows: Kept
    more: bool
    versions: dict[str, int]

    @property
    def read(self) -> str:
        return ", ".join(f"{name} in version {version}" for name, version in self.versions.items())


def query_result(
    catalog: Catalog,
    query: str,
    limit: int,
    keep: Callable[[Iterator[tuple[Any, ...]]], Kept],
    *,
    cell_max: int | None = None,
    of_the_past: bool = False,
    began: Callable[[Callable[[], None]], None] = lambda interrupt: None,
) -> QueryResult[Kept]:
    """Answer a query over tables at the same moment. Raises InvalidInput for a mistake in it.

    `keep` receives at most `limit` rows, of which few are in memory at once, and returns the rows of the result. It
    need not read all. Strings and binaries have at most `cell_max` characters or bytes, if that is given. `began`
    receives the function that interrupts the query (see `answer_of`).
    """
    versions: dict[str, int] = {}
    with ExitStack() as stack:
        tables: Any = catalog if of_the_past else stack.enter_context(catalog.transaction())

        def load(name: Identifier) -> Table:
            table: Table = tables.load_table(name)
            versions[quoted(name)] = table.version
            return table

        batches = stack.enter_context(answer_of(query, load, began, rows_max=limit + 1, cell_max=cell_max))
        every_row = answer.each_row(batches)
        kept_rows = keep(islice(every_row, limit))
        return QueryResult(batches.schema, kept_rows, next(every_row, None) is not None, versions)
