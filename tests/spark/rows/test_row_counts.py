"""How many rows Spark's statements say that they have changed, held against a plain model of the table.

The history's numbers have to be those of the model, in both row-level modes, whatever clauses a MERGE has; and the
numbers that a transaction adds up, that of a stream's batches and of statements by metadata alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from tests.spark.sessions import another_session
from tests.spark.versions import SPARK_4_2

pytestmark = pytest.mark.adapter

Rows = dict[int, int]
"""The values of a table by their keys."""


def newest(lake, table: str = "lake.t") -> tuple[int | None, ...]:
    """Return the rows inserted, updated and deleted of the newest commit."""
    return counts(lake, table)[0]


def counts(lake, table: str = "lake.t") -> list[tuple[int | None, ...]]:
    rows = lake.sql(f"SELECT rows_inserted, rows_updated, rows_deleted FROM {table}.history")
    return [tuple(row) for row in rows]


def held_rows(lake) -> Rows:
    return dict(lake.sql("SELECT k, v FROM lake.t"))


class Statements:
    """Random statements, each with what the model says of it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def next(self, rows: Rows) -> tuple[str, Rows]:
        kinds = (self.insert, self.update, self.delete, self.merge, self.merge, self.merge)
        return self.rng.choice(kinds)(rows)

    def fresh(self, rows: Rows, count: int) -> list[int]:
        return [max(rows, default=0) + number for number in range(1, count + 1)]

    def insert(self, rows: Rows) -> tuple[str, Rows]:
        new = dict.fromkeys(self.fresh(rows, 3), 0)
        return f"INSERT INTO lake.t VALUES {values(new)}", {**rows, **new}

    def update(self, rows: Rows) -> tuple[str, Rows]:
        every = self.rng.choice((2, 3, 1000))
        numbers_after = {k: v + 1 if k % every == 0 else v for k, v in rows.items()}
        return f"UPDATE lake.t SET v = v + 1 WHERE k % {every} = 0", numbers_after

    def delete(self, rows: Rows) -> tuple[str, Rows]:
        least = self.rng.randrange(max(rows, default=0) + 2)
        return f"DELETE FROM lake.t WHERE k BETWEEN {least} AND {least + 1}", {
            k: v for k, v in rows.items() if k not in (least, least + 1)
        }

    def merge(self, rows: Rows) -> tuple[str, Rows]:
        rng = self.rng
        keys = rng.sample(sorted(rows), min(len(rows), rng.randrange(5))) + self.fresh(rows, rng.randrange(3))
        source = {key: rng.randrange(4) for key in keys} or {-1: 0}
        chosen_clauses = rng.sample(sorted(CLAUSES), rng.randint(1, 4))
        clauses = [clause for clause in CLAUSES if clause in chosen_clauses]
        text = " ".join(CLAUSES[clause] for clause in clauses)
        given_text = f"(SELECT * FROM VALUES {values(source)} AS s(k, v)) AS s"
        return f"MERGE INTO lake.t AS t USING {given_text} ON t.k = s.k {text}", merged_rows(
            rows, source, clauses
        )


CLAUSES = {
    "delete some": "WHEN MATCHED AND s.v = 1 THEN DELETE",
    "update some": "WHEN MATCHED AND s.v = 2 THEN UPDATE SET v = t.v + 10",
    "update all": "WHEN MATCHED THEN UPDATE SET v = s.v",
    "insert": "WHEN NOT MATCHED AND s.v <> 3 THEN INSERT (k, v) VALUES (s.k, s.v)",
    "delete others": "WHEN NOT MATCHED BY SOURCE AND t.v % 7 = 3 THEN DELETE",
    "update others": "WHEN NOT MATCHED BY SOURCE AND t.k % 3 = 1 THEN UPDATE SET v = t.v",
}
UPDATED = 10**6
"""Added by the model to what a statement has updated, so that a value that stays counts too."""


def merged_rows(rows: Rows, source: Mapping[int, int], clauses: list[str]) -> Rows:
    after: Rows = {}
    for k, v in rows.items():
        found_clauses = [
            clause for clause in clauses if clause != "insert" and applies(clause, k, v, source.get(k))
        ]
        if not found_clauses:
            after[k] = v
        elif not found_clauses[0].startswith("delete"):
            new = {"update some": v + 10, "update all": source.get(k, 0), "update others": v}[
                found_clauses[0]
            ]
            after[k] = new + UPDATED
    if "insert" in clauses:
        after |= {k: v for k, v in source.items() if k not in rows and v != 3}
    return after


def applies(clause: str, k: int, v: int, of_source: int | None) -> bool:
    return {
        "delete some": of_source == 1,
        "update some": of_source == 2,
        "update all": of_source is not None,
        "delete others": of_source is None and v % 7 == 3,
        "update others": of_source is None and k % 3 == 1,
    }[clause]


def values(rows: Mapping[int, int]) -> str:
    return ", ".join(f"({k}, {v})" for k, v in rows.items())


