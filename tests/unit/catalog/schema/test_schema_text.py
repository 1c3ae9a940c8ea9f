"""How a schema and a table's metadata print: for people, one line for a column."""

from __future__ import annotations

import pyarrow as pa

from lakelog.catalog import Catalog


def test_a_schema_and_metadata_print_a_line_for_each_column() -> None:
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("a b", pa.list_(pa.struct({"x": pa.string()})))]
    )
    table = Catalog("memory://prints").create_table(
        "t", schema, partition_by=["id"], comment="of 'people'", properties={"owner": "ada"}
    )
    table = table.update_column("id", comment="a number")
    columns = "Schema:\n  id long NOT NULL COMMENT 'a number'\n  a b array<struct<x: string>>"
    assert repr(table.schema) == str(table.schema) == columns
    assert str(table.metadata).splitlines()[:3] == columns.splitlines()
    assert str(table.metadata).splitlines()[3:] == [
        "Partitioned by: id",
        "Comment: \"of 'people'\"",
        "Properties: ",
        "  owner = 'ada'",
    ]
