"""A few rows of a table or a scan: the first, the last, and some by chance, from the files that have them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Observation, Table
from lakelog.log.errors import InvalidInput


@pytest.fixture
def seen() -> list[Observation]:
    return []


@pytest.fixture
def table(tmp_path: Path, seen: list[Observation]) -> Table:
    catalog = Catalog(tmp_path, observe=seen.append)
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    for first in (0, 10, 20):
        table = table.append(pa.table({"id": range(first, first + 10)}))
    return table.delete("id = 3")


def ids(rows: pa.Table) -> list[int]:
    found_rows: list[int] = rows["id"].to_pylist()
    return found_rows


def test_the_first_and_the_last_rows_are_those_of_a_scan(table: Table) -> None:
    every = ids(table.to_arrow())
    assert len(every) == 29
    for count in (0, 1, 5, 12, 29, 100):
        assert ids(table.head(count)) == every[:count]
        assert ids(table.tail(count)) == every[max(0, 29 - count) :]
    assert (ids(table.head()), ids(table.tail())) == (every[:5], every[-5:])
    scan = table.scan(["id"], "id < 15")
    assert ids(scan.tail(3)) == ids(scan.to_arrow())[-3:] and ids(scan.head(3)) == ids(scan.to_arrow())[:3]
    assert ids(table.scan(limit=12).tail(3)) == every[9:12]
    assert table.scan(row_ids=True).tail(1).schema.names == ["id", "_row_id", "_row_version"]


def test_each_row_is_sampled_as_often(table: Table) -> None:
    for rows in (table.scan(), table.scan(filter="id >= 0")):
        counts = Counter(id for seed in range(200) for id in ids(rows.sample(3, seed=seed)))
        assert set(counts) == set(ids(table.to_arrow()))
        assert min(counts.values()) > 4 and max(counts.values()) < 60
        assert len(set(ids(rows.sample(100)))) == 29 and ids(rows.sample(0)) == []
        assert ids(rows.sample(4, seed=7)) == ids(rows.sample(4, seed=7))


def test_only_files_are_read_that_have_the_rows(table: Table, seen: list[Observation]) -> None:
    def requests() -> int:
        reads = [observation for observation in seen if not observation.is_background]
        assert [read.operation for read in reads] == ["scan"]
        count = reads[0].request_count
        seen.clear()
        return count

    seen.clear()
    table.to_arrow()
    whole_requests = requests()
    for few in (lambda: table.head(2), lambda: table.tail(2), lambda: table.sample(1)):
        few()
        assert requests() < whole_requests


def test_a_table_without_rows_has_none(table: Table) -> None:
    empty = table.truncate()
    for rows in (empty.head(), empty.tail(), empty.sample(), empty.scan(filter="id > 1").sample()):
        assert rows.num_rows == 0 and rows.schema.names == ["id"]


@pytest.mark.parametrize("count", [-1, True, "5", 1.5])
def test_what_is_no_number_of_rows_is_refused(table: Table, count: int) -> None:
    for rows in (table.head, table.tail, table.sample):
        with pytest.raises(InvalidInput, match="not a number of rows"):
            rows(count)
