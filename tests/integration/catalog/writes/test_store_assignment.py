"""Values that an update or a merge sets are stored as Spark stores them: a table of Spark's answers.

`tests/spark/rows/test_python_rows.py` asks Spark for the same.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Table
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.catalog.core.writes.store_assignment import stored
from lakelog.log.errors import InvalidInput

UTC = dt.UTC
COLUMNS = {
    "byte": pa.int8(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "small": pa.decimal128(5, 3),
    "text": pa.string(),
    "day": pa.date32(),
    "time": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "flag": pa.bool_(),
}
STORED: list[tuple[str, str, Any]] = [
    ("byte", "2.5", 2),
    ("int", "CAST(-1.5 AS DOUBLE)", -1),
    ("int", "99999999.995", 99999999),
    ("long", "CAST(2.675 AS DOUBLE)", 2),
    ("float", "1.5", 1.5),
    ("float", "float * 2", 3.0),
    ("float", "1e300", math.inf),
    ("float", "16777217", 16777216.0),
    ("double", "2.5", 2.5),
    ("double", "0.3", 0.3),
    ("double", "9007199254740993", 9007199254740992.0),
    ("double", "CAST(0.1 AS FLOAT)", 0.10000000149011612),
    ("dec", "1", Decimal("1.00")),
    ("dec", "2.005", Decimal("2.01")),
    ("dec", "2.345", Decimal("2.35")),
    ("dec", "-2.345", Decimal("-2.35")),
    ("dec", "CAST(2.675 AS DOUBLE)", Decimal("2.68")),
    ("dec", "CAST(0.1 AS FLOAT)", Decimal("0.10")),
    ("small", "9.9995", Decimal("10.000")),
    ("text", "7", "7"),
    ("text", "0.0000001", "0.0000001"),
    ("text", "true", "true"),
    ("text", "DATE '2026-02-01'", "2026-02-01"),
    ("text", "DATE '9999-12-31'", "9999-12-31"),
    ("text", "DATE '10000-01-01'", "+10000-01-01"),
    ("text", "DATE '40000-01-01'", "+40000-01-01"),
    ("day", "TIMESTAMP '2026-02-01 23:59:59.5'", dt.date(2026, 2, 1)),
    ("day", "TIMESTAMP '1969-12-31 23:00:00'", dt.date(1969, 12, 31)),
    ("time", "DATE '2026-02-01'", dt.datetime(2026, 2, 1, tzinfo=UTC)),
    ("local", "DATE '2026-02-01'", dt.datetime(2026, 2, 1)),
    ("time", "TIMESTAMP '2026-02-01 10:00:00'", dt.datetime(2026, 2, 1, 10, tzinfo=UTC)),
]
BEYOND = [
    ("byte", "300"),
    ("int", "1e300"),
    ("int", "CAST('NaN' AS DOUBLE)"),
    ("long", "9.3e18"),
    ("dec", "3000000000"),
    ("dec", "1e300"),
    ("dec", "99999999.995"),
    ("dec", "CAST('Infinity' AS DOUBLE)"),
    ("small", "12345.678"),
]
NOT_ASSIGNED = [
    ("int", "'1'"),
    ("day", "'2026-02-01'"),
    ("flag", "1"),
    ("int", "true"),
    ("int", "DATE '2026-02-01'"),
]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    rows = pa.table({"float": pa.array([1.5], pa.float32()), "long": [1]})
    return catalog.create_table("t", pa.schema(COLUMNS)).append(rows)


def merged(table: Table, column: str, text: str) -> Table:
    values = {column: text.replace("float", "target.float")}
    return table.merge(pa.table({"long": [1]}), on="long").when_matched_update(values).execute()


@pytest.mark.parametrize(("column", "text", "value"), STORED)
def test_a_value_is_cast_as_spark_stores_it(table: Table, column: str, text: str, value: Any) -> None:
    assert table.update({column: text}).to_arrow()[column].to_pylist() == [value]
    assert merged(table.refresh(), column, text).to_arrow()[column].to_pylist() == [
        value if "*" not in text else 6.0
    ]


@pytest.mark.parametrize(("column", "text"), BEYOND)
def test_a_value_out_of_range_is_an_error(table: Table, column: str, text: str) -> None:
    for call in (lambda: table.update({column: text}), lambda: merged(table, column, text)):
        with pytest.raises(InvalidInput, match="out of its range|does not fit"):
            call()


@pytest.mark.parametrize(("column", "text"), NOT_ASSIGNED)
def test_a_type_that_spark_does_not_assign_is_refused(table: Table, column: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="which Spark does not assign to it either: write .*(CAST|DATE)"):
        table.update({column: text})


@pytest.mark.parametrize("infinity", ["infinity", "-infinity"])
@pytest.mark.parametrize(
    ("column", "type"), [("day", "DATE"), ("time", "TIMESTAMPTZ"), ("local", "TIMESTAMP"), ("text", "DATE")]
)
def test_infinity_is_refused(table: Table, column: str, type: str, infinity: str) -> None:
    # Other readers would show a date of the year 5881580, or a time of the year 294247.
    with pytest.raises(InvalidInput, match="is infinity, which only DuckDB has: write"):
        table.update({column: f"CAST('{infinity}' AS {type})"})
    with pytest.raises(InvalidInput, match="is infinity"):
        merged(table, column, f"CAST('{infinity}' AS {type})")


def test_the_day_of_the_earliest_time_is_a_day_long_ago() -> None:
    earliest = pa.array([-(2**63), None], pa.int64()).cast(pa.timestamp("us"))
    days = stored(earliest, Field(id=1, physical="d", name="d", type=AtomicType("date")))
    assert days.cast(pa.int32()).to_pylist() == [-106_751_992, None]


def test_a_struct_that_lacks_a_field_is_refused_as_by_spark(catalog: Catalog) -> None:
    place = pa.struct([("city", pa.string()), ("zip", pa.string())])
    table = catalog.create_table("s", pa.schema([("id", pa.int64()), ("place", place)]))
    table = table.append(pa.table({"id": [1], "place": pa.array([{"city": "Rome", "zip": "1"}], place)}))
    for value in ("{'city': 'Paris'}", {"city": "Paris"}):
        with pytest.raises(InvalidInput, match=r"no field place.zip, .*: give the field, or NULL for it"):
            table.update({"place": value})
    source = pa.table({"id": [1], "place": [{"city": "Paris"}]})
    with pytest.raises(InvalidInput, match=r"no field place.zip"):
        table.merge(source, on="id").when_matched_update({"place": "source.place"}).execute()
    table = table.update({"place": "{'zip': NULL, 'city': 'Paris'}"})
    assert table.to_arrow()["place"].to_pylist() == [{"city": "Paris", "zip": None}]
    table = table.update({"place": {"city": "Oslo", "zip": None}})
    assert table.update({"place": None}).to_arrow()["place"].to_pylist() == [None]


def test_a_column_of_the_source_is_cast_if_a_clause_names_it_and_checked_if_not(table: Table) -> None:
    source = pa.table({"long": [1], "double": [2.5], "int": [1.5]})
    merge = table.merge(source, on="long")
    table = merge.when_matched_update({"dec": "source.double", "int": "source.int"}).execute()
    assert table.to_arrow().select(["dec", "int"]).to_pylist() == [{"dec": Decimal("2.50"), "int": 1}]
    with pytest.raises(InvalidInput, match="int is of type integer"):
        table.upsert(source, on="long")


def test_numbers_of_python_have_the_columns_type(table: Table) -> None:
    table = table.update({"float": 1.1, "dec": 1.1, "small": 2, "double": Decimal("0.3")})
    assert table.to_arrow().select(["float", "dec", "small", "double"]).to_pylist() == [
        {"float": pytest.approx(1.1), "dec": Decimal("1.10"), "small": Decimal("2.000"), "double": 0.3}
    ]
    with pytest.raises(InvalidInput, match="integer"):
        table.update({"int": 1.5})


def test_words_for_the_time_are_no_columns(table: Table) -> None:
    table = table.update(
        {
            "day": "current_date",
            "time": "current_timestamp()",
            "local": "localtimestamp",
            "text": "year(Current_Date)",
        }
    )
    row = table.to_arrow().to_pylist()[0]
    assert row["time"].date() == row["local"].date() == row["day"] and row["text"] == str(row["day"].year)
    table = merged(table, "day", "current_date")
    assert table.to_arrow()["day"][0].as_py() >= row["day"]


def test_a_column_may_be_called_as_a_word_for_the_time(catalog: Catalog) -> None:
    table = catalog.create_table("t", pa.schema({"current_date": pa.int64()}))
    table = table.append(pa.table({"current_date": [7]})).update({"current_date": "current_date + 1"})
    assert table.to_arrow().to_pylist() == [{"current_date": 8}]


def test_integers_are_appended_to_a_decimal_column_if_they_fit(catalog: Catalog) -> None:
    table = catalog.create_table("t", pa.schema({"dec": pa.decimal128(4, 2)})).append(
        pa.table({"dec": [5, None]})
    )
    assert table.to_arrow()["dec"].to_pylist() == [Decimal("5.00"), None]
    with pytest.raises(InvalidInput, match="does not fit"):
        table.append(pa.table({"dec": [100]}))
