"""`spark.wap.branch`, `spark.wap.id` and the option `branch`: what is to be audited never goes live."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from tests.spark.conftest import Lake
from tests.spark.versions import SPARK_4_2

pytestmark = pytest.mark.adapter

ENABLED = "TBLPROPERTIES ('write.wap.enabled' = 'true')"


@pytest.fixture
def shop(lake: Lake) -> Iterator[Lake]:
    """A table to audit, `a.t`, and one that is not, `a.plain`, each with the rows 1 and 2."""
    lake.sql("CREATE NAMESPACE lake.a")
    for name, properties in (("t", ENABLED), ("plain", "")):
        lake.sql(f"CREATE TABLE lake.a.{name} (id BIGINT, k STRING) PARTITIONED BY (k) {properties}")
        lake.sql(f"INSERT INTO lake.a.{name} VALUES (1, 'a'), (2, 'b')")
    yield lake
    for key in ("spark.wap.branch", "spark.wap.id"):
        lake.spark.conf.unset(key)


def in_python(lake: Lake, ref: str = "main", name: str = "a.t") -> list[tuple]:
    rows = lake.catalog.load_table(name, ref=ref).to_arrow().to_pylist()
    return sorted((row["id"], row["k"]) for row in rows)


def frame(lake: Lake):
    return lake.spark.createDataFrame([(9, "i")], "id long, k string")


def stream(lake: Lake, table: str, tmp_path, **options: str) -> None:
    source = str(tmp_path / "source")
    frame(lake).write.mode("overwrite").parquet(source)
    read = lake.spark.readStream.schema("id long, k string").parquet(source)
    writer = read.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).options(**options)
    query = writer.trigger(availableNow=True).toTable(f"{lake.name}.{table}")
    query.awaitTermination()


WRITES: dict[str, Callable[[Lake, str, object], object]] = {
    "insert": lambda lake, t, _: lake.sql(f"INSERT INTO lake.{t} VALUES (9, 'i')"),
    "overwrite": lambda lake, t, _: lake.sql(f"INSERT OVERWRITE lake.{t} VALUES (9, 'i')"),
    "replace where": lambda lake, t, _: lake.sql(
        f"INSERT INTO lake.{t} REPLACE WHERE k = 'i' VALUES (9, 'i')"
    ),
    "evolution": lambda lake, t, _: lake.sql(
        f"INSERT WITH SCHEMA EVOLUTION INTO lake.{t} BY NAME SELECT 9L AS id, 'i' AS k"
    ),
    "update": lambda lake, t, _: lake.sql(f"UPDATE lake.{t} SET id = 9 WHERE id = 1"),
    "delete of rows": lambda lake, t, _: lake.sql(f"DELETE FROM lake.{t} WHERE id = 1"),
    "delete of files": lambda lake, t, _: lake.sql(f"DELETE FROM lake.{t} WHERE k = 'a'"),
    "merge": lambda lake, t, _: lake.sql(
        f"MERGE INTO lake.{t} t USING (SELECT 1L AS id, 'z' AS k) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT *"
    ),
    "insert of its rows": lambda lake, t, _: lake.sql(
        f"INSERT INTO lake.{t} SELECT id + 10, k FROM lake.{t}"
    ),
    "delete by its rows": lambda lake, t, _: lake.sql(
        f"DELETE FROM lake.{t} WHERE id IN (SELECT max(id) FROM lake.{t})"
    ),
    "merge of its rows": lambda lake, t, _: lake.sql(
        f"MERGE INTO lake.{t} t USING (SELECT id + 1 AS id, k FROM lake.{t}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = 'z' WHEN NOT MATCHED THEN INSERT *"
    ),
    "truncate": lambda lake, t, _: lake.sql(f"TRUNCATE TABLE lake.{t}"),
    "drop partition": lambda lake, t, _: lake.sql(f"ALTER TABLE lake.{t} DROP PARTITION (k = 'a')"),
    "truncate partition": lambda lake, t, _: lake.sql(f"TRUNCATE TABLE lake.{t} PARTITION (k = 'a')"),
    "rename partition": lambda lake, t, _: lake.sql(
        f"ALTER TABLE lake.{t} PARTITION (k = 'a') RENAME TO PARTITION (k = 'c')"
    ),
    "add partition": lambda lake, t, _: lake.sql(f"ALTER TABLE lake.{t} ADD PARTITION (k = 'new')"),
    "writeTo": lambda lake, t, _: frame(lake).writeTo(f"{lake.name}.{t}").append(),
    "writeTo overwrite": lambda lake, t, _: frame(lake).writeTo(f"{lake.name}.{t}").overwritePartitions(),
    "saveAsTable": lambda lake, t, _: frame(lake).write.mode("append").saveAsTable(f"{lake.name}.{t}"),
    "insertInto": lambda lake, t, _: frame(lake).write.insertInto(f"{lake.name}.{t}"),
    "stream": lambda lake, t, path: stream(lake, t, path),
}


def test_every_write_goes_to_the_audit_branch(shop: Lake, tmp_path):
    before = in_python(shop)
    for at, (name, write) in enumerate(WRITES.items()):
        branch = f"audit{at}"
        shop.sql(f"SET spark.wap.branch = {branch}")
        write(shop, "a.t", tmp_path / str(at))
        assert in_python(shop) == before, f"{name} went live"
        changed = in_python(shop, branch)
        assert changed != before or name == "add partition", f"{name} is lost"
        assert sorted(shop.sql("SELECT id, k FROM lake.a.t")) == changed, f"{name} is not read"
        shop.sql("RESET spark.wap.branch")
        assert sorted(shop.sql("SELECT id, k FROM lake.a.t")) == before


def test_a_table_that_is_not_to_be_audited_is_not_written_to(shop: Lake, tmp_path):
    before, version = in_python(shop, name="a.plain"), shop.catalog.load_table("a.plain").version
    shop.sql("SET spark.wap.branch = audit")
    for at, (name, write) in enumerate(WRITES.items()):
        with pytest.raises(PySparkException, match="write.wap.enabled"):
            write(shop, "a.plain", tmp_path / str(at))
        assert shop.catalog.load_table("a.plain").version == version, name
    assert sorted(shop.sql("SELECT id, k FROM lake.a.plain")) == before
    # A branch that is named is what the writer wants.
    shop.sql("RESET spark.wap.branch")
    shop.sql("ALTER TABLE lake.a.plain CREATE BRANCH mine")
    shop.sql("SET spark.wap.branch = audit")
    shop.sql("INSERT INTO lake.a.plain.branch_mine VALUES (3, 'c')")
    frame(shop).writeTo(f"{shop.name}.a.plain").option("branch", "mine").append()
    assert in_python(shop, name="a.plain") == before
    assert in_python(shop, "mine", "a.plain") == [*before, (3, "c"), (9, "i")]


def test_nothing_is_written_while_an_id_is_set(shop: Lake, tmp_path):
    shop.sql("ALTER TABLE lake.a.t CREATE BRANCH mine")
    version = shop.catalog.load_table("a.t").version
    shop.sql("SET spark.wap.id = 7")
    for at, write in enumerate(WRITES.values()):
        for table in ("a.t", "a.t.branch_mine"):
            with pytest.raises(PySparkException, match="spark.wap.id is 7.* RESET"):
                write(shop, table, tmp_path / f"{at}-{table}")
    assert shop.catalog.load_table("a.t").version == version
    assert len(shop.sql("SELECT * FROM lake.a.t")) == 2


def test_tables_are_neither_replaced_nor_rolled_back_beside_an_audit(shop: Lake):
    shop.sql("INSERT INTO lake.a.t VALUES (3, 'c')")
    shop.sql("SET spark.wap.branch = audit")
    for statement in (
        "CREATE TABLE lake.a.new AS SELECT 1 AS id",
        f"CREATE TABLE lake.a.new {ENABLED} AS SELECT 1 AS id",
        "REPLACE TABLE lake.a.t AS SELECT 1 AS id",
        "CREATE OR REPLACE TABLE lake.a.t (id INT)",
        "CALL lake.system.rollback_to_version('a.t', 2)",
        "CALL lake.system.set_current_version('a.t', 2)",
        "CALL lake.system.rollback_to_snapshot('a.t', 2)",
        "RESTORE TABLE lake.a.t TO VERSION AS OF 2",
        "CALL lake.system.add_files('a.t', '/tmp/none')",
        "CALL lake.system.import_table('/tmp/none', 'delta', 'a.t')",
        "CALL lake.system.forget('a.t', 'id = 1', dry_run => false)",
    ):
        with pytest.raises(PySparkException, match="spark.wap.branch is audit"):
            shop.sql(statement)
    assert len(in_python(shop)) == 3 and [row[0] for row in shop.sql("SELECT name FROM lake.a.t.refs")] == [
        "main"
    ]
    shop.sql("CREATE TABLE lake.a.empty (id INT)")


def test_an_audit_is_published_by_a_fast_forward(shop: Lake):
    shop.sql("SET spark.wap.branch = audit")
    shop.sql("EXPLAIN INSERT INTO lake.a.t VALUES (3, 'c')")
    assert [row[0] for row in shop.sql("SHOW BRANCHES IN lake.a.t")] == ["main"], "EXPLAIN makes no branch"
    shop.sql("INSERT INTO lake.a.t VALUES (3, 'c')")
    shop.sql("UPDATE lake.a.t SET k = 'd' WHERE id = 1")
    # What is about the whole table still is, though the session reads its branch.
    assert [row[0] for row in shop.sql("SHOW BRANCHES IN lake.a.t")] == ["audit", "main"]
    assert shop.sql("DESCRIBE DETAIL lake.a.t")[0][2] == f"{shop.name}.a.t"
    shop.sql("ALTER TABLE lake.a.t CREATE TAG before")
    assert in_python(shop, "before") == in_python(shop) == [(1, "a"), (2, "b")]
    shop.sql("ALTER TABLE lake.a.t WRITE ORDERED BY id")
    shop.sql("CALL lake.system.compact('a.t')")
    shop.sql("VACUUM lake.a.t DRY RUN")
    with pytest.raises(PySparkException, match="RESET spark.wap.branch"):
        shop.spark.readStream.table(f"{shop.name}.a.t").writeStream.format(
            "noop"
        ).start().processAllAvailable()
    shop.sql("CALL lake.system.fast_forward('a.t', 'main', 'audit')")
    assert in_python(shop) == [(1, "d"), (2, "b"), (3, "c")]


def test_what_is_cached_of_a_line_is_not_read_of_another(shop: Lake):
    def rows() -> list[tuple]:
        return sorted(shop.sql("SELECT id, k FROM lake.a.t"))

    rows_before = rows()
    audited = [*rows_before, (3, "c")]
    try:
        shop.sql("CACHE TABLE lake.a.t")
        shop.sql("SET spark.wap.branch = audit")
        shop.sql("INSERT INTO lake.a.t VALUES (3, 'c')")
        assert rows() == audited
        shop.sql("RESET spark.wap.branch")
        assert rows() == rows_before
        shop.sql("UNCACHE TABLE lake.a.t")
        shop.sql("SET spark.wap.branch = audit")
        shop.sql("CACHE TABLE lake.a.t")
        assert rows() == audited
        shop.sql("RESET spark.wap.branch")
        assert rows() == rows_before
        shop.sql("INSERT INTO lake.a.t SELECT id + 10, k FROM lake.a.t")
        assert in_python(shop) == [*rows_before, (11, "a"), (12, "b")]
    finally:
        shop.spark.catalog.clearCache()


def test_one_write_names_one_branch(shop: Lake):
    for name in ("mine", "other"):
        shop.sql(f"ALTER TABLE lake.a.t CREATE BRANCH {name}")
    table = f"{shop.name}.a.t"
    with pytest.raises(AnalysisException, match="names two branches: mine .* and other"):
        frame(shop).writeTo(f"{table}.branch_mine").option("branch", "other").append()
    with pytest.raises(AnalysisException, match="missing"):
        frame(shop).writeTo(table).option("branch", "missing").append()
    shop.sql("SET spark.wap.branch = audit")
    for write in (
        lambda: frame(shop).writeTo(table).option("branch", "mine").append(),
        lambda: frame(shop).writeTo(table).option("branch", "main").append(),
        lambda: shop.sql("INSERT INTO lake.a.t.branch_mine VALUES (9, 'i')"),
    ):
        with pytest.raises(AnalysisException, match="leave one of them out"):
            write()
    frame(shop).writeTo(table).option("branch", "audit").append()
    assert in_python(shop) == in_python(shop, "mine") and (9, "i") in in_python(shop, "audit")
    shop.sql("SET spark.wap.branch = main")
    shop.sql("INSERT INTO lake.a.t VALUES (4, 'd')")
    assert (4, "d") in in_python(shop)


def test_the_session_that_writes_counts_and_not_the_one_that_is_active(shop: Lake):
    table = f"{shop.name}.a.t"
    before = in_python(shop)
    other_session = shop.spark.newSession()
    for key, value in shop.spark.conf.getAll.items():
        if key.startswith(f"spark.sql.catalog.{shop.name}"):
            other_session.conf.set(key, value)
    rows = other_session.createDataFrame([(7, "g")], "id long, k string")
    place = shop.catalog.load_table("a.t").location
    shop.sql("SET spark.wap.branch = audit")
    frame(shop).writeTo(table).append()  # makes the session with the setting the thread's active one
    rows.write.mode("append").saveAsTable(table)
    frame(shop)
    rows.write.insertInto(table)
    frame(shop)
    rows.write.format("lakelog").option("catalog", shop.name).mode("append").save(place)
    assert in_python(shop) == [*before, *[(7, "g")] * 3]
    assert in_python(shop, "audit") == [*before, (9, "i")]


def test_conditions_are_not_held_against_the_rows_of_a_branch_alone(shop: Lake):
    shop.sql("INSERT INTO lake.a.t VALUES (NULL, 'n'), (30, 'n')")
    shop.sql("SET spark.wap.branch = audit")
    shop.sql("DELETE FROM lake.a.t WHERE k = 'n'")
    for change in ("ALTER COLUMN id SET NOT NULL", "ADD CONSTRAINT few CHECK (id < 9)"):
        with pytest.raises(PySparkException, match="RESET spark.wap.branch, and add it then"):
            shop.sql(f"ALTER TABLE lake.a.t {change}")
    shop.sql("RESET spark.wap.branch")
    assert sorted(shop.sql("SELECT id FROM lake.a.t WHERE k = 'n'"), key=repr) == [(30,), (None,)]
    with pytest.raises(PySparkException, match="violated by existing data"):
        shop.sql("ALTER TABLE lake.a.t ALTER COLUMN id SET NOT NULL")


def test_a_table_named_like_a_branch_is_not_one(shop: Lake):
    shop.sql(f"CREATE TABLE lake.a.branch_office {ENABLED} AS SELECT 1L AS id")
    shop.sql("SET spark.wap.branch = audit")
    with pytest.raises(PySparkException, match="the procedure forget would change rows"):
        shop.sql("CALL lake.system.forget('a.branch_office', 'id = 1', dry_run => false)")
    assert shop.catalog.load_table("a.branch_office").to_arrow().num_rows == 1


def test_the_option_branch_of_a_write_is_obeyed(shop: Lake, tmp_path):
    before = in_python(shop)
    table = f"{shop.name}.a.t"
    writes = {
        "writeTo": lambda of: frame(shop).writeTo(table).option("branch", of).append(),
        "overwrite": lambda of: frame(shop).writeTo(table).option("branch", of).overwritePartitions(),
        "saveAsTable": lambda of: frame(shop).write.mode("append").option("branch", of).saveAsTable(table),
        "insertInto": lambda of: frame(shop).write.option("branch", of).insertInto(table),
        "format": lambda of: frame(shop).write.format("lakelog").option("branch", of).mode("append").saveAsTable(table),
        "merged": lambda of: frame(shop)
        .write.mode("append").option("branch", of).option("mergeSchema", "true").saveAsTable(table),
        "place": lambda of: frame(shop)
        .write.format("lakelog").option("catalog", shop.name).option("branch", of).mode("append")
        .save(shop.catalog.load_table("a.t").location),
        "with": lambda of: shop.sql(f"INSERT INTO lake.a.t WITH (`branch` = '{of}') VALUES (9, 'i')"),
        "stream": lambda of: stream(shop, "a.t", tmp_path, branch=of),
    }  # fmt: skip
    if not SPARK_4_2:
        del writes["merged"]
    for at, (name, write) in enumerate(writes.items()):
        branch = f"b{at}"
        shop.sql(f"ALTER TABLE lake.a.t CREATE BRANCH {branch}")
        try:
            write(branch)
        except PySparkException as error:
            raise AssertionError(name) from error
        assert in_python(shop) == before, f"{name} went live"
        assert in_python(shop, branch) == [*before, (9, "i")], f"{name} is lost"
        assert shop.spark.read.option("branch", branch).table(table).count() == 3
    for refused in (
        lambda: frame(shop).write.mode("overwrite").option("branch", "b0").saveAsTable(table),
        lambda: frame(shop).writeTo(table).option("branch", "b0").createOrReplace(),
        lambda: frame(shop).writeTo(f"{shop.name}.a.new").option("branch", "b0").create(),
        lambda: shop.spark.readStream.option("branch", "b0").table(table),
        lambda: shop.sql("DELETE FROM lake.a.t WITH (branch = 'b0')"),
        lambda: shop.sql("UPDATE lake.a.t AS t WITH (branch = 'b0') SET k = 'u'"),
        lambda: shop.sql(
            "MERGE INTO lake.a.t WITH (branch = 'b0') AS t USING lake.a.t AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
        ),
    ):
        with pytest.raises(PySparkException, match="branch"):
            refused()
    assert in_python(shop) == before and not shop.catalog.table_exists("a.new")
