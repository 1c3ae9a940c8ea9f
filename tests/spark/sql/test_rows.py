"""DELETE, UPDATE and MERGE beside Spark's own in-memory catalog, in both modes; seen by others too."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr, lit
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome
from tests.spark.sql.rows import MODES, in_mode, in_one_mode
from tests.spark.versions import SPARK_4_2, evolving_merges, evolving_writes

in_both_modes = pytest.mark.parametrize("mode", MODES)
BUCKETS = "PARTITIONED BY (bucket(2, id), truncate(1, k))"

SOURCE = (
    "(SELECT * FROM VALUES (2L, 'b', 20), (4L, 'z', 40), (77L, 'n', 7), (78L, NULL, NULL) AS v(id, k, v))"
)

STATEMENTS = {
    "delete": [
        # The memory takes = for one about partitions.
        "DELETE FROM lake.t WHERE id > 2 AND id < 4",
        "DELETE FROM lake.t WHERE id > 2 AND id < 4",
        "DELETE FROM lake.t AS x WHERE x.v IS NULL OR x.k = 'b' AND x.id < 8",
        "DELETE FROM lake.t WHERE id IN (SELECT max(id) FROM lake.t)",
        "DELETE FROM lake.t WHERE EXISTS (SELECT 1 FROM lake.s WHERE s.id = t.id)",
        "DELETE FROM lake.t WHERE id NOT IN (SELECT id FROM lake.s WHERE id IS NOT NULL) AND v % 20 = 0",
        "DELETE FROM lake.t WHERE k = 'c'",
        "DELETE FROM lake.t WHERE nothing = 1",
        "DELETE FROM lake.t",
    ],
    "update": [
        "UPDATE lake.t SET v = v + 1 WHERE id % 2 = 0",
        "UPDATE lake.t SET k = 'moved', v = DEFAULT WHERE k = 'a'",
        "UPDATE lake.t SET s.b = concat(s.b, '!') WHERE s.a > 5",
        "UPDATE lake.t AS x SET x.v = (SELECT max(v) FROM lake.t) WHERE x.id = (SELECT min(id) FROM lake.t)",
        "UPDATE lake.t SET v = -1 WHERE id IN (SELECT id FROM lake.s)",
        "UPDATE lake.t SET v = 3000000000 WHERE id = 1",
        "UPDATE lake.t SET v = 'text' WHERE id = 1",
        "UPDATE lake.t SET id = 5, id = 6",
        "UPDATE lake.t SET v = 0",
    ],
    "merge": [
        f"MERGE INTO lake.t USING {SOURCE} AS s ON t.id = s.id "
        "WHEN MATCHED AND s.k = 'b' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, k = s.k "
        "WHEN NOT MATCHED AND s.k IS NULL THEN INSERT (id, k) VALUES (s.id, 'null') "
        "WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id, s.k, s.v)",
        f"MERGE INTO lake.t USING {SOURCE} AS s ON t.id = s.id AND t.id < 100 "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 8 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND t.k = 'a' THEN UPDATE SET v = 1000",
        "MERGE INTO lake.t USING (SELECT explode(array(77L, 77L)) AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 1",
        "MERGE INTO lake.t USING (SELECT explode(array(77L, 77L)) AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO lake.t USING lake.t AS s ON t.id = s.id + 1 WHEN MATCHED THEN UPDATE SET v = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id + 1, 'next', s.v)",
        "MERGE INTO lake.t USING (SELECT 500L AS id UNION ALL SELECT 1L) AS s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'only')",
        "MERGE INTO lake.t USING (SELECT 500L AS id WHERE false) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO lake.t USING lake.s ON rand() < 0.5 WHEN MATCHED THEN DELETE",
        "MERGE INTO lake.t USING lake.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'text'",
    ],
}


# Each mode and each layout once; with one another in the full form.
@pytest.mark.parametrize(
    ("layout", "mode"),
    [
        ("", "copy-on-write"),
        pytest.param(BUCKETS, "merge-on-read", marks=pytest.mark.adapter),
        pytest.param("", "merge-on-read", marks=pytest.mark.slow),
        pytest.param(BUCKETS, "copy-on-write", marks=pytest.mark.slow),
        pytest.param("PARTITIONED BY (k)", "merge-on-read", marks=pytest.mark.slow),
        pytest.param("PARTITIONED BY (k)", "copy-on-write", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", sorted(STATEMENTS))
def test_statements_do_what_they_do_in_sparks_own_catalog(lake, memory_rows, mode, kind, layout):
    columns = "(id BIGINT, k STRING, v INT DEFAULT 42, s STRUCT<a: INT, b: STRING>)"
    fill = (
        "SELECT id, element_at(array('a', 'b', 'c'), CAST(id % 3 + 1 AS INT)), "
        "IF(id % 5 = 0, NULL, CAST(id * 10 AS INT)), "
        "IF(id % 4 = 0, NULL, named_struct('a', CAST(id AS INT), 'b', 'x')) FROM range({}, {}, 1, 2)"
    )
    for place, how in ((lake, f"{layout} {in_mode(mode)}"), (memory_rows, "PARTITIONED BY (k)")):
        outcome(place, f"CREATE TABLE lake.t {columns} {how}")
        outcome(place, "CREATE TABLE lake.s (id BIGINT, k STRING) PARTITIONED BY (k)")
        for statement in (
            f"INSERT INTO lake.t {fill.format(0, 8)}",
            f"INSERT INTO lake.t {fill.format(8, 13)}",
            "INSERT INTO lake.s VALUES (4, 'a'), (5, 'b'), (NULL, 'c')",
        ):
            assert outcome(place, statement).condition is None, statement
    reader = lake if layout else another_session(lake)
    for statement in STATEMENTS[kind]:
        ours, theirs = outcome(lake, statement), outcome(memory_rows, statement)
        assert ours.condition == theirs.condition, statement
        rows = outcome(reader, "SELECT * FROM lake.t")
        assert rows.condition is None, rows
        assert rows == outcome(memory_rows, "SELECT * FROM lake.t"), statement
        arrow = lake.catalog.load_table("t").to_arrow().select(["id", "k", "v"])
        python = sorted((tuple(row.values()) for row in arrow.to_pylist()), key=repr)
        assert python == sorted((row[:3] for row in rows.rows), key=repr), statement
    text = lake.sorted("SELECT id, k, v FROM lake.t")
    assert another_session(lake).sorted("SELECT id, k, v FROM lake.t") == text


MERGES = {
    "all clauses": lambda rows, t: (
        rows.mergeInto(t, expr(f"{t}.id = new"))
        .whenMatched(expr("word = 'gone'")).delete()
        .whenMatched().update({"k": expr("word")})
        .whenNotMatched(expr("new > 6")).insert({"id": expr("new"), "k": expr("word")})
        .whenNotMatchedBySource(expr(f"{t}.id = 1")).update({"k": lit("left")})
        .whenNotMatchedBySource(expr(f"{t}.id = 4")).delete()
    ),
    "one row twice": lambda rows, t: (
        rows.union(rows).mergeInto(t, expr(f"{t}.id = new")).whenMatched().update({"k": expr("word")})
    ),
    "no such column": lambda rows, t: (
        rows.mergeInto(t, expr(f"{t}.id = new")).whenMatched().update({"nothing": expr("word")})
    ),
    "no clause": lambda rows, t: rows.mergeInto(t, expr(f"{t}.id = new")),
    "all columns": lambda rows, t: (
        rows.toDF("id", "k").alias("s").mergeInto(t, expr(f"{t}.id = s.id"))
        .whenMatched().updateAll().whenNotMatched().insertAll()
    ),
}  # fmt: skip


@in_one_mode
@pytest.mark.adapter
@evolving_merges
def test_data_frames_are_merged_as_into_sparks_own_catalog(lake, memory_rows, mode):
    other_session, frame = another_session(lake), lake.spark.createDataFrame
    for place, how in ((lake, in_mode(mode)), (memory_rows, "PARTITIONED BY (k)")):
        outcome(place, f"CREATE TABLE lake.t (id BIGINT, k STRING) {how}")
        outcome(place, "INSERT INTO lake.t SELECT id, 'old' FROM range(1, 5, 1, 1)")

    def merged(place, merge):
        rows = frame([(2, "gone"), (3, "new"), (6, "six"), (7, "seven")], "new BIGINT, word STRING")
        try:
            merge(rows, f"{place.name}.t").merge()
        except PySparkException as error:
            return error.getCondition()
        return None

    for name, merge in MERGES.items():
        assert merged(lake, merge) == merged(memory_rows, merge), name
        assert outcome(other_session, "SELECT * FROM lake.t") == outcome(
            memory_rows, "SELECT * FROM lake.t"
        ), name
    version = lake.catalog.load_table("t").version
    rows = frame([(2, "evolved", 20)], "id BIGINT, k STRING, more INT").alias("s")
    merge = rows.mergeInto(f"{lake.name}.t", expr(f"{lake.name}.t.id = s.id")).whenMatched().updateAll()
    merge.withSchemaEvolution().merge()
    assert lake.catalog.load_table("t").version == version + 1
    expected = [(1, "left", None), (2, "evolved", 20), (3, "new", None), (6, "six", None), (7, "seven", None)]
    assert other_session.sorted("SELECT * FROM lake.t") == expected
    assert (
        sorted(tuple(row.values()) for row in lake.catalog.load_table("t").to_arrow().to_pylist()) == expected
    )


@in_both_modes
@pytest.mark.adapter
def test_each_statement_is_one_commit_by_its_name_and_what_changes_nothing_is_none(lake, mode):
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0 AS v FROM range(0, 10, 1, 1)")
    lake.sql("DELETE FROM lake.t WHERE id = 1")
    lake.sql("UPDATE lake.t SET v = 1 WHERE id = 2")
    lake.sql("MERGE INTO lake.t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 3")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT 33L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    table = lake.catalog.load_table("t")
    # Older Sparks make a plain append of a MERGE that only inserts.
    inserted = "merge" if SPARK_4_2 else "append"
    assert [entry.operation for entry in table.history()][:4] == [inserted, "merge", "update", "delete"]
    # Statistics cannot show that there is no such row.
    lake.sql("DELETE FROM lake.t WHERE id % 10 = 3 AND v = 2")
    lake.sql("UPDATE lake.t SET v = 1 WHERE id = 200 AND v < 7")
    lake.sql("MERGE INTO lake.t USING (SELECT 333L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert lake.catalog.load_table("t").version == table.version
    # Time travel to each of them.
    assert lake.sorted(f"SELECT * FROM lake.t VERSION AS OF {table.version - 4}") == [
        (id, 0) for id in range(10)
    ]
    assert lake.sorted(f"SELECT * FROM lake.t VERSION AS OF {table.version - 3} WHERE id < 3") == [
        (0, 0),
        (2, 0),
    ]


@in_both_modes
@pytest.mark.adapter
@evolving_merges
def test_schema_evolution_and_rows_are_one_commit(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, v INT) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1, 1), (2, 2)")
    version = lake.catalog.load_table("t").version
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO lake.t "
        "USING (SELECT 2L AS id, 20 AS v, 'x' AS n UNION ALL SELECT 3L, 30, 'y') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert lake.sorted("SELECT * FROM lake.t") == [(1, 1, None), (2, 20, "x"), (3, 30, "y")]
    assert lake.catalog.load_table("t").version == version + 1
    # To explain it changes nothing, and says so.
    explained_rows = lake.sql(
        "EXPLAIN MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT 2L AS id, 'x' AS other) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )
    assert any("would be changed without the write" in line for (line,) in explained_rows)
    assert lake.catalog.load_table("t").version == version + 1
    with pytest.raises(Exception, match="violat|CHECK|divide|DIVIDE"):
        lake.sql(
            "MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT 2L AS id, 1 DIV (id - id) AS v, 'x' AS n, 1 AS more "
            "FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        )
    assert lake.frame("SELECT * FROM lake.t").columns == ["id", "v", "n"]
    assert lake.catalog.load_table("t").version == version + 1


@pytest.mark.parametrize(
    ("clauses", "mode"),
    [
        (("WHEN MATCHED THEN UPDATE SET *",), "merge-on-read"),
        (("WHEN NOT MATCHED THEN INSERT *",), "copy-on-write"),
        pytest.param(("WHEN MATCHED THEN UPDATE SET *",), "copy-on-write", marks=pytest.mark.slow),
        pytest.param(("WHEN NOT MATCHED THEN INSERT *",), "merge-on-read", marks=pytest.mark.slow),
        (("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"), "merge-on-read"),
        (("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"), "copy-on-write"),
    ],
)
def test_all_columns_and_fields_that_a_merge_adds_come_with_its_rows(lake, mode, clauses):
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, s STRUCT<a: INT>) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1, struct(1)), (2, struct(2))")
    version = lake.catalog.load_table("t").version
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT id, named_struct('a', 20, 'b', 'x') AS s, 'n' AS n, "
        f"id * 1.5D AS d FROM VALUES (2L), (3L) AS v(id)) AS v ON t.id = v.id {' '.join(clauses)}"
    )
    rows: dict[int, tuple[Any, ...]] = {1: (1, (1, None), None, None), 2: (2, (2, None), None, None)}
    if "UPDATE" in "".join(clauses):
        rows[2] = (2, (20, "x"), "n", 3.0)
    if "INSERT" in "".join(clauses):
        rows[3] = (3, (20, "x"), "n", 4.5)
    assert lake.sql("SELECT * FROM lake.t ORDER BY id") == list(rows.values())
    assert sorted(lake.catalog.load_table("t").to_arrow()["id"].to_pylist()) == sorted(rows)
    assert lake.catalog.load_table("t").version == version + 1
    # Nothing is added where nothing is new, or where the rows fail.
    for source, fails in (("1L AS id, 'n' AS n", False), ("1L AS id, 1 DIV 0 AS more", True)):
        statement = (
            f"MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT {source}) v ON t.id = v.id + 100 "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        if fails:
            with pytest.raises(Exception, match="(?i)divi"):
                lake.sql(statement)
        else:
            lake.sql(statement)
    assert lake.frame("SELECT * FROM lake.t").columns == ["id", "s", "n", "d"]


@evolving_writes
def test_an_insert_adds_several_columns_and_fields_at_once(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, s STRUCT<a: INT>)")
    lake.sql("INSERT INTO lake.t VALUES (1, struct(1))")
    insert = "INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT 2L AS id, named_struct('a', 2, 'b', 'x') AS s"
    lake.sql(f"{insert}, 'n' AS n, 3.0D AS d")
    lake.sql(f"{insert}, 'm' AS n")
    assert lake.sorted("SELECT * FROM lake.t") == [
        (1, (1, None), None, None), (2, (2, "x"), "m", None), (2, (2, "x"), "n", 3.0),
    ]  # fmt: skip
    # A query of the table itself sees the columns that it had.
    lake.sql(
        "INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT *, id + 1 AS e FROM lake.t WHERE n = 'm'"
    )
    assert lake.sql("SELECT e FROM lake.t WHERE e IS NOT NULL") == [(3,)]


@pytest.mark.adapter
@in_one_mode
@evolving_merges
def test_a_merge_that_evolves_sees_its_own_table_in_the_source_as_it_was(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (id BIGINT) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    merge = "MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT id + 1 AS id, 'x' AS n FROM lake.t) v ON t.id = v.id"
    # Spark holds both ways of reading the table against one and the same look at it.
    with pytest.raises(Exception, match="INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS"):
        lake.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    assert lake.frame("SELECT * FROM lake.t").columns == ["id"]
    lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, None), (2, "x")]


TEXTS = "c CHAR(3), v VARCHAR(3), s STRUCT<c: CHAR(3), v: VARCHAR(3)>, a ARRAY<VARCHAR(3)>, m MAP<STRING, CHAR(3)>"
VALUES = "'a' AS c, 'b' AS v, named_struct('c', 'c', 'v', 'd') AS s, array('e') AS a, map('k', 'f') AS m"
VALUES_KEPT = ("a  ", "b", ("c  ", "d"), ["e"], {"k": "f  "})


def texts_keep_their_lengths(lake, table, evolving):
    """The columns are what they were, and a statement that would add one fails as a whole over a longer text."""
    described_rows = [tuple(row[:2]) for row in lake.sql(f"DESCRIBE lake.{table}")]
    for column in (
        TEXTS.replace("<c: ", "<c:").replace(", v: ", ",v:").replace("STRING, ", "STRING,").split(", ")
    ):
        assert tuple(column.lower().split()) in described_rows
    for text in "ade":
        longer = VALUES.replace(f"'{text}'", "'long'")
        with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
            lake.sql(evolving.replace(VALUES, f"{longer}, 1 AS more"))
    assert [tuple(row[:2]) for row in lake.sql(f"DESCRIBE lake.{table}")] == described_rows


@pytest.mark.adapter
@evolving_writes
def test_writes_that_add_columns_keep_texts_of_stated_lengths(lake):
    lake.sql(f"CREATE TABLE lake.t (id INT, {TEXTS})")
    insert = "INSERT WITH SCHEMA EVOLUTION INTO lake.t"
    lake.sql(f"{insert} BY NAME SELECT 1 AS n, 1 AS id, {VALUES}")
    lake.sql(f"{insert} SELECT 2, {VALUES}, 2, 2 AS o")
    lake.sql(f"{insert} REPLACE WHERE id = 1 SELECT 3, {VALUES}, 3, 3, 3 AS p")
    rows = lake.frame(f"SELECT 4 AS id, {VALUES}, 4 AS q")
    rows.writeTo(f"{lake.name}.t").option("mergeSchema", "true").append()
    rows.selectExpr("*", "5 AS r").write.option("mergeSchema", "true").mode("append").saveAsTable(
        f"{lake.name}.t"
    )
    assert lake.sorted("SELECT * FROM lake.t") == [
        (2, *VALUES_KEPT, 2, 2, None, None, None), (3, *VALUES_KEPT, 3, 3, 3, None, None),
        (4, *VALUES_KEPT, None, None, None, 4, 5), (4, *VALUES_KEPT, None, None, None, 4, None),
    ]  # fmt: skip
    texts_keep_their_lengths(lake, "t", f"{insert} BY NAME SELECT 1 AS id, {VALUES}")
    # A field is added beside them, too.
    lake.sql(f"{insert} BY NAME SELECT 5 AS id, named_struct('c', 'g', 'v', 'h', 'w', 'i') AS s")
    assert lake.sql("SELECT s FROM lake.t WHERE id = 5") == [(("g  ", "h", "i"),)]
    assert ("s", "struct<c:char(3),v:varchar(3),w:string>") in [
        row[:2] for row in lake.sql("DESCRIBE lake.t")
    ]


@pytest.mark.adapter
@in_both_modes
@evolving_merges
def test_merges_that_add_columns_keep_texts_of_stated_lengths(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (id INT, {TEXTS}) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t (id) VALUES (1), (9)")

    def merge(added, *clauses):
        source = f"(SELECT id, {VALUES}, id AS {added} FROM VALUES (1), (2) AS v(id))"
        return (
            f"MERGE WITH SCHEMA EVOLUTION INTO lake.t USING {source} AS v ON t.id = v.id {' '.join(clauses)}"
        )

    update, insert = "WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"
    lake.sql(merge("n", update))
    lake.sql(merge("o", insert))
    lake.sql(merge("p", update, insert))
    assert lake.sorted("SELECT * FROM lake.t") == [
        (1, *VALUES_KEPT, 1, None, 1), (2, *VALUES_KEPT, None, 2, 2), (9, *[None] * 8),
    ]  # fmt: skip
    texts_keep_their_lengths(lake, "t", merge("n", update))
    # Where a column has a length, and nothing is new, nothing changes.
    version = lake.catalog.load_table("t").version
    lake.sql(merge("p", insert))
    assert lake.catalog.load_table("t").version == version
