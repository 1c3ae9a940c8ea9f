"""`lakelog sql`: a query over the warehouse's tables, by DuckDB."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice
from typing import Any

import click

from lakelog.catalog import Table
from lakelog.catalog.core.tools import answer_of
from lakelog.catalog.names import Identifier, quoted
from lakelog.cli import answer
from lakelog.cli.options import Count, Place, takes_place


@click.command()
@click.argument("query")
@click.option("--limit", type=Count(), default=1000, show_default=True, metavar="N", help="So many rows.")
@click.option("--as-of", metavar="TIME|CUT", help="All tables as they were then, or in that saved cut.")
@takes_place
def sql(place: Place, query: str, limit: int, as_of: str | None) -> None:
    """Answer a QUERY over tables, in DuckDB's SQL.

    Nothing is changed, and nothing else is read than the tables that it names: lakelog sql 'SELECT count(*) FROM
    shop.orders'. All of them are read as of one moment; their versions stand below the rows. Needs DuckDB: pip install
    'lakelog[sql]'.
    """
    catalog = place.catalog() if as_of is None else place.catalog_as_of(as_of)
    read: dict[str, int] = {}
    with ExitStack() as stack:
        tables: Any = catalog if as_of is not None else stack.enter_context(catalog.transaction())

        def load(name: Identifier) -> Table:
            table: Table = tables.load_table(name)
            read[quoted(name)] = table.version
            return table

        rows = stack.enter_context(answer_of(query, load))
        names = rows.schema.names
        found = (row for batch in rows for row in answer.python_lists(batch))
        shown = list(islice(found, limit))
        more = next(found, None) is not None
    if place.as_json:
        answer.in_json(
            {
                "versions": read,
                "columns": names,
                "rows": [[answer.plain(value) for value in row] for row in shown],
                "more": more,
            }
        )
        return
    answer.rows(names, [[answer.cell(value) for value in row] for row in shown], empty="No rows.")
    if more:
        answer.say(f"There are more rows: give a --limit above {limit:,}.", err=True)
    if read:
        versions = ", ".join(f"{name} in version {version}" for name, version in read.items())
        answer.say(f"Read {versions}.", err=True)


COMMANDS = (sql,)
