"""Filters that readers of Iceberg push into an exported table: whether they find the rows that lakelog finds.

Readers leave out files by what the export says of them: bounds, counts of NULLs, values of partitions. So each value is
in a file beside others, in one that has it alone, and in one whose bounds begin or end with it. A reader that finds
other rows, and the same ones if no file is left out, compares values in its own way: that is no fault of the export.
"""

from __future__ import annotations

import datetime as dt
import operator
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
from tests.integration.iceberg.readers import duckdb_with_iceberg

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.schema import schema_to_arrow

LONG = "z" * 40
ZONE = dt.timezone(dt.timedelta(hours=5, minutes=30))
NAN, INFINITY = float("nan"), float("inf")

VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "byte": [-128, -1, 0, 127],
    "short": [-32768, -1, 0, 32767],
    "integer": [-(2**31), -1, 0, 2**31 - 1],
    "long": [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1],
    "float": [-INFINITY, -1.5, -0.0, 0.0, 1.5, INFINITY, NAN],
    "double": [-INFINITY, -1e300, -0.0, 0.0, 5e-324, 1e300, INFINITY, NAN],
    "decimal(9,2)": [Decimal("-9999999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("9999999.99")],
    "decimal(38,0)": [Decimal("-" + "9" * 38), Decimal(0), Decimal("9" * 38)],
    "string": ["", "a", "a\u0000", "ab", LONG, f"{LONG}z", "ä", "\ud7ff", "\ufffd", "\U0001f600"],
    "string collate UTF8_LCASE": ["", "A", "a", "B", "b", LONG, LONG.upper(), "Ä", "ä"],
    "varchar(9)": ["", "a", "ab", "ä"],
    "binary": [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff" * 20],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "timestamp": [
        dt.datetime(1, 1, 2, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
        dt.datetime(1970, 1, 1, 5, 30, tzinfo=ZONE),
        dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC),
    ],
    "timestamp_ntz": [
        dt.datetime(1, 1, 2),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(1970, 1, 1),
        dt.datetime(9999, 12, 31, 23),
    ],
    "time(6)": [dt.time(0), dt.time(0, 0, 0, 1), dt.time(12, 30), dt.time(23, 59, 59, 999_999)],
}
"""In their order, so that files have bounds between which others are."""

COLLATED = "string collate UTF8_LCASE"
"""For readers a text as any other: they compare bytes, as lakelog compares a text without a collation."""

OTHER_ROWS = "other rows"
OTHERWISE = "compares NaN, infinities or -0.0 differently"


def partitionings(type: str) -> Iterator[list[Any]]:
    """Yield the ways to partition by a column of a type, first none."""
    yield []
    if type == COLLATED:
        return
    yield ["v"]
    family = type.partition("(")[0]
    if family in ("integer", "long", "decimal", "string", "varchar", "binary", "date", "timestamp", "time"):
        yield [{"transform": "bucket", "args": [3], "column": ["v"]}]
    # Of 38 digits, the least would have one more when it is truncated.
    if family in ("integer", "long", "decimal", "string", "varchar") and type != "decimal(38,0)":
        yield [{"transform": "truncate", "args": [2], "column": ["v"]}]
    if family in ("date", "timestamp", "timestamp_ntz"):
        yield from ([{"transform": name, "column": ["v"]}] for name in ("day", "month", "year"))


@dataclass(frozen=True, slots=True)
class Filter:
    """`op` is =, <, <=, >, >=, !=, in, is null, or is not null, of the column `v`."""

    op: str
    values: tuple[Any, ...] = ()


def filters(type: str, *, all_of_them: bool) -> Iterator[Filter]:
    values = VALUES[type]
    yield Filter("is null")
    yield Filter("in", (values[0], values[-1]))
    if not all_of_them:
        yield Filter("=", (values[1],))
        yield Filter("<", (values[len(values) // 2],))
        return
    yield Filter("is not null")
    for number, value in enumerate(values):
        for op in ("=", "<", "<=", ">", ">=", "!="):
            yield Filter(op, (value,))
        yield Filter("in", (value, values[(number + 2) % len(values)]))


def filled(catalog: Catalog, name: str, type: str, values: list[Any], partitioning: list[Any]) -> Table:
    """Return a table with the values of a type in several files."""
    table = catalog.create_table(name, pa.schema([pa.field("id", pa.int64())]))
    table = table.alter([{"change": "add-column", "name": ["v"], "type": type}])
    if partitioning:
        table = table.alter([{"change": "set-partitioning", "fields": partitioning}])
    ids, arrow = count(), schema_to_arrow(table.schema).field("v").type
    halves = [values[: len(values) // 2 + 1], values[len(values) // 2 :]]
    for each_value in [[value] for value in values] + [
        [None],
        *halves,
        [values[1], values[-1]],
        [*values, None],
    ]:
        rows = {"id": pa.array([next(ids) for _ in each_value], pa.int64()), "v": pa.array(each_value, arrow)}
        table = table.append(pa.table(rows))
    return table


def answers(type: str, *, all_of_them: bool) -> dict[str, set[str]]:
    """Return what each reader makes of filters of a column of that type, nothing if it finds what lakelog finds: of
    all of them, and with all partitionings, or of some without any."""
    found: dict[str, set[str]] = {name: set() for name in FILTERING}
    for partitioning in partitionings(type) if all_of_them else [[]]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            catalog = Catalog(folder)
            table = filled(catalog, "t", type, VALUES[type], partitioning)
            ours = filled(catalog, "u", "string", VALUES[type], []) if type == COLLATED else table
            url = table.export_iceberg().url
            for filter in filters(type, all_of_them=all_of_them):
                expected = by_lakelog(ours, filter)
                for name, read in FILTERING.items():
                    found[name] |= _answer(read, url, filter, expected)
    return found


def _answer(
    read: Callable[[str, Filter], list[int]],
    url: str,
    asked: Filter,
    expected: list[int],
) -> set[str]:
    try:
        ids = read(url, asked)
    except Exception as error:
        return {f"refuses some ({type(error).__name__})"}
    if ids == expected:
        return set()
    if read is by_pyiceberg and ids == by_pyiceberg(url, asked, leaves_out=False):
        return {OTHERWISE}
    return {f"{OTHER_ROWS} by {asked.op.upper()}"}


# Readers, each with its own way to say a filter


def _compared(column: Any, asked: Filter) -> Any:
    """Return a comparison, if a column's operators make it."""
    (value,) = asked.values
    return _OPERATORS[asked.op](column, value)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def by_lakelog(table: Table, asked: Filter) -> list[int]:
    v = col("v")
    match asked.op:
        case "is null":
            condition = v.is_null()
        case "is not null":
            condition = v.is_not_null()
        case "in":
            condition = v.is_in(list(asked.values))
        case _:
            condition = _compared(v, asked)
    return _ids(table.scan(["id"], condition).to_arrow())


def by_duckdb(url: str, asked: Filter) -> list[int]:
    texts = ", ".join(map(_in_sql, asked.values))
    condition = f"v {asked.op} ({texts})" if asked.op == "in" else f"v {asked.op} {texts}"
    query = f"SELECT id FROM iceberg_scan('{url}') WHERE {condition}"
    return _ids(duckdb_with_iceberg().execute(query).to_arrow_table())


def _in_sql(value: Any) -> str:
    match value:
        case bool() | int():
            return f"({value})"
        case float():
            return f"'{value}'::DOUBLE"
        case Decimal():
            return f"{value:f}::DECIMAL(38, {-int(value.as_tuple().exponent)})"
        case bytes():
            return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::BLOB"
        case dt.datetime():
            return f"'{value.isoformat(' ')}'::{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'}"
        case dt.date():
            return f"'{value.isoformat()}'::DATE"
        case dt.time():
            return f"'{value.isoformat()}'::TIME"
        case _:
            text = value.replace("'", "''").replace("\0", "' || chr(0) || '")
            return f"('{text}')"


def by_pyiceberg(url: str, asked: Filter, *, leaves_out: bool = True) -> list[int]:
    """Return what pyiceberg finds: in the files that are left for it, or in all of them."""
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(url)
    scan = table.scan(row_filter=of_pyiceberg(asked), selected_fields=("id",))
    if leaves_out:
        return _ids(scan.to_arrow())
    reading = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
    return _ids(reading.to_table(table.scan().plan_files()))


def of_pyiceberg(asked: Filter) -> Any:
    from pyiceberg import expressions

    e: Any = expressions  # whose types have not what its constructors take
    match asked.op:
        case "is null":
            return e.IsNull("v")
        case "is not null":
            return e.NotNull("v")
        case "in":
            return e.In("v", asked.values)
        case _:
            of_op = {
                "=": e.EqualTo, "!=": e.NotEqualTo, "<": e.LessThan, "<=": e.LessThanOrEqual,
                ">": e.GreaterThan, ">=": e.GreaterThanOrEqual,
            }  # fmt: skip
            return of_op[asked.op]("v", asked.values[0])


def by_polars(url: str, asked: Filter) -> list[int]:
    import polars

    v = polars.col("v")
    match asked.op:
        case "is null":
            condition = v.is_null()
        case "is not null":
            condition = v.is_not_null()
        case "in":
            condition = v.is_in(list(asked.values))
        case _:
            condition = _compared(v, asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _ids(polars.scan_iceberg(url).filter(condition).select("id").collect().to_arrow())


def _ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


FILTERING: dict[str, Callable[[str, Filter], list[int]]] = {
    "duckdb": by_duckdb,
    "pyiceberg": by_pyiceberg,
    "polars": by_polars,
}


def table_of(answers_of: Mapping[str, Mapping[str, set[str]]], heads: list[str]) -> str:
    lines = [f"| | {' | '.join(heads)} |", f"|---{'|---' * len(heads)}|"]
    for type, found in answers_of.items():
        cells = ["; ".join(sorted(notes)) or "yes" for notes in found.values()]
        lines.append(f"| `{type}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def said_in(page: str) -> dict[str, dict[str, str]]:
    """Return what the page says, by types and readers."""
    table = page.partition(HEAD)[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return {name.strip("`"): dict(zip(FILTERING, cells, strict=True)) for name, *cells in lines}


HEAD = "\n## Filters\n\n"
WORDS = """\
Whether readers find the same rows as lakelog by filters: =, !=, <, <=, >, >=, IN, and tests for NULL. The
filters are on a column of each type, in tables without partitions and in tables that are partitioned by that
column in each way. The values include zeros, infinities, NaN, the least and greatest values, and strings
longer than bounds. Strings with a collation are compared by bytes. Some readers refuse NaN as a value, or
days at an end of the calendar in partitions by month or year. "compares … differently" means that the reader
finds the same rows without the export's statistics, so the export is not the cause.

"""
