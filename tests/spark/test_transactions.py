"""A session's transaction: its statements happen together or not at all, and no other client sees them before."""

import threading
from pathlib import Path

import pytest
from tests.spark.sessions import another_session

import lakelog.spark
from lakelog.catalog import Catalog

pytestmark = pytest.mark.adapter


class Rollback(Exception):
    """Ends a transaction without a commit."""


# Statements of every kind that lakelog has, each on what the ones before it made.
STATEMENTS = [
    "INSERT INTO lake.a.t VALUES (2, 'y')",
    "INSERT INTO lake.a.u SELECT id + 10, k FROM lake.a.t",
    "CREATE TABLE lake.a.fresh (x INT)",
    "INSERT INTO lake.a.fresh VALUES (1), (2)",
    "CREATE TABLE lake.a.copied AS SELECT * FROM lake.a.u",
    "DELETE FROM lake.a.u WHERE id < 100",
    "ALTER TABLE lake.a.t ADD COLUMN more INT",
    "INSERT INTO lake.a.t VALUES (3, 'z', 4)",
    "CREATE NAMESPACE lake.b",
    "ALTER NAMESPACE lake.b SET PROPERTIES ('p' = 'q')",
    "CREATE TABLE lake.b.v AS SELECT count(*) AS n FROM lake.a.t",
    "ALTER TABLE lake.a.copied RENAME TO b.moved",
    "INSERT OVERWRITE lake.a.fresh VALUES (7)",
    "CREATE OR REPLACE TABLE lake.b.v AS SELECT n + 1 AS m FROM lake.b.v",
    "TRUNCATE TABLE lake.a.w",
    "DROP TABLE lake.a.gone",
    "DROP NAMESPACE lake.old CASCADE",
]

QUESTIONS = [
    "SHOW NAMESPACES IN lake", "SHOW TABLES IN lake.a", "SELECT * FROM lake.a.t", "SELECT * FROM lake.a.u",
    "SELECT * FROM lake.a.w",
]  # fmt: skip
MORE = ["SELECT * FROM lake.a.fresh", "SELECT * FROM lake.b.moved", "SELECT * FROM lake.b.v"]


def prepare(lake):
    for name in ("a", "old"):
        lake.sql(f"CREATE NAMESPACE lake.{name}")
    for name in ("a.t", "a.u", "a.w", "a.gone", "old.x"):
        lake.sql(f"CREATE TABLE lake.{name} AS SELECT 1 AS id, 'x' AS k")


def seen(lake, questions=QUESTIONS):
    return [lake.sorted(question.replace("IN lake", f"IN {lake.name}")) for question in questions]


def everything(lake):
    """All that a client of its own sees: names, versions, rows."""
    catalog = Catalog(lake.warehouse)
    found: dict[tuple[str, ...], object] = {}
    for namespace in [(), *catalog.list_namespaces()]:
        for name in catalog.list_tables(namespace):
            table = catalog.load_table(name)
            found[name] = (table.version, table.row_count)
        found[namespace] = catalog.load_namespace(namespace) and None
    return found


def test_all_statements_of_a_transaction_happen_together_and_no_other_client_sees_them_before(lake):
    prepare(lake)
    other_session = another_session(lake)
    state_before, elsewhere = seen(lake), everything(lake)
    with lakelog.spark.transaction(lake.spark, lake.name) as tx:
        for statement in STATEMENTS:
            lake.sql(statement)
        inside = seen(lake, QUESTIONS + MORE)
        assert inside[2] == [(1, "x", None), (2, "y", None), (3, "z", 4)]
        assert inside[3:] == [[], [], [(7,)], [(1, "x"), (11, "x"), (12, "y")], [(4,)]]
        assert seen(other_session) == state_before
        assert everything(lake) == elsewhere
    assert seen(other_session, QUESTIONS + MORE) == inside == seen(lake, QUESTIONS + MORE)
    catalog = Catalog(lake.warehouse)
    last = next(catalog.load_table("a.t").history())
    assert last.commit_id == tx.id
    assert catalog.load_table("a.t").version == 2, "several statements on one table are one commit"


