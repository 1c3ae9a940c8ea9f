"""CALL lake.system.cluster: rows in the order of the table's curve, by jobs, at places that Python computes too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException

from lakelog.catalog import engine
from lakelog.catalog.core.parquet.row_order import places_on
from lakelog.catalog.core.schema import curve_of, schema_to_arrow
from lakelog.catalog.keeping.maintenance import fsck

SMALL = "TBLPROPERTIES ('lakelog.write.target-file-size-bytes' = '65536')"
KEYS = {
    "bo BOOLEAN": "id % 3 = 0",
    "by TINYINT": "CAST(id % 100 AS TINYINT)",
    "i INT": "CAST(id * 7919 % 1000 - 500 AS INT)",
    "l BIGINT": "id * 104729 % 100003",
    "f FLOAT": "CASE id % 50 WHEN 0 THEN float('NaN') WHEN 1 THEN float('-Infinity') WHEN 2 THEN -0.0F "
    "ELSE CAST(id * 31 % 977 AS FLOAT) END",
    "d DOUBLE": "CASE id % 9 WHEN 0 THEN double('Infinity') ELSE id * 37 % 500 / 7 END",
    "de DECIMAL(20,3)": "CAST(id * 7 % 1000 AS DECIMAL(20,3)) - 500",
    "small DECIMAL(9,2)": "CAST(id % 97 AS DECIMAL(9,2))",
    "da DATE": "DATE '2020-01-01' + CAST(id * 13 % 900 AS INT)",
    "ts TIMESTAMP": "timestamp_seconds(id * 7717 % 100000)",
    "tn TIMESTAMP_NTZ": "CAST(timestamp_seconds(id * 911 % 99991) AS TIMESTAMP_NTZ)",
    "s STRING": "concat(repeat('a common beginning/', 3), id * 271 % 700, IF(id % 11 = 0, 'é😀', ''))",
    "vc VARCHAR(20)": "concat('v', id * 3 % 400)",
    "ch CHAR(6)": "concat('c', id % 40)",
    "b BINARY": "unhex(hex(id * 5 % 300))",
}


def _files(lake: Any, name: str = "t") -> list[tuple[dict[str, Any], pa.Table]]:
    """The entry of each live file, and its rows by the names of columns."""
    table = lake.catalog.load_table(name)
    found = []
    for entry in table.table_head.all_files().to_pylist():
        rows = pq.read_table(f"{table.location}/{entry['path']}")
        names = {field.physical: field.name for field in table.schema.fields}
        own = rows.select([column_name for column_name in rows.column_names if column_name in names])
        logical = schema_to_arrow(table.schema, physical=False)
        own = own.rename_columns([names[column_name] for column_name in own.column_names])
        found.append((entry, own.select(logical.names).cast(logical)))
    return found


def _check_places(lake: Any, name: str = "t") -> int:
    """Python's places of rows are in order, and those that their file says; return how many files say any."""
    metadata = lake.catalog.load_table(name).metadata
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    assert curve is not None
    checked_number = 0
    for entry, rows in _files(lake, name):
        if entry.get("curve") != metadata.ranks.generation:
            continue
        places = places_on(curve, rows.combine_chunks(), metadata.schema).tolist()
        assert (entry["curve_low"], entry["curve_high"]) == (min(places), max(places))
        assert places == sorted(places)
        checked_number += 1
    return checked_number


def _cluster(lake: Any, **arguments: Any) -> Any:
    given_text = "".join(f", {name} => {value}" for name, value in arguments.items())
    [row] = lake.sql(f"CALL lake.system.cluster('t'{given_text})")
    return row


def _sound(lake: Any) -> bool:
    findings = fsck.check_warehouse(lake.catalog._logs, deep=True).found
    return {finding.kind for finding in findings} <= {"data-file-unused"}


