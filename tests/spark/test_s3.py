"""A warehouse on S3: the log through s3fs, the data through S3A, by the same options of the catalog."""

import pytest
from tests.spark.sql.rows import in_mode, in_one_mode

pytestmark = pytest.mark.s3


@pytest.fixture(params=["s3", pytest.param("s3a", marks=pytest.mark.slow)])
def on_s3(request, make_lake, lakelog_s3, tmp_path):
    options = dict(lakelog_s3.options)
    options["path_style"] = options["path_style"] == "true"
    return make_lake(f"{request.param}://lakelog/{request.param}-{tmp_path.name}", **options), options


@pytest.mark.adapter
def test_tables_are_created_written_and_read_on_s3(on_s3):
    lake, _ = on_s3
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(30)")
    lake.sql("INSERT INTO lake.a.t VALUES (100, 7)")
    lake.sql("INSERT OVERWRITE lake.a.t PARTITION (k = 1) VALUES (200)")
    lake.sql("DELETE FROM lake.a.t WHERE k = 2")
    assert lake.sql("SELECT k, count(*), sum(id) FROM lake.a.t GROUP BY k ORDER BY k") == [
        (0, 10, 135),
        (1, 1, 200),
        (7, 1, 100),
    ]
    lake.sql("CREATE OR REPLACE TABLE lake.a.t AS SELECT 5 AS five")
    assert lake.sql("SELECT * FROM lake.a.t") == [(5,)]
    assert lake.sql("SELECT count(*) FROM lake.a.t VERSION AS OF 1") == [(30,)]
    assert dict(row[:2] for row in lake.sql("DESCRIBE TABLE EXTENDED lake.a.t"))["Location"].startswith(
        "s3://lakelog/"
    )


@pytest.mark.parametrize(
    ("scheme", "slash"),
    [
        ("s3", ""),
        ("s3a", "/"),
        *(pytest.param(*each_pair, marks=pytest.mark.slow) for each_pair in (("s3", "/"), ("s3a", ""))),
    ],
)
def test_a_table_is_used_by_its_url_with_and_without_the_last_slash(on_s3, tmp_path, scheme, slash):
    lake, _ = on_s3
    url = f"{scheme}://lakelog/places/{lake.name}/{tmp_path.name}"
    lake.sql(f"CREATE TABLE lake.`{url}{slash}` (a INT)")
    lake.sql(f"INSERT INTO lake.`{url}{slash}` VALUES (1)")
    lake.sql(f"ALTER TABLE lake.`{url}` ADD COLUMN b INT")
    assert lake.sql(f"SELECT a, b FROM lake.`s3://{url.partition('://')[2]}`") == [(1, None)]
    lake.sql(f"DROP TABLE lake.`{url}{slash}`")
    assert not lake.spark.catalog.tableExists(f"{lake.name}.`{url}`")


