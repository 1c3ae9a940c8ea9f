"""`format("lakelog")`: tables that readers and writers name by their place, and the modes of writers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf
from tests.spark.conftest import Lake
from tests.spark.sessions import another_session

from lakelog.catalog import Catalog

pytestmark = pytest.mark.adapter


@pytest.fixture
def used(lake: Lake) -> Iterator[Lake]:
    """The test's catalog as the current one; other tests' stay configured in the session."""
    lake.spark.catalog.setCurrentCatalog(lake.name)
    yield lake
    lake.spark.catalog.setCurrentCatalog("spark_catalog")


def rows(frame: DataFrame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()))


def frame(spark: SparkSession, *values: tuple[int, str]) -> DataFrame:
    return spark.createDataFrame(values, "id BIGINT, k STRING")


def at(path) -> list[tuple]:
    """What a client of Python's sees at the place."""
    table = Catalog(str(path.parent / "no-warehouse")).table_at(str(path))
    return sorted((row["id"], row["k"]) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "errorifexists", "ignore"])
def test_every_mode_of_save_makes_a_table_where_there_is_none(used, tmp_path, mode):
    place = tmp_path / "elsewhere" / "t"
    writer = frame(used.spark, (1, "a"), (2, "b")).write.format("lakelog").mode(mode)
    if mode in ("append", "overwrite") and used.spark.version < "4.3":
        # There, Spark asks for the table as if it were to be read.
        with pytest.raises(AnalysisException) as error:
            writer.save(str(place))
        assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        assert not place.exists()
        return
    writer.save(str(place))
    assert rows(used.spark.read.format("lakelog").load(str(place))) == [(1, "a"), (2, "b")]
    assert rows(another_session(used).spark.sql(f"SELECT * FROM {used.name}.`{place}`")) == [
        (1, "a"),
        (2, "b"),
    ]
    assert at(place) == [(1, "a"), (2, "b")]
    table = used.catalog.table_at(str(place))
    assert table.provider == "lakelog"
    assert [entry.version for entry in table.history()] in ([2, 1], [1])


def test_save_appends_overwrites_ignores_and_refuses(used, tmp_path):
    place = str(tmp_path / "t")

    def save(mode: str, *values: tuple[int, str]) -> None:
        frame(used.spark, *values).write.format("lakelog").mode(mode).save(place)

    save("error", (1, "a"))
    save("append", (2, "b"))
    assert at(tmp_path / "t") == [(1, "a"), (2, "b")]
    save("ignore", (3, "c"))
    assert at(tmp_path / "t") == [(1, "a"), (2, "b")]
    with pytest.raises(AnalysisException) as error:
        save("error", (3, "c"))
    assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    save("overwrite", (4, "d"))
    assert at(tmp_path / "t") == [(4, "d")]
    assert rows(used.spark.read.format("lakelog").option("path", place).load()) == [(4, "d")]


def test_save_partitions_and_appends_by_name(used, tmp_path):
    place = str(tmp_path / "t")
    frame(used.spark, (1, "a")).write.format("lakelog").partitionBy("k").save(place)
    used.spark.sql("SELECT 'b' AS k, 2L AS id").write.format("lakelog").mode("append").save(place)
    frame(used.spark, (3, "a")).write.format("lakelog").partitionBy("k").mode("append").save(place)
    assert at(tmp_path / "t") == [(1, "a"), (2, "b"), (3, "a")]
    assert [row[0] for row in used.sql(f"SHOW PARTITIONS lake.`{place}`")] == ["k=a", "k=b"]
    with pytest.raises((AnalysisException, PySparkException)):
        frame(used.spark, (1, "a")).write.format("lakelog").partitionBy("id").mode("append").save(place)
    with pytest.raises(AnalysisException):
        used.spark.range(1).selectExpr("id AS other").write.format("lakelog").mode("append").save(place)
    assert len(at(tmp_path / "t")) == 3


