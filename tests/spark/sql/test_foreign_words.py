"""Words of other formats beside those who own them: other extensions in the session, other tables, and what is refused.

What works is on the pages `docs/coming-from-*.md`, whose rows `test_coming_from.py` runs.
"""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException
from tests.spark.session_catalog import shared_database
from tests.spark.versions import SPARK_4_2, evolving_writes

pytestmark = pytest.mark.adapter

STATEMENTS = (
    "DESCRIBE HISTORY {}",
    "DESCRIBE DETAIL {}",
    "OPTIMIZE {}",
    "VACUUM {} DRY RUN",
    "RESTORE TABLE {} TO VERSION AS OF 1",
)
OURS, THEIRS = "StatementInWords", "another format takes it"


@pytest.fixture(scope="module")
def parser(spark, classes_jar):
    """Makes the parser of a session with these extensions, one over the other."""
    jvm = spark._jvm
    new_array = spark.sparkContext._gateway.new_array
    urls = new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.net.URI(classes_jar.as_uri()).toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader = jvm.java.net.URLClassLoader(urls, parent)
    classes = {
        "lakelog": "org.apache.spark.sql.lakelog.LakeExtensions",
        "other": "lakelog.tests.OtherExtensions",
    }

    def make(*names: str):
        extensions = jvm.org.apache.spark.sql.SparkSessionExtensions()
        for name in names:
            found = jvm.java.lang.Class.forName(classes[name], True, loader)
            no_types, array = new_array(jvm.java.lang.Class, 0), new_array(jvm.java.lang.Object, 0)
            found.getConstructor(no_types).newInstance(array).apply(extensions)
        below = jvm.org.apache.spark.sql.execution.SparkSqlParser()
        return extensions.buildParser(spark._jsparkSession, below)

    return make


def test_other_extensions_keep_their_words_in_both_orders(lake, parser):
    lake.sql("CREATE TABLE lake.t (id INT)")
    ours, theirs = f"{lake.name}.t", ("delta.`/tmp/t`", "spark_catalog.default.t", "t")
    behind, parser_before = parser("other", "lakelog"), parser("lakelog", "other")
    for statement in STATEMENTS:
        assert OURS in behind.parsePlan(statement.format(ours)).toString()
        assert OURS in parser_before.parsePlan(statement.format(ours)).toString()
        for each in theirs:
            assert THEIRS in behind.parsePlan(statement.format(each)).toString()
            assert THEIRS in parser_before.parsePlan(statement.format(each)).toString()
    # Spark's own statements pass both.
    assert "UnresolvedRelation [t]" in behind.parsePlan("SELECT * FROM t").toString()


def test_a_place_of_another_format_is_not_a_table_of_the_current_catalog(lake, parser):
    behind = parser("other", "lakelog")
    lake.sql(f"USE {lake.name}")
    try:
        assert THEIRS in behind.parsePlan("VACUUM delta.`/tmp/t`").toString()
        assert OURS in behind.parsePlan("VACUUM delta.t").toString()
        assert OURS in behind.parsePlan("VACUUM `/tmp/t`").toString()
    finally:
        lake.sql("USE spark_catalog")


def test_a_column_of_a_table_called_history_is_described(lake):
    lake.sql("CREATE TABLE lake.history (id INT COMMENT 'which')")
    lake.sql("CREATE TABLE lake.id (x INT)")
    lake.sql(f"USE {lake.name}")
    try:
        assert ("comment", "which") in lake.sql("DESCRIBE history id")
        assert [row[3] for row in lake.sql("DESC HISTORY lake.id")] == ["create"]
    finally:
        lake.sql("USE spark_catalog")


