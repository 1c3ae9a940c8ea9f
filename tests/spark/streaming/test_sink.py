"""A table as the sink of a streaming query: each batch is committed once, and its rows fit the table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.functions import expr
from tests.spark.sessions import another_session

from lakelog.catalog import Catalog


@pytest.fixture
def tables(lake):
    """A source of two versions with rows, 1 and 2, and an empty target."""
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.s (x INT)")
    lake.sql("CREATE TABLE lake.a.t (x INT)")
    lake.sql("INSERT INTO lake.a.s VALUES (1)")
    lake.sql("INSERT INTO lake.a.s VALUES (2)")
    return lake


def add(lake, *values: int) -> None:
    for value in values:
        lake.sql(f"INSERT INTO lake.a.s VALUES ({value})")


def values(lake, table: str = "a.t") -> list[int]:
    return sorted(row[0] for row in lake.sql(f"SELECT * FROM lake.{table}"))


def data_files(lake) -> list[str]:
    return sorted(str(path) for path in Path(lake.catalog.load_table("a.t").location).rglob("*.parquet"))


def forget(streams, checkpoint: str, what: str = "commits") -> None:
    """Make the checkpoint what it is when the query is killed before it writes the last entry of that log."""
    folder = Path(streams.checkpoint(checkpoint)) / what
    last = max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    (folder / f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.adapter
def test_a_table_is_copied_batch_by_batch_and_all_clients_see_it(tables, streams):
    streams.copy(streams.table("a.s", maxFilesPerTrigger=1), "a.t")
    assert values(tables) == values(another_session(tables)) == [1, 2]
    assert sorted(tables.catalog.load_table("a.t").to_arrow()["x"].to_pylist()) == [1, 2]
    history = list(tables.catalog.load_table("a.t").history())
    assert [(entry.operation, entry.details.get("batch")) for entry in history[:2]] == [
        ("append, stream", 1),
        ("append, stream", 0),
    ]
    assert "DataFrame" not in str(history[0].details)
    add(tables, 3)
    streams.copy(streams.table("a.s", maxFilesPerTrigger=1), "a.t")
    assert values(tables) == [1, 2, 3]


@pytest.mark.adapter
def test_a_batch_that_is_retried_after_a_kill_is_not_written_twice(tables, streams):
    streams.copy(streams.table("a.s"), "a.t")
    files = data_files(tables)
    forget(streams, "c")
    add(tables, 3)
    streams.copy(streams.table("a.s"), "a.t")
    assert values(tables) == [1, 2, 3]
    assert len(data_files(tables)) == len(files) + 1, "files of the batch that was there already are deleted"


def test_it_is_not_written_twice_though_others_wrote_and_old_versions_expired(tables, streams):
    streams.copy(streams.table("a.s"), "a.t")
    forget(streams, "c")
    for value in range(20, 30):
        tables.sql(f"INSERT INTO lake.a.t VALUES ({value})")
    tables.catalog.expire("a.t", retain_last=1, dry_run=False)
    streams.copy(streams.table("a.s"), "a.t")
    assert values(tables) == [1, 2, *range(20, 30)]


def test_it_is_not_written_again_when_its_rows_were_rolled_back(tables, streams):
    streams.copy(streams.table("a.s"), "a.t")
    forget(streams, "c")
    tables.catalog.load_table("a.t").rollback_to_version(1)
    streams.copy(streams.table("a.s"), "a.t")
    assert values(tables) == []


def test_a_query_that_wrote_to_another_place_goes_on_here_with_its_checkpoint(tables, streams, tmp_path):
    writer = streams.table("a.s").writeStream.option("checkpointLocation", streams.checkpoint("c"))
    old = writer.trigger(availableNow=True).start(str(tmp_path / "old"), format="parquet")
    streams.kept(old).awaitTermination()
    add(tables, 3)
    streams.copy(streams.table("a.s"), "a.t")
    assert values(tables) == [3]


def test_two_queries_write_to_one_table_and_a_new_checkpoint_is_a_new_query(tables, streams):
    for checkpoint in ("c", "d"):
        streams.copy(streams.table("a.s"), "a.t", checkpoint)
    assert values(tables) == [1, 1, 2, 2]
    shutil.rmtree(streams.checkpoint("c"))
    streams.copy(streams.table("a.s"), "a.t")
    assert values(tables) == [1, 1, 1, 2, 2, 2]


def test_a_checkpoint_from_a_backup_is_refused(tables, streams):
    frame = streams.table("a.s", maxFilesPerTrigger=1)
    streams.copy(frame, "a.t")
    shutil.copytree(streams.checkpoint("c"), streams.checkpoint("old"))
    add(tables, 3, 4)
    streams.copy(frame, "a.t")
    with pytest.raises(StreamingQueryException, match="the checkpoint is older than the table"):
        streams.copy(streams.table("a.s"), "a.t", "old")
    assert values(tables) == [1, 2, 3, 4]


@pytest.mark.adapter
def test_a_checkpoint_past_a_restored_table_is_refused(tables, streams, tmp_path):
    """Of the batches that the table lacks, the query would send nothing again: their rows would be passed over."""
    frame = streams.table("a.s")
    streams.copy(frame, "a.t")
    place = str(tmp_path / "backups")
    tables.catalog.backup(place, "a.t")
    shutil.copytree(streams.checkpoint("c"), streams.checkpoint("of then"))
    add(tables, 3)
    streams.copy(frame, "a.t")
    tables.catalog.restore_table(place, "a.t", replace=True)
    add(tables, 4)
    with pytest.raises(StreamingQueryException, match="batches up to 1 to .*, which has those up to 0 only"):
        streams.copy(frame, "a.t")
    assert values(tables) == [1, 2]
    # The checkpoint of the backup's time goes on from there.
    streams.copy(frame, "a.t", "of then")
    assert values(tables) == [1, 2, 3, 4]


@pytest.mark.adapter
def test_complete_mode_replaces_all_rows_in_one_commit(tables, streams):
    tables.sql("CREATE TABLE lake.a.counts (x INT, n BIGINT) PARTITIONED BY (x)")
    tables.sql("INSERT INTO lake.a.counts VALUES (99, 1)")
    counts = streams.table("a.s").groupBy("x").count().withColumnRenamed("count", "n")
    query = streams.to_table(counts, "a.counts", mode="complete")
    query.processAllAvailable()
    assert tables.sorted("SELECT * FROM lake.a.counts") == [(1, 1), (2, 1)]
    version_before = tables.catalog.load_table("a.counts").version
    add(tables, 2)
    query.processAllAvailable()
    assert another_session(tables).sorted("SELECT * FROM lake.a.counts") == [(1, 1), (2, 2)]
    assert tables.catalog.load_table("a.counts").to_arrow()["n"].to_pylist() in ([1, 2], [2, 1])
    assert tables.catalog.load_table("a.counts").version == version_before + 1
    query.stop()


def test_a_batch_of_complete_mode_that_is_retried_replaces_nothing(tables, streams):
    tables.sql("CREATE TABLE lake.a.total (n BIGINT)")

    def run() -> None:
        total = streams.table("a.s").groupBy().count().withColumnRenamed("count", "n")
        query = streams.to_table(total, "a.total", mode="complete")
        query.processAllAvailable()
        query.stop()

    run()
    version = tables.catalog.load_table("a.total").version
    forget(streams, "c")
    run()
    assert tables.catalog.load_table("a.total").version == version
    assert values(tables, "a.total") == [2]
    add(tables, 3)
    run()
    assert values(tables, "a.total") == [3]


@pytest.mark.adapter
def test_update_mode_is_refused_by_name(tables, streams):
    counts = streams.table("a.s").groupBy("x").count().selectExpr("x")
    with pytest.raises((StreamingQueryException, PySparkException), match="does not support Update mode"):
        streams.to_table(counts, "a.t", mode="update").processAllAvailable()


@pytest.mark.adapter
def test_rows_are_fitted_to_the_table_by_name_and_type(tables, streams):
    tables.sql("CREATE TABLE lake.a.w (name VARCHAR(3), x BIGINT NOT NULL, z INT DEFAULT 7)")
    frame = streams.table("a.s").selectExpr("x AS X", "'abc' AS name")
    streams.copy(frame, "a.w")
    assert tables.sorted("SELECT name, x, z FROM lake.a.w") == [("abc", 1, 7), ("abc", 2, 7)]


@pytest.mark.adapter
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("x AS y",), "INCOMPATIBLE_DATA_FOR_TABLE"),
        (("x", "x AS y"), "INSERT_COLUMN_ARITY_MISMATCH|INCOMPATIBLE_DATA_FOR_TABLE"),
        (("named_struct('a', x) AS x",), "INCOMPATIBLE_DATA_FOR_TABLE"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_anything_runs(tables, streams, columns, words):
    with pytest.raises(PySparkException, match=words):
        streams.copy(streams.table("a.s").selectExpr(*columns), "a.t")
    assert values(tables) == []


@pytest.mark.parametrize(
    ("definition", "columns", "words"),
    [
        ("x INT CHECK (x < 2)", ("x",), "CHECK_CONSTRAINT_VIOLATION|violat"),
        ("x INT NOT NULL", ("IF(x = 2, NULL, x) AS x",), "NOT_NULL_ASSERT|NULL"),
        ("x VARCHAR(1)", ("repeat('a', x) AS x",), "EXCEED_LIMIT_LENGTH|length"),
    ],
)
def test_rows_that_the_table_does_not_take_fail_the_batch(tables, streams, definition, columns, words):
    tables.sql(f"CREATE TABLE lake.a.w ({definition})")
    with pytest.raises(StreamingQueryException, match=words):
        streams.copy(streams.table("a.s").selectExpr(*columns), "a.w")
    assert values(tables, "a.w") == []


def test_options_that_mean_nothing_are_refused(tables, streams):
    with pytest.raises(StreamingQueryException, match="does not know the write option"):
        streams.to_table(streams.table("a.s"), "a.t", mergeSchema="true").processAllAvailable()


def test_a_sink_that_changes_stops_the_query_and_another_one_goes_on(tables, streams):
    query = streams.to_table(streams.table("a.s"), "a.t")
    query.processAllAvailable()
    tables.sql("COMMENT ON TABLE lake.a.t IS 'the target'")
    tables.sql("ALTER TABLE lake.a.t SET TBLPROPERTIES ('k' = 'v')")
    add(tables, 3)
    query.processAllAvailable()
    assert values(tables) == [1, 2, 3]
    for change in (
        "ADD COLUMN note STRING",
        "ADD CONSTRAINT small CHECK (x < 100)",
        "ALTER COLUMN note SET DEFAULT 'none'",
        "RENAME COLUMN note TO remark",
    ):
        tables.sql(f"ALTER TABLE lake.a.t {change}")
        add(tables, 4)
        streams.failure(query)
        before = values(tables)
        query = streams.to_table(streams.table("a.s"), "a.t")
        query.processAllAvailable()
        assert values(tables) == sorted([*before, 4])


def test_a_sink_that_was_replaced_or_dropped_stops_the_query(tables, streams):
    query = streams.to_table(streams.table("a.s"), "a.t")
    query.processAllAvailable()
    tables.sql("CREATE OR REPLACE TABLE lake.a.t (x INT)")
    add(tables, 3)
    # Spark sees it first: the columns that are there now have other ids.
    assert "INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS" in streams.failure(query)
    query = streams.to_table(streams.table("a.s"), "a.t")
    query.processAllAvailable()
    assert values(tables) == [3]
    tables.sql("DROP TABLE lake.a.t")
    add(tables, 4)
    assert "cannot be found" in streams.failure(query)


@pytest.mark.adapter
def test_a_table_that_is_not_there_is_created(tables, streams):
    streams.copy(streams.table("a.s"), "a.made")
    assert values(tables, "a.made") == [1, 2]


def test_a_batch_of_no_rows_makes_no_version(tables, streams):
    streams.copy(streams.table("a.s").where("x > 100"), "a.t")
    assert tables.catalog.load_table("a.t").version == 1


def test_concurrent_writers_and_a_stream_lose_no_rows(tables, streams):
    query = streams.to_table(streams.table("a.s", maxFilesPerTrigger=1), "a.t")
    other_catalog = Catalog(tables.warehouse)
    for value in range(10, 15):
        add(tables, value)
        other_catalog.load_table("a.t").append(other_catalog.load_table("a.s").scan(limit=0).to_arrow())
        tables.sql(f"INSERT INTO lake.a.t VALUES ({value + 100})")
    query.processAllAvailable()
    assert values(tables) == [1, 2, *range(10, 15), *range(110, 115)]


def test_a_numbered_write_happens_once(tables):
    frame = tables.spark.createDataFrame([(5,)], "x INT")

    def write(number: int, job: str = "job") -> None:
        options = {"txnAppId": job, "txnVersion": str(number)}
        frame.writeTo(f"{tables.name}.a.t").options(**options).append()

    for number, job in ((1, "job"), (1, "job"), (0, "job"), (2, "job"), (1, "other")):
        write(number, job)
    assert values(tables) == [5, 5, 5]
    assert len(data_files(tables)) == 3
    for number in (2, 3, 3):
        tables.sql(f"INSERT INTO lake.a.t WITH (txnAppId = 'job', txnVersion = {number}) VALUES (6)")
    assert values(tables) == [5, 5, 5, 6]


@pytest.mark.parametrize(
    "options", [{"txnAppId": "a"}, {"txnVersion": "1"}, {"txnAppId": "a", "txnVersion": "x"}]
)
def test_half_a_number_is_refused(tables, options):
    with pytest.raises(PySparkException, match="txnVersion"):
        tables.spark.range(1).selectExpr("INT(id) AS x").writeTo(f"{tables.name}.a.t").options(
            **options
        ).append()


@pytest.mark.adapter
def test_a_batch_function_writes_each_batch_once_by_its_number(tables, streams):
    target = f"{tables.name}.a.t"

    def write(batch, number):
        batch.writeTo(target).options(txnAppId="copy", txnVersion=number).append()

    def run() -> None:
        writer = streams.table("a.s").writeStream.foreachBatch(write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", streams.checkpoint("c")).start()
        query.awaitTermination()

    run()
    forget(streams, "c")
    run()
    assert values(tables) == [1, 2]


@pytest.mark.adapter
def test_a_batch_function_merges_what_update_mode_gives(tables, streams):
    tables.sql("CREATE TABLE lake.a.counts (x INT, n BIGINT)")

    def merge(batch, number):
        target = f"{tables.name}.a.counts"
        writer = (
            batch.mergeInto(target, expr(f"{target}.x = value")).whenMatched().update({"n": expr("count")})
        )
        writer.whenNotMatched().insert({"x": expr("value"), "n": expr("count")}).merge()
        batches.append(sorted(row.value for row in batch.collect()))

    def run() -> None:
        counts = streams.table("a.s").selectExpr("x AS value").groupBy("value").count()
        writer = counts.writeStream.outputMode("update").foreachBatch(merge).trigger(availableNow=True)
        writer.option("checkpointLocation", streams.checkpoint("c")).start().awaitTermination()

    batches: list[list[int]] = []
    run()
    add(tables, 2, 3)
    run()
    # Killed before Spark wrote down that the batch is done: it is merged again, and nothing is counted twice.
    forget(streams, "c")
    run()
    assert [batch for batch in batches if batch] == [[1, 2], [2, 3], [2, 3]]
    rows = [(1, 1), (2, 2), (3, 1)]
    assert another_session(tables).sorted("SELECT * FROM lake.a.counts") == rows
    python = tables.catalog.load_table("a.counts").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in python) == rows


@pytest.mark.adapter
def test_a_batch_function_writes_to_two_tables_in_a_transaction_or_to_none(tables, streams):
    tables.sql("CREATE TABLE lake.a.u (x INT)")

    def write(batch, number):
        spark = batch.sparkSession
        spark.sql(f"CALL {tables.name}.system.begin_transaction()").collect()
        for name in ("t", "u"):
            options = {"txnAppId": "both", "txnVersion": str(number)}
            batch.writeTo(f"{tables.name}.a.{name}").options(**options).append()
        assert spark.table(f"{tables.name}.a.t").count() == 2
        if fails:
            spark.sql(f"CALL {tables.name}.system.rollback_transaction()").collect()
            raise ValueError("on purpose")
        spark.sql(f"CALL {tables.name}.system.commit_transaction()").collect()

    def run() -> None:
        writer = streams.table("a.s").writeStream.foreachBatch(write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", streams.checkpoint("c")).start()
        query.awaitTermination()

    fails = True
    with pytest.raises(StreamingQueryException, match="on purpose"):
        run()
    assert values(tables) == values(tables, "a.u") == []
    fails = False
    run()
    forget(streams, "c")
    run()
    assert values(tables) == values(tables, "a.u") == [1, 2]


def test_a_query_does_not_write_in_a_transaction_that_is_open_around_it(tables, streams):
    frame = streams.table("a.s")
    tables.sql("CALL lake.system.begin_transaction()")
    try:
        with pytest.raises(Exception, match="cannot be part of a transaction"):
            streams.to_table(frame, "a.t")
    finally:
        tables.sql("CALL lake.system.rollback_transaction()")
    assert values(tables) == []
