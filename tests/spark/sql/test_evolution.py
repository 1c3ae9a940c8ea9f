"""How new files are partitioned and ordered, as SQL changes it; older files stay, and are read all the same."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException, UnsupportedOperationException
from tests.spark.sessions import another_session

pytestmark = pytest.mark.adapter


def spec(lake, table="t"):
    found_table = lake.catalog.load_table(table)
    return [(field.name, str(field.transform)) for field in found_table.spec.fields]


def order(lake, table="t"):
    found_table = lake.catalog.load_table(table)
    return [
        (".".join(found_table.schema.path_of(f.source_id)), str(f.transform), f.direction, f.nulls)
        for f in found_table.sort_order.fields
    ]


def shown(lake, table="t"):
    rows = another_session(lake).sql(f"DESCRIBE TABLE EXTENDED lake.{table}")
    names = [row[0] for row in rows]
    start = names.index("# Partitioning" if "# Partitioning" in names else "# Partition Information")
    return [row[:2] for row in rows[start + 1 : names.index("", start)] if row[0] != "# col_name"]


@pytest.fixture
def table(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING, `at here` TIMESTAMP, st STRUCT<x: INT>)")
    insert(lake, 0)
    return lake


def insert(lake, start):
    lake.sql(
        f"INSERT INTO lake.t SELECT id, concat('k', id % 3), timestamp_seconds(id * 86400), "
        f"named_struct('x', CAST(id % 2 AS INT)) FROM range({start}, {start + 6})"
    )


def test_partition_fields_are_added_replaced_and_dropped_and_all_rows_stay_readable(table):
    steps = [
        ("ADD PARTITION FIELD bucket(4, id) AS shard", [("shard", "bucket[4]")]),
        ("add partition field `K`", [("shard", "bucket[4]"), ("k", "identity")]),
        ("REPLACE PARTITION FIELD shard WITH days(`at here`)", [("at here_day", "day"), ("k", "identity")]),
        ("REPLACE PARTITION FIELD days(`at here`) WITH truncate(5, id) AS `a b`;",
         [("a b", "truncate[5]"), ("k", "identity")]),
        ("/* c */ ADD PARTITION FIELD st.x", [("a b", "truncate[5]"), ("k", "identity"), ("st.x", "identity")]),
        ("DROP PARTITION FIELD truncate(5, id)", [("k", "identity"), ("st.x", "identity")]),
        ("DROP PARTITION FIELD `st.x`", [("k", "identity")]),
        ("DROP PARTITION FIELD k", []),
        ("ADD PARTITION FIELD bucket(4, id)", [("id_bucket", "bucket[4]")]),
    ]  # fmt: skip
    versions = {}
    for number, (statement, expected) in enumerate(steps, start=1):
        table.sql(f"ALTER TABLE lake.t {statement}")
        assert spec(table) == expected
        insert(table, 6 * number)
        versions[table.catalog.load_table("t").version] = 6 * (number + 1)
    ids = [(number,) for number in range(60)]
    assert table.sql("SELECT id FROM lake.t ORDER BY id") == ids
    for version, count in versions.items():
        assert table.sql(f"SELECT id FROM lake.t VERSION AS OF {version} ORDER BY id") == ids[:count]
        assert table.catalog.load_table("t").at(version=version).to_arrow().num_rows == count
    for condition, wanted in [
        ("k = 'k1'", [n for n in range(60) if n % 3 == 1]), ("id = 17", [17]), ("id >= 40 AND k <> 'k0'", [
            n for n in range(40, 60) if n % 3]), ("st.x = 1 AND id < 9", [1, 3, 5, 7]),
        ("`at here` < TIMESTAMP'1970-01-04 00:00:00'", [0, 1, 2]), ("k IS NULL", []),
    ]:  # fmt: skip
        assert table.sql(f"SELECT id FROM lake.t WHERE {condition} ORDER BY id") == [(n,) for n in wanted]
    every = table.catalog.load_table("t")
    assert every.plan([("id", "=", 17)]).num_rows < every.file_count / 2


def test_what_is_changed_is_shown_to_other_sessions(table):
    table.sql("ALTER TABLE lake.t ADD PARTITION FIELD bucket(4, id) AS shard")
    assert [row[1] for row in shown(table)] == ["bucket(4, id)"]
    table.sql("INSERT OVERWRITE lake.t SELECT * FROM lake.t")
    rows = another_session(table).sql("SHOW PARTITIONS lake.t")
    assert rows and all(row[0].startswith("shard=") for row in rows)


def test_partitions_of_older_files_are_shown_where_they_are_certain_and_never_guessed(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, a INT, b STRING) PARTITIONED BY (a, b)")
    lake.sql("INSERT INTO lake.t VALUES (1, 1, 'x'), (2, 2, 'y')")
    lake.sql("ALTER TABLE lake.t DROP PARTITION FIELD a")
    lake.sql("INSERT INTO lake.t VALUES (3, 3, 'y'), (4, 4, 'y')")
    assert lake.sql("SHOW PARTITIONS lake.t") == [("b=x",), ("b=y",)]
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD a")
    with pytest.raises(UnsupportedOperationException, match="earlier partitioning"):
        lake.sql("SHOW PARTITIONS lake.t")
    assert lake.sql("SHOW PARTITIONS lake.t PARTITION (b = 'x')") == [("b=x/a=1",)]
    lake.sql("ALTER TABLE lake.t DROP PARTITION (b = 'x', a = 1)")
    with pytest.raises(UnsupportedOperationException, match="earlier partitioning"):
        lake.sql("ALTER TABLE lake.t DROP PARTITION (b = 'y', a = 3)")
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lake.sql("INSERT OVERWRITE lake.t SELECT 22, 2, 'y'")
        lake.sql("INSERT OVERWRITE lake.t SELECT 33, 3, 'y'")
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert lake.sorted("SELECT id FROM lake.t") == [(22,), (33,), (4,)]


def test_partitions_of_older_files_that_are_shown_are_truncated_and_dropped(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, at DATE, k STRING)")
    for id, day, k in [(1, "2026-01-01", "one"), (2, "2026-02-02", "two"), (3, "2026-02-03", "one")]:
        lake.sql(f"INSERT INTO lake.t VALUES ({id}, DATE'{day}', '{k}')")
    for field in ("months(at)", "bucket(8, id)", "truncate(2, k)"):
        lake.sql(f"ALTER TABLE lake.t ADD PARTITION FIELD {field}")
    lake.sql("INSERT INTO lake.t VALUES (1, DATE'2026-01-31', 'ontario')")
    shown = {
        tuple(part.partition("=")[2] for part in row[0].split("/"))
        for row in lake.sql("SHOW PARTITIONS lake.t")
    }
    assert {(month, k) for month, _, k in shown} == {("672", "on"), ("673", "tw"), ("673", "on")} and len(
        shown
    ) == 3
    [first] = [each for each in shown if each[0] == "672"]
    [second] = [each for each in shown if each[2] == "tw"]

    def named(values):
        return "at_month = {}, id_bucket = {}, k_trunc = '{}'".format(*values)

    lake.sql(f"ALTER TABLE lake.t DROP PARTITION ({named(first)})")
    assert lake.sorted("SELECT id FROM lake.t") == [(2,), (3,)]
    lake.sql(f"TRUNCATE TABLE lake.t PARTITION ({named(second)})")
    assert another_session(lake).sql("SELECT id, k FROM lake.t") == [(3, "one")]
    assert len(lake.sql("SHOW PARTITIONS lake.t")) == 2


def test_new_files_have_their_rows_in_the_order_that_is_asked_for(table):
    for statement, expected in [
        ("ORDERED BY k DESC, id", [("k", "identity", "desc", "last"), ("id", "identity", "asc", "first")]),
        ("LOCALLY ORDERED BY (st.x ASC NULLS LAST, bucket(4, id) DESC NULLS FIRST)",
         [("st.x", "identity", "asc", "last"), ("id", "bucket[4]", "desc", "first")]),
        ("UNORDERED", []),
    ]:  # fmt: skip
        table.sql(f"ALTER TABLE lake.t WRITE {statement}")
        assert order(table) == expected
    with pytest.raises(AnalysisException, match="not partitioned"):
        table.sql("ALTER TABLE lake.t WRITE DISTRIBUTED BY PARTITION")
    table.sql("ALTER TABLE lake.t ADD PARTITION FIELD st.x")
    table.sql("ALTER TABLE lake.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC")
    assert order(table) == [("id", "identity", "desc", "last")]
    table.sql("TRUNCATE TABLE lake.t")
    table.sql(
        "INSERT INTO lake.t SELECT id, 'k', current_timestamp(), named_struct('x', CAST(id % 2 AS INT)) "
        "FROM range(0, 100, 1, 7)"
    )
    read = table.catalog.load_table("t")
    import pyarrow.parquet as pq

    for path in read.plan()["path"].to_pylist():
        ids = pq.read_table(f"{read.location}/{path}").column(0).to_pylist()
        assert len(ids) > 1 and ids == sorted(ids, reverse=True)
    table.sql("ALTER TABLE lake.t WRITE DISTRIBUTED BY PARTITION")
    assert order(table) == []


def test_a_partition_field_keeps_its_name_and_an_identity_that_of_its_column(table):
    table.sql("ALTER TABLE lake.t ADD PARTITION FIELD k")
    table.sql("ALTER TABLE lake.t ADD PARTITION FIELD bucket(4, id) AS shard")
    table.sql("ALTER TABLE lake.t RENAME COLUMN k TO kk")
    table.sql("ALTER TABLE lake.t RENAME COLUMN id TO number")
    table.sql("TRUNCATE TABLE lake.t")
    table.sql("INSERT INTO lake.t VALUES (1, 'a', NULL, NULL)")
    assert table.sql("SHOW PARTITIONS lake.t") == [("kk=a/shard=0",)]
    table.sql("ALTER TABLE lake.t DROP PARTITION FIELD kk")
    table.sql("ALTER TABLE lake.t DROP PARTITION FIELD bucket(4, number)")
    assert spec(table) == []


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("ADD PARTITION FIELD", ParseException, "PARSE_SYNTAX_ERROR"),
        ("ADD PARTITION FIELD k AS", ParseException, "PARSE_SYNTAX_ERROR"),
        ("ADD PARTITION FIELD bucket(4, id) AS a.b", ParseException, "several parts"),
        ("REPLACE PARTITION FIELD k", ParseException, "PARSE_SYNTAX_ERROR"),
        ("WRITE", ParseException, "PARSE_SYNTAX_ERROR"),
        ("WRITE ORDERED BY", ParseException, "PARSE_SYNTAX_ERROR"),
        ("WRITE ORDERED BY k UNORDERED", ParseException, "PARSE_SYNTAX_ERROR"),
        ("WRITE DISTRIBUTED BY k", ParseException, "PARSE_SYNTAX_ERROR"),
        ("ADD PARTITION FIELD id + 1", ParseException, "neither a column nor a transform"),
        ("ADD PARTITION FIELD bucket(4, nope)", AnalysisException, "nope"),
        ("ADD PARTITION FIELD zorder(id)", UnsupportedOperationException, "zorder"),
        ("ADD PARTITION FIELD bucket(4, id, k)", UnsupportedOperationException, "bucket of 2 columns"),
        ("ADD PARTITION FIELD days(k)", AnalysisException, "does not take a column of type string"),
        ("DROP PARTITION FIELD k", AnalysisException, "no partition field k"),
        ("ADD PARTITION FIELD bucket(4, id) AS k", AnalysisException, "the name of the column"),
        ("ADD PARTITION FIELD k AS other", AnalysisException, "name transforms only"),
        ("WRITE ORDERED BY nope", AnalysisException, "nope"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(table, statement, error, words):
    version = table.catalog.load_table("t").version
    with pytest.raises(error, match=words):
        table.sql(f"ALTER TABLE lake.t {statement}")
    assert table.catalog.load_table("t").version == version


def test_the_statements_are_for_tables_of_lakelog_and_leave_other_statements_alone(table, memory):
    memory.sql("CREATE TABLE lake.m (id BIGINT)")
    for statement, word in [
        ("WRITE UNORDERED", "WRITE"),
        ("WRITE", "WRITE"),
        ("ADD PARTITION FIELD id", "FIELD"),
    ]:
        with pytest.raises(ParseException) as refused_error:
            memory.sql(f"ALTER TABLE lake.m {statement}")
        # Spark's own words: another extension may have such statements for that catalog's tables.
        assert f"near '{word}'" in str(refused_error.value)
    with pytest.raises(UnsupportedOperationException, match="not a lakelog table"):
        table.sql("ALTER TABLE lake.system.audit WRITE UNORDERED")
    with pytest.raises(AnalysisException) as error:
        table.sql("ALTER TABLE lake.nope ADD PARTITION FIELD id")
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    memory.sql("ALTER TABLE lake.m ADD COLUMN write INT")
    table.sql("CALL lake.system.begin_transaction()")
    table.sql("ALTER TABLE lake.t ADD PARTITION FIELD k")
    table.sql("CALL lake.system.rollback_transaction()")
    assert spec(table) == []


def test_other_statements_and_parameters_are_for_sparks_own_parser(table):
    with pytest.raises(AnalysisException) as error:
        table.sql("BEGIN SELECT 1; DECLARE x INT; END")
    assert error.value.getCondition() == "INVALID_VARIABLE_DECLARATION.ONLY_AT_BEGINNING"
    assert table.spark.sql("SELECT :a AS a", args={"a": 1}).collect() == [(1,)]
    with pytest.raises(UnsupportedOperationException, match="do not take parameters"):
        table.spark.sql(f"ALTER TABLE {table.name}.t WRITE UNORDERED", args={"a": 1})
