"""Changes of a table through Spark: `CHANGES FROM`, `spark.read.changes`, and what Spark makes of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from tests.spark.sql.rows import MODES, in_mode, in_one_mode
from tests.spark.sql.test_random_rows import UNSHRUNK, run
from tests.spark.versions import read_changes

COLUMNS = "id, k, v, _row_id, _version"


def changes(
    lake, first: int, last: int | None = None, *, columns: str = "x, _change_type", **options: str
) -> list[Any]:
    text = ", ".join(f"{name} = '{value}'" for name, value in options.items())
    to = "" if last is None else f" TO VERSION {last}"
    return lake.sorted(
        f"SELECT {columns} FROM lake.t CHANGES FROM VERSION {first}{to}" + (f" WITH ({text})" if text else "")
    )


@pytest.fixture(params=MODES)
def table(lake, request):
    """Version 2 inserts 1, 2 and 3, version 3 makes 2 a 20, version 4 deletes 3, version 5 inserts 4."""
    lake.sql(f"CREATE TABLE lake.t (x INT) {in_mode(request.param)}")
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3)")
    lake.sql("UPDATE lake.t SET x = 20 WHERE x = 2")
    lake.sql("DELETE FROM lake.t WHERE x = 3")
    lake.sql("INSERT INTO lake.t VALUES (4)")
    return lake


@pytest.mark.adapter
def test_changes_of_versions_in_sql(table):
    update = [(2, "delete"), (20, "insert")]
    assert changes(table, 2, 2) == [(1, "insert"), (2, "insert"), (3, "insert")]
    assert changes(table, 3, 3) == update
    assert changes(table, 3, 4) == sorted([*update, (3, "delete")], key=repr)
    assert changes(table, 4) == [(3, "delete"), (4, "insert")]
    assert changes(table, 3, 3, computeUpdates="true") == [(2, "update_preimage"), (20, "update_postimage")]
    assert changes(table, 2, 5, deduplicationMode="netChanges") == [
        (1, "insert"),
        (20, "insert"),
        (4, "insert"),
    ]
    assert changes(table, 3, 5, deduplicationMode="netChanges", computeUpdates="true") == sorted(
        [(2, "update_preimage"), (20, "update_postimage"), (3, "delete"), (4, "insert")], key=repr
    )
    exclusive = "SELECT x FROM lake.t CHANGES FROM VERSION 3 EXCLUSIVE TO VERSION 5 EXCLUSIVE"
    assert table.sql(exclusive) == [(3,)]
    assert table.sql("SELECT x FROM lake.t CHANGES FROM VERSION 5 EXCLUSIVE") == []
    same_rows = (
        table.catalog.load_table("t").changes(2, 5).to_arrow().select(["x", "_change_type", "_row_id"])
    )
    rows = [tuple(row.values()) for row in same_rows.to_pylist()]
    assert changes(table, 2, 5, columns="x, _change_type, _row_id") == sorted(rows, key=repr)
    table.sql("UPDATE lake.t SET x = 21 WHERE x = 20")
    table.sql("CALL lake.system.rollback_to_version(table => 't', version => 5)")
    for updates in ("false", "true"):  # what is back as it was, is no change
        assert changes(table, 6, 7, deduplicationMode="netChanges", computeUpdates=updates) == []


@pytest.mark.adapter
def test_every_column_is_what_it_says(table):
    frame = table.frame("SELECT * FROM lake.t CHANGES FROM VERSION 3 TO VERSION 3 ORDER BY _change_type")
    assert frame.columns == [
        "x",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
        "_row_id",
        "_version",
    ]
    gone, come = frame.collect()
    assert (gone.x, gone._commit_version, gone._version) == (2, 3, 2)
    assert (come.x, come._commit_version, come._version) == (20, 3, 3)
    assert gone._row_id == come._row_id
    [(at,)] = table.sql("SELECT made_current_at FROM lake.t.history WHERE version = 3")
    assert gone._commit_timestamp == come._commit_timestamp == at


def test_times_say_which_versions_too(table):
    times = dict(table.sql("SELECT version, made_current_at::STRING FROM lake.t.history"))
    ask = "SELECT x FROM lake.t CHANGES FROM TIMESTAMP '{}' {}TO TIMESTAMP '{}' {}"
    assert table.sorted(ask.format(times[3], "", times[5], "")) == [(2,), (20,), (3,), (4,)]
    assert table.sorted(ask.format(times[3], "EXCLUSIVE ", times[5], "EXCLUSIVE")) == [(3,)]
    assert table.sql(f"SELECT x FROM lake.t CHANGES FROM TIMESTAMP '{times[5]}'") == [(4,)]
    assert (
        table.sql("SELECT x FROM lake.t CHANGES FROM TIMESTAMP '2001-01-01' TO TIMESTAMP '2001-01-02'") == []
    )


@pytest.mark.adapter
def test_data_frames_say_it_by_options(table):
    def read(**options: Any) -> list[Any]:
        frame = read_changes(table.spark.read.options(**options), f"{table.name}.t")
        return sorted((tuple(row) for row in frame.select("x", "_change_type").collect()), key=repr)

    assert read(startingVersion=3, endingVersion=4, computeUpdates=True) == sorted(
        [(2, "update_preimage"), (20, "update_postimage"), (3, "delete")], key=repr
    )
    assert read(startingVersion=4, startingBoundInclusive=False) == [(4, "insert")]
    assert len(read()) == 7
    net = read(startingVersion=1, deduplicationMode="netChanges")
    assert net == sorted([(1, "insert"), (20, "insert"), (4, "insert")], key=repr)
    for options, words in (
        ({"startingVersion": 1, "maxFilesPerTrigger": 1}, "is for streams"),
        ({"startingVersion": 1, "colour": "red"}, "colour"),
        ({"startingVersion": "yesterday"}, "versions are numbers"),
        ({"startingVersion": 1, "endingVersion": 9}, "has no version 9"),
        ({"startingVersion": 3, "endingVersion": 2}, "before"),
    ):
        with pytest.raises(Exception, match=words):
            read(**options)


def test_copies_are_shown_where_they_are_asked_for(table):
    raw = changes(table, 4, 4, columns="x, _change_type, _row_id, _version", deduplicationMode="none")
    assert (3, "delete") in [row[:2] for row in raw]
    copies = {(row[0], *row[2:]) for row in raw if row[1] == "insert"}
    assert all((x, "delete", *ids) in raw for x, *ids in copies)
    mode = table.sql("SHOW TBLPROPERTIES lake.t ('lakelog.write.delete.mode')")[0][1]
    assert bool(copies) == (mode == "copy-on-write")


@pytest.mark.adapter
def test_nothing_is_compared_where_rows_are_only_inserted(table):
    def plan(first: int, last: int) -> str:
        frame = table.frame(f"SELECT * FROM lake.t CHANGES FROM VERSION {first} TO VERSION {last}")
        return frame._jdf.queryExecution().executedPlan().toString()

    assert "Exchange" not in plan(2, 2) and "Window" not in plan(5, 5)
    table.sql("INSERT OVERWRITE lake.t VALUES (7)")
    assert "Window" not in plan(6, 6)
    net = "SELECT x FROM lake.t CHANGES FROM VERSION 1 TO VERSION 2 WITH (deduplicationMode = 'netChanges')"
    assert "Window" not in table.frame(net)._jdf.queryExecution().executedPlan().toString()


@pytest.mark.adapter
def test_filters_leave_out_versions_and_no_half_of_a_pair(table):
    ask = "SELECT x, _change_type FROM lake.t CHANGES FROM VERSION 2 TO VERSION 5 {} WHERE {}"
    update = "WITH (computeUpdates = 'true')"
    assert table.sql(ask.format(update, "x = 20")) == [(20, "update_postimage")]
    assert table.sql(ask.format(update, "_change_type = 'delete'")) == [(3, "delete")]
    assert table.sql(ask.format(update, "_commit_version = 5")) == [(4, "insert")]
    assert table.sql(ask.format("", "_change_type = 'delete' AND x > 2")) == [(3, "delete")]
    [(row,)] = table.sql("SELECT _row_id FROM lake.t WHERE x = 20")
    assert table.sorted(ask.format("", f"_row_id = {row}")) == [(2, "delete"), (2, "insert"), (20, "insert")]
    frame = table.frame(ask.format("", "_commit_version > 4"))
    assert frame.collect() and len(frame.inputFiles()) <= 1


def test_changes_join_group_and_are_cached_like_a_table(table):
    ask = "SELECT _change_type, count(*) FROM lake.t CHANGES FROM VERSION 2 TO VERSION 5 GROUP BY 1"
    expected = [("delete", 2), ("insert", 5)]
    assert table.sorted(ask) == expected
    frame = table.frame("SELECT * FROM lake.t CHANGES FROM VERSION 2 TO VERSION 5").cache()
    assert frame.count() == 7
    table.sql("INSERT INTO lake.t VALUES (5)")
    assert frame.count() == 7 and table.sorted(ask) == expected
    frame.unpersist()
    joined_text = "SELECT c.x FROM lake.t CHANGES FROM VERSION 4 AS c JOIN lake.t AS t ON c.x = t.x"
    assert table.sorted(joined_text) == [(4,), (5,)]
    table.sql("CREATE TABLE lake.log AS SELECT * FROM lake.t CHANGES FROM VERSION 2 TO VERSION 5")
    assert table.sorted("SELECT _change_type, count(*) FROM lake.log GROUP BY 1") == expected


@pytest.mark.adapter
def test_changes_are_a_view_and_are_written_like_other_rows(lake):
    lake.sql("CREATE TABLE lake.t (x INT, c CHAR(3))")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a'), (2, 'b')")
    lake.sql("CREATE TABLE lake.u (x INT, c STRING)")
    frame = read_changes(lake.spark.read.options(startingVersion=2, endingVersion=2), f"{lake.name}.t")
    frame.createOrReplaceTempView("changed")
    try:
        for to in ("t", "u"):
            frame.select("x", "c").writeTo(f"{lake.name}.{to}").append()
            lake.sql(f"INSERT INTO lake.{to} SELECT x + 10, c FROM changed")
            lake.sql(
                f"INSERT INTO lake.{to} SELECT x + 20, c FROM lake.t CHANGES FROM VERSION 2 TO VERSION 2"
            )
            lake.sql(
                f"MERGE INTO lake.{to} AS t USING changed AS s ON t.x = s.x + 10 WHEN MATCHED THEN DELETE"
            )
        assert lake.sorted("SELECT x, c, _change_type FROM changed") == [
            (1, "a  ", "insert"),
            (2, "b  ", "insert"),
        ]
    finally:
        lake.spark.catalog.dropTempView("changed")
    assert lake.sorted("SELECT x FROM lake.t") == [(1,), (1,), (2,), (2,), (21,), (22,)]
    assert lake.sorted("SELECT x FROM lake.u") == [(1,), (2,), (21,), (22,)]


def test_a_frame_that_is_read_again_has_what_came_since(table):
    frame = read_changes(table.spark.read.option("startingVersion", 5), f"{table.name}.t").select(
        "x", "_change_type"
    )
    assert [tuple(row) for row in frame.collect()] == [(4, "insert")]
    table.sql("UPDATE lake.t SET x = 40 WHERE x = 4")
    again = read_changes(table.spark.read.option("startingVersion", 5), f"{table.name}.t").select(
        "x", "_change_type"
    )
    expected = [(4, "delete"), (4, "insert"), (40, "insert")]
    assert sorted(tuple(row) for row in again.collect()) == expected
    # Whether Spark looks again or reads what it has found before, copies are never shown.
    assert sorted(tuple(row) for row in frame.collect()) in (expected, [(4, "insert")])


@pytest.mark.adapter
def test_columns_of_all_kinds_and_their_changes(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT NOT NULL, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, m MAP<STRING, INT>, "
        "c CHAR(3), d DECIMAL(10, 2)) PARTITIONED BY (bucket(2, id))"
    )
    row = "({0}, named_struct('a', {0}, 'b', 'x'), array({0}, 2), map('k', {0}), 'ab', {0}.25)"
    lake.sql(f"INSERT INTO lake.t VALUES {row.format(1)}, {row.format(2)}")
    lake.sql("DELETE FROM lake.t WHERE id = 1")
    lake.sql("ALTER TABLE lake.t ADD COLUMN s.c INT")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN d TO e")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN id TYPE BIGINT")
    rows = lake.sql("SELECT id, s.b, s.c, l[0], m['k'], c, e FROM lake.t CHANGES FROM VERSION 3 TO VERSION 6")
    assert [(*row[:6], float(row[6])) for row in rows] == [(1, "x", None, 1, 1, "ab ", 1.25)]
    assert "d" in lake.frame("SELECT * FROM lake.t CHANGES FROM VERSION 3 TO VERSION 3").columns


def test_changes_that_cannot_be_shown_are_refused(lake):
    lake.sql("CREATE TABLE lake.t (x INT)")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    lake.sql("CREATE OR REPLACE TABLE lake.t (x INT)")
    with pytest.raises(PySparkException, match="replaced in version 3"):
        changes(lake, 2, 3)
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.sql("SELECT * FROM lake.nothing CHANGES FROM VERSION 1")
    lake.sql("CREATE TABLE lake.u (_change_type INT)")
    with pytest.raises(PySparkException, match="rename it"):
        lake.sql("SELECT * FROM lake.u CHANGES FROM VERSION 1")
    lake.sql("CREATE TABLE lake.r (_row_id INT, _version INT)")
    lake.sql("INSERT INTO lake.r VALUES (7, 8)")
    assert lake.sql("SELECT _row_id, _version, ___row_id, __version FROM lake.r CHANGES FROM VERSION 2") == [
        (7, 8, 0, 2)
    ]


@pytest.mark.adapter
def test_a_branch_has_changes_of_its_own(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (x INT)")
    lake.sql("INSERT INTO lake.a.t VALUES (1), (2)")
    lake.sql("ALTER TABLE lake.a.t CREATE BRANCH b")
    lake.sql("UPDATE lake.a.t.branch_b SET x = 10 WHERE x = 1")
    lake.sql("INSERT INTO lake.a.t VALUES (3)")
    ask = "SELECT x, _change_type FROM lake.a.t{} CHANGES FROM VERSION {} WITH (computeUpdates = 'true')"
    update = [(1, "update_preimage"), (10, "update_postimage")]
    for _ in range(2):
        assert lake.sorted(ask.format(".branch_b", 4)) == update
        assert lake.sql(ask.format("", 4)) == [(3, "insert")]
    branch = f"{lake.name}.a.t.branch_b"
    frame = read_changes(lake.spark.read.options(startingVersion=4, endingVersion=4), branch)
    assert sorted(row.x for row in frame.collect()) == [1, 10]
    with pytest.raises(PySparkException, match="branch that was created in version 3"):
        lake.sql(ask.format(".branch_b", 3))
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.sql(ask.format(".branch_c", 3))
    stream = read_changes(lake.spark.readStream.option("startingVersion", 4), branch)
    with pytest.raises(Exception, match="A stream reads a table itself"):
        stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()


def test_a_table_is_named_by_its_place_too(table):
    place = table.catalog.load_table("t").location
    assert table.sql(f"SELECT x FROM lake.`{place}` CHANGES FROM VERSION 5") == [(4,)]


def test_a_transaction_sees_changes_up_to_its_moment(table):
    table.sql("CALL lake.system.begin_transaction()")
    assert changes(table, 5) == [(4, "insert")]
    table.catalog.load_table("t").append(table.catalog.load_table("t").scan(limit=1).to_arrow())
    table.sql("DELETE FROM lake.t WHERE x = 1")
    assert changes(table, 5) == [(4, "insert")]
    table.sql("CALL lake.system.rollback_transaction()")
    assert len(changes(table, 5)) == 2


@in_one_mode
@settings(UNSHRUNK, max_examples=1)
@given(data=st.data())
def test_changes_make_any_version_of_any_older_one(lake, mode: str, data: st.DataObject) -> None:
    run(lake, data.draw, mode, 8)
    versions = sorted(version for version in range(1, lake.catalog.load_table("t").version + 1))
    pairs = data.draw(
        st.lists(st.sampled_from(list(itertools.combinations(versions, 2))), min_size=5, max_size=5)
    )
    for number_before, number_after in pairs:
        rows, own_rows = (
            {row[3]: row for row in lake.sql(f"SELECT {COLUMNS} FROM lake.t VERSION AS OF {version}")}
            for version in (number_before, number_after)
        )
        for net in (False, True):
            how = {"deduplicationMode": "netChanges" if net else "dropCarryovers"}
            for updates in (False, True):
                found_changes = changes(
                    lake, number_before + 1, number_after, columns=f"_commit_version, _change_type, {COLUMNS}",
                    computeUpdates=str(updates).lower(), **how,
                )  # fmt: skip
                assert applied(rows, found_changes, net=net) == own_rows, (
                    number_before,
                    number_after,
                    how,
                    updates,
                )


def applied(rows: dict[int, Any], found: list[Any], *, net: bool) -> dict[int, Any]:
    rows = dict(rows)
    for version, kind, *row in sorted(
        found, key=lambda change: (0 if net else change[0], change[1] in ("insert", "update_postimage"))
    ):
        if kind in ("insert", "update_postimage"):
            assert row[3] not in rows, version
            rows[row[3]] = tuple(row)
        else:
            assert rows.pop(row[3]) == tuple(row), version
    return rows