def play(lake, seed: int, statements: int) -> None:
    rng = random.Random(seed)
    mode = ("merge-on-read", "copy-on-write")[seed % 2]
    modes = ", ".join(
        f"'lakelog.write.{operation}.mode' = '{mode}'" for operation in ("delete", "update", "merge")
    )
    lake.sql(f"CREATE OR REPLACE TABLE lake.t (k INT, v INT) TBLPROPERTIES ({modes})")
    rows = dict.fromkeys(range(1, 13), 0)
    lake.sql(f"INSERT INTO lake.t SELECT /*+ COALESCE(2) */ * FROM VALUES {values(rows)}")
    assert newest(lake) == (12, 0, 0)
    commits = len(counts(lake))
    for _ in range(statements):
        sql, after = Statements(rng).next(rows)
        lake.sql(sql)
        now = {k: v - UPDATED if v >= UPDATED // 2 else v for k, v in after.items()}
        inserted_rows, deleted_rows = after.keys() - rows.keys(), rows.keys() - after.keys()
        updated_numbers = [k for k in after.keys() & rows.keys() if after[k] != rows[k]]
        assert held_rows(lake) == now, sql
        found_counts = counts(lake)
        expected = (len(inserted_rows), len(updated_numbers), len(deleted_rows))
        if len(found_counts) > commits or any(expected):
            assert found_counts[0] == expected, sql
        commits, rows = len(found_counts), now


def test_numbers_of_random_statements_are_those_of_a_plain_model(lake):
    for seed in range(2):
        play(lake, seed, 6)


@pytest.mark.slow
def test_numbers_of_many_random_statements_are_those_of_a_plain_model(lake):
    for seed in range(2, 22):
        play(lake, seed, 12)


def test_the_history_in_deltas_words_has_them_by_its_names(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id AS k, 0 AS v FROM range(3)")
    lake.sql("UPDATE lake.t SET v = 1 WHERE k = 0")
    lake.sql(
        "MERGE INTO lake.t AS t USING (SELECT id AS k FROM range(2, 5)) AS s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 0)"
    )
    lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('a' = 'b')")
    found = [row[5] for row in lake.sql("DESCRIBE HISTORY lake.t")]
    merge = dict(Inserted="2", Updated="0", Deleted="1", Copied="0")
    assert found == [
        {},
        {f"numTargetRows{name}": number for name, number in merge.items()},
        {"numUpdatedRows": "1", "numCopiedRows": "0"},
        {"numOutputRows": "3"},
    ]


def test_statements_by_metadata_and_whole_tables_have_numbers(lake):
    lake.sql("CREATE TABLE lake.t PARTITIONED BY (p) AS SELECT id AS k, id % 3 AS p FROM range(9)")
    assert newest(lake) == (9, 0, 0)
    for sql, expected in (
        ("DELETE FROM lake.t WHERE k = 0", (0, 0, 1)),
        ("DELETE FROM lake.t WHERE p = 0", (0, 0, 2)),
        ("INSERT OVERWRITE lake.t PARTITION (p = 1) VALUES (10), (11)", (2, 0, 3)),
        ("INSERT INTO lake.t REPLACE WHERE k = 10 VALUES (10, 1), (10, 2)", (2, 0, 1)),
        ("MERGE INTO lake.t AS t USING (SELECT 77L AS k) AS s ON t.k = s.k "
         "WHEN NOT MATCHED THEN INSERT (k, p) VALUES (s.k, 7)", (1, 0, 0)),
        ("TRUNCATE TABLE lake.t", (0, 0, 7)),
        ("ALTER TABLE lake.t SET TBLPROPERTIES ('a' = 'b')", (None, None, None)),
        ("CREATE OR REPLACE TABLE lake.t AS SELECT id AS k FROM range(4)", (4, 0, None)),
    ):  # fmt: skip
        lake.sql(sql)
        assert newest(lake) == expected, sql
        [(table, version, _, _, *numbers, copied, _)] = lake.sql("CALL lake.system.last_commit()")
        assert (table, version, tuple(numbers)) == ("`t`", len(counts(lake)), expected), sql
        assert copied == (None if numbers[0] is None else 0)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_statements_of_a_transaction_are_added_up_also_of_rows_that_it_has_added(lake, mode):
    modes = f"'lakelog.write.update.mode' = '{mode}', 'lakelog.write.merge.mode' = '{mode}'"
    lake.sql(f"CREATE TABLE lake.t (k INT, v INT) TBLPROPERTIES ({modes})")
    lake.sql("INSERT INTO lake.t VALUES (1, 0), (2, 0)")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 0), (4, 0), (5, 0)")
    lake.sql("UPDATE lake.t SET v = 1 WHERE k IN (1, 4)")
    lake.sql(
        "MERGE INTO lake.t AS t USING (SELECT explode(array(5, 6)) AS k) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 0)"
    )
    lake.sql("CALL lake.system.commit_transaction()")
    # An older Spark does not say which rows of a rewritten file an UPDATE changed, and new rows have no version yet.
    updated_count = 3 if SPARK_4_2 or mode == "merge-on-read" else None
    assert newest(lake) == (4, updated_count, 0)
    assert held_rows(lake) == {1: 1, 2: 0, 3: 0, 4: 1, 5: 2, 6: 0}


def test_the_last_commit_is_the_sessions_own_and_has_all_tables_of_a_transaction(lake):
    other_session = another_session(lake)
    assert lake.sql("CALL lake.system.last_commit()") == []
    for table in ("t", "u"):
        lake.sql(f"CREATE TABLE lake.{table} (k INT)")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t VALUES (1), (2)")
    lake.sql("INSERT INTO lake.u SELECT k FROM lake.t WHERE k = 1")
    [(_, version, _, operation, *_)] = lake.sql("CALL lake.system.last_commit()")
    assert (version, operation) == (1, "create")
    lake.sql("CALL lake.system.commit_transaction()")
    other_session.sql("INSERT INTO lake.t VALUES (3)")
    found = {(row[0], row[1], row[3], row[4]) for row in lake.sql("CALL lake.system.last_commit()")}
    assert found == {("`t`", 2, "append", 2), ("`u`", 2, "append", 1)}
    assert [row[1] for row in other_session.sql("CALL lake.system.last_commit()")] == [3]
    lake.sql("DROP TABLE lake.u")
    assert [row[3] for row in lake.sql("CALL lake.system.last_commit()")] == ["drop"]
