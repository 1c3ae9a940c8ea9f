"""Tags and branches in SQL: made by statements, read by name, written to as tables, and never mixed with the table."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from tests.spark.conftest import Lake, children
from tests.spark.session_catalog import shared_database
from tests.spark.sessions import another_session

adapter = pytest.mark.adapter


@pytest.fixture
def shop(lake: Lake) -> Lake:
    """A table with the rows 1 to 3, of which the last one came in version 3."""
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.a.t VALUES (1, 'a'), (2, 'b')")
    lake.sql("INSERT INTO lake.a.t VALUES (3, 'a')")
    return lake


def ids(lake, table: str = "a.t", condition: str = "") -> list[int]:
    return sorted(row[0] for row in lake.sql(f"SELECT id FROM lake.{table} {condition}"))


def in_python(lake: Lake, ref: str = "main") -> list[int]:
    return sorted(lake.catalog.load_table("a.t", ref=ref).to_arrow()["id"].to_pylist())


def refs(lake) -> list[tuple]:
    return lake.sql("SELECT name, type, version FROM lake.a.t.refs WHERE name != 'main' ORDER BY name")


def condition(error) -> str | None:
    return error.value.getCondition()


# Statements


@adapter
def test_tags_and_branches_are_made_replaced_and_dropped_for_all_clients(shop):
    for statement in (
        "CREATE TAG one AS OF VERSION 2",
        "CREATE TAG two",
        "create branch `b 1` as of version 'one';",
        "CREATE OR REPLACE BRANCH fresh",
        "CREATE TAG IF NOT EXISTS one",
    ):
        assert shop.sql(f"ALTER TABLE lake.a.t {statement}") == []
    assert refs(shop) == refs(another_session(shop))
    assert refs(shop) == [("b 1", "BRANCH", 2), ("fresh", "BRANCH", 6), ("one", "TAG", 2), ("two", "TAG", 4)]
    assert (in_python(shop, "one"), in_python(shop, "b 1"), in_python(shop, "two")) == (
        [1, 2],
        [1, 2],
        [1, 2, 3],
    )
    shop.sql("INSERT INTO lake.a.t VALUES (4, 'c')")
    shop.sql("ALTER TABLE lake.a.t REPLACE TAG one")
    shop.sql("ALTER TABLE lake.a.t CREATE OR REPLACE BRANCH fresh AS OF VERSION 3")
    assert (in_python(shop, "one"), in_python(shop, "fresh")) == ([1, 2, 3, 4], [1, 2, 3])
    shop.sql("ALTER TABLE lake.a.t DROP TAG one")
    shop.sql("ALTER TABLE lake.a.t DROP BRANCH fresh")
    shop.sql("ALTER TABLE lake.a.t DROP TAG IF EXISTS one")
    assert [name for name, _, _ in refs(shop)] == ["b 1", "two"]
    history = [row[0] for row in shop.sql("SELECT statement FROM lake.a.t.history LIMIT 1")]
    assert history == [f"ALTER TABLE {shop.name}.a.t DROP BRANCH fresh"]


def test_one_is_made_of_a_time_of_another_one_and_on_a_branch(shop):
    [(then,)] = shop.sql("SELECT string(committed_at) FROM lake.a.t.snapshots WHERE version = 2")
    shop.sql(f"ALTER TABLE lake.a.t CREATE TAG then AS OF TIMESTAMP '{then}'")
    assert ids(shop, "a.t.tag_then") == [1, 2]
    shop.sql("ALTER TABLE lake.a.t.tag_then CREATE BRANCH b")
    shop.sql("INSERT INTO lake.a.t.branch_b VALUES (9, 'z')")
    shop.sql("ALTER TABLE lake.a.t.branch_b CREATE TAG of_b")
    assert in_python(shop, "of_b") == [1, 2, 9]
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH c AS OF VERSION 'of_b'")
    assert ids(shop, "a.t.branch_c") == [1, 2, 9]


NOT_DONE = [
    ("CREATE TAG x", "a tag x already"),
    ("CREATE BRANCH x", "a tag x already"),
    ("CREATE OR REPLACE BRANCH x", "a tag x already"),
    ("CREATE BRANCH IF NOT EXISTS x", "a tag x already"),
    ("CREATE TAG main", "main is not a valid name"),
    ("CREATE TAG y AS OF VERSION 99", "no version 99"),
    ("CREATE TAG y AS OF VERSION 'none'", "no tag or branch none"),
    ("CREATE TAG y AS OF TIMESTAMP '2001-01-01'", "no version of 2001-01-01"),
    ("REPLACE TAG y", "no tag y"),
    ("REPLACE BRANCH x", "no branch x, but a tag"),
    ("DROP TAG y", "no tag y"),
    ("DROP BRANCH x", "no branch x, but a tag"),
    ("DROP BRANCH IF EXISTS x", "no branch x, but a tag"),
    ("DROP BRANCH main", "main is the table itself"),
]  # fmt: skip


def test_what_cannot_be_made_or_dropped_is_refused_and_changes_nothing(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x AS OF VERSION 2")
    for statement, what in NOT_DONE:
        with pytest.raises(AnalysisException, match=what):
            shop.sql(f"ALTER TABLE lake.a.t {statement}")
    assert refs(shop) == [("x", "TAG", 2)]
    assert shop.catalog.load_table("a.t").version == 4
    with pytest.raises(AnalysisException) as error:
        shop.sql("ALTER TABLE lake.a.none CREATE TAG x")
    assert condition(error) == "TABLE_OR_VIEW_NOT_FOUND"


NOT_SAID = [
    ("CREATE TAG", "end of input"),
    ("CREATE TAG a.b", "has several parts"),
    ("CREATE TAG x AS OF VERSION", "end of input"),
    ("CREATE TAG x AS OF VERSION 1.5", "a version is a number"),
    ("CREATE TAG x AS OF TIMESTAMP yesterday", "a time is written as"),
    ("CREATE TAG x AS OF VERSION 2 RETAIN 7 DAYS", "kept until they are dropped"),
    ("CREATE BRANCH x WITH SNAPSHOT RETENTION 2 SNAPSHOTS", "kept until they are dropped"),
    ("DROP TAG x AS OF VERSION 2", "near 'AS'"),
]  # fmt: skip


@adapter
def test_what_is_written_wrongly_is_a_syntax_error(lake):
    for statement, hint in NOT_SAID:
        with pytest.raises(ParseException, match=hint) as error:
            lake.sql(f"ALTER TABLE lake.a.t {statement}")
        assert condition(error) == "PARSE_SYNTAX_ERROR"


# Reading


@adapter
def test_a_tag_and_a_branch_are_read_by_their_names(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE TAG old AS OF VERSION 2")
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b AS OF VERSION 2")
    shop.sql("INSERT INTO lake.a.t.branch_b VALUES (9, 'z')")
    shop.sql("ALTER TABLE lake.a.t RENAME COLUMN k TO kind")
    assert shop.frame("SELECT * FROM lake.a.t.tag_old").columns == ["id", "k"]
    assert shop.frame("SELECT * FROM lake.a.t.branch_b").columns == ["id", "kind"]
    name = f"{shop.name}.a.t"
    place = Path(shop.catalog.load_table("a.t").location)
    for ref, expected in (("old", [1, 2]), ("b", [1, 2, 9]), ("main", [1, 2, 3])):
        assert ids(shop, f"a.t VERSION AS OF '{ref}'") == expected
        assert ids(shop, f"a.t FOR SYSTEM_VERSION AS OF '{ref}'") == expected
        reader = shop.spark.read.option("versionAsOf", ref)
        assert sorted(row.id for row in reader.table(name).collect()) == expected
        by_place = reader.option("catalog", shop.name).format("lakelog").load(str(place))
        assert sorted(row.id for row in by_place.collect()) == expected
    assert ids(shop, "a.t.branch_main") == [1, 2, 3]
    assert ids(shop, "a.t VERSION AS OF '2'") == [1, 2]
    assert ids(shop, "a.t.branch_b VERSION AS OF 5") == [1, 2]
    assert ids(shop, f"`{place}`.branch_b") == [1, 2, 9]
    assert ids(another_session(shop), "a.t.branch_b", "WHERE id > 1") == [2, 9]
    assert shop.sql("SELECT count(*), max(id) FROM lake.a.t.branch_b") == [(3, 9)]
    assert "on the branch b" in shop.frame("EXPLAIN SELECT * FROM lake.a.t VERSION AS OF 'b'").collect()[0][0]


def test_names_that_nothing_has_are_not_found(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x")
    for name in ("branch_none", "tag_none", "branch_x", "tag_", "tags_x"):
        with pytest.raises(AnalysisException) as error:
            shop.sql(f"SELECT * FROM lake.a.t.{name}")
        assert condition(error) == "TABLE_OR_VIEW_NOT_FOUND", name
    with pytest.raises(AnalysisException, match="no tag or branch none: the table has x, and main"):
        shop.sql("SELECT * FROM lake.a.t VERSION AS OF 'none'")
    with pytest.raises(AnalysisException, match="on a tag or branch already"):
        shop.sql("SELECT * FROM lake.a.t.tag_x VERSION AS OF 'x'")


def test_what_a_user_has_made_of_that_name_comes_first(shop):
    shop.sql("CREATE NAMESPACE lake.a.t")
    shop.sql("CREATE TABLE lake.a.t.branch_b AS SELECT 77L AS id")
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    assert ids(shop, "a.t.branch_b") == [77]
    assert ids(shop, "a.t VERSION AS OF 'b'") == [1, 2, 3]


def test_lines_of_a_table_are_distinguished_in_one_statement(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x AS OF VERSION 2")
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b AS OF VERSION 2")
    shop.sql("DELETE FROM lake.a.t.branch_b WHERE id = 1")
    lines = ("t", "t.branch_b", "t.tag_x", "t VERSION AS OF 'b'")
    counted_text = " UNION ALL ".join(f"SELECT count(id) FROM lake.a.{line}" for line in lines)
    assert [row[0] for row in shop.sql(counted_text)] == [3, 1, 2, 1]
    assert shop.sql(
        "SELECT id FROM lake.a.t WHERE id NOT IN (SELECT id FROM lake.a.t.branch_b) "
        "AND id IN (SELECT id FROM lake.a.t.tag_x)"
    ) == [(1,)]
    joined_text = "SELECT t.id FROM lake.a.t JOIN lake.a.t.branch_b b ON t.id = b.id AND t.k = b.k"
    assert shop.sql(joined_text) == [(2,)]


@adapter
def test_what_is_cached_of_one_line_is_of_no_other_and_follows_it(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    shop.sql("CACHE TABLE lake.a.t.branch_b")
    other_session = another_session(shop)
    try:
        assert ids(shop, "a.t.branch_b") == ids(shop) == [1, 2, 3]
        shop.sql("DELETE FROM lake.a.t.branch_b WHERE id = 1")
        assert (ids(shop, "a.t.branch_b"), ids(shop, "a.t VERSION AS OF 'b'"), ids(shop)) == (
            [2, 3],
            [2, 3],
            [1, 2, 3],
        )
        shop.sql("INSERT INTO lake.a.t VALUES (4, 'd')")
        assert (ids(shop, "a.t.branch_b"), ids(shop)) == ([2, 3], [1, 2, 3, 4])
        other_session.catalog.load_table("a.t", ref="b").truncate()
        shop.sql("REFRESH TABLE lake.a.t.branch_b")
        assert ids(shop, "a.t.branch_b") == []
        shop.sql("ALTER TABLE lake.a.t CREATE OR REPLACE BRANCH b AS OF VERSION 2")
        assert ids(shop, "a.t.branch_b") == [1, 2]
        shop.sql("ALTER TABLE lake.a.t DROP BRANCH b")
        with pytest.raises(AnalysisException):
            ids(shop, "a.t.branch_b")
    finally:
        shop.spark.catalog.clearCache()


def test_a_frame_does_not_take_another_branch_of_the_same_name_for_its_own(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    frame = shop.frame("SELECT id FROM lake.a.t.branch_b")
    shop.sql("ALTER TABLE lake.a.t CREATE OR REPLACE BRANCH b AS OF VERSION 2")
    try:
        # Read as it was or refused, but never half of each.
        assert sorted(row.id for row in frame.collect()) == [1, 2, 3]
    except (PySparkException, Py4JJavaError) as error:
        assert "TABLE_ID_MISMATCH" in str(error) or "was dropped or replaced" in str(error)


def test_a_line_is_found_again_when_the_python_process_dies(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b AS OF VERSION 2")
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x AS OF VERSION 2")
    names = ("t.branch_b", "t.tag_x", "t VERSION AS OF 'b'", "t.branch_b VERSION AS OF 5")
    frames = [shop.frame(f"SELECT id FROM lake.a.{name}") for name in names]
    shop.catalog.load_table("a.t").truncate()
    shop.catalog.load_table("a.t").create_tag("x", replace=True)
    [child] = children(shop.spark)
    os.kill(child, signal.SIGKILL)
    for frame, name in zip(frames, names, strict=True):
        try:
            assert sorted(row.id for row in frame.collect()) == [1, 2]
        except (PySparkException, Py4JJavaError) as error:
            assert name == "t.tag_x" and ("or replaced" in str(error) or "TABLE_ID_MISMATCH" in str(error))


def test_metadata_tables_show_a_line_or_the_whole_table(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b AS OF VERSION 2")
    shop.sql("INSERT INTO lake.a.t.branch_b VALUES (8, 'x'), (9, 'x')")
    assert shop.sql("SELECT sum(record_count) FROM lake.a.t.branch_b.files") == [(4,)]
    assert shop.sql("SELECT sum(record_count) FROM lake.a.t.files VERSION AS OF 'b'") == [(4,)]
    assert shop.sql("SELECT sum(record_count) FROM lake.a.t.files") == [(3,)]
    assert shop.sql("SELECT partition.k, record_count FROM lake.a.t.branch_b.partitions ORDER BY 1")[-1] == (
        "x",
        2,
    )
    assert shop.sql("SHOW PARTITIONS lake.a.t.branch_b") == [("k=a",), ("k=b",), ("k=x",)]
    assert shop.sql("SELECT * FROM lake.a.t.refs") == [("main", "BRANCH", 5), ("b", "BRANCH", 2)]
    assert shop.sql("SELECT * FROM lake.a.t.refs VERSION AS OF 3") == [("main", "BRANCH", 3)]
    for name in ("history", "snapshots", "refs", "log"):
        with pytest.raises(PySparkException, match="with all its tags and branches"):
            shop.sql(f"SELECT * FROM lake.a.t.branch_b.{name}")
    assert [row[0] for row in shop.sql("SELECT operation FROM lake.a.t.history")][0].startswith("append")


# Writing


def test_a_branch_is_compacted_and_the_table_is_not(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x")
    shop.sql("INSERT INTO lake.a.t.branch_b SELECT id, 'a' FROM range(10, 14)")
    files = shop.sql("SELECT count(*) FROM lake.a.t.files")
    text_before = shop.sorted("SELECT *, _row_id FROM lake.a.t.branch_b")
    [(rewritten, _, added, *_)] = shop.sql("CALL lake.system.compact('a.t.branch_b')")
    assert (rewritten > added, added) == (True, 1)
    assert shop.sorted("SELECT *, _row_id FROM lake.a.t.branch_b") == text_before
    assert (shop.sql("SELECT count(*) FROM lake.a.t.files"), ids(shop)) == (files, [1, 2, 3])
    with pytest.raises((PySparkException, Py4JJavaError), match="stays as it is"):
        shop.sql("CALL lake.system.compact('a.t.tag_x')")
    with pytest.raises(AnalysisException, match="no table `a`.`t`.`branch_none`"):
        shop.sql("CALL lake.system.compact('a.t.branch_none')")


@adapter
@pytest.mark.parametrize("way", ["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.slow)])
def test_a_branch_is_written_to_in_every_way_and_the_table_stays(shop, way):
    for command in ("delete", "update", "merge"):
        shop.sql(f"ALTER TABLE lake.a.t SET TBLPROPERTIES ('lakelog.write.{command}.mode' = '{way}')")
    shop.sql("INSERT INTO lake.a.t SELECT id, 'c' FROM range(100, 110)")
    expected = {1, 2, 3, *range(100, 110)}
    expected_before = set(expected)
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    branch = f"{shop.name}.a.t.branch_b"

    def holds(*, gone=frozenset(), come=frozenset()) -> None:
        nonlocal expected
        expected = (expected - gone) | come
        assert set(ids(shop, "a.t.branch_b")) == set(in_python(shop, "b")) == expected
        assert set(ids(shop)) == set(in_python(shop)) == expected_before

    shop.sql("INSERT INTO lake.a.t.branch_b VALUES (4, 'a')")
    holds(come={4})
    shop.sql("DELETE FROM lake.a.t.branch_b WHERE id IN (100, 4)")
    holds(gone={100, 4})
    shop.sql("UPDATE lake.a.t.branch_b SET id = id + 1000 WHERE id BETWEEN 101 AND 102")
    holds(gone={101, 102}, come={1101, 1102})
    shop.sql(
        "MERGE INTO lake.a.t.branch_b b USING lake.a.t t ON b.id = t.id WHEN MATCHED AND t.id = 103 THEN DELETE "
        "WHEN MATCHED AND t.id = 104 THEN UPDATE SET id = 2104 "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (t.id + 5000, t.k)"
    )
    holds(gone={103, 104}, come={2104, 5100, 5101, 5102})
    shop.sql("DELETE FROM lake.a.t.branch_b WHERE k = 'b'")
    holds(gone={2})
    frame = shop.spark.createDataFrame([(7, "a")], "id BIGINT, k STRING")
    frame.writeTo(branch).append()
    holds(come={7})
    frame.write.insertInto(branch)
    frame.write.mode("append").saveAsTable(branch)
    assert ids(shop, "a.t.branch_b", "WHERE id = 7") == [7, 7, 7]
    frame.writeTo(branch).overwritePartitions()
    holds(gone={1, 3})
    assert ids(shop, "a.t.branch_b", "WHERE k = 'a'") == [7]
    shop.sql("INSERT INTO lake.a.t.branch_b REPLACE WHERE k = 'a' VALUES (8, 'a')")
    holds(gone={7}, come={8})
    shop.sql("ALTER TABLE lake.a.t.branch_b DROP PARTITION (k = 'a')")
    holds(gone={8})
    shop.sql("INSERT OVERWRITE lake.a.t.branch_b VALUES (5, 'e')")
    holds(gone=set(expected), come={5})
    shop.sql("TRUNCATE TABLE lake.a.t.branch_b")
    holds(gone={5})
    assert not [
        found for found in shop.catalog.fsck(deep=True, all_versions=True).found if found.severity != "note"
    ]


def test_values_of_identity_columns_are_given_once_and_checks_hold_on_every_line(lake):
    lake.sql(
        "CREATE TABLE lake.t (n BIGINT GENERATED ALWAYS AS IDENTITY, id INT, CONSTRAINT some CHECK (id > 0))"
    )
    lake.sql("INSERT INTO lake.t (id) VALUES (1), (2)")
    lake.sql("ALTER TABLE lake.t CREATE BRANCH b")
    for line in ("t.branch_b", "t", "t.branch_b"):
        lake.sql(f"INSERT INTO lake.{line} (id) VALUES (3)")
        with pytest.raises(PySparkException) as error:
            lake.sql(f"INSERT INTO lake.{line} (id) VALUES (-3)")
        assert condition(error) == "CHECK_CONSTRAINT_VIOLATION"
    given_rows = lake.sql("SELECT n FROM lake.t WHERE id = 3") + lake.sql("SELECT n FROM lake.t.branch_b")
    assert len({n for (n,) in given_rows}) == len(given_rows) == 5
    rows = [lake.sql(f"SELECT _row_id FROM lake.{line} WHERE id = 3") for line in ("t", "t.branch_b")]
    assert len({id for row in rows for (id,) in row}) == 3


def test_main_takes_over_what_was_tried_on_a_branch(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH trial")
    shop.sql("UPDATE lake.a.t.branch_trial SET k = 'tried' WHERE id < 3")
    assert shop.sql("CALL lake.system.fast_forward('a.t', 'main', 'trial')") == [("main", 5, 6)]
    assert another_session(shop).sorted("SELECT * FROM lake.a.t") == [(1, "tried"), (2, "tried"), (3, "a")]
    assert in_python(shop) == [1, 2, 3]
    assert shop.sql("CALL lake.system.fast_forward(table => 'a.t', branch => 'main', to => 'trial')") == [
        ("main", 6, 6)
    ]
    shop.sql("INSERT INTO lake.a.t VALUES (4, 'd')")
    shop.sql("INSERT INTO lake.a.t.branch_trial VALUES (5, 'e')")
    with pytest.raises(AnalysisException, match="was changed since"):
        shop.sql("CALL lake.system.fast_forward('a.t', 'main', 'trial')")
    with pytest.raises(AnalysisException, match="no tag or branch none"):
        shop.sql("CALL lake.system.fast_forward('a.t', 'main', 'none')")
    assert ids(shop) == [1, 2, 3, 4]


WRITES = [
    "INSERT INTO lake.a.t.tag_x VALUES (4, 'd')",
    "INSERT OVERWRITE lake.a.t.tag_x VALUES (4, 'd')",
    "DELETE FROM lake.a.t.tag_x WHERE id = 1",
    "DELETE FROM lake.a.t.tag_x WHERE k = 'a'",
    "UPDATE lake.a.t.tag_x SET id = 7",
    "MERGE INTO lake.a.t.tag_x x USING lake.a.t t ON x.id = t.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE lake.a.t.tag_x",
    "ALTER TABLE lake.a.t.tag_x DROP PARTITION (k = 'a')",
]


@adapter
def test_a_tag_is_not_written_to(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x")
    for write in WRITES:
        with pytest.raises(AnalysisException, match="stays as it is"):
            shop.sql(write)
    assert shop.catalog.load_table("a.t").version == 4
    assert len(list(Path(shop.catalog.load_table("a.t").location).rglob("*.parquet"))) == 3


NOWHERE = [
    "INSERT INTO lake.a.t.branch_none VALUES (4, 'd')",
    "INSERT OVERWRITE lake.a.t.tag_none VALUES (4, 'd')",
    "DELETE FROM lake.a.t.branch_none WHERE id = 1",
    "UPDATE lake.a.t.branch_none SET id = 7",
    "MERGE INTO lake.a.t.branch_none b USING lake.a.t t ON b.id = t.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE lake.a.t.branch_none",
    "ALTER TABLE lake.a.t.branch_none CREATE TAG x",
]


@adapter
def test_a_branch_that_is_not_there_is_not_written_to(shop):
    for write in NOWHERE:
        with pytest.raises(AnalysisException) as error:
            shop.sql(write)
        assert condition(error) == "TABLE_OR_VIEW_NOT_FOUND", write
    frame = shop.spark.createDataFrame([(4, "d")], "id BIGINT, k STRING")
    for append in (frame.writeTo(f"{shop.name}.a.t.branch_none").append,
                   lambda: frame.write.insertInto(f"{shop.name}.a.t.branch_none")):  # fmt: skip
        with pytest.raises(AnalysisException) as error:
            append()
        assert condition(error) == "TABLE_OR_VIEW_NOT_FOUND"
    assert shop.catalog.load_table("a.t").version == 3 and refs(shop) == []
    assert ids(shop) == [1, 2, 3]


OF_THE_TABLE = [
    "ALTER TABLE lake.a.t.branch_b ADD COLUMN more INT",
    "ALTER TABLE lake.a.t.branch_b SET TBLPROPERTIES ('x' = 'y')",
    "ALTER TABLE lake.a.t.branch_b ADD CONSTRAINT c CHECK (id > 0)",
    "ALTER TABLE lake.a.t.branch_b ALTER COLUMN id SET NOT NULL",
    "ALTER TABLE lake.a.t.branch_b ADD PARTITION FIELD bucket(4, id)",
    "ALTER TABLE lake.a.t.branch_b WRITE ORDERED BY id",
    "ALTER TABLE lake.a.t.branch_b CLUSTER BY (id)",
    "ALTER TABLE lake.a.t.branch_b RENAME TO lake.a.u",
    "INSERT WITH SCHEMA EVOLUTION INTO lake.a.t.branch_b SELECT 1 AS id, 'a' AS k, 2 AS more",
    "DROP TABLE lake.a.t.branch_b",
    "DROP TABLE IF EXISTS lake.a.t.branch_b PURGE",
    "CREATE TABLE lake.a.t.branch_c (id BIGINT)",
    "CREATE TABLE lake.a.t.branch_c AS SELECT 1 AS id",
    "CREATE OR REPLACE TABLE lake.a.t.branch_b AS SELECT 1 AS id",
    "REPLACE TABLE lake.a.t.tag_x (id BIGINT)",
    "CREATE TABLE lake.a.t.branch_c LIKE lake.a.t",
    "SHOW CREATE TABLE lake.a.t.branch_b",
    "ANALYZE TABLE lake.a.t.branch_b COMPUTE STATISTICS FOR ALL COLUMNS",
    "CREATE OR REPLACE TABLE lake.a.t AS SELECT 1 AS id",
]  # fmt: skip


@adapter
def test_what_is_of_the_whole_table_is_refused_on_a_branch(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x")
    for statement in OF_THE_TABLE:
        with pytest.raises((PySparkException, Py4JJavaError), match=r"a branch|a tag|has branches"):
            shop.sql(statement)
    assert shop.catalog.load_table("a.t").version == 5
    assert (ids(shop), ids(shop, "a.t.branch_b")) == ([1, 2, 3], [1, 2, 3])
    assert shop.catalog.list_tables("a") == [("a", "t")]


def test_a_table_of_the_name_of_a_branch_is_there_already(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    assert shop.spark.catalog.tableExists(f"{shop.name}.a.t.branch_b")
    assert not shop.spark.catalog.tableExists(f"{shop.name}.a.t.branch_c")
    with pytest.raises(AnalysisException) as error:
        shop.sql("CREATE TABLE lake.a.t.branch_b (id BIGINT)")
    assert condition(error) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    shop.sql("DROP TABLE IF EXISTS lake.a.t.branch_c")


@adapter
def test_a_streaming_query_writes_to_a_branch_once_and_reads_from_none(shop, tmp_path):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    source = shop.spark.readStream.table(f"{shop.name}.a.t")
    for _ in range(2):
        writer = source.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).toTable(f"{shop.name}.a.t.branch_b").awaitTermination()
    assert sorted(ids(shop, "a.t.branch_b")) == [1, 1, 2, 2, 3, 3]
    assert ids(shop) == [1, 2, 3]
    with pytest.raises((PySparkException, Py4JJavaError), match="A stream reads a table itself"):
        stream = shop.spark.readStream.table(f"{shop.name}.a.t.branch_b").writeStream.format("noop")
        stream.option("checkpointLocation", str(tmp_path / "other")).start().processAllAvailable()


# Together with others


@adapter
def test_a_transaction_has_lines_as_it_left_them_and_no_other_client_does_before_its_end(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    other_session = another_session(shop)
    shop.sql("CALL lake.system.begin_transaction()")
    shop.sql("INSERT INTO lake.a.t.branch_b VALUES (4, 'd')")
    shop.sql("INSERT INTO lake.a.t VALUES (5, 'e')")
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH c")
    shop.sql("DELETE FROM lake.a.t.branch_c WHERE id < 5")
    shop.sql("ALTER TABLE lake.a.t CREATE TAG x AS OF VERSION 2")
    seen = lambda lake: [ids(lake, name) for name in ("a.t", "a.t.branch_b")]  # noqa: E731
    assert [*seen(shop), ids(shop, "a.t.branch_c"), ids(shop, "a.t.tag_x")] == [
        [1, 2, 3, 5], [1, 2, 3, 4], [5], [1, 2]]  # fmt: skip
    assert seen(other_session) == [[1, 2, 3], [1, 2, 3]]
    shop.sql("CALL lake.system.commit_transaction()")
    assert seen(other_session) == seen(shop) == [[1, 2, 3, 5], [1, 2, 3, 4]]
    assert (ids(other_session, "a.t.branch_c"), in_python(shop, "x")) == ([5], [1, 2])
    shop.sql("CALL lake.system.begin_transaction()")
    shop.sql("TRUNCATE TABLE lake.a.t.branch_b")
    shop.sql("ALTER TABLE lake.a.t DROP BRANCH c")
    shop.sql("CALL lake.system.rollback_transaction()")
    assert (ids(shop, "a.t.branch_b"), ids(shop, "a.t.branch_c")) == ([1, 2, 3, 4], [5])


def test_changes_of_the_same_rows_on_two_lines_do_not_conflict_and_on_one_line_they_do(shop):
    shop.sql("ALTER TABLE lake.a.t SET TBLPROPERTIES ('lakelog.isolation' = 'serializable')")
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    other_session = another_session(shop)
    for mine, theirs, conflict in (
        ("t", "t.branch_b", False),
        ("t.branch_b", "t", False),
        ("t.branch_b", "t.branch_b", True),
    ):
        shop.sql("CALL lake.system.begin_transaction()")
        shop.sql(f"UPDATE lake.a.{mine} SET id = id + 10")
        other_session.sql(f"UPDATE lake.a.{theirs} SET id = id + 100")
        if conflict:
            with pytest.raises((PySparkException, Py4JJavaError), match="other rows on b now"):
                shop.sql("CALL lake.system.commit_transaction()")
        else:
            shop.sql("CALL lake.system.commit_transaction()")
    assert (ids(shop), ids(shop, "a.t.branch_b")) == ([111, 112, 113], [211, 212, 213])


def test_two_sessions_write_on_and_on_each_on_its_line(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    sessions = {"t": shop, "t.branch_b": another_session(shop)}
    exceptions: list[BaseException] = []

    def work(line: str, lake: Lake) -> None:
        try:
            for turn in range(4):
                lake.sql(f"UPDATE lake.a.{line} SET id = id + 1 WHERE id > 0")
                lake.sql(f"INSERT INTO lake.a.{line} VALUES ({-turn - 1}, 'w')")
        except BaseException as error:
            exceptions.append(error)

    threads = [threading.Thread(target=work, args=line) for line in sessions.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not exceptions
    assert ids(shop) == ids(shop, "a.t.branch_b") == in_python(shop, "b") == [-4, -3, -2, -1, 5, 6, 7]


def test_expire_and_vacuum_leave_what_tags_and_branches_need(shop):
    shop.sql("ALTER TABLE lake.a.t CREATE TAG first AS OF VERSION 2")
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    shop.sql("DELETE FROM lake.a.t.branch_b WHERE id = 2")
    shop.sql("UPDATE lake.a.t.branch_b SET k = 'n' WHERE id = 1")
    shop.sql("INSERT OVERWRITE lake.a.t VALUES (9, 'z')")

    def clean() -> int:
        shop.sql("CALL lake.system.expire(table => 'a.t', retain_last => 1, dry_run => false)")
        shop.sql("CALL lake.system.vacuum(table => 'a.t', older_than => INTERVAL '0' DAY, dry_run => false)")
        return len(list(Path(shop.catalog.load_table("a.t").location).rglob("*.parquet")))

    left = clean()
    assert (ids(shop), ids(shop, "a.t.tag_first")) == ([9], [1, 2])
    assert shop.sorted("SELECT * FROM lake.a.t.branch_b") == [(1, "n"), (3, "a")]
    shop.sql("ALTER TABLE lake.a.t DROP TAG first")
    shop.sql("ALTER TABLE lake.a.t DROP BRANCH b")
    assert clean() == 1 < left
    assert ids(shop) == [9]


def test_they_are_there_for_tables_in_the_session_catalog(spark, python, tmp_path):
    with shared_database(spark, tmp_path, python) as shared:
        shared.sql("CREATE TABLE t (id BIGINT) USING lakelog")
        shared.sql("INSERT INTO t VALUES (1)")
        shared.sql("ALTER TABLE t CREATE BRANCH b")
        shared.sql("ALTER TABLE t CREATE TAG x")
        name = f"spark_catalog.{shared.database}.t"
        shared.sql(f"INSERT INTO {name}.branch_b VALUES (2)")
        shared.sql(f"DELETE FROM {shared.database}.t.branch_b WHERE id = 1")
        assert shared.sql(f"SELECT * FROM {name}.branch_b") == [(2,)]
        assert shared.sql("SELECT * FROM t VERSION AS OF 'x'") == [(1,)]
        assert (
            shared.sql(f"CALL spark_catalog.system.fast_forward('{shared.database}.t', 'main', 'b')")[0][0]
            == "main"
        )
        assert shared.sql("SELECT * FROM t") == [(2,)]
        with pytest.raises((PySparkException, Py4JJavaError)):
            shared.sql(f"DROP TABLE {name}.branch_b")
        assert shared.sql(f"SELECT * FROM {name}.branch_b") == [(2,)]
