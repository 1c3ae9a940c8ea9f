"""Which statistics of files are kept of wide tables: enough for plans, and not those of hundreds of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, InvalidInput, Table
from lakelog.catalog.core.files.kept_statistics import columns_with_statistics

WIDE = 40
PROPERTY = "lakelog.write.statistics.columns"


def wide(*, columns: int = WIDE, required: int | None = None) -> pa.Schema:
    return pa.schema([pa.field(f"c{i}", pa.int64(), nullable=i != required) for i in range(columns)])


def data(schema: pa.Schema, first: int, rows: int = 5) -> pa.Table:
    return pa.table({name: list(range(first, first + rows)) for name in schema.names}, schema=schema)


def kept_texts(table: Table) -> set[str]:
    """Return the columns of which the log has statistics, in any file."""
    [added] = [
        event
        for commit in table.refresh().table_head.commits()
        for event in commit.events
        if event.get("added")
    ][-1:]
    names = {field.id: field.name for field in table.metadata.schema.fields}
    return {names[int(id)] for file in added["added"] for id in file["stats"]}


def files_read(table: Table, filter: Any) -> int:
    return table.scan(filter=filter).plan().num_rows


def test_the_first_columns_have_statistics_and_filters_on_others_read_more(catalog: Catalog) -> None:
    schema = wide()
    table = catalog.create_table("t", schema)
    for first in (0, 100, 200):
        table = table.append(data(schema, first))
    assert kept_texts(table) == {f"c{i}" for i in range(32)}
    assert files_read(table, "c31 = 101") == 1
    assert files_read(table, "c32 = 101") == 3
    for column in ("c31", "c32"):
        assert table.scan(filter=f"{column} = 101").to_arrow()["c0"].to_pylist() == [101]
    assert table.scan(filter="c39 IS NULL").to_arrow().num_rows == 0


def test_columns_that_are_named_required_or_of_the_layout_have_them_too(catalog: Catalog) -> None:
    table = catalog.create_table(
        "t",
        wide(required=33),
        partition_by=["c34"],
        sort_by=["c35"],
        properties={PROPERTY: "c37, c39"},
    )
    table = table.append(data(wide(required=33), 0, rows=1))
    assert kept_texts(table) == {*(f"c{i}" for i in range(32)), "c33", "c34", "c35", "c37", "c39"}
    table = table.alter([{"change": "set-property", "key": PROPERTY, "value": "*"}])
    assert kept_texts(table.append(data(wide(required=33), 0, rows=1))) == set(wide().names)


def test_narrow_tables_have_all_of_them(catalog: Catalog) -> None:
    schema = wide(columns=32)
    table = catalog.create_table("t", schema)
    assert columns_with_statistics(table.metadata) is None
    assert kept_texts(table.append(data(schema, 0))) == set(schema.names)


def test_of_nested_columns_those_inside_count(catalog: Catalog) -> None:
    parts = pa.struct([pa.field(f"p{i}", pa.int32()) for i in range(40)])
    table = catalog.create_table("t", pa.schema([pa.field("a", parts), pa.field("b", pa.int32())]))
    found_columns_with_statistics = columns_with_statistics(table.metadata)
    inside = {path: field.id for path, field in table.metadata.schema.walk()}
    assert found_columns_with_statistics == {inside["a", f"p{i}"] for i in range(32)}
    table = table.alter([{"change": "set-property", "key": PROPERTY, "value": "a.p35,b"}])
    assert columns_with_statistics(table.metadata) == {
        *found_columns_with_statistics,
        inside["a", "p35"],
        inside[("b",)],
    }
    table = table.alter([{"change": "set-property", "key": PROPERTY, "value": "a"}])
    assert columns_with_statistics(table.metadata) == {inside["a", f"p{i}"] for i in range(40)}


def test_a_name_that_is_no_column_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match=f"{PROPERTY} names the column c99, which the table does not have"):
        catalog.create_table("t", wide(), properties={PROPERTY: "c1,c99"})
    table = catalog.create_table("t", wide(), properties={PROPERTY: ""})
    with pytest.raises(InvalidInput, match="names the column x, which"):
        table.alter([{"change": "set-property", "key": PROPERTY, "value": "x"}])


def test_merges_deletes_and_compactions_of_wide_tables_keep_the_same(catalog: Catalog) -> None:
    schema = wide()
    table = catalog.create_table("t", schema)
    for first in (0, 100):
        table = table.append(data(schema, first))
    table.delete([("c35", "=", 3)])
    table = table.refresh().compact()
    assert sorted(table.scan().to_arrow()["c35"].to_pylist()) == [0, 1, 2, 4, *range(100, 105)]
    assert kept_texts(table) <= {f"c{i}" for i in range(32)}
