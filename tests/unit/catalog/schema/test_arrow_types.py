from __future__ import annotations

import pyarrow as pa
import pytest

from lakelog.catalog.core.schema.arrow_types import VARIANT, schema_from_arrow, schema_to_arrow
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field, ListType, MapType, StructType
from lakelog.log.errors import Unsupported


@pytest.mark.parametrize(
    ("arrow", "name"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "byte"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float16(), "float"),
        (pa.float64(), "double"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.decimal256(38, 2), "decimal(38,2)"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.binary(16), "binary"),
        (pa.uuid(), "binary"),
        (pa.date64(), "date"),
        (pa.time32("s"), "time(6)"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", "Europe/Berlin"), "timestamp"),
        (pa.duration("ms"), "interval day to second"),
        (VARIANT, "variant"),
    ],
)
def test_arrows_types_find_the_type_that_holds_them(arrow: pa.DataType, name: str) -> None:
    (field,) = schema_from_arrow(pa.schema([pa.field("c", arrow, nullable=False)])).fields
    assert (str(field.type), field.nullable) == (name, False)


@pytest.mark.parametrize(
    "arrow", [pa.null(), pa.decimal256(76, 0), pa.decimal128(5, -2), pa.month_day_nano_interval()]
)
def test_a_type_without_a_place_is_refused_with_the_columns_name(arrow: pa.DataType) -> None:
    with pytest.raises(Unsupported, match=r"the column s\.c has Arrow's type"):
        schema_from_arrow(pa.schema([("s", pa.struct([("c", arrow)]))]))


def nested_fields() -> list[Field]:
    point = StructType((Field(name="x", type=AtomicType("float"), nullable=False),))
    return [
        Field(name="a b", type=AtomicType("interval day to second")),
        Field(name="l", type=ListType(element=point, element_nullable=False)),
        Field(name="m", type=MapType(key=AtomicType("string"), value=point)),
    ]


def test_nested_types_go_to_arrow_and_back() -> None:
    schema = assign_ids(nested_fields())
    assert schema_from_arrow(schema_to_arrow(schema)) == schema


def test_field_ids_stand_at_every_level_and_physical_names_only_in_files() -> None:
    schema = assign_ids(nested_fields())
    logical, physical = schema_to_arrow(schema), schema_to_arrow(schema, physical=True)
    assert logical.names == ["a b", "l", "m"] and physical.names == ["a_b_1", "l_2", "m_5"]
    assert physical.field("a_b_1").type == pa.int64() and logical.field("a b").type == pa.duration("us")
    element = physical.field("l_2").type.value_field
    assert (element.name, element.metadata[b"PARQUET:field_id"]) == ("element", b"3")
    assert element.type.field(0).name == "x_4" and not element.type.field(0).nullable
    assert physical.field("m_5").type.item_field.metadata == {b"PARQUET:field_id": b"7"}


def test_a_comment_comes_with_the_field() -> None:
    (field,) = schema_from_arrow(
        pa.schema([pa.field("c", pa.int8(), metadata={"comment": "why", "else": "x"})])
    ).fields
    assert field.comment == "why" and field.metadata == {}
