"""CALL lake.system.compact: fewer files, the same rows with the same ids, beside whatever others do."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ParseException, UnsupportedOperationException
from tests.spark.sessions import another_session
from tests.spark.test_child import DEADLY, wrapper

from lakelog.catalog import col
from lakelog.catalog.keeping.maintenance import fsck


def known(lake, name="t"):
    """All rows, each with its id and version, read without Spark."""
    found_rows = lake.catalog.load_table(name).scan(row_ids=True).to_arrow()
    return sorted((tuple(row.values()) for row in found_rows.to_pylist()), key=repr)


def sound(lake):
    found = fsck.check_warehouse(lake.catalog._logs, deep=True).found
    return {each.kind for each in found} <= {"data-file-unused"}


def compact(lake, **arguments):
    """Return what it says: files, bytes, files, bytes, deleted rows, version."""
    given_text = "".join(f", {name} => {value}" for name, value in arguments.items())
    [row] = lake.sql(f"CALL lake.system.compact('t'{given_text})")
    return row


@pytest.fixture
def scattered(lake):
    """Two partitions, each of several files, with rows that were deleted, updated and merged in between."""
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, s STRUCT<a: INT, b: STRING>, c CHAR(4), p INT) PARTITIONED BY (p)"
    )
    for first in range(0, 60, 20):
        lake.sql(
            "INSERT INTO lake.t SELECT id, IF(id % 5 = 0, NULL, named_struct('a', CAST(id AS INT), 'b', 'x')), "
            f"CAST(id % 7 AS STRING), CAST(id % 2 AS INT) FROM range({first}, {first + 20}, 1, 1)"
        )
    lake.sql("DELETE FROM lake.t WHERE id IN (3, 24, 45)")
    lake.sql("UPDATE lake.t SET s.b = 'updated' WHERE id IN (5, 6)")
    lake.sql("ALTER TABLE lake.t ADD COLUMN added STRING DEFAULT 'd'")
    lake.sql("INSERT INTO lake.t VALUES (100, NULL, 'c', 0, 'own'), (101, NULL, 'c', 1, NULL)")
    return lake


@pytest.mark.adapter
def test_rows_ids_and_versions_stay_and_small_files_and_vectors_go(scattered):
    lake = scattered
    facts_before, rows, table = (
        known(lake),
        lake.sorted("SELECT *, _row_id, _version FROM lake.t"),
        lake.catalog.load_table("t"),
    )
    files, size = table.file_count, table.size_bytes
    assert "deletes" in table.plan().column_names
    found = compact(lake)
    table_after = lake.catalog.load_table("t")
    assert (table_after.file_count, table_after.version) == (2, table.version + 1)
    assert found == (files, size, 2, table_after.size_bytes, 5, table_after.version)
    assert known(lake) == facts_before
    assert another_session(lake).sorted("SELECT *, _row_id, _version FROM lake.t") == rows
    assert "deletes" not in table_after.plan().column_names
    [last] = table_after.history(limit=1)
    assert last.operation == "compact"
    assert compact(lake) == (0, 0, 0, 0, 0, table_after.version)
    assert lake.sorted(f"SELECT * FROM lake.t VERSION AS OF {table.version}") == lake.sorted(
        "SELECT * FROM lake.t"
    )
    lake.sql("DELETE FROM lake.t WHERE id = 10")
    lake.sql("UPDATE lake.t SET c = 'z' WHERE id = 11")
    assert lake.sql("SELECT count(*), count_if(c = 'z') FROM lake.t") == [(len(rows) - 1, 1)]
    assert sound(lake)


@pytest.mark.adapter
def test_where_chooses_files(scattered):
    lake, table = scattered, scattered.catalog.load_table("t")
    facts_before = known(lake)
    odd = table.plan(col("p") == 1)
    assert compact(lake, where="'p = 2 OR false'")[0] == 0
    assert compact(lake, where="'false'")[0] == 0
    assert compact(lake, where="'p = 0 + 1 AND id < 1000'")[:2] == (
        odd.num_rows,
        sum(odd["size"].to_pylist()),
    )
    assert lake.catalog.load_table("t").plan(col("p") == 1).num_rows == 1
    # A condition that cuts through files chooses all that may have such rows.
    assert compact(lake, where="'id BETWEEN 1 AND 2'")[0] == 0
    assert compact(lake, where="'id BETWEEN 10 AND 30 AND s.b IS NOT NULL'")[0] >= 2
    assert known(lake) == facts_before
    assert sound(lake)


def test_sizes_and_shares_are_obeyed(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id, rand(1) AS r FROM range(0, 40000, 1, 8)")
    table = lake.catalog.load_table("t")
    size_bytes = table.size_bytes // 8
    facts_before = known(lake)
    assert compact(lake, target_size=size_bytes)[0] == 0
    assert compact(lake, target_size=int(2.5 * size_bytes))[:3:2] == (8, 4)
    lake.sql("DELETE FROM lake.t WHERE id % 100 = 7 AND id < 10000")
    assert compact(lake, target_size=size_bytes)[0] == 0
    assert compact(lake, target_size=size_bytes, deleted_ratio=0)[::4] == (1, 100)
    lake.sql("DELETE FROM lake.t WHERE id % 10 < 4 AND id < 10000")
    assert compact(lake, target_size=size_bytes)[4] == 4000
    assert [row for row in facts_before if row[0] >= 10000] == [row for row in known(lake) if row[0] >= 10000]
    # Without an own size, it is the table's.
    lake.sql(
        f"ALTER TABLE lake.t SET TBLPROPERTIES ('lakelog.write.target-file-size-bytes' = '{size_bytes}')"
    )
    assert compact(lake)[0] == 0
    lake.sql("ALTER TABLE lake.t UNSET TBLPROPERTIES ('lakelog.write.target-file-size-bytes')")
    assert lake.sql("CALL lake.system.compact(table => 't')")[0][2] == 1
    assert sound(lake)


def files(lake, *columns):
    """The values of some columns in each file, in the order of the file."""
    table = lake.catalog.load_table("t")
    physical = [table.schema.find((name,)).physical for name in columns]
    return [
        list(
            zip(
                *(pq.read_table(f"{table.location}/{path}")[name].to_pylist() for name in physical),
                strict=True,
            )
        )
        for path in table.plan()["path"].to_pylist()
    ]


@pytest.mark.adapter
def test_rows_are_in_the_tables_order(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k INT)")
    lake.sql("ALTER TABLE lake.t WRITE ORDERED BY k DESC, bucket(4, id), id")
    for first in (0, 50):
        lake.sql(f"INSERT INTO lake.t SELECT id, CAST(id % 5 AS INT) FROM range({first}, {first + 50}, 1, 2)")
    facts_before = known(lake)
    assert compact(lake)[2] == 1
    [rows] = files(lake, "k")
    assert len(rows) == 100 and rows == sorted(rows, reverse=True)
    assert known(lake) == facts_before


@pytest.mark.adapter
def test_clustered_rows_are_spread_by_range(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, r DOUBLE) CLUSTER BY (id)")
    for seed in range(6):
        lake.sql(f"INSERT INTO lake.t SELECT id * 6 + {seed}, rand({seed}) FROM range(0, 4000, 1, 1)")
    facts_before, size = known(lake), lake.catalog.load_table("t").size_bytes
    assert compact(lake, target_size=size // 2)[0] == 6
    found_files = sorted(files(lake, "id"))
    assert 2 <= len(found_files) <= 3
    assert all(rows == sorted(rows) for rows in found_files)
    assert all(one[-1] < other[0] for one, other in zip(found_files[:-1], found_files[1:], strict=True))
    assert known(lake) == facts_before
    assert compact(lake, target_size=size // 2)[0] == 0
    assert sound(lake)


def test_files_of_an_earlier_partitioning_find_the_partitions_of_today(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING, day DATE)")
    insert = (
        "INSERT INTO lake.t SELECT id, concat('k', id % 3), DATE'2024-01-01' + CAST(id % 4 AS INT) "
        "FROM range({}, {}, 1, 1)"
    )
    for first in range(0, 60, 10):
        lake.sql(insert.format(first, first + 10))
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD k")
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD months(day)")
    lake.sql(insert.format(60, 63))
    facts_before = known(lake)
    with pytest.raises(UnsupportedOperationException, match="earlier partitioning"):
        lake.sql("SHOW PARTITIONS lake.t")
    assert compact(lake)[0] == 6
    assert len(lake.sql("SHOW PARTITIONS lake.t")) == 3
    assert known(lake) == facts_before
    compact(lake)
    assert lake.catalog.load_table("t").file_count == 3
    assert known(lake) == facts_before and sound(lake)


def test_files_of_others_become_the_tables_own(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING DEFAULT 'd' CHECK (k <> ''))")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a')")
    lake.spark.range(5, 8).selectExpr("id AS ID", "'f' AS k").coalesce(1).write.parquet(f"{tmp_path}/f")
    lake.sql(f"CALL lake.system.add_files('t', '{tmp_path}/f')")
    facts_before = known(lake)
    assert compact(lake)[::2] == (2, 1, 0)
    assert known(lake) == facts_before
    assert len(list((tmp_path / "f").glob("*.parquet"))) == 1
    assert sound(lake)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"target_size": "-1"}, AnalysisException, "files of -1 bytes are not possible"),
        ({"target_size": "0"}, AnalysisException, "files of 0 bytes are not possible"),
        ({"deleted_ratio": "2"}, AnalysisException, "from 0"),
        ({"`where`": "'nothing = 1'"}, AnalysisException, "UNRESOLVED_COLUMN"),
        ({"`where`": "'id = = 1'"}, ParseException, "PARSE_SYNTAX_ERROR"),
        ({"`where`": "'count(*) > 1'"}, AnalysisException, "."),
        ({"`where`": "'rand() < 0.5'"}, AnalysisException, "not deterministic"),
        ({"`where`": "'id IN (SELECT 1)'"}, AnalysisException, "subquery"),
        ({"`where`": "'id % 2 = 1'"}, Exception, "cannot choose files"),
        ({"nothing": "1"}, AnalysisException, "UNRECOGNIZED_PARAMETER_NAME"),
    ],
)
def test_what_makes_no_sense_is_refused(lake, arguments, error, words):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 4, 1, 2)")
    with pytest.raises(error, match=words):
        compact(lake, **arguments)
    assert lake.catalog.load_table("t").version == 1
    with pytest.raises(AnalysisException) as missing:
        lake.sql("CALL lake.system.compact('nowhere')")
    assert "nowhere" in str(missing.value)


@pytest.mark.adapter
def test_it_is_part_of_the_sessions_transaction(scattered):
    lake, facts_before = scattered, known(scattered)
    for ending, operation in (("rollback", "append"), ("commit", "append, compact")):
        version = lake.catalog.load_table("t").version
        lake.sql("CALL lake.system.begin_transaction()")
        lake.sql("INSERT INTO lake.t VALUES (200, NULL, 'c', 1, 'own')")
        assert compact(lake)[0] > 4
        assert len(lake.sql("SELECT * FROM lake.t")) == len(facts_before) + 1
        assert lake.catalog.load_table("t").version == version
        lake.sql(f"CALL lake.system.{ending}_transaction()")
        assert [entry.operation for entry in lake.catalog.load_table("t").history(limit=1)] == [operation]
    assert [row for row in known(lake) if row[0] < 200] == facts_before
    assert sound(lake)


# What happens in the Python process right before a compaction is committed, once for each line of the file `armed`.
MEANWHILE = """
import pathlib
from lakelog.catalog import Catalog, col
from lakelog.catalog.core.writes import compaction_commit
armed, original = pathlib.Path({armed!r}), compaction_commit.commit
def commit(base, groups, **named):
    left = armed.read_text().splitlines() if armed.exists() else []
    if left:
        armed.write_text("\\n".join(left[1:]))
        eval(left[0], {{"table": Catalog({warehouse!r}).load_table("t"), "col": col}})
    return original(base, groups, **named)
