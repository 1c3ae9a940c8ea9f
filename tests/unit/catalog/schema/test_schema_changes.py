from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.schema.partitioning import (
    PartitionSpec,
    SortOrder,
    sort_order_from,
    spec_from_transforms,
)
from lakelog.catalog.core.schema.schema_changes import AlteredDefinition, apply_changes, changes_from
from lakelog.catalog.core.schema.spark_types import schema_from_spark, schema_to_spark
from lakelog.catalog.core.schema.types import Default, TypedValue
from lakelog.catalog.errors import ColumnExists, NoSuchColumn
from lakelog.log.errors import InvalidInput, Unsupported


def field(name: str, type: Any, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": {}}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


POINT = struct(field("x", "float"), field("y", "float"))


def table(partition_by: tuple[Any, ...] = (), sort_by: tuple[Any, ...] = ()) -> AlteredDefinition:
    schema = schema_from_spark(
        struct(
            field("id", "integer", False),
            field("name", "varchar(10)"),
            field("day", "date"),
            field("p", POINT),
            field("ps", {"type": "array", "elementType": POINT, "containsNull": False}),
            field("m", {"type": "map", "keyType": POINT, "valueType": "integer", "valueContainsNull": False}),
        )
    )
    specs = (spec_from_transforms(partition_by, schema),) if partition_by else (PartitionSpec(),)
    order = sort_order_from(sort_by, schema) if sort_by else SortOrder()
    return AlteredDefinition(
        schema=schema, specs=specs, sort_order=order, properties={"a": "1"}, comment=None
    )


def change(kind: str, name: str | None = None, **rest: Any) -> dict[str, Any]:
    return {"change": kind, **({} if name is None else {"name": name.split(".")}), **rest}


def alter(before: AlteredDefinition, *changes: dict[str, Any]) -> AlteredDefinition:
    return apply_changes(before, changes_from(changes))


def names(altered: AlteredDefinition, *path: str) -> list[str]:
    found: Any = altered.schema.find(path).type if path else altered.schema
    return [f.name for f in found.fields]


def test_a_column_is_added_last_first_or_after_another() -> None:
    altered_definition = alter(
        table(),
        change("add-column", "z", type="long"),
        change("add-column", "a", type="long", position="first"),
        change("add-column", "b", type="long", position={"after": "ID"}),
        change("add-column", "p.w", type="long", position={"after": "x"}),
    )
    assert names(altered_definition) == ["a", "id", "b", "name", "day", "p", "ps", "m", "z"]
    assert names(altered_definition, "p") == ["x", "w", "y"]
    assert altered_definition.schema.find(["z"]).id == table().schema.last_id + 1
    assert altered_definition.schema.last_id == table().schema.last_id + 4


def test_columns_are_added_inside_arrays_map_keys_and_map_values() -> None:
    altered_definition = alter(
        table(),
        change("add-column", "ps.element.z", type=POINT),
        change("add-column", "m.key.z", type="string"),
    )
    assert (
        altered_definition.schema.find(["ps", "element", "z", "y"]).id
        == altered_definition.schema.last_id - 1
    )
    assert names(altered_definition, "m", "key") == ["x", "y", "z"]


def test_a_column_that_is_dropped_and_added_again_is_another_column() -> None:
    altered_definition = alter(
        table(), change("delete-column", "name"), change("add-column", "name", type="string")
    )
    field_before, field_after = table().schema.find(["name"]), altered_definition.schema.find(["name"])
    assert field_after.id > table().schema.last_id >= field_before.id
    assert field_after.physical != field_before.physical


def test_a_renamed_column_keeps_its_id_its_physical_name_and_its_partitioning() -> None:
    table_before = table(partition_by=("day",))
    altered_definition = alter(
        table_before,
        change("rename-column", "day", new_name="date"),
        change("rename-column", "p.x", new_name="X"),
    )
    assert altered_definition.schema.find(["date"]).physical == table_before.schema.find(["day"]).physical
    assert altered_definition.spec == table_before.spec
    assert names(altered_definition, "p") == ["X", "y"]


@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("id", "long"), ("id", "double"), ("id", "decimal(12,2)"), ("name", "varchar(11)"), ("name", "string"),
        ("day", "timestamp_ntz"), ("p.x", "double"), ("ps.element.y", "double"), ("m.key.x", "double"),
        ("m.value", "long"),
    ],
)  # fmt: skip
def test_a_type_is_widened_at_every_level(path: str, type: str) -> None:
    altered_definition = alter(table(), change("update-column-type", path, type=type))
    assert str(altered_definition.schema.find(path.split(".")).type) == type


