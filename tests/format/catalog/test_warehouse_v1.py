"""The catalog's format: what a release wrote is read for ever, and today's code writes the same bytes."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from tests.format.catalog.warehouse_v1 import SCHEMA, build, released

from lakelog.catalog import Catalog, NoSuchTable, col
from lakelog.catalog.core.schema.spark_types import schema_to_spark
from lakelog.catalog.core.schema.types import Default, TypedValue

GOLDEN = Path(__file__).parent / "warehouse_v1"


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(str(GOLDEN))


def test_today_writes_what_the_release_wrote() -> None:
    written_data, golden = build(), released(GOLDEN)
    assert written_data.keys() == golden.keys()
    for key, data in golden.items():
        # The bytes of Arrow, and so their hashes and what is chained to them, are Arrow's business: its releases may
        # write other bytes for the same content, which the other tests read.
        if not after_a_sidecar(key):
            assert written_data[key] == data, key


def after_a_sidecar(key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return "t-id000000000000000000000022" in folder and not (name[:20].isdigit() and int(name[:20]) < 5)


def test_namespaces_are_read(catalog: Catalog) -> None:
    assert catalog.list_namespaces() == [("books",), ("sales",)]
    assert catalog.list_namespaces("sales") == [("sales", "raw.eu")]
    assert catalog.load_namespace("sales") == {"comment": "all of them"}
    assert [entry.operation for entry in catalog.history()] == [
        "save cut", "link, unlink", "link", "unlink", "link", "link", "create namespace",
    ]  # fmt: skip


def test_a_table_and_its_past_are_read(catalog: Catalog) -> None:
    assert catalog.list_tables("sales") == [("sales", "receipts")]
    table = catalog.load_table("sales.receipts")
    assert (table.version, table.file_count, table.row_count) == (7, 251, 2510)
    assert table.schema.names == ("id", "day", "name", "price", "at", "tags", "place", "counts", "note")
    assert table.schema.find(("place", "latitude")).physical == "lat_9"
    assert table.schema.find(("note",)).default == Default(
        current="'none'", exists=TypedValue(type="string", value="none")
    )
    assert dict(table.properties) == {"k": "w"}
    assert (table.comment, table.provider) == ("orders", "parquet")
    assert [field.name for field in table.spec.fields] == ["day", "at_month"]
    first = table.at(version=1)
    assert schema_to_spark(first.schema, internal=False)["fields"] == SCHEMA["fields"]
    assert table.at(version=2).file_count == 2
    assert table.at(timestamp=first.committed_at).version == 1


def test_files_are_planned_by_what_was_written_of_them(catalog: Catalog) -> None:
    table = catalog.load_table("sales.receipts")
    assert table.plan(col("id") == 105)["path"].to_pylist() == ["data/00010.parquet"]
    assert table.plan(col("day") == dt.date(2024, 10, 5))["path"].to_pylist() == ["data/00002.parquet"]
    assert table.plan().num_rows == 251


def test_what_was_dropped_and_replaced_is_so(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        catalog.load_table("sales.dropped")
    replaced_table = catalog.load_table(("books", "moved"))
    assert dict(replaced_table.properties) == {"new": "yes"}
    assert [entry.operation for entry in replaced_table.history()] == [
        "move",
        "truncate",
        "replace",
        "create",
    ]
    again = catalog.load_table(("books", "again"))
    assert [entry.operation for entry in again.history()] == ["restore", "drop", "create"]
    assert catalog.cuts()["the end"].logs == 7 and catalog.cuts("sales")["the end"].logs == 3
    sales = Catalog(str(GOLDEN), as_of="the end", as_of_namespace="sales")
    assert sales.list_namespaces() == [("sales",)] and sales.load_table("sales.receipts").version == 7
