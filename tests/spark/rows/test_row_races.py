"""Changes of rows that race, from sessions and from Python: acknowledged changes exist once, failed changes do not."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S
from tests.spark.conftest import Lake
from tests.spark.hooks import HOOK
from tests.spark.sessions import another_session
from tests.spark.sql.rows import MODES, in_mode, in_one_mode

from lakelog.catalog import CommitConflict, col

RACE_S = 5
COUNTERS, KEYS = range(3), range(2000, 2003)
DOOMED = range(20, 60)
SHARED = range(60, 70)
"""Rows that several delete at once."""


@dataclass
class Acknowledged:
    """What came to its end, and how often others were in the way."""

    added: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    increments: Counter[int] = field(default_factory=Counter)
    conflicts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


Try = Callable[[], Callable[[Acknowledged], object]]
"""Makes a change, and returns what is to be written down when that was acknowledged."""


def appends(lake: Lake) -> Iterator[Try]:
    for id in range(1000, 2000):

        def change(id: int = id) -> Callable[[Acknowledged], object]:
            lake.sql(f"INSERT INTO lake.t VALUES ({id}, 0)")
            return lambda known: known.added.append(id)

        yield change


def appends_of_python(lake: Lake) -> Iterator[Try]:
    catalog = lake.catalog
    for id in range(3000, 4000):

        def change(id: int = id) -> Callable[[Acknowledged], object]:
            catalog.load_table("t").append(pa.table({"id": [id], "v": [0]}))
            time.sleep(0.1)
            return lambda known: known.added.append(id)

        yield change


def deletes(lake: Lake, ids: range) -> Iterator[Try]:
    for id, shared_number in zip(ids, SHARED, strict=False):

        def change(gone: tuple[int, int] = (id, shared_number)) -> Callable[[Acknowledged], object]:
            lake.sql(f"DELETE FROM lake.t WHERE id IN {gone}")
            return lambda known: known.deleted.extend(gone)

        yield change


def deletes_of_python(lake: Lake, ids: range) -> Iterator[Try]:
    catalog = lake.catalog
    for id, shared_number in zip(ids, SHARED, strict=False):

        def change(gone: tuple[int, int] = (id, shared_number)) -> Callable[[Acknowledged], object]:
            catalog.load_table("t").delete(col("id").is_in(gone))
            time.sleep(0.2)
            return lambda known: known.deleted.extend(gone)

        yield change


def updates(lake: Lake) -> Iterator[Try]:
    def change() -> Callable[[Acknowledged], object]:
        lake.sql(f"UPDATE lake.t SET v = v + 1 WHERE id <= {COUNTERS[-1]}")
        return lambda known: known.increments.update(COUNTERS)

    while True:
        yield change


def merges(lake: Lake) -> Iterator[Try]:
    def change() -> Callable[[Acknowledged], object]:
        lake.sql(
            f"MERGE INTO lake.t USING (SELECT id FROM range({KEYS[0]}, {KEYS[-1] + 1})) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = v + 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 1)"
        )
        return lambda known: known.increments.update(KEYS)

    while True:
        yield change


def compactions(lake: Lake) -> Iterator[Try]:
    def change() -> Callable[[Acknowledged], object]:
        lake.sql("CALL lake.system.compact('t')")
        return lambda known: None

    while True:
        yield change


def race(tries: Iterator[Try], known: Acknowledged, deadline: float) -> None:
    """Go on until the time is over, one change has been acknowledged, and one of any actor has conflicted."""
    done_count = 0
    for change in tries:
        try:
            write_down = change()
        except Exception as error:
            assert isinstance(error, CommitConflict) or "conflict" in str(error).lower(), error
            with known.lock:
                known.conflicts += 1
        else:
            done_count += 1
            with known.lock:
                write_down(known)
        now_s = time.monotonic()
        if done_count and now_s > deadline and (known.conflicts or now_s > deadline + PATIENCE_S):
            return


@in_one_mode
def test_of_changes_that_race_each_happens_once_or_fails_and_no_row_comes_back(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, CAST(0 AS BIGINT) AS v FROM range(0, 70, 1, 2)"
    )
    first, known = lake.catalog.load_table("t").version, Acknowledged()
    actors = [
        appends(another_session(lake)),
        deletes(another_session(lake), DOOMED[0::2]),
        updates(another_session(lake)),
        updates(another_session(lake)),
        merges(another_session(lake)),
        merges(another_session(lake)),
        compactions(another_session(lake)),
        appends_of_python(lake),
        deletes_of_python(lake, DOOMED[1::2]),
    ]
    deadline = time.monotonic() + RACE_S
    with ThreadPoolExecutor(len(actors)) as pool:
        for future in [pool.submit(race, actor, known, deadline) for actor in actors]:
            future.result()
    assert known.conflicts, "no writer met a conflict"
    expected = {id: 0 for id in range(70) if id not in known.deleted} | dict.fromkeys(known.added, 0)
    expected |= known.increments
    assert lake.sorted("SELECT * FROM lake.t") == sorted(expected.items(), key=repr)
    assert lake.sql("SELECT count(DISTINCT _row_id) FROM lake.t") == [(len(expected),)]

    before: dict[int, int] = {}
    removed_numbers: set[int] = set()
    for version in range(first, lake.catalog.load_table("t").version + 1):
        rows = lake.catalog.load_table("t", version=version).to_arrow().to_pylist()
        now = {row["id"]: row["v"] for row in rows}
        assert len(now) == len(rows), f"rows are there twice in version {version}"
        removed_numbers |= before.keys() - now.keys()
        assert not removed_numbers & now.keys(), f"rows have come back in version {version}"
        assert all(now[id] >= v for id, v in before.items() if id in now), (
            f"a change is lost in version {version}"
        )
        before = now
    assert removed_numbers == set(known.deleted)
    # A copy is left to vacuum where others have deleted all of its rows meanwhile.
    found = lake.catalog.fsck(deep=True).found
    assert [each for each in found if each.kind != "data-file-unused"] == []


def run_meanwhile(lake: Lake, folder: Path, statement: str, other: Callable[[], object]) -> None:
    """Run a statement, and `other` while it runs: when its function `slow` has been called, and before that returns."""
    gate, started_folder = folder / "gate", folder / "started"
    for file in (gate, started_folder):
        file.unlink(missing_ok=True)

    def slow(id):
        started_folder.touch()
        while not gate.exists():
            time.sleep(0.05)
        return id

    lake.spark.udf.register("slow", slow, "BIGINT")
    with ThreadPoolExecutor(1) as pool:
        running_future = pool.submit(lake.sql, statement)
        try:
            while not started_folder.exists() and not running_future.done():
                time.sleep(0.05)
            assert started_folder.exists(), running_future.result()
            other()
        finally:
            gate.touch()
        running_future.result()


@pytest.mark.adapter
@pytest.mark.parametrize(
    ("other", "is_in_the_way"),
    [
        ("UPDATE lake.t SET id = 9 WHERE id = 1 AND k = 'b'", False),
        ("UPDATE lake.t SET id = 9 WHERE id = 0 AND k = 'a'", True),
        ("INSERT INTO lake.t VALUES (9, 'a')", False),
    ],
)
def test_a_merge_that_only_adds_rows_has_read_what_could_match_and_no_more(
    lake, tmp_path, other, is_in_the_way
):
    lake.sql(
        "CREATE TABLE lake.t PARTITIONED BY (k) AS SELECT id, IF(id = 0, 'a', 'b') AS k FROM range(0, 2, 1, 1)"
    )
    session = another_session(lake)
    merge = (
        "MERGE INTO lake.t USING (SELECT slow(id) AS id FROM range(9, 10)) s ON t.id = s.id AND t.k = 'a' "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'a')"
    )
    with pytest.raises(Exception, match="should have seen") if is_in_the_way else nullcontext():
        run_meanwhile(lake, tmp_path, merge, lambda: session.sql(other))
    assert lake.sql("SELECT count(*) FROM lake.t WHERE id = 9") == [(1 if is_in_the_way else 2,)]


@pytest.mark.adapter
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_a_delete_that_depends_on_rows_fails_over_their_end_where_that_matters(
    lake, tmp_path, mode, isolation
):
    lake.sql(
        "CREATE TABLE lake.t PARTITIONED BY (k) TBLPROPERTIES "
        f"('lakelog.write.delete.mode' = '{mode}', 'lakelog.isolation' = '{isolation}') "
        "AS SELECT id, IF(id < 3, 'a', 'b') AS k FROM range(0, 6, 1, 1)"
    )

    def delete_meanwhile(statement: str, id: int) -> None:
        # Spark's cores may all be busy with calls that do not return.
        run_meanwhile(lake, tmp_path, statement, lambda: lake.catalog.load_table("t").delete(col("id") == id))

    nearby_number = 2 if mode == "merge-on-read" else 3
    delete_meanwhile("DELETE FROM lake.t WHERE k = 'a' AND slow(id) = 0", nearby_number)
    assert lake.sorted("SELECT id FROM lake.t") == [(id,) for id in range(1, 6) if id != nearby_number]
    matters = isolation == "serializable"
    with pytest.raises(Exception, match="has read") if matters else nullcontext():
        delete_meanwhile(
            "DELETE FROM lake.t WHERE k = 'a' AND id = 1 "
            "AND EXISTS (SELECT 1 FROM lake.t WHERE k = 'b' AND slow(id) = 4)",
            4,
        )
    remaining_numbers = {1, 2, 3, 5} - {nearby_number} - (set() if matters else {1})
    assert lake.sorted("SELECT id FROM lake.t") == [(id,) for id in sorted(remaining_numbers)]


@pytest.mark.adapter
@pytest.mark.parametrize("mode", MODES)
def test_no_statement_fails_where_a_compaction_overtakes_it(lake, tmp_path, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0L AS v FROM range(0, 20, 1, 1)")
    expected: dict[int, int | None] = {id: 0 for id in range(20)}
    statements: list[tuple[str, dict[int, int | None]]] = [
        ("UPDATE lake.t SET v = 1 WHERE slow(id) = 3", {3: 1}),
        ("DELETE FROM lake.t WHERE slow(id) = 4", {4: None}),
        (
            "MERGE INTO lake.t USING (SELECT slow(id) AS id FROM range(5, 6)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = 2",
            {5: 2},
        ),
        ("INSERT INTO lake.t REPLACE WHERE id = 7 SELECT slow(id), 5L FROM range(7, 8)", {7: 5}),
    ]
    for number, (statement, new_statement) in enumerate(statements):
        lake.sql(f"INSERT INTO lake.t VALUES ({100 + number}, 0)")
        expected[100 + number] = 0
        version_before = lake.catalog.load_table("t").version
        run_meanwhile(
            lake, tmp_path, statement, lambda: lake.catalog.load_table("t").compact(deleted_ratio=0)
        )
        expected |= new_statement
        operations = [each.operation for each in lake.catalog.load_table("t").history(limit=2)]
        assert operations[1] == "compact" and lake.catalog.load_table("t").version == version_before + 2
        remaining_ids = sorted((id, v) for id, v in expected.items() if v is not None)
        assert sorted(tuple(row) for row in lake.sql("SELECT id, v FROM lake.t")) == remaining_ids


# Where the file `armed` appears, the next commit of rows waits until the file `go` does.
HELD = (
    HOOK
    + """
