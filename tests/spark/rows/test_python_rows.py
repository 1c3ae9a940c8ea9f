"""Python computes and finds the same rows as Spark, for the same text and the same statement."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.integration.catalog.writes.test_store_assignment import BEYOND, COLUMNS, NOT_ASSIGNED, STORED
from tests.spark.conftest import Lake
from tests.spark.sql.rows import MODES, in_mode

from lakelog.catalog import Table
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema import schema_from_spark
from lakelog.catalog.core.schema.filters import as_predicate
from lakelog.catalog.core.writes.sql.engine import SqlEngine, carried_type
from lakelog.catalog.core.writes.sql.expressions import ExpressionScope, parsed
from lakelog.log.errors import LakelogError

NAN = math.nan
TYPES = {
    "id": "long", "b": "boolean", "y": "byte", "s": "short", "i": "integer", "l": "long", "f": "float", "d": "double",
    "p": "decimal(10,2)", "q": "decimal(38,10)", "w": "string", "x": "binary", "day": "date", "m": "timestamp",
    "n": "timestamp_ntz",
}  # fmt: skip
ROWS: list[list[Any]] = [
    [1, True, 7, 3, 5, 2**53 + 1, 0.1, 1.5, "0.10", "1.5", "ada", b"\x01", "2024-02-29", "2024-02-29 12:30:15.5"],
    [2, False, -7, -3, -7, -3, NAN, NAN, "-2.75", "-2.5", "a\\_b", b"", "1969-12-31", "1969-12-31 23:59:59.999999"],
    [3, *[None] * 13],
    [4, True, 1, 1, 1, 1, -0.0, -0.0, "2.50", "2.4", "  Ünï % ", b"\xff", "2024-12-30", "2024-03-31 01:00:00"],
    [5, False, 2, 2, 2, 2**53 + 1, 2.5, 2.5, "1.05", "0.285", "a_b", b"a", "2000-01-01", "2000-01-01 00:00:00"],
]  # fmt: skip

EXPRESSIONS = """
i / 2; l / 3; i / s; d / 2; i % 3; p % 0.3; d % 2; -i; y + 1; s * s; p + 1; p * p; p * 1.5; i + p; d + i; f + i; f + p
f - 0.1; f / 3; f * 2; f + f; nullif(f, 0.1); greatest(f, 0.1); coalesce(f, 0.1); i == 5; i <> 5; d = d; d > 1; d >= d
d < 1; d = 0; d = -0.0; f = 0.1; f > 0.1; f IN (0.1, 2.5); f BETWEEN 0.1 AND 3; f = d; f = i; l = f; f < p; d = l
d = p; p = d; l = 9007199254740992.0; i = 5.0; i > 4.5; p = 0.1; p > d; p = q; CASE f WHEN 0.1 THEN 1 ELSE 0 END
d IN (1.5, NULL); d NOT IN (1.5, NULL); i NOT IN (5); i NOT BETWEEN 1 AND 5; i BETWEEN NULL AND 0; b AND i > 1
b OR i > 1; b IS NOT TRUE; i IS DISTINCT FROM 5; f IS NOT DISTINCT FROM 0.1; i = 5 OR NULL; i < '6'; day = '2024-02-29'
w || '!'; w || NULL; w LIKE 'a_b'; w LIKE 'a!_b' ESCAPE '!'; w NOT LIKE '%a'; w ILIKE 'A%'; w LIKE ''; upper(w)
length(w); trim(w); trim(BOTH 'a' FROM w); trim(LEADING 'a' FROM w); substring(w, 2); substring(w, -2)
substring(w, -9, 8); left(w, 2); right(w, 2); replace(w, 'a', 'bb'); reverse(w); repeat(w, 2); lpad(w, 5, '*')
instr(w, 'a'); position('d' IN w); contains(w, 'd'); translate(w, 'ab', 'x'); md5(w); concat_ws('-', w, NULL, 'z')
if(b, 1, 2); CAST(p AS INT); CAST(q AS BIGINT); CAST(d > 2 AS INT); CAST(i AS DOUBLE); CAST(q AS DECIMAL(10, 2))
CAST(p AS DECIMAL(10, 1)); CAST(p AS STRING); CAST(b AS STRING); CAST(day AS STRING); CAST(n AS STRING)
CAST(' 12 ' AS INT); CAST(m AS DATE); CAST(CASE WHEN id <> 2 THEN d END AS INT)
CAST(CASE WHEN id <> 2 THEN f END AS INT)
round(d); round(p); round(q, 2); floor(p); abs(d); sign(i); power(i, 2); mod(i, 3); i & 3; day + 1; year(day)
second(m); weekofyear(day); dayofyear(day); last_day(day); extract(week FROM day); date_trunc('week', m)
m + INTERVAL 1 DAY; n + INTERVAL 2 HOUR; m > n; m = day; n = day; x > unhex('01'); hex(x)
CASE WHEN i > 1 THEN 'x' WHEN b THEN 'y' END; CASE WHEN s <> 0 THEN i / s END
"""
FILTERS = """
p = 0.1D; p > 0.1D; p >= 0.1D; p < 0.1D; p IN (0.1D, 2.5D, NULL); p NOT IN (0.1D); p <=> 0.1D; q = 0.285D; q > 0.285D
p BETWEEN 0.1D AND 1.05D; p = 0.1F; l = 9007199254740992D; l > 9007199254740992D; l >= 9007199254740993D
l <= 9007199254740992D; l <> 9007199254740992D; l = 9.007199254740993E15; l IN (9007199254740992D); l = 0.1F; l > 1e300
p < CAST('NaN' AS DOUBLE); i IN (1, 2.5D); f = 0.1; f = 0.1F; f > 0.1; f IN (0.1, 2.5); d = 9007199254740993
d IN (1.5, CAST('NaN' AS DOUBLE)); d NOT IN (1.5, CAST('NaN' AS DOUBLE)); d > 1 OR NOT d > 1; b >= TRUE; b <=> NULL
w LIKE '%!%%' ESCAPE '!'; w = r'a\\_b'; w LIKE '% '; x >= X'61'; x IN (X'FF', X'')
day < TIMESTAMP_NTZ'2024-02-29 12:00:00'
m >= TIMESTAMP'2024-02-29 12:30:15.5Z'; i NOT BETWEEN NULL AND 1; b AND NULL; i IS DISTINCT FROM NULL; i > 2147483648
"""


def listed_texts(texts: str) -> list[str]:
    return texts.strip().replace("\n", "; ").split("; ")


def schema_of(types: dict[str, str]) -> Any:
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in types.items()]
    return schema_from_spark({"type": "struct", "fields": fields})


def plain(value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case float() if math.isnan(value):
            return "NaN"
        case int() | float() | Decimal():
            return float(f"{value:.12g}")
        case bytearray():
            return bytes(value)
        case dt.datetime():
            return value.replace(tzinfo=None)
    return value


@pytest.fixture
def made(lake: Lake) -> Table:
    def row(values: list[Any]) -> dict[str, Any]:
        found = dict(zip(TYPES, [*values, values[-1]], strict=True))
        for name in ("p", "q"):
            found[name] = found[name] and Decimal(found[name])
        at = found["m"] and dt.datetime.fromisoformat(found["m"])
        found |= {
            "m": at and at.replace(tzinfo=dt.UTC),
            "n": at,
            "day": found["day"] and dt.date.fromisoformat(found["day"]),
        }
        return found

    table = lake.catalog.create_table("t", schema_of(TYPES))
    return table.append(pa.Table.from_pylist(list(map(row, ROWS)), schema=table.arrow_schema))


def in_spark(lake: Lake, rows_of: pa.Table, texts: list[str]) -> list[list[Any]]:
    # Of local rows, Spark interprets expressions. To compile so many of them would take 20 s.
    lake.spark.createDataFrame(rows_of).createOrReplaceTempView("texts")
    rows = sorted(lake.sql(f"SELECT id, {', '.join(f'({text})' for text in texts)} FROM texts"))
    return [[plain(row[at]) for row in rows] for at in range(1, len(texts) + 1)]


def test_texts_of_expressions_and_of_filters_mean_what_they_mean_in_spark(lake: Lake, made: Table) -> None:
    expressions, filters = listed_texts(EXPRESSIONS), listed_texts(FILTERS)
    rows = made.to_arrow().sort_by("id")
    expected = in_spark(lake, rows, [*expressions, *filters])
    carried_schema = pa.schema([(each.name, carried_type(each.type)) for each in rows.schema])
    with SqlEngine.opened() as engine:
        engine.keep("target", carried_schema, rows.cast(carried_schema).to_batches())
        scope = ExpressionScope(target=made.schema, is_bare=True)
        columns = ", ".join(
            f"{parsed(engine, expression, scope).sql} AS c{at}" for at, expression in enumerate(expressions)
        )
        computed_table = engine.table(f"SELECT {columns} FROM target ORDER BY target.id")
    for text, column, found in zip(expressions, computed_table.columns, expected, strict=False):
        assert [plain(row) for row in column.to_pylist()] == found, text
    for text, found in zip(filters, expected[len(expressions) :], strict=True):
        assert evaluate(bind(as_predicate(text), made.schema), rows).to_pylist() == found, text


@dataclass(frozen=True)
class Case:
    """A statement, and what does the same in Python with a table and a source. `fails`: by this condition in Spark,
    and with these words in Python."""

    columns: str
    rows: str
    source: str
    statement: str
    python: Callable[[Table, Any], Table]
    fails: tuple[str, str] | None = None
    before: str = ""


KEYED = "(k DOUBLE, g STRING, v INT, note STRING DEFAULT 'new') PARTITIONED BY (g)"
KEYED_ROWS = "VALUES (double('NaN'), 'a', 1), (-0D, 'a', 2), (1.5D, 'b', 3), (NULL, 'b', 4), (9D, NULL, 5), (7, 'c', 6)"
OF_KEYS = (
    "SELECT * FROM VALUES (double('NaN'), 'a', 10), (0.0D, 'a', 20), (1.5D, 'B', 30), (NULL, 'b', 40), (9D, NULL, 50), "
    "(8D, 'd', 60) AS v(K, G, more)"
)
CASES = {
    "keys and clauses": Case(
        KEYED, f"(k, g, v) {KEYED_ROWS}", OF_KEYS,
        "ON t.k = s.K WHEN MATCHED AND s.more = 20 THEN DELETE "
        "WHEN MATCHED AND t.g = s.G THEN UPDATE SET v = t.v + s.more WHEN MATCHED THEN UPDATE SET note = s.G "
        "WHEN NOT MATCHED AND s.more < 60 THEN INSERT (k, v) VALUES (s.K, s.more) "
        "WHEN NOT MATCHED THEN INSERT (k, g, v, note) VALUES (s.K + 0.5D, s.G, NULL, 'x') "
        "WHEN NOT MATCHED BY SOURCE AND t.g = 'b' THEN UPDATE SET v = -1 WHEN NOT MATCHED BY SOURCE THEN DELETE",
        lambda table, source: table.merge(source, on="K")
        .when_matched_delete("source.more = 20")
        .when_matched_update({"V": "target.v + source.more"}, "target.G = source.g")
        .when_matched_update({"note": "source.g"})
        .when_not_matched_insert({"k": "source.k", "v": "source.more"}, "source.more < 60")
        .when_not_matched_insert({"k": "source.k + CAST(0.5 AS DOUBLE)", "g": "source.g", "v": None, "note": "'x'"})
        .when_not_matched_by_source_update({"v": -1}, "target.g = 'b'")
        .when_not_matched_by_source_delete()
        .execute(),
        before="DELETE FROM lake.{} WHERE v = 6",
    ),
    "several keys, also NULL": Case(
        KEYED, f"(k, g, v) {KEYED_ROWS}", "SELECT K, lower(G) AS G, more AS v FROM (" + OF_KEYS + ")",
        "ON t.k = s.K AND t.g = s.G WHEN MATCHED THEN UPDATE SET k = s.K, g = s.G, v = s.v "
        "WHEN NOT MATCHED THEN INSERT (k, g, v) VALUES (s.K, s.G, s.v)",
        lambda table, source: table.upsert(source, on=["g", "K"]),
    ),
    "types": Case(
        "(id BIGINT, c CHAR(4), v VARCHAR(3), p DECIMAL(10, 2), at TIMESTAMP, s STRUCT<a: INT, b: STRING>, "
        "l ARRAY<STRING>, u STRING COLLATE UTF8_LCASE, z BINARY) PARTITIONED BY (bucket(3, id), truncate(1, v))",
        "VALUES (1, 'ab', 'xyz', 1.25, TIMESTAMP'2024-01-01 00:00:00', struct(1, 'x'), array('q'), 'Ü', X'00'), "
        "(2, 'abcd', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "SELECT id, 'n' AS c, 'new' AS v, CAST(id AS DECIMAL(5, 1)) AS p, timestamp_seconds(id) AS at, "
        "named_struct('b', 'y', 'a', 2) AS s, array(NULL, 'r') AS l, 'u' AS u, X'FF' AS z "
        "FROM VALUES (1L), (3L) AS v(id)",
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = s.c, v = s.v, p = s.p, at = s.at, s = s.s, l = s.l, u = s.u, "
        "z = s.z WHEN NOT MATCHED THEN INSERT *",
        lambda table, source: table.upsert(source, on="id"),
    ),
    "names": Case(
        '(`a b` INT, `Ä` STRING, `q"``` INT, `select` INT, target INT, source INT)',
        "VALUES (1, 'x', 2, 3, 4, 5), (6, 'y', 7, 8, 9, 0)",
        'SELECT 1 AS `A B`, 50 AS `q"```, 60 AS source',
        'ON t.`a b` = s.`A B` WHEN MATCHED THEN UPDATE SET `q"``` = t.`q"``` + s.`q"```, '
        '`select` = t.target + s.source '
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET `ä` = upper(t.`Ä`)",
        lambda table, source: table.merge(source, on="a b")
        .when_matched_update({'Q"`': 'target."q""`" + source."q""`"', "select": "target.target + source.source"})
        .when_not_matched_by_source_update({"ä": 'upper(target."Ä")'})
        .execute(),
    ),
    "the target itself": Case(
        KEYED, f"(k, g, v) {KEYED_ROWS}", "SELECT * FROM lake.t",
        "ON t.v = s.v + 1 WHEN MATCHED THEN UPDATE SET v = s.v * 10 "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)",
        lambda table, source: table.merge(table, on="target.v = source.v + 1")
        .when_matched_update({"v": "source.v * 10"})
        .when_not_matched_insert({"k": "source.k", "v": "source.v"})
        .execute(),
    ),
    "an empty source": Case(
        KEYED, f"(k, g, v) {KEYED_ROWS}", OF_KEYS + " WHERE more < 0",
        "ON t.k = s.K WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.v > 3 THEN DELETE",
        lambda table, source: table.merge(source, on="k")
        .when_matched_delete().when_not_matched_by_source_delete("target.v > 3").execute(),
    ),
    "an empty target": Case(
        KEYED, f"(k, g, v) SELECT * FROM {KEYED_ROWS} AS v(k, g, v) WHERE v > 9", OF_KEYS,
        "ON t.k = s.K WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, g) VALUES (s.K, s.G)",
        lambda table, source: table.merge(source, on="k").when_matched_delete()
        .when_not_matched_insert({"k": "source.k", "g": "source.g"}).execute(),
    ),
    "a row that matches twice": Case(
        KEYED, f"(k, g, v) {KEYED_ROWS}", f"{OF_KEYS} UNION ALL SELECT double('NaN'), 'z', 0",
        "ON t.k = s.K WHEN MATCHED AND s.more = 10 THEN DELETE",
        lambda table, source: table.merge(source, on="k").when_matched_delete("source.more = 10").execute(),
        fails=("MERGE_CARDINALITY_VIOLATION", "matches several rows"),
    ),
    "a NULL in a column that has none": Case(
        "(id INT NOT NULL, v INT)", "VALUES (1, 1)", "SELECT 2 AS v, CAST(NULL AS INT) AS n",
        "ON t.id = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.n, s.v)",
        lambda table, source: table.merge(source, on="target.id = source.v")
        .when_not_matched_insert({"id": "source.n", "v": "source.v"}).execute(),
        fails=("NOT_NULL_ASSERT_VIOLATION", "is NOT NULL"),
    ),
    "a CHECK": Case(
        "(id INT, v INT, CONSTRAINT small CHECK (v < 10))", "VALUES (1, 1), (2, NULL)", "SELECT 1 AS id, 9 AS v",
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + s.v",
        lambda table, source: table.merge(source, on="id")
        .when_matched_update({"v": "target.v + source.v"}).execute(),
        fails=("CHECK_CONSTRAINT_VIOLATION", "violate the constraint small"),
    ),
    "a text that is too long": Case(
        "(id INT, v VARCHAR(3))", "VALUES (1, 'a')", "SELECT 1 AS id, 'abcd' AS v",
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
        lambda table, source: table.upsert(source, on="id"),
        fails=("EXCEED_LIMIT_LENGTH", "shorten it"),
    ),
    "a division by zero": Case(
        "(id INT, v DOUBLE)", "VALUES (1, 1D)", "SELECT 1 AS id, 0 AS zero",
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v / s.zero",
        lambda table, source: table.merge(source, on="id")
        .when_matched_update({"v": "target.v / source.zero"}).execute(),
        fails=("DIVIDE_BY_ZERO", "division by zero"),
    ),
}  # fmt: skip


def merged(lake: Lake, name: str, mode: str) -> None:
    case = CASES[name]
    for each_name in ("t", "other"):
        columns, _, partitioned_text = case.columns.partition(" PARTITIONED")
        partitioned_text = partitioned_text and f" PARTITIONED{partitioned_text}"
        lake.sql(f"CREATE OR REPLACE TABLE lake.{each_name} {columns}{partitioned_text} {in_mode(mode)}")
        lake.sql(f"INSERT INTO lake.{each_name} {case.rows}")
        if case.before:
            lake.sql(case.before.format(each_name))
    source = lake.frame(case.source).toArrow()
    table = lake.catalog.load_table("other")
    try:
        lake.sql(f"MERGE INTO lake.t USING ({case.source}) AS s {case.statement}")
        assert not case.fails, name
    except PySparkException as error:
        assert case.fails and case.fails[0] == error.getCondition(), name
    try:
        case.python(table, source)
        assert not case.fails, name
    except LakelogError as error:
        assert case.fails and case.fails[1] in str(error), name
    expected, texts = (
        sorted(map(repr, lake.catalog.load_table(name).to_arrow().to_pylist())) for name in ("t", "other")
    )
    assert texts == expected, (name, mode)


SHORT = (
    "keys and clauses",
    "types",
    "names",
    "the target itself",
    "a row that matches twice",
    "a division by zero",
)


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_merge_from_python_does_what_sparks_merge_does(
    lake: Lake, name: str, request: pytest.FixtureRequest
) -> None:
    """Each case in one of the row-level modes; in the full form in both."""
    modes = MODES if request.config.getoption("--full") else [MODES[list(CASES).index(name) % 2]]
    for mode in modes:
        merged(lake, name, mode)


def test_an_update_stores_values_as_spark_does(lake: Lake) -> None:
    rows = pa.table({"float": pa.array([1.5], pa.float32()), "long": [1]})
    lake.catalog.create_table("stored", pa.schema(COLUMNS)).append(rows)

    texts: dict[str, list[str]] = {}
    answers: dict[str, list[Any]] = {}
    for column, text, value in STORED:
        texts.setdefault(column, []).append(text)
        answers.setdefault(column, []).append(value)
    for number in range(max(map(len, texts.values()))):
        here = {column: each[number] for column, each in texts.items() if number < len(each)}
        lake.sql("UPDATE lake.stored SET float = CAST(1.5 AS FLOAT)")
        lake.sql(
            "UPDATE lake.stored SET " + ", ".join(f"`{column}` = {text}" for column, text in here.items())
        )
        (row,) = lake.catalog.load_table("stored").to_arrow().to_pylist()
        assert {column: row[column] for column in here} == {
            column: answers[column][number] for column in here
        }
    for column, text in (*BEYOND, *NOT_ASSIGNED):
        # For NaN and Infinity in a DECIMAL Spark stores NULL, which Python refuses to do.
        if "Infinity" not in text:
            with pytest.raises(Exception, match="CAST_OVERFLOW|CANNOT_SAFELY_CAST"):
                lake.sql(f"UPDATE lake.stored SET `{column}` = {text}")
