"""Scans read the right rows, and no file without need."""

import shutil

import pyarrow as pa
import pytest

pytestmark = pytest.mark.adapter


def files_read(frame):
    """How many splits Spark makes of the frame's scan, and how many files those are of."""
    plan = frame._jdf.queryExecution().sparkPlan()
    scans = [node for node in walk(plan) if node.nodeName().startswith("BatchScan")]
    paths: set[str] = set()
    for scan in scans:
        for partition in scan.scan().toBatch().planInputPartitions():
            # Parts that are apart by the table's partitions have what is read inside.
            read = (
                partition.inner() if partition.getClass().getSimpleName() == "KeyedPartition" else partition
            )
            paths.update(file.filePath().toString() for file in read.files().files())
    return len(paths)


def walk(plan):
    yield plan
    children = plan.children()
    for index in range(children.length()):
        yield from walk(children.apply(index))


def explained(frame):
    return frame._jdf.queryExecution().toString()


@pytest.fixture
def days(lake):
    """Ten files, one a day, of ten rows each."""
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, day DATE, x DOUBLE, s STRUCT<a: INT, b: STRUCT<c: STRING>>) "
        "PARTITIONED BY (day)"
    )
    lake.sql(
        "INSERT INTO lake.t SELECT id, date_add(DATE'2020-01-01', CAST(id DIV 10 AS INT)), id / 2, "
        "named_struct('a', CAST(id AS INT), 'b', named_struct('c', concat('c', lpad(id, 3, '0')))) FROM range(100)"
    )
    return lake


@pytest.mark.parametrize(
    ("condition", "files", "rows"),
    [
        ("day = DATE'2020-01-03'", 1, 10),
        ("day > DATE'2020-01-08'", 2, 20),
        ("day IN (DATE'2020-01-01', DATE'2020-01-02')", 2, 20),
        ("id = 55", 1, 1),
        ("id < 15 AND x >= 5", 1, 5),
        ("id < 5 OR id > 95", 2, 9),
        ("NOT (id < 95)", 1, 5),
        ("s.a = 7", 1, 1),
        ("s.b.c LIKE 'c09%'", 1, 10),
        ("s.b.c = 'c042' AND s.a = 42", 1, 1),
        ("id IS NULL", 0, 0),
        ("day IS NOT NULL", 10, 100),
        ("id + 1 = 8", 10, 1),
        ("year(day) = 2021", 0, 0),
        ("id = 1000", 0, 0),
    ],
)
def test_filters_leave_out_files_and_the_rows_are_right(days, condition, files, rows):
    frame = days.frame(f"SELECT id FROM lake.t WHERE {condition}")
    assert frame.count() == rows
    if condition.startswith("year"):
        return  # Spark may rewrite it to a range or not; only the rows are promised.
    assert files_read(frame) == files


@pytest.mark.parametrize(("word", "rows"), [("OR", 1), ("AND", 99)])
def test_a_condition_of_many_parts_is_no_deeper_than_one_of_two(days, word, rows):
    sign, inner = ("=", "AND") if word == "OR" else ("<>", "OR")
    parts = [f"(id {sign} {n} {inner} x {sign} {n / 2})" for n in (42, *range(1000, 1300))]
    frame = days.frame(f"SELECT id FROM lake.t WHERE {f' {word} '.join(parts)}")
    assert frame.count() == rows
    assert files_read(frame) == (1 if word == "OR" else 10)


def test_only_the_columns_that_are_asked_for_are_read_nested_ones_too(days):
    text = explained(days.frame("SELECT s.b.c FROM lake.t WHERE id > 3"))
    scan = next(line for line in text.splitlines() if "BatchScan" in line)
    assert "day" not in scan and "x#" not in scan
    assert "s#" in scan
    read = days.frame("SELECT s.b.c FROM lake.t")._jdf.queryExecution().sparkPlan()
    schema = next(node for node in walk(read) if node.nodeName().startswith("BatchScan")).scan().readSchema()
    assert schema.simpleString() == "struct<s:struct<b:struct<c:string>>>"


def test_counting_needs_no_column(days):
    assert days.sql("SELECT count(*) FROM lake.t") == [(100,)]
    assert days.sql("SELECT count(*) FROM lake.t WHERE day = DATE'2020-01-02'") == [(10,)]


def test_a_limit_reads_the_first_files_only(days):
    frame = days.frame("SELECT * FROM lake.t LIMIT 15")
    assert len(frame.collect()) == 15
    assert files_read(frame) == 2


