"""Cases of columns, types and data files."""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap
from tests.conformance.making import Bench, Case

from lakelog.catalog import Table, col, engine
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.logs import commits
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.core.schema.types import TypedValue

NAMED = pa.schema([("id", pa.int64()), ("name", pa.string())])


def named(first: int, count: int = 2) -> pa.Table:
    """Return rows of an id and a name."""
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"name {id}" for id in ids]})


def spark_schema(**types: Any) -> Any:
    """Return a schema of nullable columns by their types in Spark's JSON."""
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in types.items()]
    return schema_from_spark({"type": "struct", "fields": fields})


ATOMIC: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "boolean": ("boolean", pa.bool_(), [True, False]),
    "byte": ("byte", pa.int8(), [-128, 127]),
    "short": ("short", pa.int16(), [-32768, 32767]),
    "integer": ("integer", pa.int32(), [-(2**31), 2**31 - 1]),
    "long": ("long", pa.int64(), [-(2**63), 2**63 - 1]),
    "float": ("float", pa.float32(), [float("nan"), -1.5]),
    "double": ("double", pa.float64(), [float("inf"), float("-inf")]),
    "small_decimal": ("decimal(5,2)", pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.00")]),
    "large_decimal": ("decimal(38,10)", pa.decimal128(38, 10), [Decimal("-1E+27"), Decimal("1E-10")]),
    "string": ("string", pa.string(), ["", "a 'b' \"c\" \\ \n \u00e4 \U0001f600"]),
    "char": ("char(3)", pa.string(), ["a  ", "abc"]),
    "varchar": ("varchar(5)", pa.string(), ["", "abcde"]),
    "collated": ("string collate UTF8_LCASE", pa.string(), ["A", "a"]),
    "binary": ("binary", pa.binary(), [b"", bytes(range(256))]),
    "date": ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "timestamp": ("timestamp", pa.timestamp("us", "UTC"), [-62_135_596_800_000_000, 253_402_300_799_999_999]),
    "timestamp_ntz": ("timestamp_ntz", pa.timestamp("us"), [-1, 1_790_000_000_000_001]),
    "time": ("time(6)", pa.time64("us"), [0, 86_399_999_999]),
    "months": ("interval year to month", pa.int32(), [-14, 1200]),
    "duration": ("interval day to second", pa.duration("us"), [-1, 86_400_000_001]),
}


