from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lakelog.catalog.core.schema.partitioning import (
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
    result_type,
    sort_order_from,
    spec_from_transforms,
    transform_to_json,
)
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field, ListType, StructType
from lakelog.catalog.errors import NoSuchColumn
from lakelog.log.errors import InvalidInput, Unsupported

SCHEMA = assign_ids(
    [
        Field(name="id", type=AtomicType("long")),
        Field(name="ts", type=AtomicType("timestamp")),
        Field(name="p", type=StructType((Field(name="Country", type=AtomicType("string")),))),
        Field(name="tags", type=ListType(element=AtomicType("string"))),
        Field(name="ts_day", type=AtomicType("double")),
        Field(name="v", type=AtomicType("variant")),
    ]
)


def transform(name: str, column: str, *args: Any) -> dict[str, Any]:
    return {"transform": name, "args": list(args), "column": column.split(".")}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("identity", Transform("identity")), ("bucket[16]", Transform("bucket", 16)),
     ("Truncate[4]", Transform("truncate", 4)),
     ("years", Transform("year")), ("months", Transform("month")), ("days", Transform("day")),
     ("date", Transform("day")),
     ("hours", Transform("hour")), ("date_hour", Transform("hour"))],
)  # fmt: skip
def test_transforms_are_read_in_all_their_spellings(text: str, parsed: Transform) -> None:
    assert Transform.parse(text) == parsed
    assert Transform.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text", ["bucket", "bucket[0]", "truncate[2147483648]", "day[3]", "bucket[-1]", "bucket[", ""]
)
def test_a_transform_with_a_wrong_argument_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"transform"):
        Transform.parse(text)


def test_an_unknown_or_many_column_transform_is_unsupported_by_name() -> None:
    with pytest.raises(Unsupported, match="the transform zorder is not supported"):
        spec_from_transforms([transform("zorder", "id")], SCHEMA)
    with pytest.raises(Unsupported, match="the transform bucket of 2 columns"):
        spec_from_transforms([{"transform": "bucket", "args": [4], "columns": [["id"], ["ts"]]}], SCHEMA)
    with pytest.raises(Unsupported, match="the transform bucket with the arguments"):
        spec_from_transforms([transform("bucket", "id", 4, 5)], SCHEMA)


def test_a_spec_names_its_fields_as_iceberg_does_and_keeps_clear_of_columns() -> None:
    spec = spec_from_transforms(
        [transform("bucket", "ID", 4), transform("days", "ts"), transform("truncate", "id", 10),
         transform("hours", "ts"),
         transform("identity", "p.country")],
        SCHEMA,
    )  # fmt: skip
    assert [field.name for field in spec.fields] == [
        "id_bucket",
        "ts_day_2",
        "id_trunc",
        "ts_hour",
        "p.Country",
    ]
    assert [field.id for field in spec.fields] == [1000, 1001, 1002, 1003, 1004]
    assert [field.result.name for field in spec.fields] == ["integer", "date", "long", "integer", "string"]


@pytest.mark.parametrize(
    ("written", "error"),
    [(transform("day", "id"), InvalidInput), (transform("bucket", "ts_day", 4), InvalidInput),
     (transform("identity", "p"), InvalidInput), (transform("identity", "tags.element"), InvalidInput),
     (transform("identity", "v"), InvalidInput), (transform("identity", "nope"), NoSuchColumn)],
)  # fmt: skip
def test_a_source_that_does_not_fit_is_refused(written: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"cannot use the column|several values in a row|no column"):
        spec_from_transforms([written], SCHEMA)


def test_the_same_transform_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        spec_from_transforms([transform("day", "ts"), transform("days", "TS")], SCHEMA)