def test_a_filtered_scan_reports_to_spark_how_many_rows_are_left(days):
    frame = days.frame("SELECT * FROM lake.t WHERE day = DATE'2020-01-02'")
    leaf = frame._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    assert leaf.scan().estimateStatistics().numRows().getAsLong() == 10
    stats = days.frame("SELECT * FROM lake.t")._jdf.queryExecution().optimizedPlan().stats()
    assert int(str(leaf.stats().sizeInBytes())) * 5 < int(str(stats.sizeInBytes()))


def test_a_join_on_the_partition_reads_only_the_partitions_that_it_needs(days):
    days.sql(
        "CREATE TABLE lake.dim AS SELECT DATE'2020-01-02' AS day, 'wanted' AS label UNION ALL SELECT "
        "DATE'2020-01-05', 'other'"
    )
    frame = days.frame(
        "SELECT count(*), min(id), max(id) FROM lake.t JOIN lake.dim ON t.day = dim.day WHERE dim.label = 'wanted'"
    )
    assert [tuple(row) for row in frame.collect()] == [(10, 10, 19)]
    assert "dynamicpruning" in explained(frame)


def test_the_row_reader_and_the_column_reader_agree(days):
    query = "SELECT *, s.b.c FROM lake.t WHERE id % 7 = 3 ORDER BY id"
    columns = days.sql(query)
    days.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert days.sql(query) == columns
    finally:
        days.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_the_row_reader_finds_defaults_of_columns_that_stand_before_others(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT, z INT) TBLPROPERTIES ('lakelog.write.delete.mode' = 'merge-on-read')"
    )
    lake.sql("INSERT INTO lake.t SELECT /*+ COALESCE(1) */ int(id), int(id) * 10 FROM range(1, 4)")
    lake.sql("ALTER TABLE lake.t ADD COLUMN a INT DEFAULT 5 FIRST")
    lake.sql("INSERT INTO lake.t VALUES (6, 11, 110), (NULL, 12, 120)")
    lake.sql("ALTER TABLE lake.t ADD COLUMNS (b STRING DEFAULT 'x' AFTER id, c INT FIRST)")
    lake.sql("INSERT INTO lake.t VALUES (1, 7, 21, 'y', 210), (NULL, NULL, 22, NULL, NULL)")
    lake.sql("DELETE FROM lake.t WHERE id = 2")
    rows = [
        (1, 10, 5, "x", None), (3, 30, 5, "x", None), (11, 110, 6, "x", None), (12, 120, None, "x", None),
        (21, 210, 7, "y", 1), (22, None, None, None, None),
    ]  # fmt: skip
    queries: dict[str, list[tuple]] = {
        "SELECT id, z, a, b, c FROM lake.t": rows,
        "SELECT a, id FROM lake.t": [(row[2], row[0]) for row in rows],
        "SELECT c, a, z FROM lake.t": [(row[4], row[2], row[1]) for row in rows],
        "SELECT b, z, _pos >= 0, _row_id IS NULL FROM lake.t": [
            (row[3], row[1], True, False) for row in rows
        ],
        "SELECT id FROM lake.t WHERE a = 5 AND b = 'x'": [(1,), (3,)],
        "SELECT id FROM lake.t WHERE a = 6 OR b = 'y'": [(11,), (21,)],
    }
    for reader in ("true", "false"):
        lake.sql(f"SET spark.sql.parquet.enableVectorizedReader = {reader}")
        try:
            for query, expected in queries.items():
                assert lake.sorted(query) == sorted(expected, key=repr), (reader, query)
        finally:
            lake.sql("RESET spark.sql.parquet.enableVectorizedReader")


def test_a_large_file_is_split(lake):
    lake.sql(
        "CREATE TABLE lake.t AS SELECT id, sha2(CAST(id AS STRING), 256) AS x FROM range(0, 50000, 1, 1)"
    )
    lake.spark.conf.set("spark.sql.files.maxPartitionBytes", "500000")
    try:
        frame = lake.frame("SELECT * FROM lake.t")
        assert frame.rdd.getNumPartitions() > 3
        assert lake.sql("SELECT count(*), count(DISTINCT id), sum(id) FROM lake.t") == [
            (50000, 50000, 1249975000)
        ]
    finally:
        lake.spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_a_column_added_under_the_name_of_an_older_one_is_another_column(lake):
    lake.sql(
        "CREATE TABLE lake.t AS SELECT id, concat('old', id) AS a, named_struct('f', id) AS s FROM range(100)"
    )
    lake.sql("ALTER TABLE lake.t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE lake.t ADD COLUMN a STRING")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN s.f TO g")
    lake.sql("ALTER TABLE lake.t ADD COLUMN s.f BIGINT")
    lake.sql("INSERT INTO lake.t SELECT 100, 'x', named_struct('g', 5L, 'f', 6L), 'new'")
    assert lake.sql("SELECT id, b FROM lake.t WHERE a = 'new'") == [(100, "x")]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE a IS NULL AND s.f IS NULL") == [(100,)]
    assert lake.sql("SELECT id FROM lake.t WHERE s.g = 42 OR s.f = 6 ORDER BY id") == [(42,), (100,)]
    lake.sql("ALTER TABLE lake.t DROP COLUMN b")
    lake.sql("ALTER TABLE lake.t ADD COLUMN b STRING DEFAULT 'fresh'")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE b = 'fresh'") == [(101,)]


