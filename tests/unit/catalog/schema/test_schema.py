from __future__ import annotations

import msgspec
import pytest

from lakelog.catalog.core.schema.schema import DEPTH_LIMIT, Schema, assign_ids, dotted, physical_name
from lakelog.catalog.core.schema.types import AtomicType, Field, ListType, MapType, StructType, Type
from lakelog.catalog.errors import ColumnExists, NoSuchColumn
from lakelog.log.errors import InvalidInput

LONG, STRING = AtomicType("long"), AtomicType("string")


def column(name: str, type: Type = LONG) -> Field:
    return Field(name=name, type=type)


def nested_schema() -> Schema:
    point = StructType((column("x"), column("y")))
    return assign_ids(
        [
            column("id"),
            column("p", point),
            column("ps", ListType(element=point)),
            column("m", MapType(key=STRING, value=point)),
        ]
    )


def test_ids_are_given_to_parents_before_their_parts_and_the_last_one_is_remembered() -> None:
    schema = nested_schema()
    assert {".".join(path): id for id, path in schema.paths.items()} == {
        "id": 1, "p": 2, "p.x": 3, "p.y": 4, "ps": 5, "ps.element": 6, "ps.element.x": 7, "ps.element.y": 8,
        "m": 9, "m.key": 10, "m.value": 11, "m.value.x": 12, "m.value.y": 13,
    }  # fmt: skip
    assert schema.last_id == 13


def test_ids_go_on_after_those_of_an_earlier_schema() -> None:
    assert [field.id for field in assign_ids([column("a"), column("b")], after_id=40).fields] == [41, 42]


def test_physical_names_are_plain_short_and_unique_by_their_id() -> None:
    assert physical_name("Straße 1/2", 7) == "Stra_e_1_2_7"
    assert physical_name("x" * 200, 12) == "x" * 48 + "_12"
    assert nested_schema().field_by_id(8).physical == "y_8"


def test_a_field_is_found_by_exact_name_first_and_then_without_regard_to_case() -> None:
    schema = nested_schema()
    assert schema.find(["PS", "Element", "X"]).id == 7
    assert schema.get(["P", "x"], case_sensitive=True) is None
    assert schema.field_by_id(11).name == "value"


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    with pytest.raises(NoSuchColumn, match=r"there is no column p\.z; the columns are id, p, ps, m"):
        nested_schema().find(["p", "z"])


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "\x7f", "x" * 256, "\ud800"])
def test_a_bad_name_of_a_column_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="the name of "):
        assign_ids([column("ok"), column(name)])


@pytest.mark.parametrize("name", ["a.b", "a b", "`", "/", "..", "ü", "x" * 255, "💡"])
def test_any_other_name_is_allowed(name: str) -> None:
    assert assign_ids([column(name)]).find([name]).name == name


def test_names_that_are_the_same_or_differ_only_in_case_are_refused_at_every_level() -> None:
    with pytest.raises(ColumnExists, match="the column id clashes with id"):
        assign_ids([column("id"), column("id")])
    with pytest.raises(ColumnExists, match="the column ID clashes with id"):
        assign_ids([column("id"), column("ID")])
    with pytest.raises(ColumnExists, match=r"in l\.element"):
        assign_ids([column("l", ListType(element=StructType((column("q"), column("Q")))))])


def test_a_struct_without_fields_and_a_nesting_without_end_are_refused() -> None:
    with pytest.raises(InvalidInput, match="struct without fields"):
        assign_ids([column("s", StructType(()))])
    type: Type = LONG
    for _ in range(DEPTH_LIMIT):
        type = ListType(element=type)
    with pytest.raises(InvalidInput, match="nested deeper"):
        assign_ids([column("deep", type)])


def test_a_map_is_refused_in_the_key_of_a_map_at_any_depth_but_not_in_its_value() -> None:
    inner = MapType(key=LONG, value=LONG)
    assign_ids([column("m", MapType(key=LONG, value=ListType(element=inner)))])
    with pytest.raises(InvalidInput, match=r"the column m\.key\.q\.element is .*keys cannot have maps"):
        assign_ids(
            [column("m", MapType(key=StructType((column("q", ListType(element=inner)),)), value=LONG))]
        )


def test_a_schema_survives_json() -> None:
    schema = nested_schema()
    assert msgspec.json.decode(msgspec.json.encode(schema), type=Schema) == schema


def test_paths_are_shown_with_backticks_where_needed() -> None:
    assert dotted(["a", "b.c", "d`e"]) == "a.`b.c`.`d``e`"
