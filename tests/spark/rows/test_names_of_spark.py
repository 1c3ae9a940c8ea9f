"""Columns that are called as those that Spark, Iceberg or lakelog add to rows."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyspark
import pytest
from tests.spark.sql.rows import MODES, in_mode
from tests.spark.versions import evolving_writes

from lakelog.catalog.core.schema.schema import OF_SPARK, PREFIX_OF_SPARK

pytestmark = pytest.mark.adapter

RULES = re.compile(
    r"org/apache/spark/sql/catalyst/(analysis/Rewrite(RowLevelCommand|UpdateTable|MergeIntoTable|DeleteFromTable)|"
    r"util/RowDeltaUtils|plans/logical/MergeRows)\b.*\.class"
)

WORKING = (
    "_file", "_pos", "__POS", "_Row_Id", "_version", "_metadata", "_tmp_metadata_row_index", "_lakelog_row_id",
    "_lakelog_row_version", "_last_updated_sequence_number", "_partition", "_spec_id", "_deleted", "file_path",
    "pos", "_change_type", "_commit_version", "_commit_timestamp", "__spark_cdc_row_number", "_corrupt_record",
    "made", "value0", "row_operation", "_row_operation", "__rows__not_in_this_file", "x.y", "element", "key",
)  # fmt: skip
REFUSED = ("__row_operation", "__ROW_FROM_source", "__row_from_target", "__row_id", "__original_row_id__file")
REASON = "because Spark adds a column of that name"


def test_all_names_by_which_sparks_rules_find_columns_are_known():
    found = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-catalyst_*.jar"):
        with zipfile.ZipFile(jar) as classes:
            for name in filter(RULES.fullmatch, classes.namelist()):
                found |= set(re.findall(rb"\x01\x00.(__[a-z_]+)", classes.read(name)))
    assert {name.decode() for name in found} == {*OF_SPARK, PREFIX_OF_SPARK}


@pytest.mark.parametrize("mode", MODES)
def test_columns_with_names_of_others_keep_their_values(lake, mode):
    names = ", ".join(f"`{name}` INT" for name in WORKING)
    lake.sql(f"CREATE TABLE lake.t (k INT, {names}) {in_mode(mode)}")
    expected = {k: [k * 100 + i for i in range(len(WORKING))] for k in range(4)}

    def row(k):
        return ", ".join(map(str, [k, *expected[k]]))

    lake.sql(
        f"INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(f'({row(k)})' for k in expected)}"
    )

    def check():
        assert {k: list(rest) for k, *rest in lake.sql("SELECT * FROM lake.t")} == expected

    lake.sql("UPDATE lake.t SET `made` = -1 WHERE k = 1")
    expected[1][WORKING.index("made")] = -1
    check()
    lake.sql("DELETE FROM lake.t WHERE `_pos` = 201")
    del expected[2]
    check()
    columns = ", ".join(f"s.k + {i} AS `{name}`" for i, name in enumerate(WORKING))
    lake.sql(
        f"MERGE INTO lake.t AS t USING (SELECT s.k, {columns} FROM VALUES (3), (7) AS s(k)) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.k = 0 THEN UPDATE SET `_file` = 9"
    )
    expected[3], expected[7] = ([k + i for i in range(len(WORKING))] for k in (3, 7))
    expected[0][WORKING.index("_file")] = 9
    check()
    table = lake.catalog.load_table("t")
    assert {row.pop("k"): list(row.values()) for row in table.to_arrow().to_pylist()} == expected
    lake.sql(
        "UPDATE lake.t SET `_version` = 1 WHERE ___row_id >= 0 AND __file LIKE '%parquet' AND ___pos >= 0"
    )
    assert lake.sql("SELECT DISTINCT `_version` FROM lake.t") == [(1,)]


def test_names_by_which_spark_finds_columns_are_refused(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (k INT, s STRUCT<__row_id: INT>)")
    catalog = lake.catalog
    for name in REFUSED:
        for statement in (
            f"CREATE TABLE lake.u (k INT, {name} INT)",
            f"CREATE TABLE lake.u AS SELECT 1 AS {name}",
            f"CREATE OR REPLACE TABLE lake.t AS SELECT 1 AS {name}",
            f"ALTER TABLE lake.t ADD COLUMN {name} INT",
            f"ALTER TABLE lake.t RENAME COLUMN k TO {name}",
        ):
            with pytest.raises(Exception, match=REASON):
                lake.sql(statement)
        with pytest.raises(Exception, match=REASON):
            catalog.create_table("v", pa.schema([(name, pa.int32())]))
    lake.sql("ALTER TABLE lake.t ADD COLUMN s.__row_operation INT")
    lake.sql("INSERT INTO lake.t SELECT 1, named_struct('__row_id', 2, '__row_operation', 3)")
    lake.sql("UPDATE lake.t SET s.__row_id = 5")
    assert [tuple(s) for (s,) in lake.sql("SELECT s FROM lake.t")] == [(5, 3)]


@evolving_writes
def test_a_write_adds_no_column_of_such_a_name(lake):
    lake.sql("CREATE TABLE lake.t (k INT)")
    with pytest.raises(Exception, match=REASON):
        lake.sql("INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT 1 AS k, 2 AS __row_id")


def test_a_table_that_has_such_a_column_already_is_renamed_first(lake):
    for name in REFUSED:
        with patch("lakelog.catalog.core.ddl.tables.refuse_names_of_spark"):
            lake.catalog.create_table("t", pa.schema([("k", pa.int32()), (name, pa.int32())]))
        lake.sql("INSERT INTO lake.t VALUES (1, 10), (2, 20)")
        for statement in (
            "UPDATE lake.t SET k = 5 WHERE k = 1",
            "DELETE FROM lake.t WHERE k + 0 = 2",
            "MERGE INTO lake.t AS t USING (SELECT 1 AS k) AS s ON t.k = s.k WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(Exception, match=rf"(?i)cannot be carried out: .* column {name}") as error:
                lake.sql(statement)
            assert "RENAME COLUMN" in str(error.value)
        assert lake.sorted("SELECT * FROM lake.t") == [(1, 10), (2, 20)]
        lake.sql(f"ALTER TABLE lake.t RENAME COLUMN {name} TO other")
        lake.sql("UPDATE lake.t SET k = 5 WHERE k = 1")
        assert lake.sorted("SELECT other, k FROM lake.t") == [(10, 5), (20, 2)]
        lake.sql("DROP TABLE lake.t")


@pytest.mark.parametrize("mode", MODES)
def test_a_source_may_have_such_names_except_for_the_marks_of_its_rows(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (k INT, v INT) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1, 0), (2, 0)")
    merge = (
        "MERGE INTO lake.t AS t USING (SELECT k, k * 10 AS {0} FROM VALUES (2), (3) AS s(k)) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.{0} WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.{0})"
    )
    for name in ("__row_from_source", "__ROW_from_target"):
        with pytest.raises(Exception, match=f"(?i)Reference `{name}` is ambiguous"):
            lake.sql(merge.format(name))
    assert lake.sorted("SELECT * FROM lake.t") == [(1, 0), (2, 0)]
    lake.sql(merge.format("__row_id"))
    lake.sql(merge.replace("10", "20").format("__row_operation"))
    assert lake.sorted("SELECT * FROM lake.t") == [(1, 0), (2, 40), (3, 60)]
