"""What a commit records of who made it through Spark, and the table lake.system.audit."""

import pytest
from pyspark.errors import AnalysisException

import lakelog.spark
from lakelog.catalog import Catalog
from lakelog.catalog.times import time_us


def writer_of(lake, name="a.t"):
    """What the newest commit of a table records of its writer."""
    return next(Catalog(lake.warehouse).load_table(name).history()).writer


def prepare(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (id BIGINT, k STRING)")


@pytest.mark.adapter
def test_a_commit_records_engine_application_user_query_and_the_statement_without_its_literals(lake):
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t /* geheim */ VALUES (4711, 'geheim')")
    facts = writer_of(lake)
    context = lake.spark.sparkContext
    assert facts["engine"] == f"spark {lake.spark.version}"
    assert facts["user"] == context.sparkUser()
    assert context.applicationId in facts["application"] and context.appName in facts["application"]
    assert facts["statement"] == f"INSERT INTO {lake.name}.a.t VALUES (?, ?)"
    first = facts["query"]
    lake.sql("INSERT INTO lake.a.t VALUES (1, 'a')")
    assert first and writer_of(lake)["query"] not in ("", first)


@pytest.mark.adapter
@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("CREATE TABLE lake.a.n (id INT) COMMENT 'x'", "CREATE TABLE lake.a.n (id INT) COMMENT ?"),
        ("CREATE TABLE lake.a.n AS SELECT 1 AS id", "CREATE TABLE lake.a.n AS SELECT ? AS id"),
        ("CREATE OR REPLACE TABLE lake.a.n AS SELECT 1 AS id", "CREATE OR REPLACE TABLE lake.a.n AS SELECT ? AS id"),
        ("-- why\nCREATE TABLE lake.a.n AS SELECT 1 AS id", "CREATE TABLE lake.a.n AS SELECT ? AS id"),
        ("/* a /* b */ c */ CREATE TABLE lake.a.n AS SELECT 1 AS id", "CREATE TABLE lake.a.n AS SELECT ? AS id"),
        ("\n" * 20_000 + "CREATE TABLE lake.a.n AS SELECT 1 AS id", "CREATE TABLE lake.a.n AS SELECT ? AS id"),
        ("-- c\n" * 8_000 + "CREATE TABLE lake.a.n AS SELECT 1 AS id", "CREATE TABLE lake.a.n AS SELECT ? AS id"),
    ],
)  # fmt: skip
def test_a_creation_records_its_statement(lake, statement, kept):
    prepare(lake)
    lake.sql(statement)
    assert writer_of(lake, "a.n")["statement"] == kept.replace("lake.", f"{lake.name}.")


@pytest.mark.parametrize(
    "statement",
    [
        "WITH q AS (SELECT 1 AS id, 'a' AS k) INSERT INTO lake.a.t SELECT * FROM q",
        "INSERT OVERWRITE lake.a.t SELECT 1, 'a'",
        "DELETE FROM lake.a.t WHERE id < 10",
        "TRUNCATE TABLE lake.a.t",
        "ALTER TABLE lake.a.t ADD COLUMN more INT",
        "INSERT WITH SCHEMA EVOLUTION INTO lake.a.t BY NAME SELECT 1 AS id, 'a' AS k, 'b' AS another",
    ],
)
def test_every_change_of_a_table_records_its_statement(lake, statement):
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t VALUES (1, 'a')")
    lake.sql(statement)
    words = [
        word.replace("lake.", f"{lake.name}.")
        for word in statement.split("(")[0].split("'")[0].split("1")[:1]
    ]
    assert writer_of(lake)["statement"].startswith(words[0].rstrip())


def test_changes_of_namespaces_and_calls_record_their_statement_too(lake):
    prepare(lake)
    lake.sql("ALTER TABLE lake.a.t RENAME TO a.u")
    lake.sql("DROP TABLE lake.a.u")
    lake.sql("CALL lake.system.undrop_table('a.u', to => 'a.t')")
    statements = [entry.writer["statement"] for entry in Catalog(lake.warehouse).history("a")]
    assert statements[:3] == [
        f"CALL {lake.name}.system.undrop_table(?, to => ?)",
        f"DROP TABLE {lake.name}.a.u",
        f"ALTER TABLE {lake.name}.a.t RENAME TO a.u",
    ]


