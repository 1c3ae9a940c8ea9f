from __future__ import annotations

import io
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog.core.parquet.conform import conform
from lakelog.catalog.core.parquet.reshape import OwnColumns, to_logical, to_physical
from lakelog.catalog.core.schema.arrow_types import schema_from_arrow, schema_to_arrow
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.schema_changes import AlteredDefinition, apply_changes, changes_from
from lakelog.log.errors import FormatError

POINT = pa.struct([("x", pa.float32()), ("y", pa.float32())])
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "p": pa.array([{"x": 1.0, "y": 2.0}, None, {"x": None, "y": 4.0}], POINT),
        "ps": pa.array([[{"x": 1.0, "y": 2.0}, None], None, []], pa.list_(POINT)),
        "m": pa.array([[("a", 1)], None, [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int32())),
        "iv": pa.array([timedelta(days=1), None, timedelta(microseconds=-1)]),
    }
)


def written() -> tuple[pa.Table, Schema]:
    """Return the rows as a file gives them back, and the schema that they were written by."""
    schema = schema_from_arrow(ROWS.schema)
    file = io.BytesIO()
    pq.write_table(to_physical(conform(ROWS, schema), schema), file)
    return pq.read_table(io.BytesIO(file.getvalue())), schema


def altered_schema(schema: Schema, *changes: dict[str, Any]) -> Schema:
    definition_before = AlteredDefinition(
        schema=schema, specs=(PartitionSpec(),), sort_order=SortOrder(), properties={}, comment=None
    )
    return apply_changes(definition_before, changes_from(changes)).schema


def test_rows_come_back_from_a_file_as_they_were() -> None:
    file, schema = written()
    assert file.column_names == ["id_1", "p_2", "ps_5", "m_9", "iv_12"]
    back = to_logical(file, schema)
    back.validate(full=True)
    assert back.to_pylist() == ROWS.to_pylist()
    assert back.schema.equals(schema_to_arrow(schema), check_metadata=True)


POINTS: list[Any] = [None, {"x": 1.0, "at": None}, {"x": 2.0, "at": {"z": 3}}]
POINTS_TYPE = pa.struct([("x", pa.float64()), ("at", pa.struct([("z", pa.int32())]))])


@pytest.mark.parametrize(
    ("column", "given", "kept"),
    [
        ("id", pa.array([1, 2]), None),
        ("p", pa.nulls(2), [None, None]),
        ("p", pa.array(POINTS, POINTS_TYPE), POINTS),
        ("p", pa.nulls(2, pa.struct([("x", pa.float64())])), [None, None]),
        ("p", pa.array([None, {"x": 1.0}]), [None, {"x": 1.0, "at": None}]),
        ("ps", pa.array([[None, POINTS[1]], None], pa.list_(POINTS_TYPE)), [[None, POINTS[1]], None]),
        ("ps", pa.array([None, [None]], pa.list_(pa.null())), [None, [None]]),
        ("m", pa.array([[("a", None), ("b", POINTS[2])]], pa.map_(pa.string(), POINTS_TYPE)),
         [[("a", None), ("b", POINTS[2])]]),
    ],
)  # fmt: skip
def test_structs_are_null_though_their_fields_may_not_be(
    column: str, given: pa.Array, kept: list[Any] | None
) -> None:
    at = pa.struct([pa.field("z", pa.int32(), nullable=False)])
    point = pa.struct([pa.field("x", pa.float64(), nullable=False), pa.field("at", at)])
    types = {"id": pa.int64(), "p": point, "ps": pa.list_(point), "m": pa.map_(pa.string(), point)}
    schema = schema_from_arrow(pa.schema(list(types.items())))
    file = io.BytesIO()
    pq.write_table(to_physical(conform(pa.table({column: given}), schema), schema), file)
    read = to_logical(pq.read_table(io.BytesIO(file.getvalue())), schema)
    for name in types:
        expected = (kept or given.to_pylist()) if name == column else [None] * len(given)
        assert read[name].to_pylist() == expected
    assert to_physical(conform(read, schema), schema).num_rows == len(given)


def test_slices_are_written_and_read_by_their_own_rows_only() -> None:
    file, schema = written()
    part = conform(pa.concat_tables([ROWS, ROWS]), schema).slice(2, 3)
    assert to_logical(to_physical(part, schema), schema).to_pylist() == (ROWS.to_pylist() * 2)[2:5]
    assert to_logical(file.slice(1, 1), schema).to_pylist() == ROWS.to_pylist()[1:2]