compaction_commit.commit = commit
"""


def test_what_others_change_meanwhile_is_as_they_left_it(make_lake, tmp_path):
    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    lake = make_lake(
        warehouse, python=wrapper(tmp_path, MEANWHILE.format(armed=str(armed_path), warehouse=warehouse))
    )
    lake.sql("CREATE TABLE lake.t (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    for first in range(0, 40, 10):
        lake.sql(f"INSERT INTO lake.t SELECT id, id % 2 FROM range({first}, {first + 10}, 1, 1)")
    facts_before = known(lake)
    version = lake.catalog.load_table("t").version
    armed_path.write_text("table.delete(col('id') == 4)")
    assert compact(lake)[::2] == (8, 2, 0)
    assert known(lake) == [row for row in facts_before if row[0] != 4]
    operations = [entry.operation for entry in lake.catalog.load_table("t").history(limit=2)]
    assert operations == ["compact", "delete"]
    assert sound(lake)
    # What came back meanwhile is planned anew, and nothing of what was given up is left behind.
    lake.sql("INSERT INTO lake.t VALUES (40, 0), (41, 1)")
    armed_path.write_text(f"table.set_current_version({version})")
    assert compact(lake)[0] == 8
    assert known(lake) == facts_before
    operations = [entry.operation for entry in lake.catalog.load_table("t").history(limit=2)]
    assert operations == ["compact", "set-current-version"]
    assert not {each.kind for each in fsck.check_warehouse(lake.catalog._logs).found}
    assert sound(lake)


@pytest.mark.parametrize(
    "after",
    [pytest.param(False, id="before", marks=pytest.mark.slow), pytest.param(True, id="after")],
)
def test_a_kill_in_the_middle_of_its_commit_loses_and_doubles_nothing(make_lake, tmp_path, after):
    armed_path = tmp_path / "armed"
    lake = make_lake(python=wrapper(tmp_path, DEADLY.format(armed=str(armed_path), after=after)))
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(0, 20, 1, 4)")
    facts_before = known(lake)
    armed_path.write_text("1")
    assert compact(lake)[::5] == (4, 2)
    assert not armed_path.exists()
    assert known(lake) == facts_before and lake.catalog.load_table("t").file_count == 1
    assert [entry.operation for entry in lake.catalog.load_table("t").history()] == [
        "compact",
        "create, append",
    ]
    assert sound(lake)


def test_rows_that_are_changed_all_the_time_are_neither_lost_nor_doubled(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    table = lake.catalog.load_table("t")
    is_done, failed = threading.Event(), []
    expected: set[int] = set()

    def change():
        try:
            for number in range(0, 400, 4):
                other_table = lake.catalog.load_table("t")
                other_table.append(pa.table({"id": range(number, number + 4), "p": [number % 3] * 4}))
                expected.update(range(number, number + 4))
                if number % 20 == 0:
                    lake.catalog.load_table("t").delete(col("id") == number)
                    expected.discard(number)
        except Exception as error:
            failed.append(error)
        finally:
            is_done.set()

    table.append(pa.table({"id": [1000, 1001], "p": [0, 1]}))
    changing_thread = threading.Thread(target=change)
    changing_thread.start()
    while not is_done.is_set():
        compact(lake)
    changing_thread.join()
    compact(lake)
    assert not failed
    assert [row[0] for row in lake.sql("SELECT id FROM lake.t ORDER BY id")] == sorted(
        expected | {1000, 1001}
    )
    assert lake.catalog.load_table("t").file_count == 3
    ids = [row[2] for row in known(lake)]
    assert len(set(ids)) == len(ids)
    assert sound(lake)