@pytest.mark.adapter
def test_places_of_every_type_are_pythons(lake: Any) -> None:
    columns = ", ".join(KEYS)
    names = [key.split()[0] for key in KEYS]
    values = ", ".join(f"IF(hash(id, {n}) % 10 = 0, NULL, {value})" for n, value in enumerate(KEYS.values()))
    lake.sql(f"CREATE TABLE lake.source (id BIGINT, {columns})")
    lake.sql(f"INSERT INTO lake.source SELECT id, {values} FROM range(0, 600, 1, 1)")
    for keys in (names[:4], names[4:8], names[8:12], names[12:], ["s"]):
        lake.sql(f"CREATE TABLE lake.t (id BIGINT, {columns}) CLUSTER BY ({', '.join(keys)}) {SMALL}")
        lake.sql("INSERT INTO lake.t SELECT * FROM lake.source")
        assert _cluster(lake)[0] == 1, "what was written before there were boundaries has no order"
        lake.sql("INSERT INTO lake.t SELECT * FROM lake.source WHERE id % 2 = 0")
        assert _check_places(lake) == 2, "an INSERT is a run of its own"
        twice = "SELECT * FROM lake.source UNION ALL SELECT * FROM lake.source WHERE id % 2 = 0"
        assert repr(lake.sorted("SELECT * FROM lake.t")) == repr(lake.sorted(twice))
        lake.sql("DROP TABLE lake.t")


@pytest.fixture
def grown(lake: Any) -> Any:
    """A table in two partitions, of several files without an order each."""
    lake.sql(
        f"CREATE TABLE lake.t (id BIGINT, a INT, b STRING, p INT, pad STRING) PARTITIONED BY (p) {SMALL}"
    )
    lake.sql("ALTER TABLE lake.t CLUSTER BY (a, b)")
    for first in range(0, 12_000, 4_000):
        lake.sql(
            "INSERT INTO lake.t SELECT id, CAST(id * 7919 % 1009 AS INT), concat('key-', id * 104729 % 10007), "
            f"CAST(id % 2 AS INT), concat(md5(string(id)), md5(string(-id))) FROM range({first}, {first + 4000}, 1, 2)"
        )
    return lake


@pytest.mark.adapter
def test_one_job_and_one_commit_put_all_partitions_in_order(grown: Any) -> None:
    lake = grown
    rows = lake.sorted("SELECT *, _row_id FROM lake.t")
    table = lake.catalog.load_table("t")
    files, size = table.file_count, table.size_bytes
    planned = _cluster(lake, dry_run="true")
    assert planned[:2] == (files, size) and planned[4:7] == (0, table.version, False)
    assert lake.catalog.load_table("t").version == table.version, "a dry run changes nothing"
    assert _cluster(lake, dry_run="true", where="'p = 1'")[0] == len(table.plan("p = 1"))
    assert _cluster(lake, dry_run="true", limit_bytes=100_000)[6], "the limit comes first"
    done = _cluster(lake)
    table_after = lake.catalog.load_table("t")
    assert done[:7] == (
        files,
        size,
        table_after.file_count,
        table_after.size_bytes,
        0,
        table_after.version,
        False,
    )
    assert done[8] == engine.clustering_overlap(table_after) < done[7] / 3
    assert planned[7] < done[7] * 1.2, "an estimate, as there were no boundaries"
    assert abs(planned[8] - done[8]) < 1 and abs(planned[2] - done[2]) <= done[2] / 2
    assert table_after.version == table.version + 2, "boundaries, and one commit for both partitions"
    assert _check_places(lake) == table_after.file_count > 2
    assert lake.sorted("SELECT *, _row_id FROM lake.t") == rows
    assert len(table_after.plan("a = 500")) < table_after.file_count
    assert len(table_after.plan("b = 'key-5000'")) < table_after.file_count
    assert _cluster(lake)[0] == 0
    # What is deleted, and what is new, before Python and Spark go on in turns.
    lake.sql("DELETE FROM lake.t WHERE id % 50 = 7")
    lake.sql("UPDATE lake.t SET a = a + 1 WHERE id % 50 = 8")
    for number in range(8):
        lake.sql(
            f"INSERT INTO lake.t SELECT id, 5000 + id, 'new', {number % 2}, md5(string(id)) FROM range(100)"
        )
        if number == 5:
            lake.catalog.load_table("t").cluster()
    rows = lake.sorted("SELECT * FROM lake.t")
    compacted_rows = lake.sql("CALL lake.system.compact('t')")
    assert compacted_rows and _check_places(lake) > 0, "a compaction leaves places as they are"
    _cluster(lake, full="true")
    _check_places(lake)
    assert lake.sorted("SELECT * FROM lake.t") == rows
    spans: dict[int, list[tuple[int, int]]] = {}
    for entry, own in _files(lake):
        spans.setdefault(own["p"][0].as_py(), []).append((entry["curve_low"], entry["curve_high"]))
    for each_pairs in map(sorted, spans.values()):
        assert all(
            first_pair[1] <= two[0] for first_pair, two in zip(each_pairs, each_pairs[1:], strict=False)
        )
    assert _sound(lake)


