"""Columns, properties, partitioning and constraints, changed by methods with Python's words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Observation, Table
from lakelog.catalog.core.schema.constraints import CheckConstraint, PrimaryKey
from lakelog.catalog.errors import CheckViolated, ColumnExists, NoSuchColumn, RowsUnproven
from lakelog.log import InvalidInput, LakelogError, Unsupported

COLUMNS = {
    "id": pa.int32(),
    "place": pa.struct({"city": pa.string(), "zip.code": pa.int32()}),
    "tags": pa.list_(pa.string()),
}
IDS = pa.table({"id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", pa.schema(COLUMNS)).append(IDS)


def test_a_column_is_added_with_a_default_and_a_place(table: Table) -> None:
    added_table = table.add_column("score", pa.int64(), default=5, after="id", comment="points")
    assert added_table.version == table.version + 1 and "score" not in table.schema.names
    assert added_table.schema.names == ("id", "score", "place", "tags")
    assert added_table.schema.find(["score"]).comment == "points"
    assert added_table.append(IDS).to_arrow()["score"].to_pylist() == [5] * 4
    assert added_table.add_column("top", "decimal(10,2)", first=True).schema.names[0] == "top"


DEFAULTS: list[tuple[pa.DataType, Any]] = [
    (pa.bool_(), True),
    (pa.int8(), -3),
    (pa.float64(), 1e-7),
    (pa.float64(), float("-inf")),
    (pa.string(), "it's \\ \n"),
    (pa.binary(), b"\x00f"),
    (pa.decimal128(10, 2), Decimal("1.50")),
    (pa.date32(), dt.date(2020, 1, 31)),
    (pa.timestamp("us"), dt.datetime(2020, 1, 31, 12, 0, 0, 6)),
    (pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 31, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
    (pa.time64("us"), dt.time(1, 2, 3)),
    (pa.duration("us"), dt.timedelta(days=-1, seconds=5)),
    (pa.duration("us"), dt.timedelta(days=3, microseconds=5)),
]


@pytest.mark.parametrize("type, value", DEFAULTS)
def test_values_of_python_are_defaults(table: Table, type: pa.DataType, value: Any) -> None:
    table = table.add_column("new", type, default=value).append(IDS)
    assert table.to_arrow()["new"].to_pylist() == [value] * 4
    table = table.add_column("later", type).update_column("later", default=value).append(IDS)
    assert table.to_arrow()["later"].to_pylist() == [None] * 4 + [value] * 2


def test_nested_fields_are_found_by_their_path(table: Table) -> None:
    table = table.add_column("place.country", pa.string(), after="city").rename_column("place.city", "town")
    table = table.update_column(("place", "zip.code"), type=pa.int64()).update_column(
        "place.`zip.code`", comment="c"
    )
    fields = table.schema.find(["place"]).type.fields  # type: ignore[union-attr]
    assert [(field.name, str(field.type)) for field in fields] == [
        ("town", "string"),
        ("country", "string"),
        ("zip.code", "long"),
    ]
    assert table.drop_column(["place", "country"]).schema.get(["place", "country"]) is None


def test_an_update_changes_what_is_given_in_one_commit(table: Table) -> None:
    added_table = table.add_column("score", pa.int32(), comment="points", default=1)
    changed_table = added_table.update_column("score", type=pa.int64(), default=7, first=True)
    assert changed_table.version == added_table.version + 1 and changed_table.schema.names[0] == "score"
    field = changed_table.schema.find(["score"])
    assert (str(field.type), field.comment) == ("long", "points")
    changed_table = changed_table.append(IDS)
    assert changed_table.to_arrow()["score"].to_pylist() == [1, 1, 7, 7]
    bare = changed_table.update_column("score", comment=None, default=None)
    assert bare.schema.find(["score"]).comment is None
    assert bare.append(IDS).to_arrow()["score"].to_pylist() == [1, 1, 7, 7, None, None]
    assert not table.update_column("id", nullable=False).schema.find(["id"]).nullable


def test_several_changes_are_one_commit(table: Table) -> None:
    with table.alteration() as change:
        change.add_column("score", pa.int32()).update_column("score", type=pa.int64(), default=7)
        change.rename_column("id", "key").set_properties({"team": "a", "comment": "people"})
        change.add_constraint("positive", check="key > 0 AND key <> 7").add_constraint(
            "pk", primary_key=["key"]
        )
        change.add_partition_field({"transform": "bucket", "args": [4], "column": "key"}).set_sort_order(
            ["key"]
        )
    table_after = change.table
    assert table_after.version == table.version + 1
    assert table_after.schema.names == ("key", "place", "tags", "score")
    assert table_after.comment == "people" and table_after.properties["team"] == "a"
    check, key = table_after.constraints
    assert isinstance(check, CheckConstraint) and check.columns == (1,) and isinstance(key, PrimaryKey)
    assert len(table_after.spec.fields) == len(table_after.sort_order.fields) == 1
    with pytest.raises(CheckViolated):
        table_after.append(pa.table({"key": pa.array([-1], pa.int32())}))
    bare = table_after.drop_constraint("positive").drop_constraint("positive", missing_ok=True)
    bare = (
        bare.remove_properties("team", "nothing").drop_partition_field("key_bucket").set_clustering(["key"])
    )
    assert "team" not in bare.properties and not bare.spec.fields and bare.clustering == (("key",),)
    assert bare.set_clustering([]).set_partitioning(["score"]).spec.fields[0].name == "score"


def test_an_error_in_the_block_drops_all_of_it(table: Table) -> None:
    change = table.alteration()
    with pytest.raises(NoSuchColumn, match="no column tag: did you mean tags"), change:
        change.add_column("score", pa.int32())
        change.drop_column("tag")
    assert table.refresh().version == table.version
    with pytest.raises(InvalidInput, match="ended by an error"):
        _ = change.table
    with pytest.raises(InvalidInput, match="has ended: begin another one"):
        change.add_column("score", pa.int32())
    with pytest.raises(InvalidInput, match="has not ended"):
        _ = table.alteration().table
    with table.alteration() as nothing:
        pass
    assert nothing.table.version == table.version


def test_all_columns_are_replaced_in_one_alteration(table: Table) -> None:
    with table.alteration() as change:
        for name in table.schema.names:
            change.drop_column(name)
        change.add_column("only", pa.int64())
    assert change.table.schema.names == ("only",)


def test_a_transaction_and_the_newest_version_are_altered(catalog: Catalog, table: Table) -> None:
    table.add_column("others", pa.int32())
    assert table.add_column("mine", pa.int32()).schema.names[-2:] == ("others", "mine")
    with catalog.transaction() as transaction:
        with transaction.load_table("t").alteration() as change:
            change.drop_column("others")
        assert "others" in catalog.load_table("t").schema.names
        assert "others" not in change.table.schema.names
    assert "others" not in table.refresh().schema.names


WRONG: list[tuple[type[LakelogError], str, Callable[[Table], object]]] = [
    (InvalidInput, "y is <class 'int'>: give one of pyarrow's", lambda t: t.add_column("y", int)),
    (InvalidInput, r"a name of Arrow's: give pyarrow.int64\(\)", lambda t: t.add_column("y", "int64")),
    (Unsupported, "y has Arrow's type null", lambda t: t.add_column("y", pa.null())),
    (ColumnExists, "clashes", lambda t: t.add_column("ID", pa.int64())),
    (
        InvalidInput,
        "default 'a' of the column y is not",
        lambda t: t.add_column("y", pa.int64(), default="a"),
    ),
    (InvalidInput, "not a value of its type", lambda t: t.update_column("id", default=object())),
    (InvalidInput, "NOT NULL column y without", lambda t: t.add_column("y", pa.int64(), nullable=False)),
    (InvalidInput, "after zz: there is no", lambda t: t.add_column("y", pa.int64(), after="zz")),
    (InvalidInput, "first and after id", lambda t: t.add_column("y", pa.int64(), after="id", first=True)),
    (InvalidInput, "only a struct has fields", lambda t: t.add_column("id.y", pa.int64())),
    (InvalidInput, "5 is not a column", lambda t: t.drop_column(5)),  # type: ignore[arg-type]
    (NoSuchColumn, "place.cit: did you mean place.city", lambda t: t.drop_column("place.cit")),
    (NoSuchColumn, "did you mean place.`zip.code`", lambda t: t.drop_column("place.zip.code")),
    (InvalidInput, "from integer to short: values in old", lambda t: t.update_column("id", type=pa.int16())),
    (InvalidInput, "nothing of the column id is to be changed", lambda t: t.update_column("id")),
    (InvalidInput, "give True or False", lambda t: t.update_column("id", nullable="no")),  # type: ignore[arg-type]
    (RowsUnproven, "may violate tags.element", lambda t: t.update_column("tags.element", nullable=False)),
    (InvalidInput, "is not a new name", lambda t: t.rename_column("id", ("a", "b"))),  # type: ignore[arg-type]
    (InvalidInput, "give both as text, such as '1'", lambda t: t.set_properties({"a": 1})),  # type: ignore[dict-item]
    (InvalidInput, "is not the name of a property", lambda t: t.remove_properties(["a"])),  # type: ignore[arg-type]
    (InvalidInput, r"give one, such as \['id'\]", lambda t: t.set_partitioning("id")),
    (InvalidInput, r"give one, such as \['id'\]", lambda t: t.set_clustering("id")),
    (InvalidInput, "calls the function abs", lambda t: t.add_constraint("c", check="abs(id) > 0")),
    (InvalidInput, "needs one of check", lambda t: t.add_constraint("c")),
    (InvalidInput, "read-only", lambda t: t.at(version=1).add_column("y", pa.int64())),
    (InvalidInput, "cannot be altered by itself", lambda t: t.create_branch("b").at(ref="b").alteration()),
]


@pytest.mark.parametrize("kind, words, change", WRONG)
def test_errors_say_what_and_where(
    table: Table, kind: type[LakelogError], words: str, change: Callable[[Table], object]
) -> None:
    with pytest.raises(kind, match=words):
        change(table)


def test_a_hook_sees_an_alter() -> None:
    seen_observations = list[Observation]()
    catalog = Catalog("memory://methods", observe=seen_observations.append)
    catalog.create_table("t", pa.schema(COLUMNS)).add_column("y", pa.int64())
    assert [observation.operation for observation in seen_observations if not observation.is_background] == [
        "create_table",
        "alter",
    ]