def test_a_table_to_be_made_by_append_makes_nothing_when_its_query_fails(used, tmp_path):
    failing_rows = used.spark.sql("SELECT raise_error('no') AS id, 'a' AS k")
    for mode in ("append", "error"):
        with pytest.raises((PySparkException, Py4JJavaError)):
            failing_rows.write.format("lakelog").mode(mode).save(str(tmp_path / "t"))
    with pytest.raises(AnalysisException) as error:
        used.spark.read.format("lakelog").load(str(tmp_path / "t"))
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_old_versions_are_loaded(used, tmp_path):
    place = str(tmp_path / "t")
    frame(used.spark, (1, "a")).write.format("lakelog").save(place)
    first = used.catalog.table_at(place)
    frame(used.spark, (2, "b")).write.format("lakelog").mode("append").save(place)
    read = used.spark.read.format("lakelog")
    assert rows(read.option("versionAsOf", first.version).load(place)) == [(1, "a")]
    assert rows(used.spark.read.format("lakelog").option("timestampAsOf", "2999-01-01").load(place)) == [
        (1, "a"),
        (2, "b"),
    ]
    with pytest.raises((AnalysisException, PySparkException)):
        frame(used.spark, (3, "c")).write.format("lakelog").option("versionAsOf", "1").mode("append").save(
            place
        )


def test_what_is_cached_of_a_place_follows_its_writes(used, tmp_path):
    place = str(tmp_path / "t")
    frame(used.spark, (1, "a")).write.format("lakelog").save(place)
    cache = used.spark.read.format("lakelog").load(place).cache()
    assert rows(cache) == [(1, "a")]
    frame(used.spark, (2, "b")).write.format("lakelog").mode("append").save(place)
    assert rows(used.spark.read.format("lakelog").load(place)) == [(1, "a"), (2, "b")]
    used.sql(f"INSERT INTO lake.`{place}` VALUES (3, 'c')")
    assert len(rows(used.spark.read.format("lakelog").load(place))) == 3
    assert len(used.sql(f"SELECT * FROM lake.`{place}`")) == 3
    frame(used.spark, (4, "d")).write.format("lakelog").mode("append").save(place)
    assert len(used.sql(f"SELECT * FROM lake.`{place}`")) == 4


def test_a_place_may_be_overwritten_by_a_query_of_itself(used, tmp_path):
    place = str(tmp_path / "t")
    frame(used.spark, (1, "a"), (2, "b")).write.format("lakelog").save(place)
    kept = used.spark.read.format("lakelog").load(place).where("id = 2")
    kept.write.format("lakelog").mode("overwrite").save(place)
    assert at(tmp_path / "t") == [(2, "b")]


def test_writes_are_part_of_the_open_transaction(used, tmp_path):
    place = str(tmp_path / "t")
    frame(used.spark, (1, "a")).write.format("lakelog").save(place)
    used.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    used.sql("CALL lake.system.begin_transaction()")
    frame(used.spark, (2, "b")).write.format("lakelog").mode("append").save(place)
    frame(used.spark, (2, "b")).write.mode("append").saveAsTable(f"{used.name}.t")
    frame(used.spark, (3, "c")).write.insertInto(f"{used.name}.t")
    assert len(rows(used.spark.read.format("lakelog").load(place))) == 2
    assert at(tmp_path / "t") == [(1, "a")]
    used.sql("CALL lake.system.rollback_transaction()")
    assert at(tmp_path / "t") == [(1, "a")]
    assert used.catalog.load_table("t").row_count == 0


# ---- which catalog


def test_rows_are_not_written_by_the_catalog_of_another_session_than_theirs(used, make_lake, tmp_path):
    other_lake, place = make_lake(str(tmp_path / "other")), str(tmp_path / "t")
    used.sql(f"CREATE TABLE lake.`{place}` (id BIGINT, k STRING)")
    second = another_session(used, other_lake).spark
    second.catalog.setCurrentCatalog(other_lake.name)
    writer = frame(second, (1, "a")).write.format("lakelog").mode("append")
    writer.save(place)
    frame(used.spark, (2, "b"))  # by which its session is the one in use
    with pytest.raises(AnalysisException, match=f"catalog is {other_lake.name}, but Spark chose {used.name}"):
        writer.save(place)
    if second.version >= "4.3":
        with pytest.raises(
            AnalysisException, match=f"catalog is {other_lake.name}, but Spark chose {used.name}"
        ):
            writer.save(str(tmp_path / "new"))
    writer.option("catalog", other_lake.name).save(place)
    assert at(tmp_path / "t") == [(1, "a")] * 2


