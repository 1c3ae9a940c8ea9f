"""`format("lakelog")`: streams read and write tables by their place."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

pytestmark = pytest.mark.adapter


@pytest.fixture
def used(lake):
    """The test's catalog as the current one, with a table."""
    lake.spark.catalog.setCurrentCatalog(lake.name)
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b')")
    yield lake
    lake.spark.catalog.setCurrentCatalog("spark_catalog")


def place(lake, name="t"):
    return lake.catalog.load_table(name).location


def reader(lake, **options):
    return lake.spark.readStream.format("lakelog").options(**options)


def copy(streams, frame, path, checkpoint="c", **options):
    writer = frame.writeStream.format("lakelog").option("checkpointLocation", streams.checkpoint(checkpoint))
    query = streams.kept(writer.options(**options).trigger(availableNow=True).start(path))
    query.awaitTermination()


def test_a_stream_goes_from_place_to_place_and_on(used, streams):
    used.sql(
        "CREATE TABLE lake.u (k STRING, id INT, more STRING DEFAULT 'd') PARTITIONED BY (bucket(2, id), k)"
    )
    source, target = place(used), place(used, "u")
    copy(streams, reader(used).load(source), target)
    assert used.sorted("SELECT * FROM lake.u") == [("a", 1, "d"), ("b", 2, "d")]
    used.sql("INSERT INTO lake.t VALUES (3, 'c')")
    copy(streams, reader(used, path=source, maxFilesPerTrigger=1).load(), target)
    copy(streams, reader(used).load(source), target)
    assert used.sorted("SELECT id FROM lake.u") == [(1,), (2,), (3,)]
    # By name it is the same source: the checkpoint goes on, and nothing is written twice.
    used.sql("INSERT INTO lake.t VALUES (4, 'd')")
    streams.copy(streams.table("t"), "u")
    assert used.sorted("SELECT id FROM lake.u") == [(1,), (2,), (3,), (4,)]
    assert [entry.operation for entry in used.catalog.load_table("u").history()][0] == "append, stream"


def test_a_query_by_place_goes_on_while_it_is_written_to(used, streams):
    used.sql("CREATE TABLE lake.u (id BIGINT NOT NULL CHECK (id < 100), k STRING)")
    writer = reader(used).load(place(used)).writeStream.format("lakelog")
    query = streams.kept(writer.option("checkpointLocation", streams.checkpoint("c")).start(place(used, "u")))
    for id in (3, 4):
        used.sql(f"INSERT INTO lake.t VALUES ({id}, 'x')")
        query.processAllAvailable()
    assert used.sorted("SELECT id FROM lake.u") == [(1,), (2,), (3,), (4,)]
    used.sql("INSERT INTO lake.t VALUES (100, 'too high')")
    with pytest.raises(StreamingQueryException, match="CHECK_CONSTRAINT_VIOLATION"):
        query.processAllAvailable()
    assert used.sql("SELECT count(*) FROM lake.u") == [(4,)]


def test_the_catalog_may_be_named(lake, make_lake, streams, tmp_path):
    make_lake(str(tmp_path / "other"))
    lake.sql("CREATE TABLE lake.t AS SELECT 1L AS id")
    with pytest.raises(AnalysisException, match="Several catalogs"):
        reader(lake).load(place(lake))
    frame = reader(lake, catalog=lake.name).load(place(lake))
    lake.sql("CREATE TABLE lake.u (id BIGINT)")
    copy(streams, frame, place(lake, "u"), catalog=lake.name)
    assert lake.sql("SELECT id FROM lake.u") == [(1,)]


def test_a_stream_is_of_its_own_session(used, streams):
    """Spark asks for a sink in whatever session this thread has used before."""
    from tests.spark.sessions import another_session

    used.sql("CREATE TABLE lake.u (id BIGINT, k STRING)")
    source, target = place(used), place(used, "u")
    other_session = another_session(used)
    other_session.sql(f"USE {other_session.name}")
    used.spark.catalog.setCurrentCatalog("spark_catalog")
    used.spark.conf.unset(f"spark.sql.catalog.{used.name}")
    copy(streams, reader(other_session).load(source), target)
    assert other_session.sql("SELECT count(*) FROM lake.u") == [(2,)]


def test_what_cannot_be_is_refused_by_name(used, streams, tmp_path):
    nowhere = str(tmp_path / "nowhere")
    frame = reader(used).load(place(used))
    for refused in (lambda: reader(used).load(nowhere), lambda: copy(streams, frame, nowhere)):
        with pytest.raises(AnalysisException) as error:
            refused()
        assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(AnalysisException, match="its own columns: leave out the schema"):
        reader(used).schema("id BIGINT").load(place(used))
    with pytest.raises(Exception, match="give its start"):
        streams.batches(reader(used, versionAsOf="1").load(place(used)))
    with pytest.raises(AnalysisException, match="absolute path"):
        reader(used).load("t")
    with pytest.raises(Exception, match="option 'nothing'"):
        streams.batches(reader(used, nothing="1").load(place(used)))
    used.sql("CALL lake.system.begin_transaction()")
    try:
        with pytest.raises(Exception, match="cannot be part of a transaction"):
            streams.batches(reader(used).load(place(used)))
        with pytest.raises(Exception, match="cannot be part of a transaction"):
            copy(streams, frame, place(used))
    finally:
        used.sql("CALL lake.system.rollback_transaction()")
