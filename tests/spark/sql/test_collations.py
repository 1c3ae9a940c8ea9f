"""Columns with collations: compared as in Spark's own tables, and pruned by nothing that compares bytes."""

import random

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from tests.spark.sql.rows import in_mode, in_one_mode

from lakelog.catalog import col
from lakelog.log.errors import Unsupported

pytestmark = pytest.mark.adapter

COLLATIONS = ("UTF8_BINARY_RTRIM", "UTF8_LCASE", "UNICODE_CI", "de_CI_AI")
TEXTS = ("a", "A", "ä", "ae", "b", "B", "b ", "a  ", "", " ", "ß", "SS", "Z", "é", "x" * 33, "X" * 33)
FILES = 4


def literal(text):
    return "NULL" if text is None else f"'{text}'"


def filled(places, collation, chance):
    """Fill `t` of each place with the same rows, of texts that are close to each other by their bytes in each file."""
    texts = [chance.choice((*TEXTS, None)) for _ in range(24)]
    texts.sort(key=lambda text: (text is not None, text))
    for place in places:
        place(
            f"CREATE TABLE {{t}} (id INT, a STRING COLLATE {collation}, s STRUCT<x: STRING COLLATE {collation}>)"
        )
    size = len(texts) // FILES
    for first in range(0, len(texts), size):
        rows = ", ".join(
            f"({first + i}, {literal(text)}, named_struct('x', {literal(text)}))"
            for i, text in enumerate(texts[first : first + size])
        )
        for place in places:
            place(f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")


def condition(chance):
    column = chance.choice(("a", "s.x"))
    first_literal, other_literal, third = (literal(chance.choice(TEXTS)) for _ in range(3))
    return chance.choice(
        [
            f"{column} {chance.choice(('=', '<', '<=', '>', '>=', '<>', '<=>'))} {first_literal}",
            f"{column} {chance.choice(('', 'NOT '))}IN ({first_literal}, {other_literal}, {third})",
            f"{column} BETWEEN {first_literal} AND {other_literal}",
            f"NOT ({column} = {first_literal}) OR {column} IS NULL",
            f"startswith({column}, {first_literal})",
            f"contains({column}, {first_literal})",
            f"{column} LIKE concat({first_literal}, '%')",
            f"{column} IS NOT NULL AND endswith({column}, {first_literal})",
            f"{column} COLLATE UTF8_BINARY = {first_literal}",
            "a = s.x",
        ]
    )


QUERIES = [
    "SELECT collation(a), collation(s.x) FROM {t} LIMIT 1",
    "SELECT count(*), count(a), count(DISTINCT a) FROM {t}",
    "SELECT count(*) c FROM {t} GROUP BY a",
    "SELECT count(*) FROM {t} x JOIN {t} y ON x.a = y.a",
    # Of equal texts any may be the first one, so that a row is looked up by what it is equal to.
    "SELECT id FROM {t} WHERE a = (SELECT max(a) FROM {t})",
    "SELECT id FROM {t} WHERE a = (SELECT min(a) FROM {t})",
    "SELECT id FROM {t} WHERE a IN (SELECT a FROM {t} ORDER BY a NULLS LAST LIMIT 1)",
    "SELECT id FROM {t} WHERE a IN (SELECT a FROM {t} ORDER BY a DESC NULLS LAST LIMIT 1)",
]


def answer(place, query):
    """Return the rows, or the condition of an error: not every collation has every test of texts."""
    try:
        return sorted(place(query))
    except AnalysisException as error:
        return error.getCondition()


@pytest.fixture
def plain(lake):
    """Run a statement in which `{t}` is a Parquet table of Spark's own."""
    name = f"plain_{lake.name}"

    def run(statement):
        if statement.startswith("CREATE TABLE"):
            statement += " USING parquet"
        return [tuple(row) for row in lake.spark.sql(statement.replace("{t}", name)).collect()]

    yield run
    lake.spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize(
    "collation",
    [
        "UTF8_LCASE",
        *(
            pytest.param(collation, marks=pytest.mark.slow)
            for collation in COLLATIONS
            if collation != "UTF8_LCASE"
        ),
    ],
)
def test_queries_have_the_answers_of_sparks_own_tables(lake, plain, collation):
    chance = random.Random(collation)

    def ours(statement):
        return lake.sql(statement.replace("{t}", "lake.t"))

    filled((ours, plain), collation, chance)
    for query in (*QUERIES, *(f"SELECT id FROM {{t}} WHERE {condition(chance)}" for _ in range(8))):
        assert answer(ours, query) == answer(plain, query), query


def test_each_push_down_leaves_columns_with_collations_to_spark(lake):
    """By their bytes, Z is before a and B before b: what prunes by these passes over rows that match."""
    lake.sql("CREATE TABLE lake.t (id INT, a STRING COLLATE UTF8_LCASE)")
    for rows in ("(1, 'b'), (2, 'Z')", "(3, 'B')", "(4, 'z')", "(5, NULL)"):
        lake.sql(f"INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    found = {
        "a = 'B'": [(1,), (3,)],
        "a > 'C'": [(2,), (4,)],
        "a IN ('x', 'y', 'Z')": [(2,), (4,)],
        "startswith(a, 'b')": [(1,), (3,)],
        "a IS NULL": [(5,)],
    }
    for where, expected in found.items():
        assert lake.sorted(f"SELECT id FROM lake.t WHERE {where}") == expected, where
    assert lake.sorted("SELECT id FROM lake.t ORDER BY a NULLS LAST LIMIT 2") == [(1,), (3,)]
    assert lake.sorted("SELECT id FROM lake.t ORDER BY a DESC NULLS LAST LIMIT 2") == [(2,), (4,)]
    assert lake.sql("SELECT lower(min(a)), lower(max(a)), count(a) FROM lake.t") == [("b", "z", 4)]
    lake.sql("CREATE TABLE lake.few (k STRING COLLATE UTF8_LCASE)")
    lake.sql("INSERT INTO lake.few VALUES ('B')")
    assert lake.sorted("SELECT id FROM lake.t JOIN lake.few ON a = k") == [(1,), (3,)]
    table = lake.catalog.load_table("t")
    assert table.plan(col("a").is_null()).num_rows == 1
    assert table.plan(col("a") == "B").num_rows == 4
    with pytest.raises(Unsupported, match="a = 'B'"):
        table.scan(filter=col("a") == "B").to_arrow()
    with pytest.raises(Unsupported, match="a = 'B'"):
        table.delete(col("a") == "B")


@in_one_mode
def test_rows_are_changed_by_conditions_with_collations(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (id INT, a STRING COLLATE UTF8_LCASE) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a'), (2, 'A'), (3, 'b'), (4, 'B'), (5, 'c')")
    lake.sql("UPDATE lake.t SET id = id + 10 WHERE a = 'A'")
    lake.sql("DELETE FROM lake.t WHERE startswith(a, 'B')")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT * FROM VALUES ('C' COLLATE UTF8_LCASE), ('d' COLLATE UTF8_LCASE) AS s(k)) "
        "ON a = k WHEN MATCHED THEN UPDATE SET id = 50 WHEN NOT MATCHED THEN INSERT (id, a) VALUES (60, k)"
    )
    assert lake.sorted("SELECT * FROM lake.t") == [(11, "a"), (12, "A"), (50, "c"), (60, "d")]
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT no_e CHECK (a <> 'E')")
    with pytest.raises(PySparkException, match="CHECK_CONSTRAINT_VIOLATION"):
        lake.sql("INSERT INTO lake.t VALUES (9, 'e')")
    with pytest.raises(Unsupported, match="no_e"):
        lake.catalog.load_table("t").append(pa.table({"id": pa.array([9], pa.int32()), "a": ["e"]}))
    lake.sql("ALTER TABLE lake.t DROP CONSTRAINT no_e")
    version = lake.catalog.load_table("t").version
    # Another text, though an equal one: no row is taken for unchanged.
    lake.sql("UPDATE lake.t SET a = 'D' WHERE id = 60")
    changes = lake.sorted(f"SELECT a, _change_type FROM lake.t CHANGES FROM VERSION {version + 1}")
    assert [a for a, _ in changes] == ["D", "d"]
    lake.catalog.load_table("t").append(pa.table({"id": pa.array([70], pa.int32()), "a": ["É"]}))
    assert lake.sorted("SELECT id FROM lake.t WHERE a = 'é'") == [(70,)]
    lake.sql("CALL lake.system.compact('t')")
    assert lake.sorted("SELECT id FROM lake.t WHERE a = 'a'") == [(11,), (12,)]


