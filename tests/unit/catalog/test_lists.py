"""A text instead of a list would be taken letter by letter, and give other columns without an error."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Table, col
from lakelog.log import InvalidInput

LETTERS = pa.schema([("i", pa.int64()), ("d", pa.int64()), ("id", pa.int64())])

CALLS: dict[str, Callable[[Catalog, Table], object]] = {
    "scan": lambda catalog, table: table.scan("id"),
    "scan by name": lambda catalog, table: table.scan(columns="id"),
    "groups": lambda catalog, table: table.scan().aggregate([], "id"),
    "changes": lambda catalog, table: table.changes(1, 1, columns="id"),
    "metadata": lambda catalog, table: table.inspect("files", columns="path"),
    "values": lambda catalog, table: col("id").is_in("id"),
    "partitions": lambda catalog, table: catalog.create_table("b", LETTERS, partition_by="id"),
    "order": lambda catalog, table: catalog.create_table("b", LETTERS, sort_by="id"),
    "clustering": lambda catalog, table: catalog.create_table("b", LETTERS, cluster_by="id"),
    "later partitions": lambda catalog, table: table.set_partitioning("id"),
    "later order": lambda catalog, table: table.set_sort_order("id"),
    "later clustering": lambda catalog, table: table.set_clustering("id"),
    "primary key": lambda catalog, table: table.add_constraint("k", primary_key="id"),
    "unique": lambda catalog, table: table.add_constraint("k", unique="id"),
    "namespace": lambda catalog, table: catalog.alter_namespace((), remove="id"),
    "backups": lambda catalog, table: catalog.delete_backups("/tmp/nowhere", "id"),
    "upkeep": lambda catalog, table: catalog.maintain("t", actions="id"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_text_is_no_list_of_its_letters(call: str) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4().hex}")
    catalog.create_table("t", LETTERS)
    with pytest.raises(InvalidInput, match=r"give one, such as \['|give a list of ids"):
        CALLS[call](catalog, catalog.load_table("t"))
