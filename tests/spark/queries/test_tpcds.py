"""All 99 queries of TPC-DS have the answers of plain Parquet tables with the same rows, in both row-level modes."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.spark.queries.comparing import handed_down

from programs.bench.data import tpcds

pytestmark = [pytest.mark.adapter, pytest.mark.slow]

SCALE = 0.1
ANSWERED = 81
"""So many of the 99 answers have rows at this scale. The others look for places or prices that it does not have."""

LAYOUTS = {"merge-on-read": "{day}", "copy-on-write": "truncate(100, {day})"}
"""What the fact tables of each mode are partitioned by."""


def test_all_queries_of_tpcds_have_the_answers_of_plain_tables(spark, make_lake, tmp_path):
    sources = tpcds.generate(tmp_path / "source", SCALE)
    plain = tmp_path / "plain"
    spark.sql(f"CREATE DATABASE spark_catalog.plain LOCATION '{plain}'")
    try:
        tpcds.create_tables(spark.sql, "spark_catalog.plain", sources, "USING parquet", by="", deleted=True)
        places = {mode: lost_rows(make_lake(str(tmp_path / mode)), mode, sources) for mode in LAYOUTS}
        compare_all(spark, places)
    finally:
        spark.sql("DROP DATABASE spark_catalog.plain CASCADE")
        spark.sql("USE spark_catalog.default")


def lost_rows(lake, mode, sources) -> str:
    """Give a catalog all tables, and delete some rows of them. Return its namespace."""
    properties = ", ".join(
        f"'lakelog.write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge")
    )
    lake.sql("CREATE NAMESPACE lake.tpcds")
    tpcds.create_tables(lake.frame, "lake.tpcds", sources, f"TBLPROPERTIES ({properties})", by=LAYOUTS[mode])
    tpcds.delete_rows(lake.frame, "lake.tpcds")
    for name in tpcds.FACTS:
        files = lake.catalog.load_table(f"tpcds.{name}").plan()
        assert ("deletes" in files.column_names) == (mode == "merge-on-read"), f"{name}: {files.schema}"
    return f"{lake.name}.tpcds"


def compare_all(spark, places) -> None:
    differences, answered_number = list[str](), 0
    down: Counter[str] = Counter()
    for number, text in tpcds.queries().items():
        spark.sql("USE spark_catalog.plain")
        total_order = tpcds.in_total_order(text, len(spark.sql(text).columns))
        expected = tpcds.answer(spark.sql(total_order))
        answered_number += bool(expected.rows)
        for mode, namespace in places.items():
            spark.sql(f"USE {namespace}")
            frame = spark.sql(total_order)
            if difference := tpcds.difference(tpcds.answer(frame), expected):
                differences.append(f"query {number}, {mode}: {difference}")
            down.update(handed_down(frame._jdf.queryExecution().executedPlan().toString()))
    assert not differences, "\n".join(differences)
    assert answered_number >= ANSWERED
    assert down.keys() >= {"filters", "runtime filters"}, down