def test_an_error_rolls_everything_back_and_is_raised_again(lake):
    prepare(lake)
    state_before, elsewhere = seen(lake), everything(lake)
    with pytest.raises(Rollback), lakelog.spark.transaction(lake.spark, lake.name):
        for statement in STATEMENTS:
            lake.sql(statement)
        raise Rollback
    assert seen(lake) == state_before
    assert everything(lake) == elsewhere
    lake.sql("INSERT INTO lake.a.t VALUES (9, 'after')")
    assert (9, "after") in another_session(lake).sql("SELECT * FROM lake.a.t")


def test_a_statement_that_fails_leaves_the_transaction_as_it_was(lake):
    prepare(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            lake.sql("INSERT INTO lake.a.nothing VALUES (1)")
        with pytest.raises(Exception, match="OVERFLOW|DIVIDE_BY_ZERO"):
            lake.sql("INSERT INTO lake.a.t SELECT id / 0, k FROM lake.a.u")
    assert lake.sorted("SELECT * FROM lake.a.t") == [(1, "x"), (2, "y")]


def test_the_same_by_sql_alone(lake):
    prepare(lake)
    other_session = another_session(lake)
    ((begun,),) = lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
    assert other_session.sql("SELECT count(*) FROM lake.a.t") == [(1,)]
    assert lake.sql("CALL lake.system.commit_transaction()") == [(begun,)]
    assert other_session.sql("SELECT count(*) FROM lake.a.t") == [(2,)]
    lake.sql("CALL lake.system.begin_transaction(isolation => 'serializable')")
    lake.sql("TRUNCATE TABLE lake.a.t")
    lake.sql("CALL lake.system.rollback_transaction()")
    assert lake.sql("SELECT count(*) FROM lake.a.t") == [(2,)]


def test_dataframes_read_and_write_in_the_transaction_even_if_they_were_made_before_it(lake):
    prepare(lake)
    made_before = lake.frame("SELECT id + 100 AS id, k FROM lake.a.t")
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        made_before.writeTo(f"{lake.name}.a.u").append()
        lake.spark.table(f"{lake.name}.a.u").write.mode("append").saveAsTable(f"{lake.name}.a.w")
        lake.spark.table(f"{lake.name}.a.w").write.insertInto(f"{lake.name}.a.gone")
        made_within = lake.spark.table(f"{lake.name}.a.gone")
        assert made_within.count() == 5
    assert sorted(row.id for row in made_within.collect()) == [1, 1, 1, 101, 102]
    assert made_before.count() == 2


@pytest.mark.parametrize("way", ["python", "sql"])
def test_transactions_do_not_nest(lake, way):
    prepare(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        with pytest.raises(Exception, match="transactions do not nest"):
            if way == "sql":
                lake.sql("CALL lake.system.begin_transaction()")
            else:
                with lakelog.spark.transaction(lake.spark, lake.name):
                    pass
    assert lake.sql("SELECT count(*) FROM lake.a.t") == [(2,)]


def test_without_a_transaction_there_is_nothing_to_commit_or_to_roll_back(lake):
    prepare(lake)
    for call in ("commit_transaction()", "rollback_transaction()"):
        with pytest.raises(Exception, match="No transaction is open in this session"):
            lake.sql(f"CALL lake.system.{call}")


def test_an_unknown_isolation_is_refused_and_opens_nothing(lake):
    prepare(lake)
    with pytest.raises(Exception, match="serializable"):
        lake.sql("CALL lake.system.begin_transaction('dirty')")
    lake.sql("CALL lake.system.begin_transaction('snapshot')")
    lake.sql("CALL lake.system.rollback_transaction()")


def test_all_that_is_read_is_of_one_moment(lake):
    prepare(lake)
    other_session = another_session(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        assert lake.sql("SELECT count(*) FROM lake.a.t") == [(1,)]
        other_session.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        other_session.sql("INSERT INTO lake.a.u VALUES (2, 'y')")
        assert lake.sql("SELECT count(*) FROM lake.a.u") == [(1,)], (
            "what came after a change that is not seen"
        )
        assert lake.sql("SELECT count(*) FROM lake.a.t") == [(1,)]
    assert lake.sql("SELECT count(*) FROM lake.a.u") == [(2,)]


def test_the_loser_of_a_conflict_gets_an_error_and_nothing_of_it_happens(lake):
    prepare(lake)
    other_session = another_session(lake)
    with (
        pytest.raises(Exception, match=r"(?s)conflict.*Nothing was changed"),
        lakelog.spark.transaction(lake.spark, lake.name),
    ):
        lake.sql("INSERT INTO lake.a.u VALUES (2, 'y')")
        lake.sql("INSERT OVERWRITE lake.a.t VALUES (5, 'z')")
        other_session.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
    assert lake.sql("SELECT count(*) FROM lake.a.u") == [(1,)]
    assert lake.sorted("SELECT * FROM lake.a.t") == [(1, "x"), (2, "y")]
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("CALL lake.system.rollback_transaction()")


def test_serializable_transactions_hold_what_they_read(lake):
    prepare(lake)
    other_session = another_session(lake)

    def copy(isolation):
        with lakelog.spark.transaction(lake.spark, lake.name, isolation=isolation):
            lake.sql("INSERT INTO lake.a.u SELECT * FROM lake.a.t")
            other_session.sql("INSERT INTO lake.a.t VALUES (2, 'y')")

    copy("snapshot")
    assert lake.sql("SELECT count(*) FROM lake.a.u") == [(2,)]
    with pytest.raises(Exception, match="serializable"):
        copy("serializable")
    assert lake.sql("SELECT count(*) FROM lake.a.u") == [(2,)]


def test_appends_to_a_table_that_others_append_to_meanwhile_are_rebased(lake):
    prepare(lake)
    other_session = another_session(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        lake.sql("INSERT INTO lake.a.u VALUES (2, 'y')")
        other_session.sql("INSERT INTO lake.a.t VALUES (3, 'z')")
    assert lake.sorted("SELECT id FROM lake.a.t") == [(1,), (2,), (3,)]
    assert lake.sorted("SELECT id FROM lake.a.u") == [(1,), (2,)]


def test_statements_of_all_threads_of_the_session_are_in_the_transaction(lake):
    prepare(lake)
    other_session = another_session(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        threads = [
            threading.Thread(target=lake.sql, args=(f"INSERT INTO lake.a.{name} VALUES (2, 'y')",))
            for name in ("t", "u", "w")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert other_session.sql("SELECT count(*) FROM lake.a.w") == [(1,)]
    for name in ("t", "u", "w"):
        assert other_session.sql(f"SELECT count(*) FROM lake.a.{name}") == [(2,)]


def test_two_sessions_have_transactions_of_their_own(lake):
    prepare(lake)
    other_session = another_session(lake)
    lake.sql("CALL lake.system.begin_transaction()")
    other_session.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
    other_session.sql("INSERT INTO lake.a.t VALUES (3, 'z')")
    assert lake.sorted("SELECT id FROM lake.a.t") == [(1,), (2,)]
    assert other_session.sorted("SELECT id FROM lake.a.t") == [(1,), (3,)]
    other_session.sql("CALL lake.system.rollback_transaction()")
    lake.sql("CALL lake.system.commit_transaction()")
    assert other_session.sorted("SELECT id FROM lake.a.t") == [(1,), (2,)]


def test_procedures_that_cannot_be_undone_are_no_part_of_a_transaction(lake):
    prepare(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        for call in ("save_cut('c')", "drop_cut('c')", "expire()", "vacuum()"):
            with pytest.raises(Exception, match="not part of a transaction"):
                lake.sql(f"CALL lake.system.{call}")


def test_a_drop_is_undone_within_a_transaction(lake):
    prepare(lake)
    lake.sql("DROP TABLE lake.a.t")
    with lakelog.spark.transaction(lake.spark, lake.name):
        assert lake.sql("CALL lake.system.undrop_table('a.t', to => 'a.back')") == [("`a`.`back`",)]
        assert lake.sql("SELECT count(*) FROM lake.a.back") == [(1,)]
        lake.sql("INSERT INTO lake.a.back SELECT * FROM lake.a.u")
    assert lake.sql("SELECT count(*) FROM lake.a.back") == [(2,)]


def test_statements_that_run_while_others_are_analysed_are_in_the_transaction_too(lake):
    prepare(lake)
    other_session = another_session(lake)
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql(
            "EXECUTE IMMEDIATE 'ALTER TABLE lake.a.t ADD COLUMN more INT'".replace("lake.", f"{lake.name}.")
        )
        lake.frame(
            "BEGIN INSERT INTO lake.a.t VALUES (2, 'y', 3); DELETE FROM lake.a.u WHERE id < 9; END"
        ).collect()
        assert other_session.sql("SELECT * FROM lake.a.t") == [(1, "x")]
    assert other_session.sorted("SELECT * FROM lake.a.t") == [(1, "x", None), (2, "y", 3)]
    assert other_session.sql("SELECT count(*) FROM lake.a.u") == [(0,)]


def test_a_rollback_removes_the_data_files_of_the_transaction_and_a_commit_keeps_them(lake):
    prepare(lake)

    def files():
        return sorted(str(path) for path in Path(lake.warehouse).rglob("*.parquet"))

    def change():
        lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        lake.sql("CREATE TABLE lake.a.n AS SELECT 1 AS id")

    files_before = files()
    with pytest.raises(Rollback), lakelog.spark.transaction(lake.spark, lake.name):
        change()
        assert len(files()) == len(files_before) + 2
        raise Rollback
    assert files() == files_before
    with lakelog.spark.transaction(lake.spark, lake.name):
        change()
    assert len(files()) == len(files_before) + 2
    assert lake.sorted("SELECT id FROM lake.a.t") == [(1,), (2,)]


def test_what_was_planned_inside_is_not_read_once_it_was_rolled_back(lake):
    prepare(lake)
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
    read, planned_frame = lake.frame("SELECT * FROM lake.a.t"), lake.frame("SELECT id FROM lake.a.t")
    assert len(read.collect()) == 2
    planned_frame._jdf.queryExecution().executedPlan()
    lake.sql("CALL lake.system.rollback_transaction()")
    for frame in (read, planned_frame):
        # Its files are gone, where it was known by then which these are.
        with pytest.raises(Exception, match="(?i)does not exist|has ended"):
            frame.collect()
    assert lake.sql("SELECT id FROM lake.a.t") == [(1,)]


def test_dataframes_made_before_the_transaction_are_read_at_its_moment(lake):
    prepare(lake)
    other_session = another_session(lake)
    left_table, right = (lake.spark.table(f"{lake.name}.a.{name}") for name in ("t", "u"))
    with lakelog.spark.transaction(lake.spark, lake.name):
        assert lake.sql("SELECT * FROM lake.a.t CROSS JOIN lake.a.u") == [(1, "x", 1, "x")]
        other_session.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
        other_session.sql("INSERT INTO lake.a.u VALUES (2, 'y')")
        assert left_table.crossJoin(right).count() == 1
    assert left_table.crossJoin(right).count() == 4


def test_a_serializable_transaction_holds_what_it_read_through_dataframes_made_before_it(lake):
    prepare(lake)
    other_session = another_session(lake)
    made_before = lake.spark.table(f"{lake.name}.a.t")
    with (
        pytest.raises(Exception, match="serializable.* has other rows now"),
        lakelog.spark.transaction(lake.spark, lake.name, isolation="serializable"),
    ):
        lake.sql(f"INSERT INTO lake.a.u VALUES ({made_before.count()}, 'rows')")
        other_session.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
    assert lake.sql("SELECT count(*) FROM lake.a.u") == [(1,)]


def test_a_dataframe_made_in_a_transaction_that_has_ended_is_read_anew_in_the_next_one(lake):
    prepare(lake)
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.a.t VALUES (2, 'y')")
    made_in_first = lake.spark.table(f"{lake.name}.a.t")
    lake.sql("CALL lake.system.rollback_transaction()")
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (3, 'z'), (4, 'z')")
        assert sorted(row.id for row in made_in_first.select("id").collect()) == [1, 3, 4]
