"""A query in DuckDB's SQL over tables that are found by name, read only, in bounded memory.

DuckDB's own parser checks that the text is a query, and returns the tables that it names. So only these are
looked up, and only a query runs. Each table becomes a view of DuckDB over its Arrow rows. So deleted rows,
defaults and renamed columns are as in every other read. DuckDB reads no other files, and loads no extensions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from lakelog.catalog.core.parquet.temporary import temporary_folder
from lakelog.catalog.core.tools.packages import package
from lakelog.catalog.names import Identifier, identifier
from lakelog.log.errors import InvalidInput

MEMORY_MB = 1024
"""DuckDB's limit of memory. Data beyond it is kept in a temporary folder during the query."""

BATCH_ROWS = 64
"""The rows that are in memory at once on the way from DuckDB. Each may have cells of megabytes."""

_SETTINGS: dict[str, str | int | bool] = {
    "memory_limit": f"{MEMORY_MB}MB",
    "TimeZone": "UTC",
    # Joins would narrow the read by filters that mistake NaN and the two zeros.
    "disabled_optimizers": "join_filter_pushdown",
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "enable_external_access": False,
}
_OWN = "lakelog_rows_"
_DATABASE = "memory"
_TAKEN = frozenset({_DATABASE, "system", "temp", "information_schema", "pg_catalog"})
"""Names that DuckDB takes for its own at the beginning of a name. Namespaces of these names are renamed in
DuckDB."""


class NamedRows(Protocol):
    """The rows of a name."""

    def to_duckdb(self, connection: Any = None) -> Any: ...


_AS_OF = re.compile(r"\b(?:version|timestamp|system_version|system_time)\s+as\s+of\b", re.IGNORECASE)
_OF_THE_PAST = "give a time by --as-of TIME, or read a version by `lakelog head TABLE --version N`"


@contextmanager
def answer_of(
    query: str,
    load: Callable[[Identifier], NamedRows],
    began: Callable[[Callable[[], None]], None] = lambda interrupt: None,
    *,
    rows_max: int | None = None,
    cell_max: int | None = None,
) -> Iterator[pa.RecordBatchReader]:
    """Return the answer to a single SELECT of DuckDB, in batches of few rows. `load` returns its tables by name.

    A name of more than three parts is a single quoted name, in the catalog's own form: `"a.b.c.t"`. `began` is given a
    function that interrupts DuckDB from any thread. DuckDB ends the answer after `rows_max` rows. It cuts each string
    or binary to its first `cell_max` characters or bytes, but not those in a list, struct or map. Raises InvalidInput
    if the text is not a query or has a mistake. Raises the errors of `load`.
    """
    duckdb = package("duckdb", "lakelog sql", "duckdb", "sql")
    with temporary_folder("sql") as folder:
        connection = duckdb.connect(":memory:", config={"temp_directory": str(folder)})
        began(connection.interrupt)
        try:
            with _as_own(duckdb):
                tree = _parsed(connection, query)
                names = _names(tree)
                _make_views(connection, names, load)
                for name, value in _SETTINGS.items():
                    connection.execute(f"SET {name} = ?", [value]).fetchall()
                connection.execute("SET lock_configuration = true").fetchall()
                relation = connection.sql(_text(connection, query, tree, names))
                answer = _bounded(relation, rows_max, cell_max).arrow(BATCH_ROWS)
            # Columns of a query may have the same name, which DuckDB changes in a query around it.
            renamed = zip(answer.schema, relation.columns, strict=True)
            schema = pa.schema([field.with_name(name) for field, name in renamed])
            yield pa.RecordBatchReader.from_batches(schema, _batches(duckdb, answer, schema))
        finally:
            connection.close()


def _bounded(relation: Any, rows_max: int | None, cell_max: int | None) -> Any:
    """Return a query around a query, so that DuckDB makes no more rows and no longer cells than these."""
    bounded_relation = relation if rows_max is None else relation.limit(rows_max)
    if cell_max is None:
        return bounded_relation
    cuts = {"VARCHAR": f"left(#{{}}, {cell_max})", "BLOB": f"array_slice(#{{}}, 1, {cell_max})"}
    columns = [cuts.get(str(of), "#{}").format(number) for number, of in enumerate(relation.types, 1)]
    return bounded_relation.project(", ".join(columns))