def test_a_collation_is_changed_without_a_look_at_the_rows(lake):
    lake.sql("CREATE TABLE lake.t (id INT, a STRING, s STRUCT<x: STRING>)")
    for id, text in enumerate(("a", "A", "b")):
        lake.sql(f"INSERT INTO lake.t VALUES ({id}, '{text}', named_struct('x', '{text}'))")
    files = lake.catalog.load_table("t").plan()["path"].to_pylist()
    assert lake.sorted("SELECT id FROM lake.t WHERE a = 'a' AND s.x = 'a'") == [(0,)]
    lake.sql(
        "ALTER TABLE lake.t ALTER COLUMN a TYPE STRING COLLATE UTF8_LCASE, s.x TYPE STRING COLLATE UNICODE_CI"
    )
    assert lake.sql("DESCRIBE lake.t")[1:] == [
        ("a", "string collate UTF8_LCASE", None), ("s", "struct<x:string collate UNICODE_CI>", None),
    ]  # fmt: skip
    assert lake.sorted("SELECT id FROM lake.t WHERE a = 'a' AND s.x = 'a'") == [(0,), (1,)]
    lake.sql("ALTER TABLE lake.t ALTER COLUMN a TYPE STRING COLLATE UTF8_BINARY")
    assert lake.sorted("SELECT id FROM lake.t WHERE a = 'a'") == [(0,)]
    # The bounds of the bytes are there as before.
    table = lake.catalog.load_table("t")
    assert table.plan(col("a") == "b").num_rows == 1
    assert table.plan()["path"].to_pylist() == files