def types(bench: Bench) -> None:
    """Each atomic type, with its lowest and highest values and NULL, and collations in a table of their own."""
    table = bench.catalog.create_table(
        "atomic", spark_schema(**{name: type for name, (type, _, _) in ATOMIC.items()})
    )
    table.append(
        pa.table({name: pa.array([*values, None], type) for name, (_, type, values) in ATOMIC.items()})
    )
    nested_spark_schema = spark_schema(
        id="long",
        place={"type": "struct", "fields": [_part("lat", "double"), _part("tags", _array("string"))]},
        list=_array({"type": "struct", "fields": [_part("day", "date"), _part("price", "decimal(10,2)")]}),
        lists=_array(_array("integer")),
        counts={
            "type": "map",
            "keyType": "string",
            "valueType": _array("timestamp"),
            "valueContainsNull": True,
        },
        variant="variant",
    )
    table = bench.catalog.create_table("nested", nested_spark_schema)
    rows: list[dict[str, Any]] = [
        {
            "id": 1,
            "place": {"lat": 1.5, "tags": ["a", None]},
            "list": [{"day": dt.date(2026, 1, 1), "price": Decimal("1.50")}, None],
            "lists": [[1, 2], [], None, [None]],
            "counts": [("a", [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]), ("b", None)],
            "variant": {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"},
        },
        {"id": 2, "place": {"lat": None, "tags": None}, "list": [], "lists": [], "counts": []},
        {"id": 3},
    ]
    table.append(pa.Table.from_pylist(rows, table.arrow_schema))


def _part(name: str, type: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": True, "metadata": {}}


def _array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def columns(bench: Bench) -> None:
    """Columns that are added, renamed, moved and dropped, at the top and in structs, before and after rows."""
    schema = spark_schema(
        id="long", name="string", place={"type": "struct", "fields": [_part("lat", "double")]}
    )
    table = bench.catalog.create_table("t", schema)
    table = table.append(_rows(table, {"id": 1, "name": "a", "place": {"lat": 1.0}}))
    table = table.alter(
        [
            {"change": "rename-column", "name": ["name"], "new_name": "called"},
            {"change": "add-column", "name": ["place", "lon"], "type": "double"},
            {"change": "add-column", "name": ["name"], "type": "integer", "position": "first"},
        ]
    )
    table = table.append(_rows(table, {"id": 2, "name": 7, "called": "b", "place": {"lat": 2.0, "lon": 3.0}}))
    table = table.alter(
        [
            {"change": "delete-column", "name": ["called"]},
            {"change": "delete-column", "name": ["place", "lon"]},
            {"change": "rename-column", "name": ["place", "lat"], "new_name": "latitude"},
            {"change": "add-column", "name": ["called"], "type": "string"},
            {"change": "add-column", "name": ["place", "lat"], "type": "double"},
        ]
    )
    table = table.append(_rows(table, {"id": 3, "called": "new", "place": {"latitude": 4.0, "lat": 5.0}}))
    table.alter(
        [
            {"change": "set-property", "key": "k", "value": "v"},
            {"change": "set-property", "key": "comment", "value": "c"},
        ]
    )


def _rows(table: Table, *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), table.arrow_schema)


WIDENED = {
    "byte_short": ("byte", "short", 7),
    "short_integer": ("short", "integer", 7),
    "integer_long": ("integer", "long", -7),
    "integer_double": ("integer", "double", 7),
    "integer_decimal": ("integer", "decimal(12,2)", 7),
    "long_decimal": ("long", "decimal(20,0)", 7),
    "float_double": ("float", "double", 1.5),
    "date_timestamp": ("date", "timestamp_ntz", dt.date(2026, 1, 2)),
    "decimal_decimal": ("decimal(5,2)", "decimal(10,4)", Decimal("1.25")),
    "char_string": ("char(3)", "string", "a"),
    "varchar_string": ("varchar(3)", "string", "abc"),
    "time_time": ("time(3)", "time(6)", dt.time(1, 2, 3)),
    "string_collated": ("string", "string collate UNICODE_CI", "Ab"),
}


def widening(bench: Bench) -> None:
    """Types that get wider: files keep the old ones."""
    table = bench.catalog.create_table(
        "t", spark_schema(**{name: old for name, (old, _, _) in WIDENED.items()})
    )
    row = {name: value for name, (_, _, value) in WIDENED.items()}
    table = table.append(_rows(table, row, {}))
    table = table.alter(
        [
            {"change": "update-column-type", "name": [name], "type": new}
            for name, (_, new, _) in WIDENED.items()
        ]
    )
    table.append(_rows(table, {"integer_long": 2**40, "date_timestamp": dt.datetime(2026, 1, 2, 3)}))


DEFAULTS = {
    "boolean": ("boolean", "true"),
    "byte": ("byte", "-1"),
    "long": ("long", "9007199254740993"),
    "float": ("float", "1.5"),
    "rounded": ("float", "0.1"),
    "double": ("double", "CAST('NaN' AS DOUBLE)"),
    "decimal": ("decimal(10,2)", "1.50"),
    "string": ("string", r"'it\'s \n \u00e4'"),
    "char": ("char(3)", "'a'"),
    "varchar": ("varchar(3)", "'abc'"),
    "binary": ("binary", "X'00FF'"),
    "date": ("date", "DATE '1969-12-31'"),
    "timestamp": ("timestamp", "TIMESTAMP '2026-01-02 03:04:05.000006Z'"),
    "timestamp_ntz": ("timestamp_ntz", "TIMESTAMP_NTZ '2026-01-02 03:04:05'"),
    "time": ("time(6)", "TIME '03:04:05.000006'"),
    "months": ("interval year to month", "INTERVAL '-1-2' YEAR TO MONTH"),
    "duration": ("interval day to second", "INTERVAL '-1 02:03:04.5' DAY TO SECOND"),
    "null": ("string", "NULL"),
    "widened": ("integer", "7"),
    "to_decimal": ("integer", "7"),
    "to_timestamp": ("date", "DATE '2026-01-02'"),
}


def defaults(bench: Bench) -> None:
    """Columns with defaults: rows of older files have the value that the default had when the column was added."""
    table = bench.catalog.create_table("t", NAMED).append(named(0))
    table = table.alter(
        [
            {"change": "add-column", "name": [name], "type": type, "default": {"current": sql}}
            for name, (type, sql) in DEFAULTS.items()
        ]
    )
    table = table.append(named(10, 1))
    table = table.alter(
        [
            {"change": "update-column-type", "name": ["widened"], "type": "long"},
            {"change": "update-column-type", "name": ["to_decimal"], "type": "decimal(12,2)"},
            {"change": "update-column-type", "name": ["to_timestamp"], "type": "timestamp_ntz"},
            {"change": "update-column-default", "name": ["string"], "default": None},
        ]
    )
    table.append(named(20, 1))


def partitions(bench: Bench) -> None:
    """Each transform of a partition field, and a partitioning that changes and comes back."""
    transforms: list[Any] = [
        {"transform": "identity", "args": [], "column": ["kind"]},
        {"transform": "bucket", "args": [4], "column": ["id"]},
        {"transform": "truncate", "args": [2], "column": ["name"]},
        {"transform": "month", "column": ["day"]},
        {"transform": "hour", "column": ["at"]},
    ]
    schema = spark_schema(
        id="long", kind="string", name="string", day="date", at="timestamp", price="decimal(10,2)"
    )
    table = bench.catalog.create_table("t", schema, partition_by=transforms)
    at = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    rows = [
        {"id": 1, "kind": "a/b", "name": "\u00e4bc", "day": at.date(), "at": at, "price": Decimal("1.50")},
        {
            "id": 2,
            "kind": None,
            "name": None,
            "day": dt.date(1969, 12, 31),
            "at": at - dt.timedelta(days=365 * 60),
        },
    ]
    table = table.append(_rows(table, *rows))
    for fields in (["price"], transforms[:1], ["price"], []):
        table = table.alter([{"change": "set-partitioning", "fields": fields}])
        table = table.append(_rows(table, {"id": table.version, "kind": "c", "price": Decimal("-0.25")}))
    table.delete(col("kind") == "c")
    by_days: list[Any] = [
        {"transform": "year", "column": ["day"]},
        {"transform": "day", "column": ["at"]},
    ]
    table = bench.catalog.create_table("days", spark_schema(day="date", at="timestamp"), partition_by=by_days)
    years = [dt.date(year, 3, 1) for year in (1969, 1970, 2026)]
    table.append(_rows(table, *({"day": day, "at": at.replace(year=day.year)} for day in years), {}))


def replaced(bench: Bench) -> None:
    """A table that is replaced by one of other columns and another partitioning, and rolled back to before."""
    catalog = bench.catalog
    table = catalog.create_table("t", NAMED, partition_by=["name"], comment="first").append(named(0))
    table = table.create_tag("before")
    schema = spark_schema(name="integer", kind="string")
    stage = engine.stage(catalog, "replace", "t", schema, partitioning=["kind"], comment="second")
    table = engine.commit_stage(catalog, stage)
    table = table.append(_rows(table, {"name": 1, "kind": "a"}, {"name": 2}))
    table = table.rollback_to_version(2)
    stage = engine.stage(catalog, "replace", "t", NAMED, partitioning=["name"])
    table = engine.commit_stage(catalog, stage)
    table.append(named(10))


def deletes(bench: Bench) -> None:
    """Rows that are deleted: by vectors in entries and in an object, whole files, updates and a compaction."""
    table = bench.catalog.create_table("t", NAMED, properties={"lakelog.write.delete.mode": "merge-on-read"})
    table = table.append(named(0, 10)).append(named(100, 300)).append(named(1000))
    table = table.delete(col("id") == 3)
    table = table.delete((col("id") >= 100) & (col("id") < 395))
    table = table.delete(col("id") >= 1000)
    table = table.update({"name": "'new'"}, col("id") == 4)
    table = table.delete(col("id") == 5)
    table.compact()


def large_vector(bench: Bench) -> None:
    """A vector with a container of runs, one of bits, and one of numbers."""
    positions = set(range(131_072)) - {7, 65_535} - set(range(65_536, 71_800, 3)) | {
        131_072,
        131_074,
        131_090,
    }
    ids = [0 if position in positions else position for position in range(131_100)]
    table = bench.catalog.create_table("t", pa.schema([("id", pa.int32())]))
    table = table.append(pa.table({"id": pa.array(ids, pa.int32())}))
    path = table.plan()["path"][0].as_py()
    vector = {"path": path, "positions": b64encode(BitMap(positions).serialize()).decode()}
    engine.commit_rows(table, engine.begin_write(table), "delete", deletes=[vector])


def sidecars(bench: Bench) -> None:
    """Lists of files in sidecars of commits: many files of a commit, added and removed."""
    table = bench.catalog.create_table("t", NAMED, partition_by=["id"])
    table = table.append(named(0, 6))
    table = table.overwrite(named(4, 6))
    table.delete(col("id") > 6)


def upkeep(bench: Bench) -> None:
    """Everything else that a table's log may have, which readers of rows only have to know."""
    schema = spark_schema(id="long", name="string", day="date")
    table = bench.catalog.create_table("t", schema, sort_by=["name"], cluster_by=["day"], comment="kept")
    row = {"id": 1, "name": "a", "day": dt.date(2026, 1, 1)}
    table = table.append(_rows(table, row))
    over: dict[str, Any] = {"kind": "check", "name": "over", "columns": [["id"]], "sql": "id > 0"}
    key: dict[str, Any] = {"kind": "primary-key", "name": "key", "columns": [["id"]]}
    table = table.alter([{"change": "add-constraint", "constraint": key}])
    table = table.alter([{"change": "drop-constraint", "name": "key"}])
    table = table.alter(
        [{"change": "set-sort-order", "fields": []}, {"change": "set-clustering", "columns": [["id"]]}]
    )
    table = table.append(_rows(table, {**row, "id": 2}))
    table = table.cluster()
    table = table.rollback_to_version(2)
    table = table.set_current_version(6)
    table = table.truncate()
    table.append(_rows(table, {**row, "id": 3}))
    del over


def foreign(bench: Bench) -> None:
    """Files of another writer at absolute paths: their own names of columns, and constants from folders' names."""
    table = bench.catalog.create_table(
        "t",
        pa.schema([("id", pa.int32()), ("day", pa.date32()), ("name", pa.string())]),
        partition_by=["day"],
    )
    table = table.append(
        pa.table({"id": pa.array([1], pa.int32()), "day": [dt.date(2026, 1, 1)], "name": ["own"]})
    )
    table = table.alter([{"change": "rename-column", "name": ["name"], "new_name": "called"}])
    for day, columns in (
        ("2026-01-02", {"id": pa.array([2, 3], pa.int32()), "called": ["theirs", None]}),
        ("2026-01-03", {"called": ["without an id"]}),
    ):
        folder = bench.folder / "files" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / "part.parquet")
    table = table.add_files(str(bench.folder / "files"))
    table = table.alter(
        [
            {"change": "update-column-type", "name": ["id"], "type": "long"},
            {"change": "rename-column", "name": ["called"], "new_name": "name"},
            {"change": "add-column", "name": ["called"], "type": "string"},
        ]
    )
    table.delete(col("id") == 3)