@pytest.mark.adapter
def test_limits_filters_new_keys_and_words_of_others(grown: Any) -> None:
    lake = grown
    rows = lake.sorted("SELECT * FROM lake.t")
    table = lake.catalog.load_table("t")
    half = _cluster(lake, where="'p = 1'")
    assert half[0] == len(table.plan("p = 1"))
    lake.sql("OPTIMIZE lake.t WHERE p = 0")
    assert _check_places(lake) == lake.catalog.load_table("t").file_count
    with pytest.raises(UnsupportedOperationException, match="ALTER TABLE .* CLUSTER BY \\(id\\)"):
        lake.sql("OPTIMIZE lake.t ZORDER BY (id)")
    lake.sql("ALTER TABLE lake.t CLUSTER BY (id, a)")
    calls = 0
    while calls < 20:
        calls += 1
        done = _cluster(lake, limit_bytes=100_000)
        assert done[1] < 400_000
        if not done[6]:
            break
    assert calls > 1 and lake.sorted("SELECT * FROM lake.t") == rows
    table = lake.catalog.load_table("t")
    assert len(table.plan("id = 6000")) < table.file_count
    lake.sql("CREATE TABLE lake.plain (id INT)")
    with pytest.raises(AnalysisException, match="no columns to be clustered by"):
        lake.sql("CALL lake.system.cluster('plain')")
    with pytest.raises(AnalysisException, match="give more than 0"):
        _cluster(lake, limit_bytes=0)


@pytest.mark.adapter
def test_by_one_column_files_are_in_the_order_of_a_select(lake: Any) -> None:
    """By that column, and then by the table's order: even if many rows have one value, and between files."""
    lake.sql(f"CREATE TABLE lake.t (a INT, b STRING, id BIGINT) CLUSTER BY (a) {SMALL}")
    lake.sql("ALTER TABLE lake.t WRITE ORDERED BY b DESC NULLS LAST, id")
    for first in (0, 6_000):
        lake.sql(
            "INSERT INTO lake.t SELECT IF(id % 9 = 0, NULL, CAST(id * 7919 % 40 AS INT)), "
            f"IF(id % 7 = 0, NULL, md5(string(id))), id FROM range({first}, {first + 6000}, 1, 2)"
        )
    _cluster(lake, full="true")
    _check_places(lake)
    files = sorted(
        _files(lake), key=lambda each: (each[0]["curve_low"], each[0]["curve_high"], each[0]["path"])
    )
    assert len(files) >= 2
    found = [tuple(row.values()) for _, rows in files for row in rows.to_pylist()]
    expected = lake.frame("SELECT * FROM lake.t ORDER BY a, b DESC NULLS LAST, id").collect()
    assert found == list(map(tuple, expected))
