"""Sources and subqueries that give other rows each time that they are computed: a statement sees them once."""

from __future__ import annotations

import random
import warnings

import pytest
from pyspark.sql.functions import udf
from tests.spark.sql.rows import MODES, in_mode

pytestmark = pytest.mark.adapter
in_both_modes = pytest.mark.parametrize("mode", MODES)

KEYS = 24
FAILING = "there is no value for"
DERBY = "jdbc:derby:memory:moving;create=true"


def moved(key):
    """Return the key, or one that no table here has."""
    return key if random.random() < 0.5 else key + 1000


@pytest.fixture(scope="module")
def moving(spark, tmp_path_factory):
    """Temporary views whose rows are others whenever they are read."""
    spark.udf.register("moved", moved, "int")
    with warnings.catch_warnings():
        # Which versions of pandas it knows.
        warnings.simplefilter("ignore", FutureWarning)
        declared = udf(moved, "int", useArrow=False).asNondeterministic()
    spark.udf.register("moved_by_chance", declared)
    numbers = spark.range(KEYS).selectExpr("CAST(id AS INT) AS k").repartition(2)
    numbers.selectExpr("moved(k) AS k").createOrReplaceTempView("by_function")
    numbers.selectExpr("moved_by_chance(k) AS k").createOrReplaceTempView("by_declared_function")
    rows = spark.sparkContext.range(KEYS, numSlices=2).map(lambda k: (moved(k),))
    spark.createDataFrame(rows, "k int").createOrReplaceTempView("by_rdd")
    numbers.selectExpr("CAST(k + 1000 * round(rand()) AS INT) AS k").createOrReplaceTempView("by_rand")
    numbers.selectExpr("k", "uuid() AS u").createOrReplaceTempView("by_uuid")

    connection = spark._jvm.java.sql.DriverManager.getConnection(DERBY)
    statement = connection.createStatement()
    for sql in (
        "CREATE TABLE keys (k INT)",
        f"INSERT INTO keys VALUES {', '.join(f'({k})' for k in range(KEYS))}",
        "CREATE FUNCTION nanos() RETURNS BIGINT LANGUAGE JAVA PARAMETER STYLE JAVA NO SQL "
        "EXTERNAL NAME 'java.lang.System.nanoTime'",
        "CREATE VIEW moving AS SELECT CASE WHEN MOD(nanos() / 100, 2) = 0 THEN k ELSE k + 1000 END AS k FROM keys",
    ):
        statement.execute(sql)
    spark.read.jdbc(DERBY, "moving").createOrReplaceTempView("by_jdbc")

    files = str(tmp_path_factory.mktemp("moving") / "files")
    numbers.write.parquet(files)
    spark.read.parquet(files).createOrReplaceTempView("by_files")
    yield
    connection.close()
    for view in ("function", "declared_function", "rdd", "rand", "uuid", "jdbc", "files"):
        spark.catalog.dropTempView(f"by_{view}")
    spark.sql("DROP TEMPORARY FUNCTION moved")
    spark.sql("DROP TEMPORARY FUNCTION moved_by_chance")


def create(lake, mode, layout=""):
    """Make the table `lake.t` with the keys, each in one file of six rows, and `lake.s` with the same ones."""
    lake.sql("DROP TABLE IF EXISTS lake.t")
    lake.sql(f"CREATE TABLE lake.t (k INT, v INT, p INT) {layout} {in_mode(mode)}")
    lake.sql(f"INSERT INTO lake.t SELECT CAST(id AS INT), 0, CAST(id % 2 AS INT) FROM range(0, {KEYS}, 1, 4)")
    lake.sql(f"CREATE TABLE IF NOT EXISTS lake.s AS SELECT CAST(id AS INT) AS k FROM range({KEYS})")


def upsert(lake, source, condition="t.k = s.k"):
    lake.sql(
        f"MERGE INTO lake.t AS t USING {source} AS s ON {condition} "
        "WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (k, v, p) VALUES (s.k, 2, 0)"
    )


def check_keys(lake, source):
    """Each key of the table has one row still, and each row of the source has changed or made one."""
    rows = lake.sql("SELECT k, v FROM lake.t")
    assert len({k for k, _ in rows}) == len(rows), source
    assert {k for k, v in rows if v != 2} == set(range(KEYS)), source
    assert sum(v > 0 for _, v in rows) == KEYS, source


