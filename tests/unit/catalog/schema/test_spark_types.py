from __future__ import annotations

import json
from typing import Any

import pytest

from lakelog.catalog.core.schema.spark_types import (
    schema_from_spark,
    schema_to_spark,
    type_from_spark,
    type_to_spark,
)
from lakelog.catalog.core.schema.types import AtomicType, Default, TypedValue
from lakelog.log.errors import InvalidInput, Unsupported


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def field(name: str, type: Any, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


ALL = struct(
    *(
        field(f"c{i}", name)
        for i, name in enumerate(
            ["boolean", "byte", "short", "integer", "long", "float", "double", "decimal(10,2)", "string", "char(3)",
             "varchar(4)", "binary", "date", "timestamp", "timestamp_ntz", "time(6)", "variant",
             "interval year to month",
             "interval day", "interval hour to second"]
        )
    ),
    field("s", struct(field("x", "long", False, comment="deep"))),
    field("l", {"type": "array", "elementType": struct(field("y", "string")), "containsNull": False}),
    field("m", {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}),
)  # fmt: skip


def test_every_type_goes_to_lakelog_and_back_unchanged() -> None:
    assert schema_to_spark(schema_from_spark(json.dumps(ALL))) == ALL


def test_pyspark_reads_what_is_written_and_writes_what_is_read() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    parsed = types.StructType.fromJson(schema_to_spark(schema_from_spark(ALL)))
    assert schema_to_spark(schema_from_spark(parsed.json())) == ALL


def test_comments_defaults_and_char_lengths_come_out_of_the_metadata_and_the_rest_stays() -> None:
    (column,) = schema_from_spark(
        struct(
            field("a", "string", comment="why", CURRENT_DEFAULT="'x'", EXISTS_DEFAULT="'y'",
                  __CHAR_VARCHAR_TYPE_STRING="varchar(7)", mine={"deep": [1, 2.5, "z", True]})
        )
    ).fields  # fmt: skip
    assert column.type == AtomicType("varchar(7)")
    assert (column.comment, column.default) == (
        "why",
        Default(current="'x'", exists=TypedValue(type="string", value="y")),
    )
    assert column.metadata == {"mine": {"deep": [1, 2.5, "z", True]}}


def test_ids_of_another_table_are_not_taken_over_and_users_do_not_see_our_own() -> None:
    inside = schema_to_spark(schema_from_spark(ALL, last_id=90), internal=True)
    again = schema_from_spark(inside)
    assert again == schema_from_spark(ALL)
    assert "lakelog" not in json.dumps(schema_to_spark(again))


def test_the_adapter_sees_ids_and_physical_names_at_every_level() -> None:
    fields = {f["name"]: f for f in schema_to_spark(schema_from_spark(ALL), internal=True)["fields"]}
    assert fields["c0"]["metadata"] == {"lakelog.id": 1, "lakelog.physical": "c0_1"}
    assert fields["s"]["type"]["fields"][0]["metadata"]["lakelog.physical"] == "x_22"
    assert fields["l"]["metadata"]["lakelog.part-ids"] == {"element": 24}
    assert fields["m"]["metadata"]["lakelog.part-ids"] == {"key": 27, "value": 28}


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"GENERATION_EXPRESSION": "a + 1"}, "generated columns"),
        ({"delta.generationExpression": "a + 1"}, "generated columns"),
        ({"s.identity.start": 1}, "identity column"),
        ({"__CHAR_VARCHAR_TYPE_STRING": "varchar(3) collate UNICODE"}, "VARCHAR cannot have a collation"),
        ({"__CHAR_VARCHAR_TYPE_STRING": "array<char(3)>"}, "array<char"),
    ],
)
def test_what_would_be_ignored_is_refused_with_the_columns_name(metadata: dict[str, Any], named: str) -> None:
    with pytest.raises(Unsupported, match=named) as error:
        schema_from_spark(struct(field("s", struct({**field("b", "string"), "metadata": metadata}))))
    assert "s.b" in str(error.value)


def test_the_default_collation_is_no_collation() -> None:
    assert (
        schema_from_spark(struct(field("b", "string", __COLLATIONS={"b": "spark.UTF8_BINARY"})))
        .fields[0]
        .metadata
        == {}
    )


def test_collations_are_kept_at_every_level_as_spark_writes_them_and_as_it_reads_them() -> None:
    texts = {"type": "array", "elementType": "string", "containsNull": True}
    named = {"type": "map", "keyType": "string", "valueType": texts, "valueContainsNull": True}
    schema = schema_from_spark(
        struct(
            field("a", "string", __COLLATIONS={"a": "spark.UTF8_LCASE"}),
            field(
                "s", struct(field("x", "string", __COLLATIONS={"x": "icu.de_CI_AI"}), field("y", "string"))
            ),
            field("m", named, __COLLATIONS={"m.value.element": "icu.UNICODE_CI_RTRIM"}),
        )
    )
    found = {path: str(node.type) for path, node in schema.walk() if isinstance(node.type, AtomicType)}
    assert found == {
        ("a",): "string collate UTF8_LCASE",
        ("s", "x"): "string collate de_CI_AI",
        ("s", "y"): "string",
        ("m", "key"): "string",
        ("m", "value", "element"): "string collate UNICODE_CI_RTRIM",
    }
    again = schema_to_spark(schema)
    assert again["fields"][0] == {**field("a", "string collate UTF8_LCASE")}
    assert schema_from_spark(again) == schema


def test_a_collation_is_refused_where_it_cannot_be() -> None:
    with pytest.raises(InvalidInput, match="where it has no text"):
        schema_from_spark(struct(field("n", "integer", __COLLATIONS={"n.element": "icu.UNICODE"})))
    with pytest.raises(InvalidInput, match="unknown collation"):
        type_from_spark("string collate unicode_ci", ("a",))
    keyed = {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}
    with pytest.raises(Unsupported, match="keys of maps cannot have a collation"):
        schema_from_spark(struct(field("m", keyed, __COLLATIONS={"m.key": "spark.UTF8_LCASE"})))


@pytest.mark.parametrize(
    "type", ["void", "interval", "char(2) collate UTF8_LCASE", "geometry(0)", "nonsense"]
)
def test_an_unsupported_type_is_refused_with_the_columns_name(type: str) -> None:
    with pytest.raises(Unsupported, match="the column l.element cannot be stored"):
        type_from_spark({"type": "array", "elementType": type, "containsNull": True}, ("l",))


def test_user_defined_types_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"user-defined type org\.example\.Vector"):
        type_from_spark({"type": "udt", "class": "org.example.Vector", "sqlType": "string"}, ("v",))


@pytest.mark.parametrize(
    "json", ["{", "[]", '"long"', '{"type":"struct"}', '{"type":"array","elementType":"long"}', "3"]
)
def test_what_is_no_schema_is_refused(json: str) -> None:
    with pytest.raises(InvalidInput):
        schema_from_spark(json)


def test_sql_names_of_types_and_spaces_are_understood() -> None:
    assert type_to_spark(type_from_spark("bigint")) == "long"
    assert type_to_spark(type_from_spark("decimal(10, 2)")) == "decimal(10,2)"