def test_details_are_those_of_the_table_in_deltas_columns(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT, `o'day` DATE, v STRING) PARTITIONED BY (v, bucket(4, id)) "
        r"""COMMENT 'it\'s "mine"' TBLPROPERTIES ('a' = 'b\\')"""
    )
    lake.sql("ALTER TABLE lake.t CLUSTER BY (`o'day`)")
    lake.sql("INSERT INTO lake.t VALUES (1, DATE'2026-01-01', 'x'), (2, NULL, 'y')")
    (row,) = lake.spark.sql(f"DESC DETAIL {lake.name}.t").collect()
    (file,) = lake.spark.sql(
        f"SELECT sum(file_size_in_bytes) AS bytes, count(*) AS n FROM {lake.name}.t.files"
    ).collect()
    assert (row.format, row.name, row.description) == ("lakelog", f"{lake.name}.t", 'it\'s "mine"')
    assert row.location.startswith("file:/") and f"t-{row.id}" in row.location
    assert row.partitionColumns == ["v", "bucket(4, id)"] and row.clusteringColumns == ["`o'day`"]
    assert (row.numFiles, row.sizeInBytes, row.numRows, row.version) == (file.n, file.bytes, 2, 3)
    assert row.properties["a"] == "b\\" and row.createdAt <= row.lastModified
    # What a text says is not looked up, and secrets are hidden as in SHOW TBLPROPERTIES.
    odd = {"${spark.app.name}": "it's ${env:PATH}", "fs.secret.key": "hidden"}
    changes = [{"change": "set-property", "key": key, "value": odd[key]} for key in odd]
    lake.catalog.load_table("t").alter(changes)
    lake.spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        (row,) = lake.spark.sql(f"DESC DETAIL {lake.name}.t").collect()
    finally:
        lake.spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    assert (row.properties["${spark.app.name}"], row.properties["a"]) == ("it's ${env:PATH}", "b\\")
    assert row.description == 'it\'s "mine"' and row.properties["fs.secret.key"] == "*********(redacted)"
    lake.sql("ALTER TABLE lake.t CREATE BRANCH trial")
    with pytest.raises(Exception, match="name the table itself"):
        lake.sql("DESCRIBE DETAIL lake.t.branch_trial")


def test_a_function_of_the_users_own_comes_before_table_changes(lake):
    lake.sql("CREATE TABLE lake.t (id INT)")
    lake.sql(f"USE {lake.name}")
    try:
        lake.sql(
            "CREATE FUNCTION table_changes(a STRING, b INT) RETURNS TABLE (own STRING) RETURN SELECT concat(a, b)"
        )
        assert lake.sql("SELECT * FROM table_changes('t', 1)") == [("t1",)]
        lake.sql("DROP FUNCTION table_changes")
        assert lake.sql("SELECT * FROM table_changes('t', 1)") == []
    finally:
        lake.sql("USE spark_catalog")


def test_tables_that_are_not_lakelogs_keep_their_options(lake, tmp_path):
    spark, place = lake.spark, str(tmp_path / "files")
    spark.range(2).write.parquet(place)
    assert spark.read.option("mergeSchema", "true").option("snapshot-id", "7").parquet(place).count() == 2


def test_tables_of_the_session_catalog_have_the_words_where_they_are_lakelogs(spark, python, tmp_path):
    with shared_database(spark, tmp_path, python) as shared:
        shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
        shared.sql("CREATE TABLE files USING parquet AS SELECT 1 AS id")
        writer = shared.spark.sql("SELECT 2 AS id, 'b' AS more").write.format("lakelog").mode("append")
        if SPARK_4_2:
            writer.option("mergeSchema", "true").saveAsTable("t")
        else:
            with pytest.raises(Exception, match="Spark 4.2 or newer only"):
                writer.option("mergeSchema", "true").saveAsTable("t")
            shared.sql("INSERT INTO t VALUES (2)")
        assert [row[0] for row in shared.sql("DESCRIBE HISTORY t")] == [2, 1]
        assert shared.sql("OPTIMIZE t")[0][0] == 2
        assert sorted(row[2] for row in shared.sql("SELECT * FROM table_changes('t', 2)")) == ["insert"]
        shared.sql("RESTORE t TO VERSION AS OF 1")
        assert shared.sql("SELECT * FROM t") == [(1,)]
        with pytest.raises(ParseException):
            shared.sql("OPTIMIZE files")


