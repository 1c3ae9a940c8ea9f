"""Columns that widen one way, are rolled back, and widen another way: no statistic is converted with a loss."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.files import file_set, manifest_bounds, manifests

CASES: list[tuple[pa.DataType, tuple[str, pa.DataType, Any], tuple[str, pa.DataType, Any]]] = [
    (pa.int8(), ("decimal(10,0)", pa.decimal128(10), Decimal(7)), ("double", pa.float64(), 0.6)),
    (pa.int8(), ("double", pa.float64(), 0.6), ("decimal(10,0)", pa.decimal128(10), Decimal(7))),
    (pa.int32(), ("long", pa.int64(), 2**60 + 1), ("double", pa.float64(), -1.5)),
    (pa.int32(), ("double", pa.float64(), -1.5), ("long", pa.int64(), 2**60 + 1)),
    (pa.int32(), ("decimal(12,2)", pa.decimal128(12, 2), Decimal("9.99")), ("long", pa.int64(), 2**60)),
    (
        pa.decimal128(5, 0),
        ("decimal(8,2)", pa.decimal128(8, 2), Decimal("999999.99")),
        ("decimal(9,1)", pa.decimal128(9, 1), Decimal("12345678.9")),
    ),
]


@pytest.mark.parametrize(("first", "gone", "present"), CASES, ids=str)
@pytest.mark.parametrize("bounded_from", [1, 1000])
@pytest.mark.parametrize("gone_is_stored", [True, False])
def test_filters_find_all_rows(
    tmp_path: Path, first: pa.DataType, gone: tuple[str, pa.DataType, Any], present: tuple[str, pa.DataType, Any],
    bounded_from: int, gone_is_stored: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(manifest_bounds, "BOUNDED_FROM", bounded_from)

    def table() -> Table:
        return Catalog(tmp_path).load_table("t")

    def widened_to(name: str, type: pa.DataType, value: Any) -> None:
        table().alter([{"change": "update-column-type", "name": ["i"], "type": name}])
        table().append(pa.table({"i": pa.array([value], type)}))

    def snapshot() -> None:
        tracked_log = table().table_head.tracked
        tracked_log.log.snapshot(tracked_log.current())

    def check() -> None:
        low, high = sorted([1, present[2]])
        assert sorted(table().to_arrow()["i"].to_pylist()) == [low, high]
        assert table().scan(filter=col("i") <= low).to_arrow()["i"].to_pylist() == [low]
        assert table().scan(filter=col("i") > low).to_arrow()["i"].to_pylist() == [high]

    table_before = (
        Catalog(tmp_path)
        .create_table("t", pa.schema([("i", first)]))
        .append(pa.table({"i": pa.array([1], first)}))
    )
    widened_to(*gone)
    if gone_is_stored:
        snapshot()
    table().rollback_to_version(table_before.version)
    widened_to(*present)
    check()
    snapshot()
    check()


@pytest.mark.parametrize("packed_from", [1, 1000])
def test_removed_entries_of_a_wider_partition_are_no_error(
    tmp_path: Path, packed_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PACKED_FROM", packed_from), ("LEAF_ENTRIES", 2), ("PACK_LEAF_ENTRIES", 2)):
        monkeypatch.setattr(manifests, name, value)
    for name, value in (("FEW_MANIFESTS", 0), ("FEW_LEAVES", 0), ("MANY_FILES", 1)):
        monkeypatch.setattr(file_set, name, value)

    def table() -> Table:
        return Catalog(tmp_path).load_table("t")

    def snapshot() -> None:
        tracked_log = table().table_head.tracked
        tracked_log.log.snapshot(tracked_log.current())

    rows = pa.table({"i": pa.array(range(6), pa.int32())})
    table_before = Catalog(tmp_path).create_table("t", rows.schema, partition_by=["i"]).append(rows)
    snapshot()
    table().alter([{"change": "update-column-type", "name": ["i"], "type": "long"}])
    table().append(pa.table({"i": pa.array([2**60, 2**61, 9], pa.int64())}))
    snapshot()
    table().rollback_to_version(table_before.version)
    for _ in range(2):
        assert table().scan(filter=col("i") == 5).to_arrow()["i"].to_pylist() == [5]
        assert table().scan(filter=col("i") > 2).to_arrow().num_rows == 3
        snapshot()