@pytest.mark.adapter
def test_a_dataframe_records_its_plan_and_query_and_no_statement_that_it_was_read_by(lake):
    prepare(lake)
    lake.frame("SELECT id, k FROM lake.a.t").writeTo(f"{lake.name}.a.t").append()
    assert writer_of(lake)["statement"] == "DataFrame: AppendData"
    assert writer_of(lake)["query"]
    lake.frame("SELECT id, k FROM lake.a.t").writeTo(f"{lake.name}.a.n").create()
    assert writer_of(lake, "a.n")["statement"] == "DataFrame: CreateTableAsSelect"


def test_the_statements_of_a_script_are_recorded_one_by_one(lake):
    prepare(lake)
    lake.frame("BEGIN INSERT INTO lake.a.t VALUES (1, 'a'); DELETE FROM lake.a.t WHERE id < 5; END").collect()
    assert writer_of(lake)["statement"] == f"DELETE FROM {lake.name}.a.t WHERE id < ?"


@pytest.mark.adapter
@pytest.mark.parametrize(
    ("script", "table", "kept"),
    [
        (
            "BEGIN DELETE FROM lake.a.t WHERE k = 'a;b' OR id > 5; END",
            "a.t",
            "DELETE FROM lake.a.t WHERE k = ? OR id > ?",
        ),
        (
            "BEGIN SELECT '\U0001f600'; INSERT INTO lake.a.t /* ; */ VALUES (1, ';'); END",
            "a.t",
            "INSERT INTO lake.a.t VALUES (?, ?)",
        ),
        (
            "BEGIN IF true THEN CREATE TABLE lake.a.n AS "
            "SELECT CASE WHEN true THEN ';' ELSE replace('a', 'b') END AS k; END IF; END",
            "a.n",
            "CREATE TABLE lake.a.n AS SELECT CASE WHEN true THEN ? ELSE replace(?, ?) END AS k",
        ),
    ],
)
def test_a_statement_of_a_script_is_recorded_from_its_beginning_to_its_end(lake, script, table, kept):
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t VALUES (7, 'a')")
    lake.frame(script).collect()
    assert writer_of(lake, table)["statement"] == kept.replace("lake.", f"{lake.name}.")