def _batches(duckdb: Any, answer: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _as_own(duckdb):
        for batch in answer:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


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
    except RecursionError as error:
        raise InvalidInput("the query is nested too deeply: write it in smaller parts") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition(os.linesep)[0]


def _parsed(connection: Any, query: str) -> Any:
    """Return a query as DuckDB has parsed it. Raises InvalidInput unless it is a single SELECT."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    tree = json.loads(text)
    if tree.get("error_type") == "not implemented":
        raise InvalidInput("the query is not a SELECT. Tables are changed by Spark, or from Python")
    if tree["error"]:
        hint = f". To read the past: {_OF_THE_PAST}" if _AS_OF.search(query) else ""
        raise InvalidInput(f"DuckDB cannot read the query: {tree['error_message']}{hint}")
    if len(tree["statements"]) != 1:
        raise InvalidInput(f"there are {len(tree['statements'])} statements: give one SELECT")
    return tree


def _names(parsed: Any) -> list[tuple[str, ...]]:
    """Return the names of the tables that a query reads, each once, except for tables that it defines
    itself."""
    result: dict[tuple[str, ...], None] = {}
    for node, own in _nodes(parsed, frozenset()):
        if node.get("type") == "SHOW_REF" and not node.get("query"):
            raise InvalidInput(
                "SHOW lists what DuckDB has, which is nothing here: `lakelog ls` lists namespaces and tables, and "
                "DESCRIBE with the name of a table its columns"
            )
        if node.get("type") == "BASE_TABLE":
            if node.get("at_clause"):
                raise InvalidInput("AT (VERSION => …) is not known here: " + _OF_THE_PAST)
            parts = (node["catalog_name"], node["schema_name"], node["table_name"])
            name = tuple(part for part in parts if part)
            if len(name) > 1 or name[0].lower() not in own:
                result[name] = None
    return list(result)


def _nodes(tree: Any, own: frozenset[str]) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Yield all nodes, each with the names that WITH defines there.

    The names of a WITH hold in its query and in its later parts. They hold in a part itself only if that part
    is recursive.
    """
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


def _make_views(
    connection: Any, names: list[tuple[str, ...]], load: Callable[[Identifier], NamedRows]
) -> None:
    """Define the names as views of the tables.

    In `a.b.c`, `a` is a database to DuckDB, which refuses a schema of the same name. So `a.t` is in that
    database's first schema.
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
    """Return DuckDB's name for the table of that name."""
    return (f"{_OWN}{name[0]}", *name[1:]) if len(name) > 1 and name[0].lower() in _TAKEN else name


def _text(connection: Any, query: str, parsed: Any, names: list[tuple[str, ...]]) -> str:
    """Return the query with DuckDB's names in its tables, and in columns that are written with a table
    name."""
    names_to_change = {name for name in names if _inside(name) != name}
    if not names_to_change:
        return query
    for node, _ in _nodes(parsed, frozenset()):
        if node.get("type") == "BASE_TABLE":
            first = "catalog_name" if node["catalog_name"] else "schema_name"
            name = (node["catalog_name"], node["schema_name"], node["table_name"])
            if tuple(part for part in name if part) in names_to_change:
                node[first] = f"{_OWN}{node[first]}"
                # DuckDB 2 has the name twice, and takes this copy.
                if "qualified_name" in node:
                    node["qualified_name"]["path"][0] = node[first]
        if node.get("type") == "COLUMN_REF":
            parts = node["column_names"]
            if any(tuple(parts[: len(name)]) == name for name in names_to_change):
                node["column_names"] = [f"{_OWN}{parts[0]}", *parts[1:]]
    ((text,),) = connection.execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(parsed)]).fetchall()
    return str(text)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'