def test_old_files_are_read_by_the_new_names_types_and_defaults() -> None:
    file, schema = written()
    current_schema = altered_schema(
        schema,
        {"change": "rename-column", "name": ["id"], "new_name": "key"},
        {"change": "update-column-type", "name": ["key"], "type": "decimal(12,1)"},
        {"change": "delete-column", "name": ["p", "x"]},
        {"change": "add-column", "name": ["p", "x"], "type": "string", "position": "first"},
        {"change": "rename-column", "name": ["ps", "element", "y"], "new_name": "north"},
        {"change": "update-column-type", "name": ["ps", "element", "north"], "type": "double"},
        {"change": "add-column", "name": ["ps", "element", "z"], "type": "long"},
        {"change": "update-column-type", "name": ["m", "value"], "type": "long"},
        {
            "change": "add-column",
            "name": ["d"],
            "type": "date",
            "nullable": False,
            "default": {"current": "DATE '2020-01-31'"},
        },
        {"change": "delete-column", "name": ["iv"]},
        {"change": "update-column-position", "name": ["m"], "position": "first"},
    )
    read = to_logical(file, current_schema)
    read.validate(full=True)
    day = date(2020, 1, 31)
    assert read.to_pylist() == [
        {
            "m": [("a", 1)], "key": Decimal("1.0"), "p": {"x": None, "y": 2.0},
            "ps": [{"x": 1.0, "north": 2.0, "z": None}, None], "d": day,
        },
        {"m": None, "key": Decimal("2.0"), "p": None, "ps": None, "d": day},
        {"m": [("b", None), ("c", 3)], "key": Decimal("3.0"), "p": {"x": None, "y": 4.0}, "ps": [], "d": day},
    ]  # fmt: skip


def test_some_columns_are_read_in_the_order_that_was_asked_for() -> None:
    file, schema = written()
    assert to_logical(file.select(["iv_12", "id_1"]), schema, ["iv", "ID"]).column_names == ["iv", "id"]


def test_a_default_that_changed_later_does_not_change_old_rows() -> None:
    file, schema = written()
    current_schema = altered_schema(
        schema,
        {"change": "add-column", "name": ["n"], "type": "long", "default": {"current": "1"}},
        {"change": "update-column-default", "name": ["n"], "default": {"current": "2"}},
    )
    assert to_logical(file, current_schema, ["n"]).column("n").to_pylist() == [1, 1, 1]


def test_a_file_of_another_type_is_refused_by_the_columns_name() -> None:
    file, schema = written()
    strange = file.set_column(0, "id_1", pa.array(["x", "y", "z"]))
    with pytest.raises(FormatError, match="the column id is string in a data file and integer"):
        to_logical(strange, schema)
    with pytest.raises(FormatError, match="the column p is int64 in a data file"):
        to_logical(file.set_column(1, "p_2", pa.array([1, 2, 3])), schema)


@pytest.mark.parametrize(
    ("column", "type"),
    [
        (pa.array([0.1]), pa.float32()),
        (pa.array([0], pa.timestamp("us")), pa.date32()),
        (pa.array([Decimal("0.1")]), pa.float64()),
        (pa.array([0.126]), pa.decimal128(38, 2)),
    ],
)
def test_values_of_another_type_are_refused_and_not_rounded(column: pa.Array, type: pa.DataType) -> None:
    schema = schema_from_arrow(pa.schema([("c", type)]))
    with pytest.raises(FormatError, match="the column c is"):
        to_logical(pa.table({schema.fields[0].physical: column}), schema)


def test_rows_of_files_with_the_same_columns_are_renamed_and_others_are_made_as_ever() -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int32()), ("b", pa.string())]))
    current_schema = altered_schema(
        schema,
        {"change": "rename-column", "name": ["a"], "new_name": "c"},
        {"change": "update-column-type", "name": ["c"], "type": "long"},
        {"change": "add-column", "name": ["d"], "type": "string"},
    )
    old = pa.record_batch({"a_1": pa.array([1, 2], pa.int32()), "b_2": ["x", None]})
    new = pa.record_batch({"b_2": ["y"], "d_3": ["z"], "a_1": pa.array([3], pa.int64())})
    own = OwnColumns(current_schema, ["c", "d", "b"])
    for rows in (new, old, new, new, old, old.slice(1), new):
        logical = own.logical(rows)
        assert logical.equals(to_logical(rows, current_schema, ["c", "d", "b"]))
        logical.validate(full=True)
    assert own.logical(new).schema.equals(
        to_logical(new, current_schema, ["c", "d", "b"]).schema, check_metadata=True
    )

    nested, schema = written()
    (batch,) = nested.to_batches()
    columns = OwnColumns(schema, [field.name for field in schema.fields])
    assert [columns.logical(batch).to_pylist() for _ in range(2)] == [ROWS.to_pylist()] * 2