@pytest.mark.parametrize(
    ("path", "type"),
    [("id", "short"), ("id", "string"), ("id", "float"), ("id", "decimal(9,0)"), ("name", "varchar(9)"),
     ("name", "char(20)"),
     ("day", "timestamp"), ("p", "string"), ("p", {"type": "array", "elementType": "long", "containsNull": True})],
)  # fmt: skip
def test_a_change_of_type_that_could_lose_values_is_refused(path: str, type: Any) -> None:
    with pytest.raises(InvalidInput, match=f"cannot change {path} from"):
        alter(table(), change("update-column-type", path, type=type))


def test_a_change_to_the_same_type_is_none() -> None:
    assert alter(table(), change("update-column-type", "p", type=POINT)) == table()


def test_the_source_of_a_partition_is_widened_only_where_its_values_stay() -> None:
    table_before = table(partition_by=({"transform": "bucket", "args": [8], "column": ["id"]}, "name", "day"))
    assert alter(table_before, change("update-column-type", "id", type="long")).spec == table_before.spec
    widened_definition = alter(table_before, change("update-column-type", "name", type="string"))
    assert widened_definition.spec.fields[1].result.name == "string"
    for path, type in (("id", "decimal(20,0)"), ("id", "double"), ("day", "timestamp_ntz")):
        with pytest.raises(Unsupported, match="the source of the partition field"):
            alter(table_before, change("update-column-type", path, type=type))


def test_a_column_of_a_former_partitioning_can_be_dropped_and_its_values_keep_their_type() -> None:
    altered_definition = alter(
        table(partition_by=("day",)), change("set-partitioning", fields=[]), change("delete-column", "day")
    )
    assert [spec.fields[0].result.name for spec in altered_definition.specs if spec.fields] == ["date"]
    assert altered_definition.spec.fields == ()


def test_a_column_in_use_cannot_be_dropped_nor_can_the_struct_around_it() -> None:
    with pytest.raises(InvalidInput, match=r"partitioned by it \(day\)"):
        alter(table(partition_by=("day",)), change("delete-column", "day"))
    by_nested = table(sort_by=({"transform": "identity", "column": ["p", "x"]},))
    for path in ("p", "p.x"):
        with pytest.raises(InvalidInput, match="sorted by it"):
            alter(by_nested, change("delete-column", path))


def test_parts_of_types_and_last_fields_and_keys_cannot_be_dropped() -> None:
    with pytest.raises(InvalidInput, match="part of the type"):
        alter(table(), change("delete-column", "ps.element"))
    with pytest.raises(InvalidInput, match="part of the keys of m"):
        alter(table(), change("delete-column", "m.key.x"))
    with pytest.raises(InvalidInput, match="last column of p"):
        alter(table(), change("delete-column", "p.x"), change("delete-column", "p.y"))


def test_all_columns_may_be_replaced_by_others_at_once() -> None:
    definition = table()
    dropped_changes = [change("delete-column", field.name) for field in definition.schema.fields]
    with pytest.raises(InvalidInput, match="last column of the table"):
        alter(definition, *dropped_changes)
    added_change = change("add-column", definition.schema.fields[0].name, type="integer")
    (field,) = alter(definition, *dropped_changes, added_change).schema.fields
    assert field.id > definition.schema.last_id


def test_a_missing_column_is_an_error_unless_it_may_be_missing() -> None:
    for kind, rest in (
        ("delete-column", {}), ("rename-column", {"new_name": "n"}), ("update-column-nullability", {"nullable": True}),
        ("update-column-comment", {"comment": "c"}), ("update-column-position", {"position": "first"}),
        ("update-column-type", {"type": "long"}), ("update-column-default", {"default": None}),
    ):  # fmt: skip
        with pytest.raises(NoSuchColumn, match=r"p\.z"):
            alter(table(), change(kind, "p.z", **rest))
    assert alter(table(), change("delete-column", "p.z", if_exists=True)) == table()


def test_names_stay_apart_when_columns_are_added_and_renamed() -> None:
    with pytest.raises(ColumnExists):
        alter(table(), change("add-column", "NAME", type="long"))
    with pytest.raises(ColumnExists):
        alter(table(), change("rename-column", "p.x", new_name="Y"))
    with pytest.raises(InvalidInput, match="control character"):
        alter(table(), change("rename-column", "id", new_name="a\tb"))


def test_null_may_be_allowed_and_forbidden_but_not_allowed_in_keys() -> None:
    altered_definition = alter(
        table(),
        change("update-column-nullability", "id", nullable=True),
        change("update-column-nullability", "ps.element", nullable=True),
        change("update-column-nullability", "m.value", nullable=True),
    )
    assert (
        altered_definition.schema.find(["m", "value"]).nullable
        and altered_definition.schema.find(["id"]).nullable
    )
    # Whether the rows are so is not the schema's business (see `proofs`).
    altered_definition = alter(table(), change("update-column-nullability", "name", nullable=False))
    assert not altered_definition.schema.find(["name"]).nullable
    with pytest.raises(InvalidInput, match="never NULL"):
        alter(table(), change("update-column-nullability", "m.key", nullable=True))


