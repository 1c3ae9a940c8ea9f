"""Random changes of rows in SQL, held against a plain model; then every version as Spark and Python read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from tests.spark.sql.rows import MODES, in_mode, in_one_mode

Row = tuple[int | None, str | None, int | None]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Truth = bool | None

NAMES = ("id", "k", "v")
IDS = st.one_of(st.none(), st.integers(0, 12))
TEXTS = st.sampled_from([None, "a", "b", "c"])
NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
ROWS = st.tuples(IDS, TEXTS, NUMBERS)
LAYOUTS = ("", "PARTITIONED BY (k)", "PARTITIONED BY (bucket(3, id))", "CLUSTER BY (v, k)")


def literal(value: int | str | None) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def values(rows: list[Row]) -> str:
    """Return a relation of these rows, of which there is at least one, with the table's types."""
    listed_text = ", ".join(f"({', '.join(literal(value) for value in row)})" for row in rows)
    return (
        "(SELECT CAST(id AS BIGINT) AS id, CAST(k AS STRING) AS k, CAST(v AS INT) AS v "
        f"FROM VALUES {listed_text} AS r(id, k, v))"
    )


@dataclass(frozen=True)
class Condition:
    """What SQL says, and what is true of a row: None for unknown."""

    sql: str
    of: Callable[[Row], Truth]

    def holds(self, row: Row) -> bool:
        return self.of(row) is True


def compared_condition(column: int, op: str, value: int | str) -> Condition:
    def of(row: Row) -> Truth:
        mine: Any = row[column]
        if mine is None:
            return None
        return bool({"=": mine == value, "<": mine < value, ">=": mine >= value, "<>": mine != value}[op])

    return Condition(f"t.{NAMES[column]} {op} {literal(value)}", of)


def both(one: Condition, other: Condition) -> Condition:
    def of(row: Row) -> Truth:
        found_flags = {one.of(row), other.of(row)}
        return False if False in found_flags else None if None in found_flags else True

    return Condition(f"({one.sql} AND {other.sql})", of)


def either(one: Condition, other: Condition) -> Condition:
    def of(row: Row) -> Truth:
        found_flags = {one.of(row), other.of(row)}
        return True if True in found_flags else None if None in found_flags else False

    return Condition(f"({one.sql} OR {other.sql})", of)


def negated_condition(one: Condition) -> Condition:
    def of(row: Row) -> Truth:
        is_found = one.of(row)
        return None if is_found is None else not is_found

    return Condition(f"NOT ({one.sql})", of)


def missing(column: int) -> Condition:
    return Condition(f"t.{NAMES[column]} IS NULL", lambda row: row[column] is None)


KNOWN = (
    Condition("t._pos >= 0", lambda _: True),
    Condition("t._row_id IS NULL", lambda _: False),
    Condition("t._file LIKE '%.parquet'", lambda _: True),
)
"""By metadata columns."""

OPS = st.sampled_from(["=", "<", ">=", "<>"])
SIMPLE = st.one_of(
    st.builds(compared_condition, st.just(0), OPS, st.integers(0, 12)),
    st.builds(compared_condition, st.just(1), OPS, st.sampled_from(["a", "b", "c"])),
    st.builds(compared_condition, st.just(2), OPS, st.integers(-3, 3)),
    st.builds(missing, st.integers(0, 2)),
    st.sampled_from(KNOWN),
)
CONDITIONS = st.one_of(
    SIMPLE,
    st.builds(both, SIMPLE, SIMPLE),
    st.builds(either, SIMPLE, SIMPLE),
    st.builds(negated_condition, SIMPLE),
)


@dataclass(frozen=True)
class Assignment:
    """The new values of a row, which may be another one's."""

    sql: str
    of: Callable[[Row, Row], Row]


ASSIGNMENTS = st.one_of(
    st.just(
        Assignment("v = t.v + 1", lambda row, _: (row[0], row[1], None if row[2] is None else row[2] + 1))
    ),
    st.just(
        Assignment("id = t.id + 1, v = 0", lambda row, _: (None if row[0] is None else row[0] + 1, row[1], 0))
    ),
    st.just(Assignment("v = t.v + CAST(rand() AS INT)", lambda row, _: row)),
    st.sampled_from(["a", "d"]).map(
        lambda text: Assignment(f"k = '{text}'", lambda row, _: (row[0], text, row[2]))
    ),
)
ONCE = st.sampled_from(
    ["{}", "{}", "(SELECT *, rand() AS unused FROM {})", "(SELECT * FROM {} GROUP BY ALL)"]
)
"""Sources, of which some are not known to give the same rows when they are computed once more."""

FROM_SOURCE = st.one_of(
    ASSIGNMENTS,
    st.just(Assignment("v = s.v, k = s.k", lambda row, source: (row[0], source[1], source[2]))),
)


