"""A query in DuckDB's SQL over tables that are found by their names, read only, in bounded memory.

DuckDB's own parser says which tables a query names, so that only these are looked up, and that it is a query: nothing
else is run. Each becomes a view of DuckDB's over the rows as Arrow has them, so that deleted rows, defaults and renamed
columns are as in every other read. DuckDB reads no other files, and loads no extensions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from lakelog.catalog.core.parquet import temporary_folder
from lakelog.catalog.core.tools.packages import package
from lakelog.catalog.names import Identifier, identifier
from lakelog.log.errors import InvalidInput

MEMORY_MB = 1024
"""What DuckDB may take; what needs more lies in a temporary folder meanwhile."""

BATCH_ROWS = 16 * 1024

_SETTINGS: dict[str, str | int | bool] = {
    "memory_limit": f"{MEMORY_MB}MB",
    "TimeZone": "UTC",
    # Joins would narrow what is read by filters that mistake NaN and the two zeros.
    "disabled_optimizers": "join_filter_pushdown",
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "enable_external_access": False,
}
_OWN = "lakelog_rows_"
_DATABASE = "memory"
_TAKEN = frozenset({_DATABASE, "system", "temp", "information_schema", "pg_catalog"})
"""What DuckDB takes for its own where it is the first part of a name: namespaces called so have another name in it."""


class Rows(Protocol):
    """What a name stands for."""

    def to_duckdb(self, connection: Any = None) -> Any: ...


@contextmanager
def answer_of(query: str, load: Callable[[Identifier], Rows]) -> Iterator[pa.RecordBatchReader]:
    """Return the answer to one SELECT of DuckDB's, whose tables are what `load` returns of their names.

    A name of more than three parts is written as one, in double quotes, in the catalog's own form: `"a.b.c.t"`.
    InvalidInput for what is not a query, and for a mistake in it; raises what `load` raises.
    """
    duckdb = package("duckdb", "lakelog sql", "lakelog[sql]")
    with temporary_folder("sql") as folder:
        connection = duckdb.connect(":memory:", config={"temp_directory": str(folder)})
        try:
            with _as_own(duckdb):
                tree = _parsed(connection, query)
                names = _names(tree)
                _make_views(connection, names, load)
                for name, value in _SETTINGS.items():
                    connection.execute(f"SET {name} = ?", [value]).fetchall()
                connection.execute("SET lock_configuration = true").fetchall()
                answer = connection.sql(_text(connection, query, tree, names)).arrow(BATCH_ROWS)
            yield pa.RecordBatchReader.from_batches(answer.schema, _batches(duckdb, answer))
        finally:
            connection.close()


def _batches(duckdb: Any, answer: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with _as_own(duckdb):
        yield from answer


@contextmanager
def _as_own(duckdb: Any) -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InvalidInput(
            f"the query needs more than {MEMORY_MB} MB of memory: {_first_line(error)}"
        ) from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise InvalidInput(f"the query fails: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition(os.linesep)[0]


def _parsed(connection: Any, query: str) -> Any:
    """Return a query as DuckDB has parsed it; InvalidInput for what is not one SELECT."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    parsed = json.loads(text)
    if parsed["error"]:
        raise InvalidInput(
            f"the query is not a SELECT that DuckDB can read: {parsed['error_message']}. Tables are changed by "
            "Spark, or from Python"
        )
    if len(parsed["statements"]) != 1:
        raise InvalidInput(f"there are {len(parsed['statements'])} statements: give one SELECT")
    return parsed


def _names(parsed: Any) -> list[tuple[str, ...]]:
    """Return the names of the tables that a query reads, each once, except for those that it makes itself."""
    named: dict[tuple[str, ...], None] = {}
    for node, own in _nodes(parsed, frozenset()):
        if node.get("type") == "SHOW_REF" and not node.get("query"):
            raise InvalidInput(
                "SHOW lists what DuckDB has, which is nothing here: `lakelog ls` lists namespaces and tables, and "
                "DESCRIBE with the name of a table its columns"
            )
        if node.get("type") == "BASE_TABLE":
            if node.get("at_clause"):
                raise InvalidInput("AT (VERSION => …) is not known here: read the past by --as-of")
            parts = (node["catalog_name"], node["schema_name"], node["table_name"])
            name = tuple(part for part in parts if part)
            if len(name) > 1 or name[0].lower() not in own:
                named[name] = None
    return list(named)


def _nodes(tree: Any, own: frozenset[str]) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Yield all nodes, each with the names that WITH gives a meaning there: those of a WITH hold in its query, and in
    its parts after them, but in one of these itself only where it is recursive."""
    if isinstance(tree, list):
        for below in tree:
            yield from _nodes(below, own)
    if not isinstance(tree, dict):
        return
    if tree.get("type") == "RECURSIVE_CTE_NODE":
        own |= {tree["cte_name"].lower()}
    for entry in (tree.get("cte_map") or {}).get("map", ()):
        yield from _nodes(entry["value"], own)
        own |= {entry["key"].lower()}
    yield tree, own
    for key, below in tree.items():
        if key != "cte_map":
            yield from _nodes(below, own)


def _make_views(connection: Any, names: list[tuple[str, ...]], load: Callable[[Identifier], Rows]) -> None:
    """Make the names mean the tables.

    In `a.b.c`, `a` is a database to DuckDB, which refuses a schema of the same name: `a.t` is then in its first one.
    """
    databases = {_inside(name)[0] for name in names if len(name) == 3}
    for database in databases:
        connection.execute(f"ATTACH ':memory:' AS {_quoted(database)}").fetchall()
    for number, outside in enumerate(names):
        rows = load(identifier(outside[0]) if len(outside) == 1 else outside)
        rows.to_duckdb(connection).create_view(f"{_OWN}{number}")
        name = _inside(outside)
        schema = (name[0], "main") if len(name) == 2 and name[0] in databases else name[:-1]
        if schema:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(map(_quoted, schema))}").fetchall()
        view = ".".join(map(_quoted, (*schema, name[-1])))
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {_DATABASE}.main.{_OWN}{number}").fetchall()


def _inside(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name by which DuckDB knows the table of that name."""
    return (f"{_OWN}{name[0]}", *name[1:]) if len(name) > 1 and name[0].lower() in _TAKEN else name


def _text(connection: Any, query: str, parsed: Any, names: list[tuple[str, ...]]) -> str:
    """Return the query with the names that DuckDB knows, in its tables and in columns that are written with them."""
    renamed = {name for name in names if _inside(name) != name}
    if not renamed:
        return query
    for node, _ in _nodes(parsed, frozenset()):
        if node.get("type") == "BASE_TABLE":
            first = "catalog_name" if node["catalog_name"] else "schema_name"
            name = (node["catalog_name"], node["schema_name"], node["table_name"])
            if tuple(part for part in name if part) in renamed:
                node[first] = f"{_OWN}{node[first]}"
                # DuckDB 2 has the name twice, and takes this one.
                if "qualified_name" in node:
                    node["qualified_name"]["path"][0] = node[first]
        if node.get("type") == "COLUMN_REF":
            parts = node["column_names"]
            if any(tuple(parts[: len(name)]) == name for name in renamed):
                node["column_names"] = [f"{_OWN}{parts[0]}", *parts[1:]]
    ((text,),) = connection.execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(parsed)]).fetchall()
    return str(text)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'