def test_the_catalog_is_named_or_the_current_one_and_never_guessed(lake, make_lake, tmp_path):
    other_lake = make_lake(str(tmp_path / "other"))
    place = str(tmp_path / "t")
    with pytest.raises(
        AnalysisException, match=f"(?s)Several catalogs.*{lake.name}.*{other_lake.name}.*option catalog"
    ):
        lake.spark.read.format("lakelog").load(place)
    frame(lake.spark, (1, "a")).write.format("lakelog").option("catalog", other_lake.name).save(place)
    frame(lake.spark, (2, "b")).write.format("lakelog").option("catalog", lake.name).mode("append").save(
        place
    )
    assert rows(lake.spark.read.format("lakelog").option("catalog", lake.name).load(place)) == [
        (1, "a"),
        (2, "b"),
    ]
    with pytest.raises(AnalysisException, match="nowhere is not a lakelog catalog"):
        lake.spark.read.format("lakelog").option("catalog", "nowhere").load(place)


def test_an_option_that_says_another_place_or_catalog_than_the_tables_is_refused(used, make_lake, tmp_path):
    frame(used.spark, (1, "a")).writeTo(f"{used.name}.t").create()
    for key, value in (("path", str(tmp_path / "elsewhere")), ("catalog", "another")):
        with pytest.raises(Exception, match=f"option '{key}'"):
            used.spark.read.option(key, value).table(f"{used.name}.t").collect()
        with pytest.raises(Exception, match=f"option '{key}'"):
            frame(used.spark, (1, "a")).writeTo(f"{used.name}.t").option(key, value).append()


@pytest.mark.parametrize("path", ["t", "rel/path", "", "db.t"])
def test_a_path_that_is_none_is_refused_with_what_to_do(used, path):
    with pytest.raises(AnalysisException, match="(absolute path|spark.table)"):
        used.spark.read.format("lakelog").load(path)
    with pytest.raises(AnalysisException, match="(absolute path|spark.table)"):
        frame(used.spark, (1, "a")).write.format("lakelog").save(path)


def test_no_path_several_paths_and_a_schema_are_refused(used, tmp_path):
    with pytest.raises(AnalysisException, match="path"):
        used.spark.read.format("lakelog").load()
    with pytest.raises(AnalysisException, match="one path"):
        used.spark.read.format("lakelog").load([str(tmp_path / "a"), str(tmp_path / "b")])
    with pytest.raises(Exception, match="schema"):
        used.spark.read.format("lakelog").schema("id INT").load(str(tmp_path / "a"))


# ---- named tables


@pytest.mark.parametrize("source", ["lakelog", None])
def test_save_as_table_has_all_modes_with_and_without_the_format(lake, source):
    def save(mode: str, *values: tuple[int, str]) -> None:
        writer = frame(lake.spark, *values).write.mode(mode)
        (writer.format(source) if source else writer).saveAsTable(f"{lake.name}.t")

    def seen() -> list[tuple]:
        by_python = [(row["id"], row["k"]) for row in lake.catalog.load_table("t").to_arrow().to_pylist()]
        assert sorted(by_python) == another_session(lake).sorted("SELECT * FROM lake.t")
        return sorted(by_python)

    for mode in ("append", "overwrite", "error", "ignore"):
        save(mode, (1, "a"))
        assert seen() == [(1, "a")], mode
        lake.sql("DROP TABLE lake.t")
    save("error", (1, "a"))
    save("append", (2, "b"))
    save("ignore", (9, "z"))
    assert seen() == [(1, "a"), (2, "b")]
    with pytest.raises(AnalysisException) as error:
        save("error", (9, "z"))
    assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    save("overwrite", (3, "c"))
    assert seen() == [(3, "c")]


@pytest.mark.parametrize("source", ["lakelog", None])
def test_insert_into_appends_and_overwrites_with_and_without_the_format(lake, source):
    frame(lake.spark, (1, "a")).writeTo(f"{lake.name}.t").using("lakelog").partitionedBy("k").create()

    def insert(overwrite: bool, *values: tuple[int, str]) -> None:
        writer = frame(lake.spark, *values).write
        (writer.format(source) if source else writer).insertInto(f"{lake.name}.t", overwrite=overwrite)

    insert(False, (2, "b"))
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "a"), (2, "b")]
    insert(True, (3, "c"))
    assert lake.sorted("SELECT * FROM lake.t") == [(3, "c")]
    with pytest.raises(AnalysisException):
        frame(lake.spark, (1, "a")).write.insertInto(f"{lake.name}.nothing")


