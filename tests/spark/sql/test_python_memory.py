"""Whatever rewrites or reads the rows of a large table is done by Spark: the Python process stays small beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql.functions import col, lit
from tests.spark.conftest import children

MB = 1_000_000
LIMIT_MB = 250
"""The peak that the process is held to, its modules among it."""

ROWS = 2_600_000
"""Of about 1 kB each, which no codec makes smaller: ten times the limit."""


def peak_mb(spark) -> float:
    """The most memory that the process had since the last look."""
    (child,) = children(spark)
    status = Path(f"/proc/{child}/status").read_text()
    found = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024 / MB
    Path(f"/proc/{child}/clear_refs").write_text("5")
    return found


def of_rows(spark, first, last):
    return spark.range(first, last, numPartitions=8).selectExpr(
        "id", "id % 4 AS part", "randstr(1000, 7) AS text"
    )


@pytest.mark.slow
def test_a_table_ten_times_as_large_as_pythons_limit_is_rewritten_beside_it(lake):
    table, peaks = f"{lake.name}.t", {}

    def done(what, run):
        run()
        peaks[what] = peak_mb(lake.spark)

    lake.sql("CREATE TABLE lake.t (id BIGINT, part BIGINT, text STRING) PARTITIONED BY (part)")
    for part in range(4):
        of_rows(lake.spark, part * ROWS // 4, (part + 1) * ROWS // 4).writeTo(table).append()
    size = sum(path.stat().st_size for path in Path(lake.warehouse).rglob("*.parquet"))
    assert size > 10 * LIMIT_MB * MB
    peak_mb(lake.spark)
    done("compaction", lambda: lake.sql("CALL lake.system.compact('t')"))
    lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
    one = of_rows(lake.spark, 10, 11)
    done("overwrite that cuts files", lambda: one.writeTo(table).overwrite(col("id") == lit(10)))
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT c CHECK (part < 100)")
    done(
        "RENAME PARTITION",
        lambda: lake.sql("ALTER TABLE lake.t PARTITION (part = 3) RENAME TO PARTITION (part = 13)"),
    )
    lake.sql("CREATE TABLE lake.c CLONE lake.t")
    done("MATERIALIZE", lambda: lake.sql("ALTER TABLE lake.c MATERIALIZE"))
    done(
        "forget", lambda: lake.sql("CALL lake.system.forget('t', 'id IN (20, 21, 22, 23)', dry_run => false)")
    )
    assert lake.sql("SELECT count(*), count(DISTINCT part), max(part) FROM lake.t") == [(ROWS - 4, 4, 13)]
    print({what: round(peak) for what, peak in peaks.items()}, f"{size / MB:,.0f} MB")
    assert max(peaks.values()) < LIMIT_MB, peaks
