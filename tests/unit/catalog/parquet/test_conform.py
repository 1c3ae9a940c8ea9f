from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from lakelog.catalog.core.parquet.conform import conform
from lakelog.catalog.core.schema.arrow_types import VARIANT, schema_to_arrow
from lakelog.catalog.core.schema.schema import Schema, assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Default, Field, ListType, MapType, StructType, Type
from lakelog.log.errors import InvalidInput, Unsupported

LONG = AtomicType("long")
TIMES = pd.Series([pd.Timestamp("2026-01-01")])


def schema_of(type: Type | str, **rest: Any) -> Schema:
    return assign_ids([Field(name="c", type=AtomicType(type) if isinstance(type, str) else type, **rest)])


def column(values: pa.Array) -> pa.Table:
    return pa.table({"c": values})


@pytest.mark.parametrize(
    ("type", "given", "kept"),
    [
        ("byte", pa.array([1, None], pa.int64()), [1, None]),
        ("long", pa.array([1], pa.uint8()), [1]),
        ("double", pa.array([1], pa.int32()), [1.0]),
        ("double", pa.array([1.5], pa.float32()), [1.5]),
        ("decimal(5,2)", pa.array([Decimal("1.5")], pa.decimal128(3, 1)), [Decimal("1.50")]),
        ("decimal(20,0)", pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
        ("string", pa.array(["a"], pa.large_string()), ["a"]),
        ("binary", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        ("date", pa.array([date(2020, 1, 1)], pa.date64()), [date(2020, 1, 1)]),
        ("timestamp_ntz", pa.array([date(2020, 1, 1)]), [datetime(2020, 1, 1)]),
        ("timestamp_ntz", pa.array([datetime(2020, 1, 1)], pa.timestamp("ns")), [datetime(2020, 1, 1)]),
        (
            "timestamp",
            pa.array([datetime(2020, 1, 1)], pa.timestamp("s", "Asia/Tokyo")),
            [datetime(2020, 1, 1, tzinfo=UTC)],
        ),
        ("time(6)", pa.array([time(1)], pa.time32("s")), [time(1)]),
        ("interval year to month", pa.array([14], pa.int32()), [14]),
        ("interval day to second", pa.array([timedelta(1)], pa.duration("s")), [timedelta(1)]),
        ("boolean", pa.nulls(1), [None]),
        ("char(3)", pa.array(["a", "abc  ", None]), ["a  ", "abc", None]),
        ("varchar(3)", pa.array(["a", "ab   "]), ["a", "ab "]),
    ],
)
def test_values_that_fit_are_taken_as_they_are(type: str, given: pa.Array, kept: list[Any]) -> None:
    schema = schema_of(type)
    conformed = conform(column(given), schema)
    conformed.validate(full=True)
    assert conformed.column("c").to_pylist() == kept
    assert conformed.schema.equals(schema_to_arrow(schema), check_metadata=True)


@pytest.mark.parametrize(
    ("type", "given"),
    [
        ("byte", pa.array([128])),
        ("integer", pa.array([1.0])),
        ("integer", pa.array(["1"])),
        ("string", pa.array([1])),
        ("boolean", pa.array([1])),
        ("float", pa.array([1.5])),
        ("double", pa.array([2**53 + 1])),
        ("decimal(5,2)", pa.array([Decimal("1.005")])),
        ("decimal(5,2)", pa.array([Decimal("1000")])),
        ("decimal(5,2)", pa.array([1.5])),
        ("timestamp", pa.array([datetime(2020, 1, 1)])),
        ("timestamp_ntz", pa.array([datetime(2020, 1, 1, tzinfo=UTC)])),
        ("timestamp_ntz", pa.array([1], pa.timestamp("ns"))),
        ("date", pa.array([datetime(2020, 1, 1)])),
        ("char(2)", pa.array(["abc"])),
        ("varchar(2)", pa.array(["ab c"])),
        ("binary", pa.array(["a"])),
    ],
)
def test_values_that_would_be_changed_are_refused_with_the_columns_name(type: str, given: pa.Array) -> None:
    with pytest.raises(InvalidInput, match=r"^the column c is of type "):
        conform(column(given), schema_of(type))


def test_columns_are_found_by_name_in_any_order_and_case() -> None:
    schema = assign_ids([Field(name="a", type=LONG), Field(name="b", type=LONG), Field(name="c", type=LONG)])
    assert conform(pa.table({"C": [3], "a": [1]}), schema).to_pylist() == [{"a": 1, "b": None, "c": 3}]


def test_unknown_doubled_and_missing_columns_are_named() -> None:
    schema = assign_ids([Field(name="a", type=LONG, nullable=False), Field(name="b", type=LONG)])
    with pytest.raises(
        InvalidInput, match="the data has z, y, which the table does not have; its columns are a, b"
    ):
        conform(pa.table({"z": [1], "a": [1], "y": [1]}), schema)
    with pytest.raises(InvalidInput, match="two columns named A"):
        conform(pa.table({"a": [1], "A": [1]}), schema)
    with pytest.raises(InvalidInput, match="no column a, which is NOT NULL"):
        conform(pa.table({"b": [1]}), schema)


def test_a_missing_column_gets_its_default_where_that_is_a_literal() -> None:
    data = pa.table({"a": [1, 2]})

    def schema(sql: str) -> Schema:
        default = Default(current=sql)
        return assign_ids(
            [Field(name="a", type=LONG), Field(name="b", type=LONG, nullable=False, default=default)]
        )

    assert conform(data, schema("7")).column("b").to_pylist() == [7, 7]
    with pytest.raises(InvalidInput, match=r"its default cannot be computed here .*add the column"):
        conform(data, schema("rand()"))


def test_nulls_are_refused_where_none_may_be_but_not_below_a_struct_that_is_null() -> None:
    with pytest.raises(InvalidInput, match="the column c is NOT NULL, and the data has 2 NULLs"):
        conform(column(pa.array([1, None, None])), schema_of("long", nullable=False))
    struct = schema_of(StructType((Field(name="x", type=LONG, nullable=False),)))
    assert conform(column(pa.array([{"x": 1}, None])), struct).column("c").to_pylist() == [{"x": 1}, None]
    with pytest.raises(InvalidInput, match=r"the column c\.x is NOT NULL, and the data has 1 NULLs"):
        conform(column(pa.array([{"x": 1}, None, {"x": None}])), struct)
    with pytest.raises(InvalidInput, match=r"c\.element is NOT NULL"):
        conform(
            column(pa.array([[1], None, [None]])), schema_of(ListType(element=LONG, element_nullable=False))
        )


@pytest.mark.parametrize("form", [pa.list_, pa.large_list, pa.list_view, lambda t: pa.list_(t, 2)])
def test_lists_of_every_form_are_taken(form: Any) -> None:
    values = pa.array([[{"x": 1}, {"x": 2}], None, [{"x": 3}, None]], form(pa.struct([("x", pa.int8())])))
    schema = schema_of(ListType(element=StructType((Field(name="X", type=LONG), Field(name="y", type=LONG)))))
    conformed = conform(column(values).slice(1, 2), schema)
    conformed.validate(full=True)
    assert conformed.column("c").to_pylist() == [None, [{"X": 3, "y": None}, None]]


def test_maps_and_slices_of_them_are_taken() -> None:
    values = pa.array([[("a", 1)], None, [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int8()))
    schema = schema_of(MapType(key=AtomicType("string"), value=LONG))
    conformed = conform(column(values).slice(1), schema)
    conformed.validate(full=True)
    assert conformed.column("c").to_pylist() == [None, [("b", None), ("c", 3)]]
    assert conform(column(values).slice(3), schema).num_rows == 0


def test_a_nested_mismatch_is_named_by_its_path() -> None:
    with pytest.raises(
        InvalidInput, match=r"the column c\.element is of type struct<x: long>, and the data has int64"
    ):
        conform(
            column(pa.array([[1]])), schema_of(ListType(element=StructType((Field(name="x", type=LONG),))))
        )
    with pytest.raises(
        InvalidInput, match=r"has c\.z, which the struct c does not have|the data has z, which the struct c"
    ):
        conform(column(pa.array([{"z": 1}])), schema_of(StructType((Field(name="x", type=LONG),))))


def test_a_variant_is_the_struct_of_its_binaries() -> None:
    array = pa.array([{"value": b"v", "metadata": b"m"}, None])
    assert conform(column(array), schema_of("variant")).column("c").to_pylist() == [
        {"metadata": b"m", "value": b"v"},
        None,
    ]
    assert conform(column(array), schema_of("variant")).schema.field("c").type == VARIANT
    with pytest.raises(Unsupported, match="variant column c"):
        conform(column(pa.array(["{}"])), schema_of("variant"))


def test_no_rows_and_record_batches_are_data_too() -> None:
    assert conform(column(pa.array([], pa.int8())), schema_of("long")).num_rows == 0
    assert conform(pa.record_batch({"c": pa.array([1])}), schema_of("long")).to_pylist() == [{"c": 1}]


@pytest.mark.parametrize("form", [pa.Table.from_batches, lambda batches: batches[0]])
def test_rows_in_the_form_of_the_table_are_taken_as_they_are_and_held_against_not_null(form: Any) -> None:
    schema = assign_ids(
        [Field(name="c", type=LONG, nullable=False), Field(name="d", type=AtomicType("string"))]
    )
    record_batch = pa.record_batch({"c": pa.array([1, 2]), "d": pa.array(["a", None])})
    for _ in range(2):  # what is known of the schema is kept
        rows = conform(form([record_batch]), schema)
        assert rows.schema.equals(schema_to_arrow(schema), check_metadata=True)
        assert rows.to_pydict() == record_batch.to_pydict()
        assert rows.column("c").chunk(0).buffers()[1].address == record_batch.column(0).buffers()[1].address
        with pytest.raises(InvalidInput, match="c is NOT NULL, and the data has 1 NULLs"):
            conform(form([pa.record_batch({"c": pa.array([1, None]), "d": pa.array(["a", "b"])})]), schema)
    assert conform(form([record_batch.slice(2)]), schema).num_rows == 0


def test_text_is_held_against_its_length_also_in_the_form_of_the_table() -> None:
    with pytest.raises(InvalidInput, match="shorten"):
        conform(column(pa.array(["abc"])), schema_of("varchar(2)"))
    assert conform(column(pa.array(["a"])), schema_of("char(2)")).to_pydict() == {"c": ["a "]}


def test_nulls_below_null_structs_do_not_count() -> None:
    required_field = Field(name="y", type=LONG, nullable=False)
    inner = StructType((Field(name="x", type=StructType((required_field,))),))
    below = pa.StructArray.from_arrays([pa.array([None, 1])], fields=[pa.field("y", pa.int64(), False)])
    for mask, kept in (([True, False], [None, {"x": {"y": 1}}]), ([False, False], None)):
        rows = column(pa.StructArray.from_arrays([below], ["x"], mask=pa.array(mask)))
        if kept is None:
            with pytest.raises(InvalidInput, match="c.x.y is NOT NULL"):
                conform(rows, schema_of(inner))
        else:
            assert conform(rows, schema_of(inner)).column("c").to_pylist() == kept


@pytest.mark.parametrize(
    ("given", "type", "words", "convert"),
    [
        (TIMES, "timestamp", '.dt.tz_localize("UTC")', lambda of: of.dt.tz_localize("UTC")),
        (TIMES.dt.tz_localize("UTC"), "timestamp_ntz", ".dt.tz_localize(None)", lambda of: of.dt.tz_localize(None)),
        (pd.Series([1.0, None]), "long", '.astype("Int64")', lambda of: of.astype("Int64")),
        (pa.array([1.25, None]), "decimal(5,2)", ".cast(pa.decimal128(5, 2))", lambda of: of.cast(pa.decimal128(5, 2))),
        (pa.array(["1.25"]), "decimal(5,2)", ".cast(pa.decimal128(5, 2))", lambda of: of.cast(pa.decimal128(5, 2))),
        (pd.Series([1.5]), "float", '.astype("float32")', lambda of: of.astype("float32")),
        (pd.Series(["2026-01-01"]), "date", "pd.to_datetime(…).dt.date", lambda of: pd.to_datetime(of).dt.date),
        (pd.Series(["2026-01-01"]), "timestamp", "(…, utc=True)", lambda of: pd.to_datetime(of, utc=True)),
        (pd.Series(["2026-01-01"]), "timestamp_ntz", "pd.to_datetime(…)", pd.to_datetime),
    ],
)  # fmt: skip
def test_the_error_names_a_conversion_that_works(given: Any, type: str, words: str, convert: Any) -> None:
    def rows(values: Any) -> pa.Table:
        return column(pa.Array.from_pandas(values) if isinstance(values, pd.Series) else values)

    with pytest.raises(InvalidInput, match=f"^the column c is of type .*{re.escape(words)}"):
        conform(rows(given), schema_of(type))
    assert conform(rows(convert(given)), schema_of(type)).num_rows == len(given)


def test_integers_become_decimals_if_they_fit() -> None:
    assert conform(column(pa.array([5, None])), schema_of("decimal(4,2)")).column("c")[0].as_py() == Decimal(
        "5.00"
    )
    with pytest.raises(InvalidInput, match="does not fit"):
        conform(column(pa.array([100])), schema_of("decimal(4,2)"))