@pytest.mark.parametrize("write", ["saveAsTable", "insertInto", "save"])
def test_what_others_append_while_a_frame_is_written_stays(used, monkeypatch, write):
    """These begin no transaction of Spark's, and hold the version of the table that the writer has loaded."""
    # The function needs lakelog, which not every Python on the path has.
    monkeypatch.setattr(used.spark.sparkContext, "pythonExec", sys.executable)
    used.sql("CREATE TABLE lake.t AS SELECT 1L AS id")
    warehouse = used.warehouse

    def meanwhile(id):
        Catalog(warehouse).load_table("t").append(pa.table({"id": [100]}))
        return id

    def written(mode: str) -> None:
        rows = used.spark.range(2, 3, 1, 1).select(udf(meanwhile, "BIGINT", useArrow=False)("id").alias("id"))
        writer = rows.write.format("lakelog").mode(mode)
        getattr(writer, write)(used.catalog.load_table("t").location if write == "save" else f"{used.name}.t")

    written("append")
    assert used.sorted("SELECT * FROM lake.t") == [(1,), (100,), (2,)]
    if write != "saveAsTable":  # which replaces the table then
        with pytest.raises((PySparkException, Py4JJavaError), match="(?i)conflict|added|changed"):
            written("overwrite")
        assert used.sorted("SELECT * FROM lake.t") == [(1,), (100,), (100,), (2,)]


def test_constraints_hold_for_rows_of_frames(used):
    used.sql("CREATE TABLE lake.t (id BIGINT NOT NULL CHECK (id > 0), k STRING DEFAULT 'd')")
    place = used.catalog.load_table("t").location
    for value, condition in {
        "-1L": "CHECK_CONSTRAINT_VIOLATION",
        "CAST(NULL AS BIGINT)": "NOT_NULL_ASSERT_VIOLATION",
    }.items():
        rows = used.spark.sql(f"SELECT {value} AS id, 'x' AS k")
        for write, target in (
            ("saveAsTable", f"{used.name}.t"),
            ("insertInto", f"{used.name}.t"),
            ("save", place),
        ):
            with pytest.raises(PySparkException) as error:
                getattr(rows.write.format("lakelog").mode("append"), write)(target)
            assert error.value.getCondition() == condition
    assert used.sql("SELECT * FROM lake.t") == []
    used.spark.sql("SELECT 1L AS id").write.mode("append").saveAsTable(f"{used.name}.t")
    assert used.sql("SELECT * FROM lake.t") == [(1, "d")]


def test_write_to_has_all_forms(lake):
    def rows_of(*values: tuple[int, str]):
        return frame(lake.spark, *values).writeTo(f"{lake.name}.t")

    rows_of((1, "a")).using("lakelog").partitionedBy("k").tableProperty("p", "v").create()
    rows_of((2, "b")).append()
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "a"), (2, "b")]
    rows_of((3, "b")).overwrite(col("k") == "b")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "a"), (3, "b")]
    rows_of((4, "a")).overwritePartitions()
    assert lake.sorted("SELECT * FROM lake.t") == [(3, "b"), (4, "a")]
    rows_of((5, "e")).using("lakelog").replace()
    assert lake.sorted("SELECT * FROM lake.t") == [(5, "e")]
    rows_of((6, "f")).createOrReplace()
    assert lake.sorted("SELECT * FROM lake.t") == [(6, "f")]
    with pytest.raises(AnalysisException) as error:
        rows_of((7, "g")).create()
    assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"


# ---- without lakelog as the session catalog


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE plain_t (a INT) USING lakelog", "CREATE TABLE plain_t USING lakelog AS SELECT 1 AS a"],
)
def test_sparks_own_session_catalog_takes_no_table_of_lakelogs(spark, statement):
    with pytest.raises(Exception, match="LakeSessionCatalog"):
        spark.sql(statement)
    assert not spark.catalog.tableExists("plain_t")
