"""Rows that are deleted by vectors are not read, wherever they stand in a file and in the batches of its reader."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

pytestmark = pytest.mark.adapter

ROWS = 5000
VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
BATCH = "spark.sql.parquet.columnarReaderBatchSize"


def some(share, seed):
    return {id for id in range(ROWS) if random.Random(f"{seed} {id}").random() < share}


PATTERNS = {
    "the first": {0},
    "the last": {ROWS - 1},
    "every other": set(range(0, ROWS, 2)),
    "whole batches and parts of their neighbours": set(range(90, 2200)),
    "runs": {id for id in range(ROWS) if id % 200 < 70},
    "all but one": set(range(ROWS)) - {4321},
    "few": some(0.002, 1),
    "many": some(0.7, 2),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_file_is_read_without_its_deleted_rows(lake, pattern):
    deleted_pattern = PATTERNS[pattern]
    table = lake.catalog.create_table(
        "t",
        pa.schema([("id", pa.int64()), ("text", pa.string()), ("s", pa.struct([("n", pa.int64())]))]),
        properties={"lakelog.write.delete.mode": "merge-on-read"},
    )
    ids = range(ROWS)
    rows = {
        "id": ids,
        "text": [f"t{id}" if id % 7 else None for id in ids],
        "s": [{"n": id * 3} for id in ids],
    }
    table = table.append(pa.table(rows, schema=table.arrow_schema))
    table = table.delete(f"id IN ({', '.join(map(str, sorted(deleted_pattern)))})")
    assert table.file_count == 1 and table.row_count == ROWS - len(deleted_pattern)
    remaining_ids = [(id, f"t{id}" if id % 7 else None, id * 3) for id in ids if id not in deleted_pattern]
    for settings in ({BATCH: "97"}, {BATCH: "1024"}, {VECTORIZED: "false"}):
        for key, value in settings.items():
            lake.spark.conf.set(key, value)
        try:
            assert sorted(lake.sql("SELECT id, text, s.n FROM lake.t")) == remaining_ids, settings
        finally:
            for key in settings:
                lake.spark.conf.unset(key)


def test_positions_are_found_in_one_pass_and_after_a_step_back(spark):
    chance = random.Random(7)
    for share in (0.0, 0.01, 0.5, 0.99):
        deleted_ids = sorted(id for id in range(3000) if chance.random() < share)
        bitmap = spark._jvm.org.roaringbitmap.RoaringBitmap()
        for id in deleted_ids:
            bitmap.add(id)
        bitmap.runOptimize()
        walk = getattr(spark._jvm.org.apache.spark.sql.lakelog.files.DeletedPositions(bitmap), "from")
        passes = [sorted(chance.sample(range(3100), 60)) for _ in range(2)]
        for position in (*passes[0], 2**32, 2**40, *passes[1]):
            expected = next((id for id in deleted_ids if id >= position), 2**63 - 1)
            assert walk(position) == expected, (share, position)
