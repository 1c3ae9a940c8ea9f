"""Rows keep their ids, and the versions that changed them, whatever DELETE, UPDATE, MERGE and compactions do."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import Lake
from tests.spark.sql.rows import MODES, in_mode, in_one_mode

from lakelog.catalog import Table
from lakelog.catalog.core.files.row_ids import OWN_FIELD_IDS, ROW_ID, ROW_VERSION

Known = dict[int, tuple[int | None, int | None]]
"""The row id and version of each row, by its column `id`."""


def known(lake: Lake, of: str = "") -> Known:
    """Read them in Spark, and see that Python and a plan that asks for nothing else have the same."""
    rows = lake.sql(f"SELECT id, _row_id, _version FROM lake.t {of}")
    own = {id: (row, version) for id, row, version in rows}
    assert len(own) == len(rows)
    ids = [row for row, _ in own.values() if row is not None]
    assert len(ids) == len(set(ids))
    if not of:
        assert own == by_python(lake.catalog.load_table("t"))
        assert lake.sorted("SELECT _row_id FROM lake.t") == sorted(
            ((row,) for row, _ in own.values()), key=repr
        )
    return own


def by_python(table: Table) -> Known:
    columns = table.scan(["id"], row_ids=True).to_arrow().to_pydict()
    return dict(
        zip(columns["id"], zip(columns["_row_id"], columns["_row_version"], strict=True), strict=True)
    )


def integers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([0] * len(ids), pa.int32())})


def compact(lake: Lake) -> int:
    """Write small files, and those with deleted rows, anew; return the version that the table has then."""
    return int(lake.sql("CALL lake.system.compact('t', deleted_ratio => 0)")[0][-1])


@pytest.fixture
def rows(lake: Lake, mode: str) -> Lake:
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, k STRING, v INT) PARTITIONED BY (k) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t SELECT id, IF(id % 2 = 0, 'a', 'b'), 0 FROM range(0, 20, 1, 2)")
    lake.sql("INSERT INTO lake.t SELECT id, 'a', 1 FROM range(20, 30, 1, 1)")
    return lake


@pytest.mark.adapter
@in_one_mode
def test_rows_keep_ids_and_versions_through_all_statements(rows: Lake, mode: str) -> None:
    lake, own = rows, known(rows)
    assert {version for _, version in own.values()} == {2, 3}
    version = 3

    def run(
        sql: str,
        *,
        changed: Collection[int] = (),
        gone: Collection[int] = (),
        new: Collection[int] = (),
    ) -> None:
        nonlocal own, version
        version += 1
        lake.sql(sql)
        assert lake.catalog.load_table("t").version == version
        facts, seen_rows = known(lake), {row for row, _ in own.values()}
        assert set(facts) == (set(own) - set(gone)) | set(new)
        for id in set(own) - set(gone):
            assert facts[id] == ((own[id][0], version) if id in changed else own[id]), (sql, id)
        for id in new:
            assert facts[id][1] == version and facts[id][0] is not None and facts[id][0] not in seen_rows
        own = facts

    run("UPDATE lake.t SET v = 5 WHERE id IN (3, 4, 25)", changed={3, 4, 25})
    run("UPDATE lake.t SET k = 'c' WHERE id IN (4, 6)", changed={4, 6})
    run("DELETE FROM lake.t WHERE id IN (5, 26)", gone={5, 26})
    run("UPDATE lake.t SET v = 6 WHERE id = (SELECT max(id) FROM lake.t WHERE id < 9)", changed={8})
    run(
        "MERGE INTO lake.t USING (SELECT explode(array(4L, 7L, 8L, 100L, 101L)) AS id) AS s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET v = t.v + 1 "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'a') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 29 THEN UPDATE SET k = 'd' "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 28 THEN DELETE",
        changed={4, 8, 29}, gone={7, 28}, new={100, 101},
    )  # fmt: skip
    # Rows may be found by what is known of them, too.
    run(f"DELETE FROM lake.t WHERE _row_id = {own[9][0]}", gone={9})
    run(f"UPDATE lake.t SET v = CAST(_row_id AS INT) WHERE _version = {own[3][1]} AND id = 3", changed={3})
    run(
        f"MERGE INTO lake.t USING (SELECT id FROM lake.t WHERE _row_id = {own[100][0]}) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 9",
        changed={100},
    )
    # Columns of a source may have the names that the target's metadata columns have, as those of CHANGES do.
    run(
        "MERGE INTO lake.t USING (SELECT id AS _row_id, 1L AS _version FROM lake.t WHERE id = 100) AS s "
        "ON t.id = s._row_id AND s._version = 1 WHEN MATCHED THEN UPDATE SET v = s._version",
        changed={100},
    )
    # So may those of a MERGE's target be, by types as they are and by others.
    run(
        f"MERGE INTO lake.t AS t USING (SELECT {own[100][0]}L AS which) AS s ON t._row_id = s.which "
        "WHEN MATCHED AND t._version = 2L THEN DELETE WHEN MATCHED THEN UPDATE SET v = CAST(t._pos AS INT)",
        changed={100},
    )
    run(
        f"MERGE INTO lake.t AS t USING (SELECT {own[100][0]} AS which) AS s ON t._row_id = s.which AND t._version >= 2 "
        "WHEN MATCHED AND t._pos + 1 > 0 THEN UPDATE SET v = CAST(t._version AS INT) "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (1000)",
        changed={100},
    )
    run(
        "MERGE INTO lake.t AS t USING (SELECT *, _file AS f, _pos AS p FROM lake.t) AS s "
        "ON t._file = s.f AND t._pos = s.p AND t.id IN (0, 2) WHEN MATCHED AND t.id = 2 THEN UPDATE SET * "
        "WHEN NOT MATCHED BY SOURCE AND t._row_id < 0 THEN DELETE",
        changed={2},
    )
    lake.sql(
        f"MERGE INTO lake.t AS t USING (SELECT {own[100][0]} AS which) AS s ON t._row_id = s.which "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (1000)"
    )
    run(
        f"UPDATE lake.t SET v = 7 WHERE _version = {own[100][1]}L AND id = 100 "
        "AND _row_id IN (SELECT _row_id FROM lake.t)",
        changed={100},
    )
    run(f"DELETE FROM lake.t WHERE _row_id = {own[100][0]}L", gone={100})
    run("INSERT INTO lake.t VALUES (200, 'a', 0)", new={200})
    version += 1
    assert compact(lake) == version
    assert known(lake) == own and len(lake.catalog.load_table("t").plan()) < 6
    run("UPDATE lake.t SET v = v + 1 WHERE k = 'a' AND id < 15", changed={0, 2, 8, 10, 12, 14})
    run("DELETE FROM lake.t WHERE k = 'b'", gone={id for id in own if id % 2 and id < 20})
    # What is left out by filters changes nothing of what is read.
    assert known(lake, "WHERE k = 'a' AND id BETWEEN 10 AND 21") == {
        id: own[id] for id in (10, 12, 14, 16, 18, 20, 21)
    }
    assert known(lake, "LIMIT 3").items() <= own.items()
    assert lake.frame("SELECT * FROM lake.t").columns == ["id", "k", "v"]


@in_one_mode
def test_no_statement_sets_what_lakelog_keeps_of_rows(rows: Lake, mode: str) -> None:
    lake, own = rows, known(rows)
    for change in ("_row_id = 7", "v = 1, _VERSION = 7", "_pos = _pos + 1", "_file = 'x'", "_version = NULL"):
        with pytest.raises(Exception, match="metadata column _.* cannot be set"):
            lake.sql(f"UPDATE lake.t SET {change} WHERE id = 2")
    for clause in (
        "WHEN MATCHED THEN UPDATE SET v = 1, _row_id = 7L",
        "WHEN NOT MATCHED THEN INSERT (id, _Version) VALUES (1, 2)",
    ):
        with pytest.raises(Exception, match="metadata column _.* cannot be set"):
            lake.sql(f"MERGE INTO lake.t USING (SELECT 2L AS id) AS s ON t.id = s.id {clause}")
    assert known(lake) == own


@pytest.mark.parametrize("mode", MODES)
def test_columns_of_files_are_no_columns_of_the_table(rows: Lake, mode: str) -> None:
    lake = rows
    lake.sql("UPDATE lake.t SET v = 5 WHERE id IN (3, 4, 25)")
    lake.sql("INSERT INTO lake.t VALUES (300, 'a', 0)")
    lake.sql("ANALYZE TABLE lake.t COMPUTE STATISTICS FOR ALL COLUMNS")
    table = lake.catalog.load_table("t")
    assert table.to_arrow().column_names == ["id", "k", "v"]
    paths = [f"{table.location}/{path}" for path in table.plan()["path"].to_pylist()]
    read = [set(lake.spark.read.parquet(path).columns) for path in paths]
    for file in map(pq.read_schema, paths):
        for name in {ROW_ID, ROW_VERSION} & set(file.names):
            assert file.field(name).metadata == {b"PARQUET:field_id": str(OWN_FIELD_IDS[name]).encode()}
    assert {ROW_ID, ROW_VERSION} <= set.union(*read), "rows that came from elsewhere bring their ids along"
    assert not all(ROW_ID in columns for columns in read), "an append writes none"
    for text in ("DESCRIBE lake.t", "SELECT * FROM lake.t.files LIMIT 5"):
        assert "lakelog_row" not in str(lake.sql(text)).replace(".parquet", "")


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_before_there_were_ids_get_some_when_they_are_written_anew(lake: Lake, mode: str) -> None:
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, v INT) {in_mode(mode)}")
    with patch("lakelog.catalog.core.writes.file_changes.with_ids", lambda files, next_row: list(files)):
        lake.catalog.load_table("t").append(integers(1, 2))
    assert known(lake) == {1: (None, None), 2: (None, None)}
    lake.sql("UPDATE lake.t SET v = 1 WHERE id = 2")
    facts = known(lake)
    assert facts[2][0] is not None and facts[2][1] == 3
    assert facts[1] == (None, None) if mode == "merge-on-read" else facts[1] != facts[2]


@pytest.mark.parametrize("mode", MODES)
def test_a_transaction_that_changes_its_own_rows_takes_no_ids_of_other_rows(lake: Lake, mode: str) -> None:
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, v INT) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1, 0), (2, 0)")
    own = known(lake)
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t VALUES (3, 0), (4, 0), (5, 0)")
    lake.sql("UPDATE lake.t SET v = 1 WHERE id IN (2, 3)")
    lake.sql("DELETE FROM lake.t WHERE id = 4")
    assert {id: row for id, row, in lake.sql("SELECT id, _row_id FROM lake.t")} == {
        1: own[1][0], 2: own[2][0], 3: None, 5: None,
    }  # fmt: skip
    lake.catalog.load_table("t").append(integers(6, 7))
    lake.sql("CALL lake.system.commit_transaction()")
    facts = known(lake)
    assert set(facts) == {1, 2, 3, 5, 6, 7}
    assert (facts[1], facts[2]) == (own[1], (own[2][0], 4))
    assert {version for _, version in facts.values()} == {2, 3, 4}


@in_one_mode
def test_ids_are_unique_and_stay_in_a_random_sequence(lake: Lake, mode: str) -> None:
    chance = random.Random(f"rows of {mode}")
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, v INT) {in_mode(mode)} ")
    own: Known = {}
    given: set[int | None] = set()
    past: dict[int, Known] = {}

    def some() -> tuple[str, set[int]]:
        modulus = chance.choice((2, 3, 5, 7))
        remaining_number = chance.randrange(modulus)
        return f"t.id % {modulus} = {remaining_number}", {
            id for id in own if id % modulus == remaining_number
        }

    def insert() -> tuple[str, set[int], set[int], set[int]]:
        first = len(given) * 10
        sql = f"INSERT INTO lake.t SELECT id, 0 FROM range({first}, {first + 7}, 1, 2)"
        return sql, set(), set(), set(range(first, first + 7))

    def delete() -> tuple[str, set[int], set[int], set[int]]:
        where, chosen_numbers = some()
        return f"DELETE FROM lake.t WHERE {where}", set(), chosen_numbers, set()

    def update() -> tuple[str, set[int], set[int], set[int]]:
        where, chosen_numbers = some()
        return f"UPDATE lake.t SET v = v + 1 WHERE {where}", chosen_numbers, set(), set()

    def merge() -> tuple[str, set[int], set[int], set[int]]:
        (where, count), first = some(), len(given) * 10 + 1
        chosen_numbers = set(chance.sample(sorted(own), min(6, len(own))))
        source = ", ".join(f"{id}L" for id in sorted(chosen_numbers | {first}))
        sql = (
            f"MERGE INTO lake.t USING (SELECT explode(array({source})) AS id) AS s ON t.id = s.id "
            f"WHEN MATCHED AND {where} THEN DELETE WHEN MATCHED THEN UPDATE SET v = v + 1 "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)"
        )
        return sql, chosen_numbers - count, chosen_numbers & count, {first}

    steps: list[Callable[[], tuple[str, set[int], set[int], set[int]]]] = [insert, insert]
    steps += [chance.choice((insert, delete, update, update, merge, merge)) for _ in range(10)]
    for step in steps:
        sql, changed_numbers, removed_numbers, new = step()
        lake.sql(sql)
        table = lake.catalog.load_table("t")
        if table.version in past:
            assert not changed_numbers | removed_numbers | new, sql
            continue
        found = by_python(table)
        kept_rows = {
            id: (row, table.version if id in changed_numbers else version)
            for id, (row, version) in own.items()
            if id not in removed_numbers
        }
        assert set(found) == set(kept_rows) | new, sql
        assert {id: found[id] for id in kept_rows} == kept_rows, sql
        fresh = {found[id][0] for id in new}
        assert len(fresh) == len(new) and not fresh & given and None not in fresh
        assert all(found[id][1] == table.version for id in new)
        given |= fresh
        own = past[table.version] = found
        if chance.random() < 0.25:
            past[compact(lake)] = own
    for version, then in past.items():
        assert known(lake, f"VERSION AS OF {version}") == then