def test_no_key_is_inserted_twice_whatever_the_source_says_next(lake, moving):
    for source in ("by_function", "by_rdd", "by_jdbc"):
        create(lake, "copy-on-write")
        upsert(lake, source)
        check_keys(lake, source)
    # Merge-on-read looks at partitions first, if there is one column of them.
    create(lake, "merge-on-read", "PARTITIONED BY (p)")
    upsert(lake, "by_function")
    check_keys(lake, "by_function")


@pytest.mark.slow
def test_no_key_is_inserted_twice_by_others_of_them(lake, moving):
    for mode, layout in (("copy-on-write", ""), ("merge-on-read", "PARTITIONED BY (k)")):
        for source in ("by_declared_function", "by_rdd", "by_rand"):
            create(lake, mode, layout)
            upsert(lake, source)
            check_keys(lake, source)


def test_a_condition_that_moves_matches_once(lake, moving):
    create(lake, "copy-on-write")
    upsert(lake, "lake.s", "t.k = moved(s.k)")
    rows = lake.sql("SELECT k, v FROM lake.t WHERE k < 1000 AND v < 2")
    assert len(rows) == len({k for k, _ in rows}) == KEYS


@in_both_modes
def test_a_row_is_changed_once_by_a_subquery_that_moves(lake, moving, mode):
    create(lake, mode)
    for count, condition in enumerate((
        "t.k IN (SELECT k FROM by_function)",
        "EXISTS (SELECT 1 FROM by_rdd AS s WHERE s.k = t.k AND s.k > 0)",
        "t.k NOT IN (SELECT k FROM by_jdbc)",
        "t.k IN (SELECT k FROM lake.s LIMIT 5) OR t.k > (SELECT avg(k) FROM by_rand WHERE k < 1000)",
    ), 1):  # fmt: skip
        lake.sql(f"UPDATE lake.t AS t SET v = v + 1 WHERE {condition}")
        rows = lake.sql("SELECT k, v FROM lake.t")
        assert sorted(k for k, _ in rows) == list(range(KEYS)), condition
        assert max(v for _, v in rows) <= count, condition
    lake.sql("DELETE FROM lake.t WHERE k IN (SELECT k FROM by_declared_function)")
    lake.sql("DELETE FROM lake.t AS t WHERE EXISTS (SELECT 1 FROM by_function AS s WHERE s.k = t.k)")
    rows = lake.sql("SELECT k FROM lake.t")
    assert 0 < len(rows) < KEYS and len(set(rows)) == len(rows)


def test_a_subquery_that_depends_on_rows_of_the_table_is_computed_of_the_same_rows(lake, moving):
    create(lake, "copy-on-write")
    lake.sql(
        "UPDATE lake.t AS t SET v = 7 WHERE k = (SELECT max(k) FROM lake.s AS s WHERE s.k = t.k AND s.k < 3)"
    )
    assert lake.sorted("SELECT k FROM lake.t WHERE v = 7") == [(0,), (1,), (2,)]
    lake.sql("UPDATE lake.t AS t SET v = 8 WHERE 1 = (SELECT count(*) FROM by_rdd AS s WHERE s.k = t.k)")
    assert lake.sql("SELECT count(*), count(DISTINCT k) FROM lake.t") == [(KEYS, KEYS)]
    with pytest.raises(Exception, match="depends on rows of the table: write its rows to a table first"):
        lake.sql(
            "UPDATE lake.t AS t SET v = 1 WHERE k IN (SELECT k FROM lake.s AS s WHERE s.k = t.k LIMIT 1)"
        )


def copied(lake):
    return lake.sql("SELECT rows_copied FROM lake.t.history LIMIT 1")[0][0]


def test_only_files_with_matches_are_written_anew(lake, moving):
    """Whatever the source is: six rows are in a file, of which one changes."""
    for source in (
        "lake.s",
        "(SELECT * FROM VALUES (3), (1000) AS v(k))",
        "(SELECT k FROM lake.s GROUP BY k)",
        "(SELECT k FROM lake.s LIMIT 100)",
        "by_files",
        "(SELECT k FROM by_uuid)",
        "(SELECT moved(k) % 1000 AS k FROM lake.s)",
    ):
        create(lake, "copy-on-write")
        upsert(lake, f"(SELECT k FROM {source} WHERE k IN (3, 1000))")
        assert copied(lake) == 5, source
    for statement in (
        "DELETE FROM lake.t WHERE k IN (SELECT k FROM by_files WHERE k = 3)",
        "UPDATE lake.t SET v = 5 WHERE k IN (SELECT k FROM by_uuid WHERE k = 9)",
        "UPDATE lake.t SET v = 5 WHERE k IN (SELECT max(k) FROM lake.s)",
    ):
        lake.sql(statement)
        assert copied(lake) in (4, 5), statement