def insert(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    new = draw(st.lists(ROWS, min_size=1, max_size=8))
    return f"INSERT INTO lake.t SELECT * FROM {values(new)}", rows + new


def delete(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    where = draw(CONDITIONS)
    return f"DELETE FROM lake.t AS t WHERE {where.sql}", [row for row in rows if not where.holds(row)]


def delete_of_rows_in_the_table(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    where = draw(CONDITIONS)
    removed_numbers = {row[0] for row in rows if where.holds(row)} - {None}
    limit = draw(st.sampled_from(["", " LIMIT 1000"]))
    sql = f"DELETE FROM lake.t WHERE id IN (SELECT t.id FROM lake.t AS t WHERE {where.sql}{limit})"
    return sql, [row for row in rows if row[0] not in removed_numbers]


def update(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    where, change = draw(CONDITIONS), draw(ASSIGNMENTS)
    rows_after = [change.of(row, row) if where.holds(row) else row for row in rows]
    return f"UPDATE lake.t AS t SET {change.sql} WHERE {where.sql}", rows_after


def merge(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    source = draw(st.lists(ROWS, min_size=1, max_size=6, unique_by=lambda row: row[0]))
    by_id = {row[0]: row for row in source if row[0] is not None}
    clauses: list[str] = []

    def drawn(kind: str, changes: Any) -> list[tuple[Condition, Assignment | None]]:
        found = []
        for _ in range(draw(st.integers(0, 2))):
            where, change = draw(CONDITIONS), draw(st.one_of(st.none(), changes))
            clauses.append(
                f"WHEN {kind} AND {where.sql} THEN " + (f"UPDATE SET {change.sql}" if change else "DELETE")
            )
            found.append((where, change))
        return found

    matched_picture = drawn("MATCHED", FROM_SOURCE)
    inserts = draw(st.booleans())
    if inserts:
        clauses.append("WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)")
    lonely = drawn("NOT MATCHED BY SOURCE", ASSIGNMENTS)
    if not clauses:
        return update(draw, rows)
    after: list[Row] = []
    for row in rows:
        other = by_id.get(row[0]) if row[0] is not None else None
        for where, change in lonely if other is None else matched_picture:
            if where.holds(row):
                after += [change.of(row, other or row)] if change else []
                break
        else:
            after.append(row)
    if inserts:
        other_numbers = {row[0] for row in rows}
        after += [(row[0], None, row[2]) for row in source if row[0] is None or row[0] not in other_numbers]
    using_text = draw(ONCE).format(values(source))
    return f"MERGE INTO lake.t AS t USING {using_text} AS s ON t.id = s.id {' '.join(clauses)}", after


def overwrite(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    new = draw(st.lists(ROWS, min_size=1, max_size=8))
    return f"INSERT OVERWRITE lake.t SELECT * FROM {values(new)}", new


def compact(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    return "CALL lake.system.compact('t', deleted_ratio => 0)", rows


def cluster(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    """Of a table that is not clustered, a compaction."""
    return "OPTIMIZE lake.t", rows


def widen(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
    return "ALTER TABLE lake.t ALTER COLUMN v TYPE BIGINT", rows


PARTITIONINGS = (
    "ADD PARTITION FIELD truncate(1, k) AS by_k",
    "ADD PARTITION FIELD bucket(5, v) AS by_v",
    "DROP PARTITION FIELD by_k",
    "DROP PARTITION FIELD by_v",
)
"""One after the other."""

STEPS = (
    insert, delete, delete_of_rows_in_the_table, update, update, merge, merge, merge, overwrite, compact,
    cluster, widen,
)  # fmt: skip


def run(lake: Any, draw: Draw, mode: str, count: int) -> None:
    lake.sql("DROP TABLE IF EXISTS lake.t")
    layout = draw(st.sampled_from(LAYOUTS))
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, k STRING, v INT) {layout} {in_mode(mode)}")
    partitionings = iter(() if layout.startswith("CLUSTER") else PARTITIONINGS)

    def partition(draw: Draw, rows: list[Row]) -> tuple[str, list[Row]]:
        change = next(partitionings, None)
        return (f"ALTER TABLE lake.t {change}", rows) if change else compact(draw, rows)

    rows: list[Row] = []
    past = {lake.catalog.load_table("t").version: rows}
    for number in range(count):
        sql, rows = (insert if number < 2 else draw(st.sampled_from((*STEPS, partition, partition))))(
            draw, rows
        )
        note(sql)
        lake.sql(sql)
        version = lake.catalog.load_table("t").version
        if version in past:
            assert in_order(rows) == in_order(past[version]), sql
        past[version] = rows
        assert in_order(lake.sql("SELECT * FROM lake.t")) == in_order(rows), sql
    where = draw(CONDITIONS)
    for version, then in past.items():
        table = lake.catalog.load_table("t", version=version)
        assert table.row_count == len(then)
        assert in_order([tuple(row.values()) for row in table.to_arrow().to_pylist()]) == in_order(then)
        found_rows = lake.sql(f"SELECT * FROM lake.t VERSION AS OF {version} AS t WHERE {where.sql}")
        assert in_order(found_rows) == in_order([row for row in then if where.holds(row)])


def in_order(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


UNSHRUNK = settings(
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
    report_multiple_bugs=False,
)


@in_one_mode
@settings(UNSHRUNK, max_examples=2)
@given(data=st.data())
def test_every_version_has_the_rows_of_the_model(lake, mode: str, data: st.DataObject) -> None:
    run(lake, data.draw, mode, 12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@settings(UNSHRUNK, max_examples=40)
@given(data=st.data())
def test_sixty_times_as_many(lake, mode: str, data: st.DataObject) -> None:
    run(lake, data.draw, mode, 36)
