"""UPDATE and MERGE of tables with generated and identity columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql.functions import expr
from tests.spark.versions import SPARK_4_3, only_where_spark_computes

from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log.checks.findings import Severity

pytestmark = pytest.mark.adapter


GENERATED = (
    "k INT, a INT, g INT NOT NULL GENERATED ALWAYS AS (a + 1), at DATE, y INT GENERATED ALWAYS AS (year(at)), "
    "c INT DEFAULT 5, CONSTRAINT positive CHECK (g > 0)"
)
NUMBERED = "id BIGINT GENERATED {} AS IDENTITY, k BIGINT, v STRING"


@pytest.fixture(params=["merge-on-read", "copy-on-write"])
def table(lake, request):
    """Creates lake.t with these columns, in one of the two row-level modes, with rows of one file."""

    def create(columns, rows, by=""):
        modes = ", ".join(
            f"'lakelog.write.{operation}.mode' = '{request.param}'" for operation in ("update", "merge")
        )
        lake.sql(f"CREATE TABLE lake.t ({columns}) {by} TBLPROPERTIES ({modes})")
        lake.sql(f"INSERT INTO lake.t {rows}")
        return lake

    yield create
    assert [
        each.what for each in fsck.check_warehouse(lake.catalog._logs, deep=True).of(Severity.DAMAGE)
    ] == []


def numbered(table, how="ALWAYS"):
    return table(
        NUMBERED.format(how), "(k, v) SELECT /*+ COALESCE(1) */ k, 'old' FROM VALUES (1), (2), (3) AS s (k)"
    )


@only_where_spark_computes
def test_an_update_computes_generated_columns_anew_from_the_new_values(table):
    rows = "(k, a, at) SELECT /*+ COALESCE(1) */ id, id * 10, DATE'2020-01-01' FROM range(1, 4)"
    lake = table(GENERATED, rows, "PARTITIONED BY (y)")
    lake.sql("UPDATE lake.t SET a = a + 1 WHERE k = 1")
    lake.sql(
        "UPDATE lake.t SET at = DATE'2021-02-03', c = DEFAULT WHERE k IN (SELECT k FROM lake.t WHERE g = 21)"
    )
    # Its two uses of a random value are one.
    lake.sql("UPDATE lake.t SET a = rand() * 1000000, g = DEFAULT WHERE k = 3")
    assert lake.sorted("SELECT k, a, g, y FROM lake.t WHERE k < 3") == [(1, 11, 12, 2020), (2, 20, 21, 2021)]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE NOT (g <=> a + 1 AND y <=> year(at))") == [(0,)]
    assert lake.sql("SELECT y, count(*) FROM lake.t GROUP BY y ORDER BY y") == [(2020, 2), (2021, 1)]
    lake.sql("UPDATE lake.t SET g = 9, a = 8 WHERE k = 2")
    for change, condition in (
        ("g = 19, a = 18 - 1", "CHECK_CONSTRAINT_VIOLATION"),
        ("g = a", "CHECK_CONSTRAINT_VIOLATION"),
        ("a = -5", "CHECK_CONSTRAINT_VIOLATION"),
        ("a = NULL", "NOT_NULL_ASSERT_VIOLATION"),
    ):
        with pytest.raises(SparkRuntimeException) as error:
            lake.sql(f"UPDATE lake.t SET {change} WHERE k = 2")
        assert error.value.getCondition() == condition
    assert lake.sql("SELECT a, g FROM lake.t WHERE k = 2") == [(8, 9)]


@only_where_spark_computes
def test_a_merge_computes_generated_columns_of_updated_and_inserted_rows(table):
    lake = table(GENERATED, "(k, a) SELECT /*+ COALESCE(1) */ id, id * 10 FROM range(1, 5)")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT * FROM VALUES (1, 100), (3, 300), (8, 800), (9, 900) v (k, a)) s ON t.k = s.k "
        "WHEN MATCHED AND s.k = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a "
        "WHEN NOT MATCHED AND s.k = 9 THEN INSERT (k, a, g) VALUES (s.k, s.a, 901) "
        "WHEN NOT MATCHED THEN INSERT (k, a) VALUES (s.k, s.a) "
        "WHEN NOT MATCHED BY SOURCE AND t.k = 2 THEN UPDATE SET at = DATE'2022-01-01'"
    )
    expected = [(1, 101, None, 5), (2, 21, 2022, 5), (4, 41, None, 5), (8, 801, None, 5), (9, 901, None, 5)]
    assert lake.sorted("SELECT k, g, y, c FROM lake.t") == expected
    inserts = "MERGE INTO lake.t USING (SELECT {} AS k, 1 AS a, {} AS g) s ON t.k = s.k WHEN NOT MATCHED "
    lake.sql(inserts.format(10, 1) + "THEN INSERT (k, a) VALUES (s.k, s.a)")
    lake.sql(inserts.format(11, 2) + "AND k > 11 THEN INSERT (k) VALUES (s.k) WHEN NOT MATCHED THEN INSERT (k, a, g) "
             "VALUES (s.k, s.a, s.g)")  # fmt: skip
    for key, clause in (
        (11, "WHEN MATCHED THEN UPDATE SET a = s.a, g = s.g"),
        (12, "WHEN NOT MATCHED THEN INSERT (k, a, g) VALUES (s.k, s.a, s.g)"),
    ):
        with pytest.raises(SparkRuntimeException, match="g <=> a"):
            lake.sql(inserts.format(key, 3).replace("WHEN NOT MATCHED ", clause))
    merge = (
        lake.spark.sql("SELECT 10 AS k, 55 AS a").alias("s").mergeInto(f"{lake.name}.t", expr("t.k = s.k"))
    )
    merge.whenMatched().update({"a": expr("s.a")}).merge()
    evolving_text = (
        "MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT {} AS k, 66 AS a, 'x' AS {}) s ON t.k = s.k "
    )
    lake.sql(
        evolving_text.format(11, "more") + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    lake.sql(evolving_text.format(13, "most") + "WHEN NOT MATCHED THEN INSERT *")
    assert lake.sorted("SELECT k, g, more, most FROM lake.t WHERE k > 9") == [
        (10, 56, None, None), (11, 67, "x", None), (13, 67, None, "x"),
    ]  # fmt: skip
    assert lake.sql("SELECT count(*) FROM lake.t WHERE NOT g <=> a + 1") == [(0,)]


def test_an_updated_row_keeps_its_identity_value_and_an_inserted_one_gets_the_next(table):
    lake = numbered(table)
    lake.sql("UPDATE lake.t SET v = 'new' WHERE k = 2")
    lake.sql("UPDATE lake.t SET id = DEFAULT, v = 'other' WHERE k = 3")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT * FROM VALUES (1), (9) s (k)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 'merged', id = t.id WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'in')"
    )
    first, second, third, fourth = lake.sql("SELECT id, k, v FROM lake.t ORDER BY k")
    assert (first, second) == ((1, 1, "merged"), (2, 2, "new"))
    assert third[1:] == (3, "other") and fourth[1:] == (9, "in") and 3 < third[0] < fourth[0]
    version = lake.catalog.load_table("t").version
    source = "MERGE INTO lake.t USING (SELECT 1 AS k, 99L AS id UNION ALL SELECT 10, 98L) s ON t.k = s.k "
    for statement in (
        "UPDATE lake.t SET id = 7 WHERE k = 1",
        "UPDATE lake.t SET id = id + 1",
        "UPDATE lake.t SET id = k",
        source + "WHEN MATCHED THEN UPDATE SET id = s.id",
        source + "WHEN MATCHED THEN UPDATE SET id = t.k",
        source + "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, s.k)",
        source + "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k) VALUES (nullif(s.id, 0), 0)",
    ):
        with pytest.raises(Exception, match="GENERATED ALWAYS AS IDENTITY"):
            lake.sql(statement)
    assert lake.catalog.load_table("t").version == version


def test_values_may_be_set_where_they_are_given_by_default(table):
    lake = numbered(table, "BY DEFAULT")
    lake.sql("UPDATE lake.t SET id = 77 WHERE k = 1")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 1 AS k, 78L AS id UNION ALL SELECT 8, 80L UNION ALL SELECT 9, NULL) s "
        "ON t.k = s.k WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, s.k)"
    )
    rows = dict(lake.sql("SELECT k, id FROM lake.t"))
    assert {k: rows[k] for k in (1, 2, 3, 8)} == {1: 78, 2: 2, 3: 3, 8: 80}
    assert 3 < rows[9] < 77


def test_only_new_rows_get_other_values_where_others_have_taken_theirs(table):
    lake = numbered(table)
    lake.sql("CALL lake.system.begin_transaction()")
    assert lake.sql("SELECT count(*) FROM lake.t") == [(3,)]
    # Others take values that the transaction's process knows nothing of.
    lake.catalog.load_table("t").append(pa.table({"v": ["x", "y"]}))
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 1 AS k UNION ALL SELECT 8 UNION ALL SELECT 9) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    )
    lake.sql("CALL lake.system.commit_transaction()")
    rows = dict(lake.sql("SELECT k, id FROM lake.t WHERE k IS NOT NULL"))
    assert [rows[k] for k in (1, 2, 3)] == [1, 2, 3]
    assert len({row[0] for row in lake.sql("SELECT id FROM lake.t")}) == 7
    assert lake.sql(f"SELECT k FROM lake.t WHERE id = {rows[9]}") == [(9,)]


@pytest.mark.parametrize("how", ["ALWAYS", "BY DEFAULT"])
def test_views_and_frames_of_a_table_are_read_by_statements_that_change_it(lake, how):
    generated_text = ", g BIGINT NOT NULL GENERATED ALWAYS AS (k + 1)" if SPARK_4_3 else ""
    lake.sql(f"CREATE TABLE lake.t ({NUMBERED.format(how)}{generated_text})")
    lake.sql(
        "INSERT INTO lake.t (k, v) SELECT /*+ COALESCE(1) */ k, 'old' FROM VALUES (1), (2), (3) AS s (k)"
    )
    frame = lake.spark.table(f"{lake.name}.t")
    frame.where("k < 3").createOrReplaceTempView("made_values_plan")
    lake.frame("CREATE OR REPLACE TEMPORARY VIEW made_values_text AS SELECT * FROM lake.t WHERE k < 3")
    for view in ("made_values_plan", "made_values_text"):
        lake.sql(f"MERGE INTO lake.t USING {view} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(s.v, 1) "
                 "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)")  # fmt: skip
    lake.sql("UPDATE lake.t SET v = concat(v, 2) WHERE id IN (SELECT id FROM made_values_plan)")
    plan = "FROM made_values_plan"
    lake.sql(f"MERGE INTO lake.t USING (SELECT k + 10 AS k {plan}) s ON t.k = s.k "
             "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'merged')")  # fmt: skip
    lake.sql(f"INSERT INTO lake.t (k, v) SELECT 4, 'in' WHERE (SELECT max(id) {plan}) = 2")
    lake.sql(f"WITH c AS (SELECT * {plan}) INSERT INTO lake.t (k, v) SELECT k + 20, 'cte' FROM c WHERE k = 1")
    replaced_mode = lake.frame(f"SELECT k, v {plan} WHERE false").write.mode("overwrite")
    replaced_mode.option("replaceWhere", "k = 3").saveAsTable(f"{lake.name}.t")
    merge = frame.where("k = 1").alias("s").mergeInto(f"{lake.name}.t", expr("t.id = s.id"))
    merge.whenMatched().update({"v": expr("concat(s.v, 3)")}).merge()
    rows = lake.sorted("SELECT k, v FROM lake.t")
    assert rows == [(1, "old1123"), (11, "merged"), (12, "merged"), (2, "old112"), (21, "cte"), (4, "in")]
    assert lake.sorted("SELECT id FROM lake.t WHERE k < 3") == [(1,), (2,)]
    assert lake.sql("SELECT count(DISTINCT id) FROM lake.t") == [(6,)]
    star = f"MERGE INTO lake.t USING (SELECT id, k, 'star' AS v{', g' * SPARK_4_3} {plan}) s ON t.k = s.k "
    star += "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    if how == "ALWAYS":
        with pytest.raises(Exception, match="GENERATED ALWAYS AS IDENTITY"):
            lake.sql(star)
    else:
        lake.sql(star)
        assert lake.sorted("SELECT id, v FROM lake.t WHERE k < 3") == [(1, "star"), (2, "star")]
