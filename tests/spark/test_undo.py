"""Restoring what was dropped, saved cuts, catalogs as of then, expire and vacuum: by CALL and by settings."""

import datetime as dt
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import UnsupportedOperationException

import lakelog.spark
from lakelog.catalog import Catalog
from lakelog.log import CarriedChange, Draft, new_id
from lakelog.log.format import Tombstone


def prepare(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.a.u AS SELECT 1 AS id")


def test_a_dropped_table_is_listed_and_restored_also_under_another_name(lake):
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    lake.sql("DROP TABLE lake.a.t")
    ((id, kind, name, dropped, kept_until, user),) = lake.sql("CALL lake.system.dropped('a')")
    assert (kind, name) == ("table", "`a`.`t`")
    assert kept_until - dropped == dt.timedelta(days=7)
    assert lake.sql("CALL lake.system.dropped()") == [(id, kind, name, dropped, kept_until, user)]
    lake.sql("CREATE TABLE lake.a.t AS SELECT 'new' AS other")
    with pytest.raises(AnalysisException, match="`t`"):
        lake.sql("CALL lake.system.undrop_table('a.t')")
    assert lake.sql(f"CALL lake.system.undrop_table('a.t', id => '{id}', to => 'a.back')") == [
        ("`a`.`back`",)
    ]
    assert lake.sorted("SELECT * FROM lake.a.back") == [(1,), (2,)]
    assert lake.sql("SELECT * FROM lake.a.t") == [("new",)]
    assert lake.sql("CALL lake.system.dropped('a')") == []


def test_a_dropped_namespace_comes_back_with_all_that_was_in_it(lake):
    prepare(lake)
    lake.sql("DROP NAMESPACE lake.a CASCADE")
    assert [row[1:3] for row in lake.sql("CALL lake.system.dropped()")] == [("namespace", "`a`")]
    assert lake.sql("CALL lake.system.undrop_namespace('a')") == [("`a`",)]
    assert lake.sql("SELECT * FROM lake.a.t") == [(1,)]


def test_restoring_what_is_not_there_says_so(lake):
    prepare(lake)
    with pytest.raises(AnalysisException, match="never"):
        lake.sql("CALL lake.system.undrop_table('a.never')")


@pytest.fixture
def as_of(make_lake, lake):
    """The same warehouse as of a time or a cut."""

    def open_as_of(moment, **more):
        return make_lake(lake.warehouse, as_of=moment, **more)

    return open_as_of


@pytest.mark.parametrize("by", ["cut", "time"])
def test_a_catalog_as_of_then_shows_everything_as_it_stood(lake, as_of, by):
    prepare(lake)
    lake.sql("CALL lake.system.save_cut('before')")
    ((_, moment, logs),) = lake.sql("CALL lake.system.cuts()")
    assert logs == 4
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    lake.sql("ALTER TABLE lake.a.u RENAME TO a.renamed")
    lake.sql("ALTER TABLE lake.a.t ADD COLUMN more INT")
    lake.sql("CREATE NAMESPACE lake.b")
    then = as_of("before" if by == "cut" else moment.isoformat(" ") + "Z")
    assert then.sql("SELECT * FROM lake.a.t") == [(1,)]
    assert then.sql(f"SHOW NAMESPACES IN {then.name}") == [("a",)]
    assert [row[1] for row in then.sql("SHOW TABLES IN lake.a")] == ["t", "u"]
    lake.sql("DROP NAMESPACE lake.a CASCADE")
    assert then.sql("SELECT count(*) FROM lake.a.t JOIN lake.a.u USING (id)") == [(1,)]
    assert as_of("before").sql("SELECT * FROM lake.a.t") == [(1,)], "in a process that never saw it"


def test_a_cut_of_a_namespace_shows_that_namespace_as_it_stood(lake, as_of):
    prepare(lake)
    lake.sql("CREATE NAMESPACE lake.b")
    ((_, _, logs),) = lake.sql("CALL lake.system.save_cut('before', namespace => 'lake.a')")
    assert logs == 3 and lake.sql("CALL lake.system.cuts()") == []
    assert [row[0] for row in lake.sql("CALL lake.system.cuts('a')")] == ["before"]
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    then = as_of("before", as_of_namespace="a")
    assert then.sql("SELECT * FROM lake.a.t") == [(1,)]
    assert then.sql(f"SHOW NAMESPACES IN {then.name}") == [("a",)]
    lake.sql("CALL lake.system.drop_cut('before', 'a')")
    assert lake.sql("CALL lake.system.cuts('a')") == []


WRITES = [
    "INSERT INTO lake.a.t VALUES (2)", "INSERT OVERWRITE lake.a.t VALUES (2)", "CREATE TABLE lake.a.n (id INT)",
    "CREATE TABLE lake.a.n AS SELECT 1 AS id", "CREATE OR REPLACE TABLE lake.a.t AS SELECT 2 AS id",
    "ALTER TABLE lake.a.t ADD COLUMN more INT", "ALTER TABLE lake.a.t RENAME TO a.n", "DROP TABLE lake.a.t",
    "TRUNCATE TABLE lake.a.t", "DELETE FROM lake.a.t WHERE id < 9", "CREATE NAMESPACE lake.b",
    "ALTER NAMESPACE lake.a SET PROPERTIES ('k' = 'v')", "DROP NAMESPACE lake.a CASCADE",
    "CALL lake.system.save_cut('d')", "CALL lake.system.drop_cut('c')",
    "CALL lake.system.undrop_table('a.v')", "CALL lake.system.undrop_namespace('b')",
]  # fmt: skip


def test_a_catalog_as_of_then_is_read_only(lake, as_of):
    prepare(lake)
    lake.sql("CALL lake.system.save_cut('c')")
    files = sorted(str(path) for path in _files(lake.warehouse))
    then = as_of("c")
    for statement in WRITES:
        with pytest.raises(UnsupportedOperationException, match="read-only.*as of c"):
            then.sql(statement)
    for call in ("expire(retain_last => 1, dry_run => false)", "vacuum(dry_run => false)"):
        with pytest.raises(UnsupportedOperationException, match="of the past"):
            then.sql(f"CALL lake.system.{call}")
    assert sorted(str(path) for path in _files(lake.warehouse)) == files


def _files(warehouse):
    from pathlib import Path

    return [path for path in Path(warehouse).rglob("*") if path.is_file()]


@pytest.mark.parametrize("moment", ["never-saved", "3026-01-01 00:00:00Z"])
def test_a_moment_that_is_not_there_is_named(lake, as_of, moment):
    prepare(lake)
    with pytest.raises(Exception, match=moment.split(" ")[0]):
        as_of(moment).sql("SELECT * FROM lake.a.t")


def test_expire_and_vacuum_report_by_default_and_act_when_dry_run_is_off(lake):
    prepare(lake)
    lake.sql("INSERT OVERWRITE lake.a.t VALUES (2)")
    planned_rows = lake.sql("CALL lake.system.expire('a.t', retain_last => 1)")
    assert Catalog(lake.warehouse).load_table("a.t").at(version=1).row_count == 1, "it only reported"
    (row,) = planned_rows
    assert (row[0], row[3], row[8]) == ("table", 1, 1)
    assert planned_rows[0][-1] is True, "and says that it only reports"
    (row,) = lake.sql("CALL lake.system.expire('a.t', retain_last => 1, dry_run => false)")
    assert row[-1] is False
    with pytest.raises(Exception, match="version 1"):
        lake.sql("SELECT * FROM lake.a.t VERSION AS OF 1")
    count = len(_files(lake.warehouse + "/"))
    (row,) = lake.sql("CALL lake.system.vacuum(table => 'a.t', older_than => INTERVAL 0 SECONDS)")
    assert (row[3], row[-1]) == (1, True)
    lake.sql("CALL lake.system.vacuum(table => 'a.t', older_than => INTERVAL '0' DAY, dry_run => false)")
    assert len([p for p in _files(lake.warehouse) if p.suffix == ".parquet"]) == 2
    assert count
    assert lake.sql("SELECT * FROM lake.a.t") == [(2,)]


_SMALL_WINDOWS = """
from lakelog.catalog.keeping.maintenance import engine
from lakelog.log.burial import windows
engine.MANY_VERSIONS, windows.BURIED_TOGETHER = 4, 16
"""


def test_executors_make_the_same_tombstones_as_python(make_lake, warm, tmp_path):
    """Of plain versions, of shared ones, with sidecars, and of transactions, which they leave to Python."""
    lake = make_lake(python=warm.program(tmp_path, _SMALL_WINDOWS))
    schema = pa.schema({"id": pa.int64()})
    table = lake.catalog.create_table("t", schema, partition_by=["id"])
    table = table.append(pa.table({"id": range(300)}))
    lake.catalog.create_table("u", schema)
    for number in range(40):
        if number % 7 == 3:
            with lake.catalog.transaction() as both:
                both.load_table("t").append(pa.table({"id": [number]}, schema))
                both.load_table("u").append(pa.table({"id": [number]}, schema))
        elif number % 7 == 5:
            log = lake.catalog.load_table("t").table_head.tracked.log
            carried_changes = tuple(CarriedChange(new_id(), log.load().version, {}, ()) for _ in range(3))
            log.commit(log.load(), lambda view, passed, carried=carried_changes: Draft(carries=carried))
        else:
            lake.catalog.load_table("t").append(pa.table({"id": [number]}, schema))
    log = lake.catalog.load_table("t").table_head.tracked.log
    kinds = [log.entry_at(version) for version in range(1, 41)]
    assert any(kind.sidecars for kind in kinds) and any(kind.changes for kind in kinds)
    assert any(kind.intent for kind in kinds)
    other_path = tmp_path / "other"
    shutil.copytree(lake.warehouse, other_path)
    [done] = Catalog(str(other_path)).expire("t", version=40, dry_run=False)
    (row,) = lake.sql("CALL lake.system.expire(table => 't', version => 40, dry_run => false)")
    assert (
        (row[3], row[6], row[7])
        == (done.versions, done.commits, done.size_bytes)
        == (39, 40, done.size_bytes)
    )
    location = str(lake.catalog.load_table("t").location)
    mine = Path(location) / "_log"
    theirs = Path(str(other_path) + location.removeprefix(str(lake.warehouse))) / "_log"
    for version in range(1, 41):
        name = f"{version:020d}.json"
        assert (mine / name).read_bytes() == (theirs / name).read_bytes()
        assert isinstance(log.entry_at(version), Tombstone)
    assert not list((mine / "sidecars").iterdir())
    assert lake.sql("SELECT count(*) FROM lake.t") == [(300 + 35,)]


def test_executors_delete_what_a_vacuum_finds_where_that_is_much(make_lake, warm, tmp_path):
    few = warm.program(
        tmp_path, "from lakelog.catalog.keeping.maintenance import vacuum; vacuum.MANY_OBJECTS = 1000"
    )
    lake = make_lake(python=few)
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(4)")
    table = lake.catalog.load_table("t")
    live = sorted(path for path in _files(table.location) if path.suffix == ".parquet")
    for number in range(1001):
        (live[0].parent / f"{1:020d}-{'a' * 26}-{number:05d}.parquet").touch()
    (row,) = lake.sql(
        "CALL lake.system.vacuum(table => 't', older_than => INTERVAL '0' DAY, dry_run => false)"
    )
    assert row[3] == 1001
    assert sorted(path for path in _files(table.location) if path.suffix == ".parquet") == live
    assert lake.sql("SELECT count(*), sum(id) FROM lake.t") == [(4, 6)]


@pytest.mark.parametrize(
    "call", ["expire('a.t', retain_last => 1, dry_run => NULL)", "vacuum(dry_run => NULL)"]
)
def test_a_dry_run_that_is_neither_true_nor_false_does_nothing(lake, call):
    prepare(lake)
    lake.sql("INSERT OVERWRITE lake.a.t VALUES (2)")
    files = sorted(_files(lake.warehouse))
    with pytest.raises(AnalysisException, match="dry_run .*NULL"):
        lake.sql(f"CALL lake.system.{call}")
    assert sorted(_files(lake.warehouse)) == files
    assert lake.sql("SELECT * FROM lake.a.t VERSION AS OF 1") == [(1,)]


def test_nothing_is_restored_under_the_name_of_lakelogs_own_namespace(lake):
    prepare(lake)
    lake.sql("DROP NAMESPACE lake.a CASCADE")
    with pytest.raises(AnalysisException, match="choose another name"):
        lake.sql("CALL lake.system.undrop_namespace('a', to => 'system')")
    assert lake.sql("CALL lake.system.undrop_namespace('a')") == [("`a`",)]


def test_the_whole_catalog_is_maintained_at_once_and_a_wrong_wish_is_refused(lake):
    prepare(lake)
    planned_rows = lake.sql("CALL lake.system.expire(older_than => INTERVAL 3 DAYS)")
    assert all(row[3] == 0 for row in planned_rows)
    assert [row[0] for row in lake.sql("CALL lake.system.vacuum(namespace => 'a')")].count("table") == 2
    with pytest.raises(AnalysisException, match="give one of them"):
        lake.sql("CALL lake.system.vacuum(table => 'a.t', namespace => 'a')")


def test_an_as_of_catalog_and_a_transaction_work_side_by_side(lake, as_of):
    prepare(lake)
    lake.sql("CALL lake.system.save_cut('c')")
    then = as_of("c")
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("DELETE FROM lake.a.t WHERE id < 100")
        lake.sql(f"INSERT INTO lake.a.t SELECT id + 10 FROM {then.name}.a.t")
        assert then.sql("SELECT * FROM lake.a.t") == [(1,)]
    assert lake.sql("SELECT * FROM lake.a.t") == [(11,)]
