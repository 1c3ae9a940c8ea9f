from __future__ import annotations

import msgspec
import pytest

from lakelog.catalog.core.schema.types import (
    AtomicType,
    Field,
    ListType,
    MapType,
    StructType,
    Type,
    same_shape,
)
from lakelog.log.errors import InvalidInput, Unsupported


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("long", "long"),
        ("decimal(38,38)", "decimal"),
        ("char(3)", "char"),
        ("varchar(9)", "varchar"),
        ("time(0)", "time"),
        ("variant", "variant"),
        ("interval year", "interval year-month"),
        ("interval year to month", "interval year-month"),
        ("interval day to second", "interval day-time"),
        ("interval minute to second", "interval day-time"),
    ],
)
def test_an_atomic_type_knows_its_family(name: str, family: str) -> None:
    assert AtomicType(name).family == family


@pytest.mark.parametrize(
    "name",
    ["decimal(39,0)", "decimal(0,0)", "decimal(3,4)", "decimal(3,-1)", "char(0)", "time(7)", "decimal(3, 1)",
     "char(03)",
     "interval second to day", "interval month to day", "interval week"],
)  # fmt: skip
def test_a_type_out_of_bounds_or_oddly_spelled_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"out of bounds|spelled|not an interval"):
        AtomicType(name)


@pytest.mark.parametrize("name", ["void", "interval", "geometry(4326)", "char(2) collate UNICODE", "int128"])
def test_a_type_that_is_not_kept_is_refused_by_name(name: str) -> None:
    with pytest.raises(Unsupported) as error:
        AtomicType(name)
    assert f"the type {name} " in str(error.value)


def test_a_stored_type_that_is_unknown_here_is_refused_by_name_too() -> None:
    with pytest.raises(Unsupported, match="quaternion"):
        msgspec.json.decode(b'{"kind":"atomic","name":"quaternion"}', type=AtomicType)


def test_nested_types_survive_json() -> None:
    type = StructType(
        (
            Field(id=1, name="l", physical="l_1", type=ListType(element_id=2, element=AtomicType("long"))),
            Field(
                id=3,
                name="m",
                physical="m_3",
                nullable=False,
                comment="of things",
                metadata={"x": [1, {"y": None}]},
                type=MapType(
                    key_id=4,
                    key=AtomicType("string"),
                    value_id=5,
                    value=StructType((Field(id=6, name="a", physical="a_6", type=AtomicType("date")),)),
                    value_nullable=False,
                ),
            ),
        )
    )
    assert msgspec.json.decode(msgspec.json.encode(type), type=Type) == type


def test_an_unknown_member_of_a_stored_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        msgspec.json.decode(
            b'{"kind":"list","element_id":1,"element":{"kind":"atomic","name":"long"},"colour":1}', type=Type
        )


def test_shapes_are_compared_without_ids_but_with_names_and_nullability() -> None:
    def struct(id: int, name: str, nullable: bool) -> StructType:
        return StructType((Field(id=id, name=name, type=AtomicType("long"), nullable=nullable),))

    assert same_shape(struct(0, "a", True), struct(7, "a", True))
    assert not same_shape(struct(0, "a", True), struct(0, "b", True))
    assert not same_shape(struct(0, "a", True), struct(0, "a", False))