def test_a_not_null_column_needs_a_default_to_be_added() -> None:
    with pytest.raises(InvalidInput, match="NOT NULL column n without a default"):
        alter(table(), change("add-column", "n", type="long", nullable=False))
    with pytest.raises(InvalidInput, match="without a default"):
        alter(table(), change("add-column", "n", type="long", nullable=False, default={"current": "NULL"}))
    added_definition = alter(
        table(), change("add-column", "n", type="long", nullable=False, default={"current": "7"})
    )
    assert added_definition.schema.find(["n"]).default == Default(
        current="7", exists=TypedValue(type="long", value=7)
    )


def test_the_default_for_rows_that_are_there_is_a_value_and_stays_when_the_other_one_changes() -> None:
    with pytest.raises(InvalidInput, match="not a plain literal"):
        alter(table(), change("add-column", "n", type="timestamp", default={"current": "now()"}))
    with pytest.raises(InvalidInput, match="not a value of the type long"):
        alter(table(), change("add-column", "n", type="long", default={"current": "'x'"}))
    two = {"type": "integer", "value": 2}
    added_definition = alter(
        table(), change("add-column", "n", type="long", default={"current": "1 + 1", "exists": two})
    )
    kept_value = TypedValue(type="long", value=2)
    changed_definition = alter(
        added_definition, change("update-column-default", "n", default={"current": "rand()"})
    )
    assert changed_definition.schema.find(["n"]).default == Default(current="rand()", exists=kept_value)
    dropped_definition = alter(changed_definition, change("update-column-default", "n", default=None))
    assert dropped_definition.schema.find(["n"]).default == Default(exists=kept_value)
    assert alter(table(), change("update-column-default", "name", default={"current": "'x'"})).schema.find(
        ["name"]
    ).default == Default(current="'x'")


def test_columns_move_within_their_struct() -> None:
    altered_definition = alter(
        table(),
        change("update-column-position", "m", position="first"),
        change("update-column-position", "id", position={"after": "p"}),
        change("update-column-position", "ps.element.x", position={"after": "y"}),
    )
    assert names(altered_definition) == ["m", "name", "day", "p", "id", "ps"]
    assert names(altered_definition, "ps", "element") == ["y", "x"]
    with pytest.raises(InvalidInput, match="no such column beside it"):
        alter(table(), change("update-column-position", "p.x", position={"after": "id"}))


def test_partitioning_evolves_and_an_old_spec_is_taken_up_again() -> None:
    by_bucket = {"transform": "bucket", "args": [4], "column": ["id"]}
    first = alter(table(), change("set-partitioning", fields=["day"]))
    second = alter(first, change("set-partitioning", fields=["day", by_bucket]))
    assert [(f.id, f.name) for f in second.spec.fields] == [(1000, "day"), (1001, "id_bucket")]
    again = alter(second, change("set-partitioning", fields=["day"]))
    assert again.spec == first.spec
    assert {spec.id for spec in again.specs} == {0, 1, 2}


def test_properties_and_the_comment_are_set_and_removed() -> None:
    altered_definition = alter(
        table(), change("set-property", key="b", value="2"), change("set-property", key="comment", value="hello"),
        change("remove-property", key="a"), change("remove-property", key="never there"),
    )  # fmt: skip
    assert (altered_definition.properties, altered_definition.comment) == ({"b": "2"}, "hello")
    assert alter(altered_definition, change("remove-property", key="comment")).comment is None


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [("lakelog.writ.target", "1", "not known"), ("lakelog.write.target-file-size-bytes", "big", "whole number"),
     ("lakelog.write.parquet.compression-codec", "zip", "one of"), ("location", "/x", "cannot be changed")],
)  # fmt: skip
def test_a_property_that_would_be_ignored_is_refused(key: str, value: str, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        alter(table(), change("set-property", key=key, value=value))


def test_one_bad_change_undoes_the_whole_list() -> None:
    table_before = table()
    with pytest.raises(NoSuchColumn):
        alter(table_before, change("add-column", "n", type="long"), change("delete-column", "nope"))
    assert table_before == table()


@pytest.mark.parametrize(
    "json",
    [
        {"change": "explode"},
        {"change": "add-column"},
        {"change": "rename-column", "name": ["a"], "new_name": "b", "colour": 1},
        {},
    ],
)
def test_json_that_is_no_change_is_refused(json: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="is not a change of a table"):
        changes_from([json])


def test_comments_of_columns_are_set_and_taken_away() -> None:
    altered_definition = alter(table(), change("update-column-comment", "p.x", comment="east"))
    assert schema_to_spark(altered_definition.schema)["fields"][3]["type"]["fields"][0]["metadata"] == {
        "comment": "east"
    }
    assert alter(altered_definition, change("update-column-comment", "p.x", comment="")) == table()