def test_a_branch_is_compacted_and_neither_restored_nor_vacuumed(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("ALTER TABLE lake.t CREATE BRANCH trial")
    assert [row[0] for row in lake.sql("SHOW BRANCHES IN lake.t")] == ["main", "trial"]
    for statement in ("VACUUM lake.t.branch_trial", "RESTORE lake.t.branch_trial TO VERSION AS OF 1"):
        with pytest.raises(Exception, match="name the table itself"):
            lake.sql(statement)
    assert lake.sql("OPTIMIZE lake.t.branch_trial")[0][:3:2] == (2, 1)
    assert lake.sql("SELECT count(*) FROM lake.t.files") == [(2,)]


def test_vacuum_in_deltas_words_keeps_what_is_young(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("INSERT OVERWRITE lake.t VALUES (2)")
    assert lake.sql("VACUUM lake.t")[0][:2] == (0, 0)
    assert lake.sql("SELECT * FROM lake.t VERSION AS OF 1") == [(1,)]


def test_expired_snapshots_are_gone_and_their_files_wait_for_writes_under_way(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("INSERT OVERWRITE lake.t VALUES (2)")
    call = "CALL lake.system.expire_snapshots(table => 't', older_than => current_timestamp(), dry_run => {})"
    assert lake.sql(call.format("true"))[0][4] == 1
    assert lake.sql("SELECT * FROM lake.t VERSION AS OF 1") == [(1,)]
    assert lake.sql(call.format("false"))[0][4] == 1
    with pytest.raises(AnalysisException, match="expired"):
        lake.sql("SELECT * FROM lake.t VERSION AS OF 1")
    assert lake.sql("SELECT * FROM lake.t") == [(2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "VACUUM lake.t RETAIN many HOURS",
        "VACUUM lake.t RETAIN 200",
        "RESTORE lake.t TO VERSION AS OF now",
        "RESTORE lake.t TO 3",
        "OPTIMIZE lake.t ZORDER (id)",
        "DESCRIBE HISTORY lake.t LIMIT",
        "DESCRIBE DETAIL lake.t LIMIT 1",
    ],
)
def test_half_a_statement_is_a_mistake_in_its_text(lake, statement):
    lake.sql("CREATE TABLE lake.t (id INT)")
    with pytest.raises(ParseException):
        lake.sql(statement)


@pytest.mark.parametrize("option", ["mergeSchema", "overwriteSchema"])
def test_an_option_that_is_neither_true_nor_false_is_refused(lake, option):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    rows = lake.spark.sql("SELECT 2 AS id")
    for write in (
        lambda: rows.write.mode("append").option(option, "maybe").saveAsTable(f"{lake.name}.t"),
        lambda: rows.writeTo(f"{lake.name}.t").option(option, "maybe").append(),
        lambda: rows.writeTo(f"{lake.name}.t").option(option, "maybe").createOrReplace(),
    ):
        with pytest.raises(AnalysisException, match=f"The option {option} is 'maybe': give true or false"):
            write()
    with pytest.raises(AnalysisException, match="readChangeFeed is 'yes': give true or false"):
        lake.spark.read.option("readChangeFeed", "yes").table(f"{lake.name}.t").collect()
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]


def test_replace_where_replaces_nothing_where_a_row_does_not_match(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id, 'a' AS part")
    rows = lake.spark.createDataFrame([(2, "a"), (3, None)], "id int, part string")
    writer = rows.write.mode("overwrite").option("replaceWhere", "part = 'a'")
    with pytest.raises(Exception, match="does not match replaceWhere"):
        writer.saveAsTable(f"{lake.name}.t")
    assert lake.sql("SELECT * FROM lake.t") == [(1, "a")]


@evolving_writes
def test_a_merged_schema_and_its_rows_are_one_commit(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.spark.sql("SELECT 2 AS id, 'b' AS more").write.mode("append").option(
        "mergeSchema", "true"
    ).saveAsTable(f"{lake.name}.t")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, None), (2, "b")]
    assert lake.catalog.load_table("t").version == 2