def test_widened_columns_are_filtered_right_in_old_files(lake):
    lake.sql("CREATE TABLE lake.t (i INT, f FLOAT, d DECIMAL(5, 2), dt DATE)")
    lake.sql("INSERT INTO lake.t VALUES (1, 1.5, 1.25, DATE'2020-01-01'), (2, 2.5, 2.25, DATE'2020-01-02')")
    for column, type in (("i", "BIGINT"), ("f", "DOUBLE"), ("d", "DECIMAL(12, 2)"), ("dt", "TIMESTAMP_NTZ")):
        lake.sql(f"ALTER TABLE lake.t ALTER COLUMN {column} TYPE {type}")
    lake.sql(
        "INSERT INTO lake.t VALUES (5000000000, 3.5D, 1234567890.25BD, TIMESTAMP_NTZ'2020-01-02 12:00:00')"
    )
    for condition, rows in [
        ("i = 2", 1),
        ("i > 1", 2),
        ("f = 1.5", 1),
        ("f > 1.5D", 2),
        ("d = 2.25", 1),
        ("d > 1.25", 2),
        ("dt >= TIMESTAMP_NTZ'2020-01-02 00:00:00'", 2),
        ("dt = TIMESTAMP_NTZ'2020-01-01 00:00:00'", 1),
    ]:
        assert lake.sql(f"SELECT count(*) FROM lake.t WHERE {condition}") == [(rows,)], condition


def test_values_that_old_files_have_no_room_for_are_compared_all_the_same(lake):
    lake.sql("CREATE TABLE lake.t (i INT, d DECIMAL(5, 2), e DECIMAL(20, 2))")
    lake.sql("INSERT INTO lake.t VALUES (1, 1.25, 1.25)")
    for column, type in (("i", "BIGINT"), ("d", "DECIMAL(12, 2)"), ("e", "DECIMAL(38, 2)")):
        lake.sql(f"ALTER TABLE lake.t ALTER COLUMN {column} TYPE {type}")
    for condition in (
        "d < 21474836.48",
        "d <> 42949674.21",  # is 1.25 in 32 bits
        "d NOT IN (42949674.21, 3.25)",
        "e < CAST('9999999999999999999999999' AS DECIMAL(38, 2))",
        "i NOT IN (5, 4294967297)",
    ):
        assert lake.sql(f"SELECT i FROM lake.t WHERE {condition}") == [(1,)], condition


def test_all_parts_of_an_or_count_although_parquet_knows_only_some(lake):
    lake.sql("CREATE TABLE lake.t (id INT, a INT, b INT, flag BOOLEAN)")
    lake.sql("INSERT INTO lake.t VALUES (1, 1, 1, true), (2, 1, 2, false), (3, NULL, 1, NULL)")
    for condition, ids in [
        ("a = b OR id = 77", [1]),
        ("id = 77 OR a < b", [2]),
        ("NOT (a = b AND id < 77)", [2]),
        ("flag <= true OR id = 77", [1, 2]),
        ("flag IN (true, false) OR id = 77", [1, 2]),
        ("(a + 1 = b OR id = 77) AND (flag <= true OR id = 77)", [2]),
    ]:
        assert lake.sorted(f"SELECT id FROM lake.t WHERE {condition}") == [(id,) for id in ids], condition
    lake.sql("DELETE FROM lake.t WHERE a = b OR id = 77")
    assert lake.sorted("SELECT id FROM lake.t") == [(2,), (3,)]