def plan_of(lake, statement):
    return lake.sql(f"EXPLAIN {statement}")[0][0]


def test_what_is_read_again_as_it_was_is_not_stored(lake, moving):
    create(lake, "copy-on-write")
    merge = (
        "MERGE INTO lake.t AS t USING {} AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    )
    for source in ("lake.s", "(SELECT a.k FROM lake.s AS a JOIN range(9) AS b ON a.k = b.id)"):
        assert "KeptRows" not in plan_of(lake, merge.format(source)), source
    # Another program may replace them between two reads.
    # Which one of equal texts stays goes by the order in which they come.
    equal = "(SELECT k FROM (SELECT DISTINCT k, CAST(k AS STRING) COLLATE UTF8_LCASE AS n FROM lake.s))"
    # Spark calls it deterministic, though it encrypts in another way each time.
    encrypted_text = "(SELECT k, aes_encrypt(CAST(k AS STRING), '0000111122223333') AS e FROM lake.s)"
    for source in ("by_files", "(SELECT k FROM lake.s LIMIT 3)", equal, encrypted_text):
        assert plan_of(lake, merge.format(source)).count("KeptRows") >= 2, source
    # One look at a source needs no store.
    create(lake, "merge-on-read")
    assert ", once" not in plan_of(lake, merge.format("by_rdd"))


def stored(lake):
    """Return the ids of what is stored, once all statements that have ended are known to have."""
    context = lake.spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty()
    return set(context.getPersistentRDDs())


def test_stored_rows_are_given_back_however_the_statement_ends(lake, moving):
    create(lake, "copy-on-write")
    before = stored(lake)
    upsert(lake, "by_rdd")
    assert stored(lake) <= before
    with pytest.raises(Exception, match="is not true"):  # when it looks at them
        upsert(lake, "by_rdd", "t.k = s.k AND assert_true(s.k < 0) IS NULL")
    assert stored(lake) <= before
    # Spark aborts no write that has not begun when a value fails.
    for statement in (
        "MERGE INTO lake.t AS t USING by_rdd AS s ON t.k = s.k % 1000 WHEN MATCHED THEN UPDATE SET v = {}",
        "UPDATE lake.t AS t SET v = {} WHERE k IN (SELECT k % 1000 FROM by_rdd)",
    ):
        with pytest.raises(Exception, match=FAILING):
            lake.sql(statement.format(f"CAST(raise_error('{FAILING} ' || t.k) AS INT)"))
        assert stored(lake) <= before, statement


def test_rows_that_are_lost_are_not_computed_again(lake, moving):
    context = lake.spark.sparkContext._jsc.sc()
    source = lake.spark.table("by_rdd")._jdf.queryExecution().toRdd()
    rows = lake.spark._jvm.org.apache.spark.sql.lakelog.internals.plans.StoredRows.of(source)
    assert rows.count() == rows.count() == KEYS
    context.unpersistRDD(source.id(), True)
    with pytest.raises(Exception, match="that were stored are lost.*run the statement again"):
        rows.count()


def test_a_function_that_contradicts_itself_fails_the_update_in_words(lake, moving):
    create(lake, "copy-on-write")
    text_before = lake.sorted("SELECT k, v FROM lake.t")
    with pytest.raises(
        Exception, match=r"UPDATE of .*\.t has changed nothing, as a function .*: moved\(\)\. Choose"
    ) as error:
        lake.sql("UPDATE lake.t SET v = 1 WHERE moved(k) = k AND k IN (SELECT k FROM lake.s)")
    assert "IllegalStateException" not in str(error.value)
    assert lake.sorted("SELECT k, v FROM lake.t") == text_before
    # What the message recommends.
    lake.sql("UPDATE lake.t SET v = 1 WHERE k IN (SELECT k FROM lake.s WHERE moved(k) = k)")
    assert 0 < lake.sql("SELECT count(*) FROM lake.t WHERE v = 1")[0][0] < KEYS
    assert lake.sorted("SELECT k FROM lake.t") == [(k,) for k, _ in text_before]