def test_python_reads_what_spark_wrote_to_s3(on_s3):
    from lakelog.catalog import Catalog

    lake, options = on_s3
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(5)")
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    catalog = Catalog(lake.warehouse, options=texts)
    assert sorted(catalog.load_table("t").to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_executors_copy_objects_on_s3(on_s3, tmp_path):
    from lakelog.catalog import Catalog

    lake, options = on_s3
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(5)")
    target = f"s3://lakelog/copy-{lake.name}-{tmp_path.name}"
    (done,) = lake.sql(f"CALL lake.system.copy('{target}')")
    assert done[-1] and done[8] == done[5]
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    catalog = Catalog(target, options=texts)
    assert sorted(catalog.load_table("t").to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("on_s3", ["s3"], indirect=True)
def test_executors_delete_a_thousand_objects_of_a_bucket_by_one_request(
    on_s3, make_lake, warm, tmp_path, monkeypatch
):
    """Even if S3 leaves some of them out at first."""
    from moto.s3.models import s3_backends
    from moto.s3.responses import S3Response

    _, options = on_s3
    few = warm.program(
        tmp_path, "from lakelog.catalog.keeping.maintenance import vacuum; vacuum.MANY_OBJECTS = 1000"
    )
    lake = make_lake(f"s3://lakelog/deleted-{tmp_path.name}", python=few, **options)
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(4)")
    place = dict(row[:2] for row in lake.sql("DESCRIBE TABLE EXTENDED lake.t"))["Location"].split("/", 3)[3]
    backend = next(each for each in s3_backends["123456789012"].values() if "lakelog" in each.buckets)
    for number in range(2100):
        key = f"{place}/data/{1:020d}-{'a' * 26}-{number:05d}.parquet"
        backend.put_object("lakelog", key, b"")
    requests, original = [], S3Response._bucket_response_delete_keys

    def counted(response, bucket_name, *rest):
        requests.append(bucket_name)
        status, headers, text = original(response, bucket_name, *rest)
        if len(requests) == 1:
            head, end, tail = str(text).rpartition("</")
            for name in ("one", "two"):
                head += (
                    f"<Error><Key>{place}/{name}</Key><Code>SlowDown</Code><Message>slow</Message></Error>"
                )
            text = f"{head}{end}{tail}"
        return status, headers, text

    monkeypatch.setattr(S3Response, "_bucket_response_delete_keys", counted)
    (row,) = lake.sql(
        "CALL lake.system.vacuum(table => 't', older_than => INTERVAL '0' DAY, dry_run => false)"
    )
    assert row[3] == 2100
    assert len(requests) == 4, "three, and one for what was left out"
    assert not [key for key in backend.buckets["lakelog"].keys if "a" * 26 in key]
    assert lake.sql("SELECT count(*), sum(id) FROM lake.t") == [(4, 6)]


@pytest.mark.parametrize("on_s3", ["s3"], indirect=True)
def test_executors_make_a_tombstone_by_three_requests(on_s3, make_lake, warm, tmp_path, monkeypatch):
    import pyarrow as pa

    from lakelog.catalog import Catalog
    from lakelog.log.burial import tombstone_of
    from lakelog.log.format import Tombstone, encode
    from lakelog.testing import moto_server

    _, options = on_s3
    few = warm.program(
        tmp_path, "from lakelog.catalog.keeping.maintenance import engine; engine.MANY_VERSIONS = 8"
    )
    lake = make_lake(f"s3://lakelog/buried-{tmp_path.name}", python=few, **options)
    lake.sql("CREATE TABLE lake.t (id INT)")
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    table = Catalog(lake.warehouse, options=texts).load_table("t")
    for number in range(12):
        table = table.append(pa.table({"id": pa.array([number], pa.int32())}))
    asked, original = [], moto_server._OneAtATime.__call__

    def counted(app, environ, start):
        asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_USER_AGENT", "")))
        return original(app, environ, start)

    monkeypatch.setattr(moto_server._OneAtATime, "__call__", counted)
    (row,) = lake.sql("CALL lake.system.expire(table => 't', version => 11, dry_run => false)")
    log = table.table_head.tracked.log
    assert row[6] == 11 and all(isinstance(log.entry_at(number), Tombstone) for number in range(1, 12))
    of_versions = [method for method, path, by in asked if "/_log/0000" in path and "Hadoop" in by]
    assert sorted(of_versions) == ["GET"] * 10 + ["HEAD"] * 10 + ["PUT"] * 10, "Python does the last one"
    for number in range(12):
        table = table.append(pa.table({"id": pa.array([number], pa.int32())}))
    key = log.keys.commit(15)

    def overtaken(app, environ, start):
        answer = original(app, environ, start)
        by_executor = "Hadoop" in environ.get("HTTP_USER_AGENT", "")
        if environ["REQUEST_METHOD"] == "HEAD" and environ["PATH_INFO"].endswith(key) and by_executor:
            entry = log.entry_at(15)
            if not isinstance(entry, Tombstone):
                log.store.put(key, encode(tombstone_of(entry)))
        return answer

    monkeypatch.setattr(moto_server._OneAtATime, "__call__", overtaken)
    (row,) = lake.sql("CALL lake.system.expire(table => 't', version => 23, dry_run => false)")
    assert row[6] == 11, "another cleaner came between the two looks of an executor at one version"
    assert all(isinstance(log.entry_at(number), Tombstone) for number in range(1, 24))


@pytest.mark.adapter
@pytest.mark.parametrize("on_s3", ["s3"], indirect=True)
def test_a_task_asks_for_the_size_of_a_file_once(on_s3, monkeypatch):
    """Its own look answers Spark's reader too. Of a file with deletion vectors S3A's default stream asks by itself."""
    from lakelog.testing import moto_server

    lake, _ = on_s3
    lake.sql("CREATE TABLE lake.t AS SELECT /*+ COALESCE(1) */ id, id % 7 AS k FROM range(0, 20000)")
    lake.sql("ALTER TABLE lake.t ADD COLUMN c INT DEFAULT 5")
    asked, original = [], moto_server._OneAtATime.__call__

    def counted(app, environ, start):
        asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        return original(app, environ, start)

    def heads(query, expected):
        asked.clear()
        assert lake.sql(query) == [expected]
        return sorted(path.rpartition(".")[2] for method, path in asked if method == "HEAD")

    monkeypatch.setattr(moto_server._OneAtATime, "__call__", counted)
    query = "SELECT sum(id), sum(c) FROM lake.t WHERE k = 3"
    row = lake.sql("SELECT sum(id), count(*) * 5 FROM range(20000) WHERE id % 7 = 3")[0]
    for columnar in ("true", "false"):
        lake.spark.conf.set("spark.sql.parquet.enableVectorizedReader", columnar)
        try:
            assert heads(query, row) == ["parquet"]
        finally:
            lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('lakelog.write.delete.mode' = 'merge-on-read')")
    lake.sql("DELETE FROM lake.t WHERE hash(id) % 3 = 0")
    (row,) = lake.sql("SELECT sum(id), count(*) * 5 FROM range(20000) WHERE id % 7 = 3 AND hash(id) % 3 <> 0")
    assert heads(query, row) == ["parquet", "puffin"]


def test_a_bucket_that_is_missing_is_named(make_lake, lakelog_s3):
    options = {**lakelog_s3.options, "path_style": True}
    lake = make_lake("s3://no-such-bucket/lake", **options)
    with pytest.raises(Exception, match="no-such-bucket") as error:
        lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    assert "Traceback" not in str(error.value)


def test_files_of_others_are_added_on_s3(on_s3):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lakelog.catalog import Catalog

    lake, options = on_s3
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    catalog = Catalog(lake.warehouse, options=texts)
    place = f"lakelog/files/{lake.name}-{lake.warehouse.rpartition('/')[2]}"
    for day in (1, 2):
        store, key = catalog._logs.places.open_url(f"s3://{place}/day={day}/f.parquet")
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"ID": [day * 10]}), sink)
        store.put(key, sink.getvalue().to_pybytes())
    lake.sql("CREATE TABLE lake.t (id BIGINT, day INT)")
    lake.sql(f"CALL lake.system.add_files('t', 's3a://{place}/day=1')")
    assert lake.sql("SELECT * FROM lake.t") == [(10, 1)]
    catalog.load_table("t").add_files(f"s3://{place}", partition_filter={"day": "2"})
    assert lake.sorted("SELECT * FROM lake.t") == [(10, 1), (20, 2)]
    assert sorted(catalog.load_table("t").to_arrow()["id"].to_pylist()) == [10, 20]
    assert not catalog.fsck(deep=True).found


