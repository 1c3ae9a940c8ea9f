"""The changes of a table as the source of a streaming query."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from tests.spark.sql.rows import MODES, in_mode
from tests.spark.versions import SPARK_4_2, read_changes

RAW = {"deduplicationMode": "none"}


@pytest.fixture
def table(lake):
    """Version 2 inserts 1, 2 and 3, version 3 makes 2 a 20, version 4 deletes 3, by copying."""
    lake.sql(f"CREATE TABLE lake.t (x INT) {in_mode('copy-on-write')}")
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3)")
    lake.sql("UPDATE lake.t SET x = 20 WHERE x = 2")
    lake.sql("DELETE FROM lake.t WHERE x = 3")
    return lake


def frame(lake, **options: Any):
    changes = read_changes(lake.spark.readStream.options(**options), f"{lake.name}.t")
    return changes.selectExpr("concat_ws(' ', _commit_version, _change_type, x)")


def all_of(batches: list[list[str]]) -> list[str]:
    return sorted(change for batch in batches for change in batch)


CONTENTS = ["4 insert 1", "4 insert 20"]
UPDATE = ["3 delete 2", "3 insert 20"]


@pytest.mark.adapter
def test_it_begins_with_the_contents_and_goes_on_with_all_changes(table, streams):
    changes = frame(table)
    assert all_of(streams.batches(changes, "c")) == CONTENTS
    table.sql("UPDATE lake.t SET x = 10 WHERE x = 1")
    table.sql("INSERT OVERWRITE lake.t VALUES (7)")
    table.sql("CALL lake.system.rollback_to_version(table => 't', version => 5)")
    assert all_of(streams.batches(changes, "c")) == [
        "5 delete 1", "5 insert 10",
        "6 delete 10", "6 delete 20", "6 insert 7",
        "7 delete 7", "7 insert 10", "7 insert 20",
    ]  # fmt: skip
    assert streams.batches(changes, "c") == []


def test_it_begins_and_ends_at_the_given_versions(table, streams):
    assert all_of(streams.batches(frame(table, startingVersion=3, endingVersion=3))) == UPDATE
    assert all_of(streams.batches(frame(table, startingVersion=3))) == [*UPDATE, "4 delete 3"]
    past = frame(table, startingVersion=3, startingBoundInclusive=False)
    assert all_of(streams.batches(past, "c")) == ["4 delete 3"]
    table.sql("INSERT INTO lake.t VALUES (5)")
    assert all_of(streams.batches(past, "c")) == ["5 insert 5"]
    times = dict(table.sql("SELECT version, made_current_at::STRING FROM lake.t.history"))
    assert all_of(streams.batches(frame(table, startingTimestamp=times[4]))) == ["4 delete 3", "5 insert 5"]
    ended_frame = frame(table, startingVersion=2, endingVersion=4, endingBoundInclusive=False)
    assert all_of(streams.batches(ended_frame, "d")) == ["2 insert 1", "2 insert 2", "2 insert 3", *UPDATE]
    assert streams.batches(ended_frame, "d") == []


@pytest.mark.adapter
def test_what_is_still_to_come_is_in_it(table, streams):
    [(begins,)] = table.sql("SELECT made_current_at::STRING FROM lake.t.history WHERE version = 4")
    until = frame(table, startingTimestamp=begins, endingTimestamp="2990-01-01")
    latest = frame(table, startingVersion="Latest", **RAW)
    assert streams.batches(latest, "latest") == []
    table.sql("INSERT INTO lake.t VALUES (5)")
    assert streams.batches(latest, "latest") == [["5 insert 5"]]
    assert all_of(streams.batches(until)) == ["4 delete 3", "5 insert 5"]


def test_what_cannot_be_where_a_stream_begins_and_ends_is_refused(table, streams):
    with pytest.raises(Exception, match="can be read by streams only"):
        read_changes(table.spark.read.option("startingVersion", "latest"), f"{table.name}.t").collect()
    with pytest.raises(Exception, match="in the future"):
        streams.batches(frame(table, startingTimestamp="2990-01-01"))
    for end, words in (
        (99, "has no version 99: its versions are 1 to 4"),
        ("latest", "versions are numbers"),
    ):
        with pytest.raises(Exception, match=words):
            frame(table, startingVersion=3, endingVersion=end)


@pytest.mark.adapter
@pytest.mark.parametrize("updates", [False, True])
def test_net_changes_leave_out_what_came_and_went(table, streams, updates):
    net = frame(table, startingVersion=2, deduplicationMode="netChanges", computeUpdates=updates)
    assert all_of(streams.batches(net, "c")) == ["2 insert 1", "3 insert 20"]
    table.sql("UPDATE lake.t SET x = 10 WHERE x = 1")
    table.sql("INSERT INTO lake.t VALUES (5)")
    table.sql("DELETE FROM lake.t WHERE x = 5")
    table.sql("DELETE FROM lake.t WHERE x = 20")
    before, after = ("update_preimage", "update_postimage") if updates else ("delete", "insert")
    assert all_of(streams.batches(net, "c")) == sorted([f"5 {before} 1", f"5 {after} 10", "8 delete 20"])
    table.sql("UPDATE lake.t SET x = 11 WHERE x = 10")
    table.sql("CALL lake.system.rollback_to_version(table => 't', version => 8)")
    assert streams.batches(net, "c") == []


COMPARED: list[dict[str, Any]] = [
    {}, {"computeUpdates": True}, {"deduplicationMode": "netChanges"},
    {"deduplicationMode": "netChanges", "computeUpdates": True},
]  # fmt: skip


# Each mode and each comparison; with one another in the full form.
@pytest.mark.adapter
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        pytest.param(
            mode, options, id=f"{mode}-{name}", marks=() if (column + row) % 2 == 0 else pytest.mark.slow
        )
        for row, mode in enumerate(MODES)
        for column, (name, options) in enumerate(
            zip(["copies", "updates", "net", "net updates"], COMPARED, strict=True)
        )
    ],
)
def test_a_batch_has_what_a_query_reads_of_the_same_versions(lake, streams, mode, options):
    lake.sql(f"CREATE TABLE lake.t (x INT) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ int(id) FROM range(20)")
    lake.sql("UPDATE lake.t SET x = x + 100 WHERE x % 3 = 0")
    lake.sql("INSERT INTO lake.t VALUES (50), (51)")
    lake.sql("UPDATE lake.t SET x = x + 1000 WHERE x IN (50, 103, 4)")
    lake.sql("DELETE FROM lake.t WHERE x % 2 = 0")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT explode(array(1, 7, 60)) AS k) ON x = k WHEN MATCHED AND k = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET x = 700 WHEN NOT MATCHED THEN INSERT (x) VALUES (k)"
    )
    lake.sql("CALL lake.system.rollback_to_version(table => 't', version => 5)")
    lake.sql("DELETE FROM lake.t WHERE x = 1050")
    columns = ["_commit_version", "_commit_timestamp", "_change_type", "_row_id", "_version", "x"]
    text = f"concat_ws(' ', {', '.join(columns)})"

    def of(reader, **more: Any):
        described_reader = reader.options(startingVersion=2, **options, **more)
        return read_changes(described_reader, f"{lake.name}.t").selectExpr(text)

    whole = sorted(row[0] for row in of(lake.spark.read, endingVersion=9).collect())
    assert all_of(streams.batches(of(lake.spark.readStream))) == whole
    each = [
        [
            row[0]
            for row in read_changes(
                lake.spark.read.options(startingVersion=version, endingVersion=version, **options),
                f"{lake.name}.t",
            ).selectExpr(text).collect()
        ]
        for version in range(2, 10)
    ]  # fmt: skip
    by_version = streams.batches(of(lake.spark.readStream, maxFilesPerTrigger=1))
    assert [sorted(batch) for batch in by_version] == [sorted(batch) for batch in each if batch]


def stages_of(lake, query: Any) -> int:
    """Return in how many stages a query has run."""
    tracker = lake.spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    return len({stage for job in jobs for stage in job.stageIds})


@pytest.mark.adapter
@pytest.mark.parametrize("options", COMPARED, ids=["copies", "updates", "net", "net updates"])
def test_versions_that_only_insert_are_not_compared(table, streams, options):
    changes = frame(table, **options)

    def stages() -> int:
        writer = changes.writeStream.format("noop").option("checkpointLocation", streams.checkpoint("c"))
        query = streams.kept(writer.trigger(availableNow=True).start())
        query.awaitTermination()
        assert query.lastProgress["stateOperators"] == []
        return stages_of(table, query)

    assert stages() == 1
    table.sql("INSERT INTO lake.t VALUES (5)")
    assert stages() == 1
    table.sql("UPDATE lake.t SET x = 6 WHERE x = 5")
    assert stages() > 1


@pytest.mark.adapter
def test_updates_are_shown_as_such(table, streams):
    changes = frame(table, startingVersion=3, computeUpdates=True)
    assert all_of(streams.batches(changes)) == ["3 update_postimage 20", "3 update_preimage 2", "4 delete 3"]


@pytest.mark.adapter
def test_a_batch_has_whole_versions(table, streams):
    table.sql("INSERT INTO lake.t SELECT /*+ REPARTITION(3) */ * FROM VALUES (5), (6), (7)")
    changes = frame(table, startingVersion=2, maxFilesPerTrigger=1, **RAW)
    batches = streams.batches(changes)
    assert [{change.split()[0] for change in batch} for batch in batches] == [{"2"}, {"3"}, {"4"}, {"5"}]
    assert set(UPDATE) <= set(batches[1]) and "4 delete 3" in batches[2]
    assert len(streams.batches(frame(table, startingVersion=2, maxFilesPerTrigger=100, **RAW))) == 1


def test_a_copy_that_is_kept_up_by_changes_is_the_same(table, streams):
    table.sql("CREATE TABLE lake.copy (x INT, id BIGINT)")
    changes = read_changes(table.spark.readStream.options(startingVersion=1), f"{table.name}.t")

    def apply(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        last = (
            "SELECT x, _change_type, _row_id AS row FROM (SELECT *, row_number() OVER "
            "(PARTITION BY _row_id ORDER BY _commit_version DESC, _change_type DESC) AS n FROM batch) WHERE n = 1"
        )
        batch.sparkSession.sql(
            f"MERGE INTO {table.name}.copy AS c USING ({last}) AS b ON c.id = b.row "
            "WHEN MATCHED AND b._change_type = 'delete' THEN DELETE WHEN MATCHED THEN UPDATE SET x = b.x "
            "WHEN NOT MATCHED AND b._change_type = 'insert' THEN INSERT (x, id) VALUES (b.x, b.row)"
        )

    for statement in ("SELECT 1", "UPDATE lake.t SET x = x + 1", "DELETE FROM lake.t WHERE x = 2"):
        table.sql(statement)
        query = changes.writeStream.foreachBatch(apply).option(
            "checkpointLocation", streams.checkpoint("copy")
        )
        streams.kept(query.trigger(availableNow=True).start()).awaitTermination()
        assert table.sorted("SELECT x FROM lake.copy") == table.sorted("SELECT x FROM lake.t")


@pytest.mark.adapter
def test_versions_and_tables_that_are_gone_stop_it_where_it_has_not_read_them(table, streams):
    def expire() -> None:
        table.catalog.expire("t", retain_last=1, dry_run=False)

    ended = {"startingVersion": 3, "endingVersion": 4, **RAW}
    for checkpoint, asked in (("c", {"startingVersion": 3, **RAW}), ("e", ended)):
        assert set(UPDATE) < set(all_of(streams.batches(frame(table, **asked), checkpoint)))
    expire()
    table.sql("INSERT INTO lake.t VALUES (5)")
    # What it began with need not be there when it goes on, nor the first version when the contents come first.
    assert streams.batches(frame(table, startingVersion=3, **RAW), "c") == [["6 insert 5"]]
    assert streams.batches(frame(table, **ended), "e") == []
    for mode in ("none", "dropCarryovers"):
        lost_options = table.spark.read.options(startingVersion=3, endingVersion=6, deduplicationMode=mode)
        with pytest.raises(AnalysisException, match="have expired"):
            read_changes(lost_options, f"{table.name}.t").collect()
    assert all_of(streams.batches(frame(table), "d")) == ["6 insert 1", "6 insert 20", "6 insert 5"]
    for value in (6, 7):
        table.sql(f"INSERT INTO lake.t VALUES ({value})")
    expire()
    with pytest.raises(StreamingQueryException, match="has expired"):
        streams.batches(frame(table, startingVersion=3, **RAW), "c")
    table.sql("CREATE OR REPLACE TABLE lake.t (x INT)")
    table.sql("INSERT INTO lake.t VALUES (9)")
    with pytest.raises(StreamingQueryException, match="was replaced in version"):
        streams.batches(frame(table), "d")
    assert table.sql("SELECT * FROM lake.t") == [(9,)]


@pytest.mark.parametrize("options", [{}, RAW], ids=["compared", "raw"])
def test_columns_that_change_stop_it_after_all_that_came_before(table, streams, options):
    changes = frame(table, startingVersion=4, startingBoundInclusive=False, **options)
    table.sql("INSERT INTO lake.t VALUES (5)")
    table.sql("ALTER TABLE lake.t ADD COLUMN y INT")
    texts: list[str] = []
    writer = changes.writeStream.foreachBatch(
        lambda batch, _: texts.extend(row[0] for row in batch.collect())
    )
    query = streams.kept(writer.option("checkpointLocation", streams.checkpoint("c")).start())
    assert "the columns of" in streams.failure(query)
    assert texts == ["5 insert 5"]
    table.sql("INSERT INTO lake.t VALUES (6, 60)")
    again = frame(table, startingVersion=6, **options)
    assert all_of(streams.batches(again, "c" if options else "d")) == ["7 insert 6"]


def test_other_words_for_it_are_refused_with_the_right_one(lake, streams):
    lake.sql("CREATE TABLE lake.t (x INT)")
    word = "spark.readStream.changes" if SPARK_4_2 else "spark.readStream.option"
    with pytest.raises(Exception, match=word):
        streams.batches(streams.table("t", readChangeFeed=True))
    with pytest.raises(Exception, match="(?i)skipChangeCommits"):
        streams.batches(frame(lake, skipChangeCommits=True))
