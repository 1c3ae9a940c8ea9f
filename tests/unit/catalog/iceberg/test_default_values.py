from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.schema.iceberg_limits import obstacles
from lakelog.catalog.core.schema.schema import Schema, assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Default, Field, StructType, TypedValue
from lakelog.catalog.formats.iceberg.schemas import schema_json
from lakelog.catalog.formats.imports.iceberg.schemas import schema_from
from lakelog.log.errors import Unsupported

VALUES = [
    ("boolean", "boolean", False, False, "false"),
    ("integer", "int", -5, -5, "-5"),
    ("long", "long", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
    ("float", "float", -0.0, -0.0, "-0.0F"),
    ("double", "double", 1.5, 1.5, "1.5D"),
    ("decimal(9,2)", "decimal(9, 2)", "1.50", "1.50", "1.50"),
    ("string", "string", "it's", "it's", "'it\\'s'"),
    ("binary", "binary", "AP8=", "00ff", "X'00ff'"),
    ("date", "date", -1, "1969-12-31", "DATE '1969-12-31'"),
    ("time(6)", "time", 1, "00:00:00.000001", "TIME '00:00:00.000001'"),
    (
        "timestamp",
        "timestamptz",
        -1,
        "1969-12-31T23:59:59.999999+00:00",
        "TIMESTAMP '1969-12-31 23:59:59.999999Z'",
    ),
    (
        "timestamp_ntz",
        "timestamp",
        0,
        "1970-01-01T00:00:00.000000",
        "TIMESTAMP_NTZ '1970-01-01 00:00:00.000000'",
    ),
]


def schema_of(type: str, default: Default) -> Schema:
    return assign_ids([Field(name="a", type=AtomicType(type), default=default)])


@pytest.mark.parametrize(("type", "theirs", "value", "json", "sql"), VALUES)
def test_a_default_goes_to_iceberg_and_comes_back(
    type: str, theirs: str, value: Any, json: Any, sql: str
) -> None:
    schema = schema_of(type, Default(current=sql, exists=TypedValue(type=type, value=value)))
    exported_schema_json = schema_json(schema, 0)
    (column,) = exported_schema_json["fields"]
    assert column == {
        "id": 1, "name": "a", "required": False, "type": theirs, "initial-default": json, "write-default": json,
    }  # fmt: skip
    (again,) = schema_from(exported_schema_json, 1).fields
    assert repr(again.default) == repr(schema.fields[0].default)
    assert not [obstacle for obstacle in obstacles(schema) if obstacle.effect == "blocks"]


def test_a_default_is_exported_in_its_columns_present_type() -> None:
    schema = schema_of("double", Default(exists=TypedValue(type="integer", value=5)))
    assert schema_json(schema, 0)["fields"][0]["initial-default"] == 5.0


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_default_that_json_numbers_lack_blocks_an_export_if_older_rows_have_it(value: str) -> None:
    sql = f"CAST('{value}' AS DOUBLE)"
    (obstacle,) = obstacles(schema_of("double", Default(exists=TypedValue(type="double", value=value))))
    assert obstacle.effect == "blocks" and value in obstacle.why
    schema = schema_of("double", Default(current=sql))
    assert [obstacle.effect for obstacle in obstacles(schema)] == ["lost"]
    assert "write-default" not in schema_json(schema, 0)["fields"][0]


def test_a_default_of_a_nested_field_comes_from_iceberg() -> None:
    inner = {"id": 2, "name": "x", "required": False, "type": "long", "initial-default": 7}
    document = {
        "fields": [{"id": 1, "name": "s", "required": False, "type": {"type": "struct", "fields": [inner]}}]
    }
    (column,) = schema_from(document, 2).fields
    assert isinstance(column.type, StructType)
    assert column.type.fields[0].default == Default(exists=TypedValue(type="long", value=7))


@pytest.mark.parametrize(
    ("type", "value"),
    [("int", "5"), ("int", True), ("long", 1.5), ("date", "yesterday"), ("decimal(5, 2)", "x"), ("binary", "0g"),
     ("timestamptz", "2020-01-31T00:00:00"), ("string", 5),
     ({"type": "list", "element-id": 2, "element": "int", "element-required": False}, [])],
)  # fmt: skip
def test_a_default_that_is_not_one_of_its_type_is_refused(type: Any, value: Any) -> None:
    column = {"id": 1, "name": "a", "required": False, "type": type, "initial-default": value}
    with pytest.raises(Unsupported, match="which lakelog cannot have"):
        schema_from({"fields": [column]}, 2)
