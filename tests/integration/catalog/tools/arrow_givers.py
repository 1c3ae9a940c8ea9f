"""Frames of pandas, Polars and DuckDB with columns of all their types, each with the values that have to come back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

DAY, MOMENT, CLOCK = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3), dt.time(1, 2, 3)
ZONED = MOMENT.replace(tzinfo=dt.UTC)
LASTING, DIGITS = dt.timedelta(1, 2), [Decimal("1.25"), None, Decimal("-3.50")]
IDS = [0, 1, 2]

Given = tuple[Any, dict[str, list[Any]]]
"""A frame with an id, and the values of its other columns."""


def of_pandas() -> Given:
    whole_numbers, texts = [1, None, -3], ["a", None, "ä"]
    columns: dict[str, tuple[Any, list[Any]]] = {
        **{f"numpy {name}": (np.array([1, 0, 3], name), [1, 0, 3]) for name in ("int8", "uint16", "int64", "uint64")},
        "numpy float": (np.array([1.5, np.nan, -2.0]), [1.5, None, -2.0]),
        "numpy half": (np.array([1.5, 0, -2.0], "float16"), [1.5, 0.0, -2.0]),
        "numpy bool": (np.array([True, False, True]), [True, False, True]),
        "Int64": (pd.array(whole_numbers, "Int64"), whole_numbers),
        "boolean": (pd.array([True, None, False], "boolean"), [True, None, False]),
        "Float64": (pd.array([1.5, None, 2.5], "Float64"), [1.5, None, 2.5]),
        "str": (pd.Series(texts), texts),
        "python str": (pd.Series(texts, dtype="string[python]"), texts),
        "category": (pd.Categorical(texts), texts),
        "category of numbers": (pd.Categorical([3, None, 1]), [3, None, 1]),
        "bytes": (pd.Series([b"\xff", None, b""], dtype=object), [b"\xff", None, b""]),
        "decimals": (pd.Series(DIGITS, dtype=object), DIGITS),
        "days": (pd.Series([DAY, None, DAY], dtype=object), [DAY, None, DAY]),
        "times": (pd.Series([CLOCK, None, CLOCK], dtype=object), [CLOCK, None, CLOCK]),
        "moments": (pd.Series([MOMENT, None, MOMENT]).astype("datetime64[ns]"), [MOMENT, None, MOMENT]),
        "moments of a zone": (
            pd.Series([ZONED, None, ZONED]).dt.tz_convert("Asia/Tokyo"), [ZONED, None, ZONED]
        ),
        "durations": (pd.Series([LASTING, None, LASTING]).astype("timedelta64[ns]"), [LASTING, None, LASTING]),
        "lists": (pd.Series([["a"], None, []], dtype=object), [["a"], None, []]),
        "arrays": (pd.Series([np.array([1, 2]), None, np.array([3])], dtype=object), [[1, 2], None, [3]]),
        "structs": (pd.Series([{"x": [1]}, None, {"x": None}], dtype=object), [{"x": [1]}, None, {"x": None}]),
        "nothing": (pd.Series([None, None, None], dtype=object), [None, None, None]),
    }  # fmt: skip
    arrow: dict[str, tuple[pa.Array, list[Any]]] = {
        "views": (pa.array(texts, pa.string_view()), texts),
        "dictionary": (pa.array(texts).dictionary_encode(), texts),
        "list": (pa.array([[1], None, []], pa.list_(pa.int32())), [[1], None, []]),
        "decimal": (pa.array(DIGITS, pa.decimal128(9, 2)), DIGITS),
    }
    for name, (array, kept) in arrow.items():
        columns[f"Arrow's {name}"] = (pd.Series(pd.arrays.ArrowExtensionArray(array)), kept)
    return pd.DataFrame({"id": IDS, **{name: given for name, (given, _) in columns.items()}}), {
        name: kept_column for name, (_, kept_column) in columns.items()
    }


def of_polars() -> Given:
    texts = ["a", None, "longer than twelve bytes"]
    atoms: dict[str, tuple[Any, list[Any]]] = {
        **{each.__name__: (each, [1, None, 2]) for each in (pl.Int8, pl.Int16, pl.Int32, pl.Int64)},
        **{each.__name__: (each, [1, None, 2]) for each in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)},
        "Float32": (pl.Float32, [1.5, None, -2.0]),
        "Float64": (pl.Float64, [0.1, None, -2.0]),
        "Boolean": (pl.Boolean, [True, None, False]),
        "Decimal": (pl.Decimal(20, 2), DIGITS),
        "String": (pl.String, texts),
        "Binary": (pl.Binary, [b"\xff", None, b"longer than twelve bytes"]),
        "Categorical": (pl.Categorical, texts),
        "Enum": (pl.Enum(["x", *filter(None, texts)]), texts),
        "Date": (pl.Date, [DAY, None, DAY]),
        "Time": (pl.Time, [CLOCK, None, CLOCK]),
        **{f"Datetime {unit}": (pl.Datetime(unit), [MOMENT, None, MOMENT]) for unit in ("ms", "us", "ns")},
        "Datetime of a zone": (pl.Datetime("us", "Asia/Tokyo"), [ZONED, None, ZONED]),
        **{f"Duration {unit}": (pl.Duration(unit), [LASTING, None, LASTING]) for unit in ("ms", "us", "ns")},
        "Null": (pl.Null, [None, None, None]),
    }  # fmt: skip
    if hasattr(pl, "Float16"):
        atoms["Float16"] = (pl.Float16, [1.5, None, -2.0])
    series = {name: pl.Series(name, values, dtype=type) for name, (type, values) in atoms.items()}
    kept_values = {name: values for name, (_, values) in atoms.items()}
    nested_pairs: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "List": (lambda type: pl.List(type), lambda value: [value, None]),
        "Array": (lambda type: pl.Array(type, 2), lambda value: [value, value]),
        "Struct": (lambda type: pl.Struct({"x": type}), lambda value: {"x": value}),
    }
    for name, (type, values) in list(atoms.items()):
        for outer, (outer_type, outer_value) in nested_pairs.items():
            outer_values = [outer_value(values[0]), None, outer_value(values[2])]
            series[f"{outer} of {name}"] = pl.Series(outer_values, dtype=outer_type(type))
            kept_values[f"{outer} of {name}"] = outer_values
            for inner, (inner_type, inner_value) in nested_pairs.items():
                two = [outer_value(inner_value(values[0])), None, outer_value(inner_value(values[2]))]
                series[f"{outer} of {inner} of {name}"] = pl.Series(two, dtype=outer_type(inner_type(type)))
                kept_values[f"{outer} of {inner} of {name}"] = two
    return pl.DataFrame({"id": IDS, **series}), kept_values


DUCKDB: dict[str, tuple[list[str], list[Any]]] = {
    **{name: (["1", "NULL", "2"], [1, None, 2]) for name in (
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
        "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
    )},
    "FLOAT": (["1.5", "NULL", "-2"], [1.5, None, -2.0]),
    "DOUBLE": (["0.1", "NULL", "-2"], [0.1, None, -2.0]),
    "BOOLEAN": (["true", "NULL", "false"], [True, None, False]),
    **{f"DECIMAL({width}, 2)": (["1.25", "NULL", "-3.50"], DIGITS) for width in (4, 9, 18, 38)},
    "VARCHAR": (["'a'", "NULL", "'ä'"], ["a", None, "ä"]),
    "ENUM('a', 'ä')": (["'a'", "NULL", "'ä'"], ["a", None, "ä"]),
    "BLOB": (["'\\xFF'", "NULL", "''"], [b"\xff", None, b""]),
    "DATE": (["'2024-02-29'", "NULL", "'2024-02-29'"], [DAY, None, DAY]),
    "TIME": (["'01:02:03'", "NULL", "'01:02:03'"], [CLOCK, None, CLOCK]),
    **{name: (["'2024-02-29 01:02:03'", "NULL", "'2024-02-29 01:02:03'"], [MOMENT, None, MOMENT])
       for name in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")},
    "TIMESTAMPTZ": (["'2024-02-29 01:02:03+00'", "NULL", "'2024-02-29 01:02:03Z'"], [ZONED, None, ZONED]),
    "UUID": ([f"'{'0' * 8}-0000-0000-0000-{'0' * 12}'", "NULL", "NULL"],
             [f"{'0' * 8}-0000-0000-0000-{'0' * 12}", None, None]),
}  # fmt: skip


if duckdb.__version__.startswith("1.4."):
    # It hands these over as bytes that only it understands, which are refused.
    del DUCKDB["UHUGEINT"]


def of_duckdb() -> Given:
    forms: dict[str, tuple[Callable[[str], str], Callable[[str], str], Callable[[Any], Any]]] = {
        "": (lambda type: type, lambda sql: sql, lambda value: value),
        "list of ": (lambda type: f"{type}[]", lambda sql: f"[{sql}, NULL]", lambda value: [value, None]),
        "array of ": (lambda type: f"{type}[2]", lambda sql: f"[{sql}, {sql}]", lambda value: [value, value]),
        "struct of ": (lambda type: f"STRUCT(x {type})", lambda sql: f"{{'x': {sql}}}", lambda value: {"x": value}),
        "map of ": (lambda type: f"MAP(INTEGER, {type})", lambda sql: f"MAP {{7: {sql}}}", lambda value: [[7, value]]),
    }  # fmt: skip
    rows: list[list[str]] = [[f"{at} AS id"] for at in IDS]
    kept: dict[str, list[Any]] = {}
    for name, (literals, values) in DUCKDB.items():
        for outer, (outer_type, outer_sql, outer_value) in forms.items():
            for inner, (inner_type, inner_sql, inner_value) in forms.items():
                full = f"{outer}{inner}{name}"
                if full in kept:
                    continue
                made = []
                for at, row in enumerate(rows):
                    is_null = at == 1
                    sql = "NULL" if is_null else outer_sql(inner_sql(f"{literals[at]}::{name}"))
                    row.append(f'{sql}::{outer_type(inner_type(name))} AS "{full}"')
                    made.append(None if is_null else outer_value(inner_value(values[at])))
                kept[full] = made
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE given AS " + " UNION ALL ".join(f"SELECT {', '.join(row)}" for row in rows)
    )
    _CONNECTIONS.append(connection)
    return connection.table("given"), kept


_CONNECTIONS: list[Any] = []
"""Relations of DuckDB 1.4 do not keep theirs."""

GIVERS: dict[str, Callable[[], Given]] = {"pandas": of_pandas, "Polars": of_polars, "DuckDB": of_duckdb}