@pytest.mark.parametrize("on_s3", ["s3"], indirect=True)
def test_rows_are_forgotten_and_clones_materialized_on_s3(on_s3):
    lake, _ = on_s3
    lake.sql("CREATE TABLE lake.t AS SELECT id, CAST(id AS STRING) AS name FROM range(9)")
    lake.sql("CREATE TABLE lake.c CLONE lake.t")
    lake.sql("DELETE FROM lake.t WHERE id = 3")
    rows = lake.sql("CALL lake.system.forget('t', 'name IN (\"3\", \"5\")', dry_run => false)")
    assert [row[2:5] for row in rows if row[0] in ("table", "clone")] == [(None, 2, 2), (None, 2, 2)]
    assert [row[0] for row in rows if row[0] in ("receipt", "left")] == ["receipt"]
    assert lake.sql("SELECT count(*), sum(id) FROM lake.c") == [(7, 28)]
    lake.sql("CREATE TABLE lake.d CLONE lake.t")
    copied_rows = lake.sql("CALL lake.system.materialize('d')")
    assert [(row[0] > 0, row[5]) for row in copied_rows] == [(True, False)]
    lake.sql("DROP TABLE lake.c PURGE")
    assert lake.sql("SELECT count(*), sum(id) FROM lake.d") == [(7, 28)]


@pytest.mark.adapter
@pytest.mark.parametrize("on_s3", ["s3"], indirect=True)
@in_one_mode
def test_rows_are_deleted_updated_and_merged_on_s3(on_s3, mode):
    from lakelog.catalog import Catalog

    lake, options = on_s3
    lake.sql(f"CREATE TABLE lake.t {in_mode(mode)} AS SELECT id, 0 AS v FROM range(0, 20000, 1, 2)")
    # More rows than a vector in the log has room for.
    lake.sql("DELETE FROM lake.t WHERE hash(id) % 3 = 0")
    lake.sql("UPDATE lake.t SET v = 1 WHERE id < 10")
    lake.sql(
        "MERGE INTO lake.t USING (SELECT id FROM range(19990, 20010)) s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED AND s.id >= 20000 THEN INSERT (id, v) VALUES (s.id, 2)"
    )
    expected = lake.sorted(
        "SELECT id, CASE WHEN id < 10 THEN 1 WHEN id >= 20000 THEN 2 ELSE 0 END FROM range(20010) "
        "WHERE (hash(id) % 3 <> 0 AND id < 19990) OR id >= 20000"
    )
    assert lake.sorted("SELECT * FROM lake.t") == expected
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    catalog = Catalog(lake.warehouse, options=texts)
    rows = catalog.load_table("t").to_arrow().to_pylist()
    assert sorted((tuple(row.values()) for row in rows), key=repr) == expected
    assert not catalog.fsck(deep=True).found
