"""Columns that are called as those that Spark adds to rows are refused wherever a table gets columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lakelog.catalog import Catalog
from lakelog.log.errors import InvalidInput

REASON = "because Spark adds a column of that name"
REFUSED = (
    "__row_operation", "__Row_From_Source", "__row_from_target", "__row_id", "__original_row_id__file"
)  # fmt: skip
TAKEN = ("_tmp_metadata_row_index", "_file", "_pos", "_row_id", "_version", "_metadata", "_lakelog_row_id")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "w")


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_nothing_is_made(catalog: Catalog, tmp_path: Path, name: str) -> None:
    rows = pa.table({"k": [1], name: [2]})
    table = catalog.create_table("t", pa.schema([("k", pa.int64()), ("s", pa.struct([(name, pa.int64())]))]))
    write_deltalake(tmp_path / "delta", rows)
    (tmp_path / "files").mkdir()
    pq.write_table(rows, tmp_path / "files/a.parquet")
    new = {"name": [name], "type": "long", "nullable": True}
    for attempt in (
        lambda: catalog.create_table("u", rows.schema),
        lambda: catalog.import_table(tmp_path / "delta", "u", format="delta"),
        lambda: catalog.import_table(tmp_path / "files", "u", format="parquet"),
        lambda: table.alter([{"change": "add-column", **new}]),
        lambda: table.alter([{"change": "rename-column", "name": ["k"], "new_name": name}]),
    ):
        with pytest.raises(InvalidInput, match=REASON):
            attempt()
    assert [table[-1] for table in catalog.list_tables()] == ["t"]
    assert table.refresh().version == table.version


def test_names_of_metadata_columns_keep_their_values(catalog: Catalog, tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], **{name: [10, 20] for name in TAKEN}})
    pq.write_table(rows, tmp_path / "a.parquet")
    table = catalog.create_table("t", rows.schema).append(rows)
    table = table.add_files(tmp_path / "a.parquet")
    table.update({"_file": "_file + 1"}, where="k = 1")
    found_rows = catalog.load_table("t").to_arrow().sort_by("k").to_pylist()
    assert [row.pop("_file") for row in found_rows] == [11, 11, 20, 20]
    assert [set(row.values()) for row in found_rows] == [{1, 10}, {1, 10}, {2, 20}, {2, 20}]