def test_blanks_behind_a_char_count_where_a_session_takes_it_for_a_text(lake):
    lake.sql("CREATE TABLE lake.t (id INT, c CHAR(5)) PARTITIONED BY (c)")
    lake.sql("INSERT INTO lake.t VALUES (1, 'ab'), (2, 'abc')")
    legacy = "spark.sql.legacy.charVarcharAsString"
    for value, ids in (("true", [1, 2]), ("false", [2])):
        lake.spark.conf.set(legacy, value)
        try:
            for condition in ("c <> 'ab'", "c > 'ab'", "c NOT IN ('ab', 'x')"):
                text = lake.sorted(f"SELECT id FROM lake.t WHERE {condition}")
                assert text == [(id,) for id in ids], (value, condition)
        finally:
            lake.spark.conf.unset(legacy)


def test_the_past_is_read_by_version_and_by_time(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    first = lake.catalog.load_table("t")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN id TO num")
    assert lake.sql(f"SELECT id FROM lake.t VERSION AS OF {first.version}") == [(1,)]
    assert lake.sql("SELECT count(num) FROM lake.t TIMESTAMP AS OF current_timestamp()") == [(2,)]
    assert lake.sql(f"SELECT * FROM lake.t TIMESTAMP AS OF timestamp_micros({first.table_head.time_us})") == [
        (1,)
    ]
    assert lake.spark.read.option("versionAsOf", first.version).table(f"{lake.name}.t").count() == 1
    for bad in ("VERSION AS OF 99", "VERSION AS OF 'x'", "TIMESTAMP AS OF '2001-01-01'"):
        with pytest.raises(Exception, match="version|no tag or branch x") as error:
            lake.sql(f"SELECT * FROM lake.t {bad}")
        assert "Traceback" not in str(error.value)


def test_a_statement_reads_one_version_of_a_table_throughout(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")
    frame = lake.frame("SELECT a.id FROM lake.t a JOIN lake.t b ON a.id = b.id")
    lake.sql("INSERT INTO lake.t VALUES (77)")
    assert frame.count() in (10, 11)
    assert lake.sql("SELECT count(*) FROM lake.t a JOIN lake.t b ON a.id = b.id") == [(11,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(x) FROM {} UNION ALL SELECT sum(x) FROM {}",
        "SELECT explode(array((SELECT sum(x) FROM {}), (SELECT sum(x) FROM {})))",
    ],
)
def test_a_copy_of_a_warehouse_has_rows_of_its_own(lake, make_lake, tmp_path, query):
    lake.sql("CREATE TABLE lake.t AS SELECT 1L AS x")
    shutil.copytree(lake.warehouse, tmp_path / "copy")
    copy = make_lake(str(tmp_path / "copy"))
    lake.sql("INSERT INTO lake.t VALUES (10)")
    copy.sql("INSERT INTO lake.t VALUES (20)")
    assert lake.sql(query.format(f"{lake.name}.t", f"{copy.name}.t")) == [(11,), (21,)]


def test_case_of_columns_does_not_matter_unless_the_session_says_so(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS MixedCase, named_struct('Inner', 2) AS S")
    assert lake.sql("SELECT mixedcase, s.INNER FROM lake.t WHERE MIXEDCASE = 1 AND s.inner = 2") == [(1, 2)]


def test_conditions_find_nan_in_files_whose_bounds_leave_it_out(lake):
    nan = float("nan")
    schema = pa.schema({"id": pa.int64(), "x": pa.float64(), "y": pa.float32()})
    table = lake.catalog.create_table("t", schema)
    for values in ([0.0, nan], [0.5, None, nan], [nan, nan], [9.0]):
        ids = range(table.row_count, table.row_count + len(values))
        table = table.append(pa.table({"id": ids, "x": values, "y": values}, schema=schema))
    nan_text = "CAST('NaN' AS DOUBLE)"
    conditions = [
        "x > 3", f"x >= {nan_text}", f"x = {nan_text}", f"x <=> {nan_text}", f"x IN (7, {nan_text})", "NOT (x < 3)",
        "NOT (x <= 0)", "x <> 0", "x NOT IN (0, 0.5)", "3 < x", "x < 3", "x <= 0.5", "x = 9", "x IN (9, 0)",
        "x IS NULL",
        f"x BETWEEN 3 AND {nan_text}", f"x > 3 AND x < {nan_text}", "x > 3 OR id = 0", "y > 3", "NOT (y < 3)", "x < y",
    ]  # fmt: skip
    by_row = lake.sql(f"SELECT id, {', '.join(f'({condition})' for condition in conditions)} FROM lake.t")
    for number, condition in enumerate(conditions, start=1):
        expected = sorted((row[0],) for row in by_row if row[number])
        assert lake.sorted(f"SELECT id FROM lake.t WHERE {condition}") == expected, condition
    lake.sql("DELETE FROM lake.t WHERE x > 3")
    assert lake.sorted("SELECT id FROM lake.t") == [(0,), (2,), (3,)]
