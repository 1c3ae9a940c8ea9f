"""Which columns new files have Bloom filters of. What these are good for, the tests in Spark show."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog, InvalidInput, Table

COLUMNS = "lakelog.bloom-filter.columns"
SCHEMA = pa.schema(
    [("k", pa.int64()), ("s", pa.struct([("x", pa.string()), ("y", pa.int32())])), ("f", pa.float64())]
)
ROWS = pa.table({"k": [1, 2, 3], "s": [{"x": "a", "y": 1}] * 3, "f": [0.0, 1.0, 2.0]}, schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(str(tmp_path / "warehouse"))


def filtered_texts(table: Table) -> list[set[str]]:
    """Return the columns, by their paths in files, of which each file has filters, oldest first."""
    if not hasattr(pq.ColumnChunkMetaData, "bloom_filter_offset"):
        pytest.skip(
            "this pyarrow does not show where Bloom filters are, so which columns have one is not looked at"
        )
    place = Path(table.location)
    found = []
    for path in sorted(str(row) for row in table.scan().plan()["path"].to_pylist()):
        metadata = pq.read_metadata(place / path)
        group = metadata.row_group(0)
        columns = [group.column(i) for i in range(metadata.num_columns)]
        found.append({column.path_in_schema for column in columns if column.bloom_filter_offset is not None})
    return found


def set_(table: Table, value: str) -> Table:
    return table.alter([{"change": "set-property", "key": COLUMNS, "value": value}])


def test_files_have_filters_of_the_columns_that_are_named_when_they_are_written(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA).append(ROWS)
    assert filtered_texts(table) == [set()]
    table = set_(table, "s.x, k").append(ROWS)
    assert filtered_texts(table) == [set(), {"k_1", "s_2.x_3"}]
    # Files that are written anew get them.
    assert filtered_texts(table.compact().refresh()) == [{"k_1", "s_2.x_3"}]


def test_names_follow_their_columns_and_go_with_them(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, properties={COLUMNS: "k, s.x"})
    table = table.alter([{"change": "rename-column", "name": ["s"], "new_name": "a b"}])
    assert table.properties[COLUMNS] == "k, `a b`.x"
    table = table.alter([{"change": "delete-column", "name": ["k"]}])
    assert table.properties[COLUMNS] == "`a b`.x"
    table = table.alter([{"change": "delete-column", "name": ["a b"]}])
    assert COLUMNS not in table.properties


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("z", "names the column z, which the table does not have"),
        ("K", "names the column K, which the table does not have"),
        ("f", "names the column f of type double, which has no Bloom filters"),
        ("s", "names the column s of type struct"),
    ],
)
def test_what_cannot_have_a_filter_is_refused(catalog: Catalog, value: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        catalog.create_table("t", SCHEMA, properties={COLUMNS: value})
    table = catalog.create_table("t", SCHEMA)
    with pytest.raises(InvalidInput, match=words):
        set_(table, value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("fpp", "0", "must be a number between 0 and 1"),
        ("fpp", "0.000", "must be a number between 0 and 1"),
        ("fpp", "1.5", "must be a number between 0 and 1"),
        ("ndv", "999", "a whole number of at least 1000"),
        ("ndv", "20000001", "at most 20000000"),
    ],
)
def test_rates_and_sizes_have_bounds(catalog: Catalog, name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        catalog.create_table("t", SCHEMA, properties={f"lakelog.bloom-filter.{name}": value})