@pytest.mark.parametrize(
    ("columns", "layout"),
    [
        ("a STRING COLLATE UTF8_LCASE", "PARTITIONED BY (a)"),
        ("a STRING COLLATE UTF8_BINARY_RTRIM", "PARTITIONED BY (bucket(4, a))"),
        ("a STRING COLLATE UTF8_LCASE", "PARTITIONED BY (truncate(4, a))"),
        ("a STRING COLLATE UTF8_LCASE", "CLUSTER BY (a)"),
        ("a STRING COLLATE UTF8_LCASE PRIMARY KEY", ""),
        ("a CHAR(4) COLLATE UTF8_LCASE", ""),
        ("a ARRAY<VARCHAR(4) COLLATE UTF8_LCASE>", ""),
        ("a MAP<STRING COLLATE UTF8_LCASE, INT>", ""),
    ],
)
def test_where_bytes_would_count_a_collation_is_refused(lake, columns, layout):
    with pytest.raises(PySparkException, match="collat") as error:
        lake.sql(f"CREATE TABLE lake.t ({columns}) {layout}")
    assert "INTERNAL_ERROR" not in str(error.value)
    assert lake.catalog.list_tables() == []


def test_a_column_in_a_key_or_a_partitioning_gets_no_collation(lake):
    lake.sql("CREATE TABLE lake.t (a STRING, k STRING, p STRING, CONSTRAINT u UNIQUE (k)) PARTITIONED BY (p)")
    for column, words in (("k", "the key u"), ("p", "the partition field p")):
        with pytest.raises(PySparkException, match=words):
            lake.sql(f"ALTER TABLE lake.t ALTER COLUMN {column} TYPE STRING COLLATE UTF8_LCASE")
    lake.sql("CREATE TABLE lake.c (a STRING) CLUSTER BY (a)")
    with pytest.raises(PySparkException, match="its collation holds equal"):
        lake.sql("ALTER TABLE lake.c ALTER COLUMN a TYPE STRING COLLATE UTF8_LCASE")


def test_default_collations_of_tables_are_kept_shown_and_applied(lake):
    lake.sql(
        "CREATE TABLE lake.t (a STRING, b STRING COLLATE UTF8_BINARY, d ARRAY<STRING>) DEFAULT COLLATION UTF8_LCASE"
    )
    assert ("Collation", "UTF8_LCASE", "") in lake.sql("DESCRIBE EXTENDED lake.t")
    ((text,),) = lake.sql("SHOW CREATE TABLE lake.t")
    assert (
        "a STRING COLLATE UTF8_LCASE,\n  b STRING COLLATE UTF8_BINARY,\n  d ARRAY<STRING COLLATE UTF8_LCASE>"
        in text
    )
    assert "DEFAULT COLLATION UTF8_LCASE" in text
    lake.sql("ALTER TABLE lake.t DEFAULT COLLATION UNICODE_CI")
    lake.sql("ALTER TABLE lake.t ADD COLUMN z STRING DEFAULT 'Zed'")
    lake.sql("INSERT INTO lake.t (a) VALUES ('x')")
    assert lake.sql("SELECT z, collation(a) FROM lake.t WHERE z = 'zED' AND a = 'X'") == [
        ("Zed", "SYSTEM.BUILTIN.UTF8_LCASE")
    ]
    lake.sql("CREATE TABLE lake.q DEFAULT COLLATION UTF8_LCASE AS SELECT 'a' AS a, 'A' = 'a' AS b")
    assert lake.sql("SELECT collation(a), b FROM lake.q") == [("SYSTEM.BUILTIN.UTF8_LCASE", True)]


def test_default_collations_of_namespaces_and_views_are_kept_shown_and_applied(lake):
    lake.spark.conf.set("spark.sql.collation.schemaLevel.enabled", "true")
    try:
        lake.sql("CREATE SCHEMA lake.n DEFAULT COLLATION UTF8_LCASE")
        assert ("Collation", "UTF8_LCASE") in lake.sql("DESCRIBE SCHEMA EXTENDED lake.n")
        lake.sql("CREATE TABLE lake.n.t (a STRING)")
        lake.sql("CREATE VIEW lake.n.v AS SELECT 'a' = 'A' AS same, 'x' AS x")
        lake.sql("ALTER SCHEMA lake.n DEFAULT COLLATION UNICODE")
        lake.sql("CREATE VIEW lake.n.w DEFAULT COLLATION UTF8_LCASE AS SELECT 'a' = 'A' AS same, 'x' AS x")
    finally:
        lake.spark.conf.unset("spark.sql.collation.schemaLevel.enabled")
    assert lake.sql("DESCRIBE lake.n.t") == [("a", "string collate UTF8_LCASE", None)]
    for view in ("v", "w"):
        assert ("Collation", "UTF8_LCASE", "") in lake.sql(f"DESCRIBE EXTENDED lake.n.{view}")
        assert lake.sql(f"SELECT same, collation(x) FROM lake.n.{view}") == [
            (True, "SYSTEM.BUILTIN.UTF8_LCASE")
        ]