import pathlib, time
folder = pathlib.Path({folder!r})
def held(commit):
    def call(at, asked):
        try:
            (folder / "armed").rename(folder / "waits")
        except FileNotFoundError:
            return commit(at, asked)
        while not (folder / "go").exists():
            time.sleep(0.01)
        (folder / "go").unlink()
        return commit(at, asked)
    return call
hook("commit_rows", held)
"""
)


def merge(keys: str, change: str) -> str:
    return merge_from(f"VALUES {keys} AS s (id)", change)


def merge_from(source: str, change: str) -> str:
    return (
        f"MERGE INTO lake.t USING (SELECT id FROM {source}) s ON t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET v = {change} WHEN NOT MATCHED THEN INSERT (id, g, v) VALUES (s.id, 9, 1)"
    )


DISJOINT = [
    ("UPDATE lake.t SET v = v + 1 WHERE id IN (0, 4)", "UPDATE lake.t SET v = v + 10 WHERE id IN (1, 7)"),
    (merge("(0L), (3L), (20L)", "v + 1"), merge("(2L), (4L), (21L)", "v + 10")),
    ("UPDATE lake.t SET v = v + 1 WHERE g = 0", merge("(5L), (7L)", "v + 10")),
    ("DELETE FROM lake.t WHERE id = 6", "UPDATE lake.t SET v = v + 10 WHERE id <> 6"),
]
MEETING = [
    (merge("(3L), (30L)", "v + 1"), merge("(29L), (30L)", "v + 10")),
    ("UPDATE lake.t SET v = v + 1 WHERE g = 0", "UPDATE lake.t SET g = 0 WHERE id = 5"),
]
"""Statements of which the second is committed while the first waits to be. Where they meet, the first one fails."""


def commit_meanwhile(lake: Lake, folder: Path, statement: str, other: Callable[[], object]) -> None:
    """Run a statement, and `other` before it commits."""
    waits = folder / "waits"
    waits.unlink(missing_ok=True)
    (folder / "armed").touch()
    with ThreadPoolExecutor(1) as pool:
        running_future = pool.submit(lake.sql, statement)
        try:
            while not waits.exists() and not running_future.done():
                time.sleep(0.02)
            assert waits.exists(), running_future.result()
            other()
        finally:
            (folder / "go").touch()
        running_future.result()


@pytest.mark.adapter
@pytest.mark.parametrize("mode", MODES)
def test_changes_of_other_rows_of_one_file_go_through(make_lake, warm, tmp_path, mode):
    lake = make_lake(python=warm.program(tmp_path, HELD.format(folder=str(tmp_path))))
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, id % 3 AS g, 0L AS v FROM range(0, 8, 1, 1)")
    lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('lakelog.isolation' = 'serializable')")
    session = another_session(lake)
    for first, second in DISJOINT:
        commit_meanwhile(lake, tmp_path, first, partial(session.sql, second))
    changed = {0: 13, 1: 20, 2: 20, 3: 12, 4: 21, 5: 20, 7: 30}
    rows = {**{id: (id % 3, v) for id, v in changed.items()}, 20: (9, 11), 21: (9, 11)}
    assert lake.sorted("SELECT * FROM lake.t") == sorted([(id, *row) for id, row in rows.items()], key=repr)
    for first, second in MEETING:
        with pytest.raises(Exception, match="conflict"):
            commit_meanwhile(lake, tmp_path, first, partial(session.sql, second))
    lake.sql(f"CREATE TABLE lake.p PARTITIONED BY (g) {in_mode(mode)} AS SELECT * FROM lake.t")
    by_partition = (
        "MERGE INTO lake.p USING (SELECT 2L AS g) s ON p.g = s.g WHEN MATCHED THEN UPDATE SET v = v + 1"
    )
    commit_meanwhile(
        lake, tmp_path, by_partition, partial(session.sql, "UPDATE lake.p SET g = 7 WHERE id = 30")
    )
    assert lake.sorted("SELECT id, g, v FROM lake.p WHERE g IN (2, 7)") == [(2, 2, 21), (30, 7, 1)]
    keys = tmp_path / "keys.csv"
    keys.write_text("3\n31\n")
    lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW keys (id BIGINT) USING csv OPTIONS (path '{keys}')")
    update = "MERGE INTO lake.t USING keys s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = v + 1"
    commit_meanwhile(lake, tmp_path, update, partial(session.sql, DISJOINT[0][0]))

    def read_otherwise() -> None:
        keys.write_text("40\n")
        session.sql("UPDATE lake.t SET id = 31 WHERE id = 7")

    with pytest.raises(Exception, match="conflict"):
        commit_meanwhile(lake, tmp_path, merge_from("keys", "v + 1"), read_otherwise)
    lake.sql("DROP VIEW keys")
    rows |= {0: (0, 14), 3: (0, 13), 4: (1, 22), 5: (0, 20), 29: (9, 1), 30: (9, 1), 31: rows.pop(7)}
    assert lake.sorted("SELECT * FROM lake.t") == sorted([(id, *row) for id, row in rows.items()], key=repr)
    assert lake.sql("SELECT count(DISTINCT _row_id) FROM lake.t") == [(len(rows),)]