def test_evolution_keeps_the_ids_of_fields_and_never_uses_one_for_another() -> None:
    first = spec_from_transforms([transform("day", "ts"), transform("bucket", "id", 4)], SCHEMA)
    second = spec_from_transforms(
        [transform("bucket", "id", 8), transform("day", "ts")], SCHEMA, existing=[first]
    )
    assert [(field.id, str(field.transform)) for field in second.fields] == [
        (1002, "bucket[8]"),
        (1000, "day"),
    ]
    third = spec_from_transforms([], SCHEMA, existing=[first, second])
    assert third == PartitionSpec(id=2)
    assert (
        spec_from_transforms(
            [transform("day", "ts"), transform("bucket", "id", 4)], SCHEMA, existing=[third, second, first]
        )
        == first
    )


def test_sort_orders_put_nulls_where_spark_does() -> None:
    order = sort_order_from(
        [
            "id",
            {**transform("day", "ts"), "direction": "desc"},
            {**transform("identity", "p.Country"), "nulls": "last"},
        ],
        SCHEMA,
    )
    assert [(f.direction, f.nulls) for f in order.fields] == [
        ("asc", "first"),
        ("desc", "last"),
        ("asc", "last"),
    ]
    with pytest.raises(InvalidInput, match="write asc or desc"):
        sort_order_from([{**transform("identity", "id"), "direction": "up"}], SCHEMA)


def test_specs_and_sort_orders_survive_json() -> None:
    spec = spec_from_transforms([transform("bucket", "id", 4), transform("identity", "p.Country")], SCHEMA)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=PartitionSpec) == spec
    order = SortOrder(
        fields=(SortField(source_id=1, transform=Transform("bucket", 4), direction="desc", nulls="last"),)
    )
    assert msgspec.json.decode(msgspec.json.encode(order), type=SortOrder) == order
    again = [transform_to_json(SCHEMA, field.source_id, field.transform) for field in spec.fields]
    assert spec_from_transforms(again, SCHEMA) == spec


def test_truncated_decimals_get_room_for_rounding_down() -> None:
    assert result_type(Transform("truncate", 100), AtomicType("decimal(4,2)")).name == "decimal(11,2)"
    assert result_type(Transform("truncate", 100), AtomicType("decimal(38,0)")).name == "decimal(38,0)"


@pytest.mark.parametrize(
    ("text", "transform", "args", "column"),
    [
        ("bucket(4, id)", "bucket", [4], ["id"]),
        ("BUCKET( 4 , `id` )", "bucket", [4], ["id"]),
        ("truncate(2, p.Country)", "truncate", [2], ["p", "Country"]),
        ("years(ts)", "year", [], ["ts"]),
        ("months(ts)", "month", [], ["ts"]),
        ("days(ts)", "day", [], ["ts"]),
        ("hours(ts)", "hour", [], ["ts"]),
    ],
)
def test_a_transform_may_be_a_text_as_spark_writes_it(
    text: str, transform: str, args: list[int], column: list[str]
) -> None:
    written = {"transform": transform, "args": args, "column": column}
    assert spec_from_transforms([text], SCHEMA) == spec_from_transforms([written], SCHEMA)
    assert sort_order_from([text], SCHEMA) == sort_order_from([written], SCHEMA)


@pytest.mark.parametrize("text", ["foo(id)", "bucket(id)", "bucket(4)", "days(4, ts)", "bucket(4, id, ts)"])
def test_a_text_that_is_no_transform_names_the_forms(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"neither a column nor a transform: write bucket\(16, a\)"):
        spec_from_transforms([text], SCHEMA)


def test_a_column_may_be_called_like_a_transform() -> None:
    schema = assign_ids(
        [Field(name=name, type=AtomicType("long")) for name in ("a", "bucket(4, a)", "a desc")]
    )
    (field,) = spec_from_transforms(["bucket(4, a)"], schema).fields
    assert field.transform.name == "identity" and field.source_id == schema.find(("bucket(4, a)",)).id
    assert sort_order_from(["a desc"], schema).fields[0].direction == "asc"


def test_a_text_of_a_sort_order_may_have_a_direction() -> None:
    written = [
        {"column": ["id"], "direction": "desc"},
        {"column": ["ts"], "direction": "asc", "nulls": "last"},
    ]
    assert sort_order_from(["id DESC", "ts asc nulls last"], SCHEMA) == sort_order_from(written, SCHEMA)