def constants(bench: Bench) -> None:
    """Files that have other values of a column than the names of their folders, which count."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("part", pa.int32())])
    table = bench.catalog.create_table("t", schema, partition_by=["day"])
    for day in ("2026-01-02", "2026-01-03"):
        folder = bench.folder / "files" / f"day={day}" / "part=7"
        folder.mkdir(parents=True)
        columns = {"id": [1, 2], "day": [dt.date(1999, 1, 1), None], "part": pa.array([8, 9], pa.int32())}
        pq.write_table(pa.table(columns), folder / "part.parquet")
    table = table.add_files(str(bench.folder / "files"))
    path = bench.folder / "files" / "part.parquet"
    pq.write_table(pa.table({"id": [3], "d": [dt.date(1999, 1, 1)], "p": pa.array([8], pa.int32())}), path)
    file = engine.DataFile(
        path=str(path),
        size_bytes=path.stat().st_size,
        rows=1,
        spec_id=table.spec.id,
        partition={table.spec.fields[0].id: 20457},
        names={1: "id", 2: "d", 3: "p"},
        constants={2: TypedValue(type="date", value=20457), 3: TypedValue(type="integer", value=7)},
    )
    table = engine.commit_write(table, engine.begin_write(table), "append", [file])
    table.alter(
        [
            {"change": "update-column-type", "name": ["part"], "type": "long"},
            {"change": "rename-column", "name": ["part"], "new_name": "number"},
        ]
    )


CASES = (
    Case("types", "every type of column, at the top and nested, with its edges", types),
    Case("columns", "columns that are added, renamed, dropped, and made again under an old name", columns),
    Case("widening", "columns whose types have become wider than those in files", widening),
    Case("defaults", "columns that rows of older files have by their defaults", defaults),
    Case("partitions", "every transform of a partition, and partitionings that change", partitions),
    Case("replaced", "a table that others replace, and that is rolled back to before", replaced),
    Case("deletes", "deletion vectors in entries, updates and a compaction", deletes),
    Case(
        "vector-objects",
        "deletion vectors in an object",
        deletes,
        [(deletion_vectors, "INLINE_MAX_BYTES", 8)],
    ),
    Case("large-vector", "a deletion vector of all kinds of containers", large_vector, past=False),
    Case("sidecars", "lists of files in sidecars of commits", sidecars, [(commits, "SIDECAR_FROM_FILES", 1)]),
    Case("upkeep", "constraints, orders, clustering, rollbacks", upkeep),
    Case("foreign-files", "files of another writer, with their own names and constants", foreign),
    Case("constants", "constants of files, against the columns that the files have", constants),
)