def test_what_a_commit_keeps_of_a_filter_has_no_literals(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (id INT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.a.t VALUES (1, 'geheim'), (2, 'it''s geheim')")
    lake.sql("DELETE FROM lake.a.t WHERE k IN ('geheim', 'auch geheim')")
    lake.sql("INSERT OVERWRITE lake.a.t PARTITION (k = 'it''s geheim') SELECT 5")
    filters = [entry.details.get("filter") for entry in Catalog(lake.warehouse).load_table("a.t").history()]
    assert filters[:2] == ["k <=> ?", "k IN (?, ?)"]
    assert lake.sql("SELECT * FROM lake.system.audit WHERE concat(details, statement) LIKE '%geheim%'") == []


def test_the_commit_of_a_transaction_records_in_each_log_the_statements_that_changed_it(lake):
    prepare(lake)
    lake.sql("CREATE TABLE lake.a.u (id INT)")
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.a.t VALUES (1, 'a')")
        lake.sql("SELECT * FROM lake.a.t")
        lake.sql("INSERT INTO lake.a.u VALUES (5)")
        lake.sql("ALTER TABLE lake.a.t ADD COLUMN more INT")
    name = lake.name
    assert writer_of(lake)["statement"] == (
        f"INSERT INTO {name}.a.t VALUES (?, ?); ALTER TABLE {name}.a.t ADD COLUMN more INT"
    )
    assert writer_of(lake, "a.u")["statement"] == f"INSERT INTO {name}.a.u VALUES (?)"


@pytest.mark.parametrize("setting", ["full", "none", "everything"])
def test_what_is_kept_of_statements_is_a_setting(make_lake, setting):
    lake = make_lake(statement_text=setting)
    if setting == "everything":
        with pytest.raises(AnalysisException, match="statement-text is everything.*normalized, full, none"):
            prepare(lake)
        return
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t VALUES (4711, 'geheim')")
    expected = f"INSERT INTO {lake.name}.a.t VALUES (4711, 'geheim')" if setting == "full" else None
    assert writer_of(lake).get("statement") == expected


@pytest.mark.adapter
def test_the_audit_is_a_table(lake):
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t VALUES (1, 'a')")
    lake.sql("DROP TABLE lake.a.t")
    assert lake.sql(f"SHOW TABLES IN {lake.name}.system")[0][1] == "audit"
    rows = lake.sql(
        "SELECT kind, name, operation, statement FROM lake.system.audit WHERE what = 'commit' "
        "ORDER BY committed_at DESC, kind"
    )
    assert ("table", "`a`.`t`", "append", f"INSERT INTO {lake.name}.a.t VALUES (?, ?)") in rows
    catalog = Catalog(lake.warehouse)
    assert len(rows) == len(list(catalog.audit()))
    ((middle,),) = lake.sql("SELECT max(committed_at) FROM lake.system.audit WHERE operation = 'append'")
    later = lake.sql(f"SELECT count(*) FROM lake.system.audit WHERE committed_at > TIMESTAMP '{middle}'")
    all_of_it = lake.sql("SELECT count(*) FROM lake.system.audit")
    at = lake.sql(f"SELECT operation FROM lake.system.audit WHERE committed_at = TIMESTAMP '{middle}'")
    assert later == [(2,)] and all_of_it[0][0] == len(rows) and at == [("append",)]
    described = {row[0]: row[1] for row in lake.sql("DESCRIBE lake.system.audit")}
    assert described["committed_at"] == "timestamp" and described["version"] == "bigint"


def test_a_filter_on_the_time_finds_the_same_rows_as_without_its_help(lake):
    prepare(lake)
    for id in range(4):
        lake.sql(f"INSERT INTO lake.a.t VALUES ({id}, 'a')")
    times = [time_us(entry.committed_at) for entry in Catalog(lake.warehouse).audit()]
    lake.sql("CALL lake.system.expire('a.t', retain_last => 2, dry_run => false, trust_clock => true)")
    rows = lake.frame("SELECT * FROM lake.system.audit").collect()
    assert ("expired", 1, 4) in [(row.what, row.first_version, row.version) for row in rows]
    micros = {row: int(row.committed_at.timestamp() * 1_000_000 + 0.5) for row in rows}
    for time in times:
        for sign, holds in {"<=": int.__le__, ">=": int.__ge__, "=": int.__eq__}.items():
            frame = lake.frame(
                f"SELECT * FROM lake.system.audit WHERE committed_at {sign} timestamp_micros({time})"
            )
            wanted_rows = [row for row in rows if holds(micros[row], time)]
            assert sorted(frame.collect(), key=repr) == sorted(wanted_rows, key=repr), (sign, time)


def test_a_time_that_cannot_be_finds_nothing(lake):
    prepare(lake)
    when = "committed_at > TIMESTAMP '2030-01-01' AND committed_at < TIMESTAMP '2020-01-01'"
    assert lake.sql(f"SELECT * FROM lake.system.audit WHERE {when}") == []


def test_the_audit_takes_no_option_that_it_would_not_obey(lake):
    prepare(lake)
    with pytest.raises(Exception, match="leave out 'user'"):
        lake.sql("SELECT * FROM lake.system.audit WITH (`user` = 'me')")


def test_the_audit_is_read_only_and_reads_join_with_other_tables(lake):
    prepare(lake)
    lake.sql("INSERT INTO lake.a.t VALUES (2, 'two')")
    assert lake.sql(
        "SELECT count(*) FROM lake.a.t JOIN lake.system.audit ON id = version AND kind = 'table'"
    ) == [(1,)]
    with pytest.raises(AnalysisException):
        lake.sql("INSERT INTO lake.system.audit SELECT * FROM lake.system.audit")
    with pytest.raises(Exception, match="system|audit"):
        lake.sql("DROP TABLE lake.system.audit")
