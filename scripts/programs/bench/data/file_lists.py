"""Tables of very many files that are only in the metadata: no plan opens them. Each format has the same files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.files import ColumnStats, DataFile
from lakelog.log import wait_for_background

STEP = 10_000
"""Files in each commit."""

ROWS = 1000
"""Rows in each file."""

SIZE_BYTES = 50_000_000
CUSTOMERS = 1_000_000
PLACE = "t"
MEASURED = ("id", "customer", "amount", "name")
SPARK_TYPES = {"int32": "integer", "int64": "long", "double": "double", "string": "string"}

Bounds = dict[str, tuple[Any, Any]]


@dataclass(frozen=True)
class FileList:
    """The files of a table, with statistics for `columns`.

    With `by_day`, each commit has files of few days, else files of all days.
    """

    files: int
    days: int = 1000
    columns: int = len(MEASURED)
    by_day: bool = True

    @property
    def schema(self) -> pa.Schema:
        typed_columns = [
            ("day", pa.int32()),
            ("id", pa.int64()),
            ("customer", pa.int64()),
            ("amount", pa.float64()),
        ]
        more = [(f"c{number}", pa.int64()) for number in range(len(MEASURED), self.columns)]
        return pa.schema([*typed_columns, ("name", pa.string()), *more])

    @property
    def questions(self) -> dict[str, tuple[str, int]]:
        """The column and value of each question that takes some of the files."""
        return {
            "one day": ("day", self.days // 2),
            "one id": ("id", self.files // 2 * ROWS + 500),
            "one customer": ("customer", CUSTOMERS // 2 + 500),
        }

    def commits(self) -> Iterator[Iterator[tuple[int, int, Bounds]]]:
        chance = random.Random(7)
        for first in range(0, self.files, STEP):
            yield self._files(range(first, min(first + STEP, self.files)), chance)

    def _files(self, numbers: range, chance: random.Random) -> Iterator[tuple[int, int, Bounds]]:
        """Yield the number, day and bounds of each file."""
        for at in numbers:
            customer, amount = chance.randrange(CUSTOMERS), chance.random()
            bounds: Bounds = {
                "id": (at * ROWS, at * ROWS + ROWS - 1),
                "customer": (customer, customer + 999),
                "amount": (amount, amount + 100),
                "name": (f"name-{customer:09}", f"name-{customer:09}-z"),
            }
            for number in range(len(MEASURED), self.columns):
                low = chance.randrange(CUSTOMERS)
                bounds[f"c{number}"] = low, low + 999
            yield at, at * self.days // self.files if self.by_day else at % self.days, bounds


def committed(
    table: Table,
    files: Iterator[tuple[int, int, Bounds]],
    path: str = "data/{version:020d}-{id}-{at}.parquet",
) -> Table:
    """Return the table after a commit of these files, each in its partition."""
    write = engine.begin_write(table)
    ids = {field.name: field.id for field in table.schema.fields}
    (partition,) = table.spec.fields
    entries = [
        DataFile(
            path=path.format(version=write.version, id=write.id, at=at),
            size_bytes=SIZE_BYTES,
            rows=ROWS,
            spec_id=table.spec.id,
            partition={partition.id: day},
            stats={
                ids[name]: ColumnStats(nulls=0, nans=0 if name == "amount" else None, min=low, max=high)
                for name, (low, high) in bounds.items()
            },
            write_id=write.id,
        )
        for at, day, bounds in files
    ]
    return engine.commit_write(table, write, "append", entries)


SMALL_SCHEMA = pa.schema({"id": pa.int64(), "day": pa.int32(), "name": pa.string()})


def plain_table(catalog: Catalog, number: int) -> Table:
    """Make `bench.big`, a table of three columns and a thousand days, in the order of ids."""
    table = catalog.create_table("bench.big", SMALL_SCHEMA, partition_by=["day"])
    for first in range(0, number, STEP):
        files = map(_plain_file, range(first, min(first + STEP, number)))
        table = committed(table, files, "data/{id}-{at}.parquet")
    return table


def _plain_file(at: int) -> tuple[int, int, Bounds]:
    names = f"name-{at:09}", f"name-{at:09}-z"
    return at, at % 1000, {"id": (at * ROWS, at * ROWS + 999), "name": names}


def lakelog(folder: Path, of: FileList) -> None:
    catalog = Catalog(folder, options={"fsync": "off"})
    table = catalog.create_table(PLACE, of.schema, partition_by=["day"], location=f"{folder}/{PLACE}")
    for files in of.commits():
        table = committed(table, files)
    wait_for_background()
    table.table_head.tracked.log.snapshot(table.table_head.view)


def iceberg(folder: Path, of: FileList) -> None:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    folder.mkdir(parents=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.t", of.schema, properties={"write.metadata.metrics.default": "full"})
    with table.update_spec() as spec:
        spec.add_identity("day")
    fields = table.schema().fields
    ids = {field.name: field.field_id for field in fields}
    types: dict[str, Any] = {field.name: field.field_type for field in fields}
    for files in of.commits():
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for at, day, bounds in files:
                column_ids = [ids[name] for name in bounds]
                ends = [
                    {ids[name]: to_bytes(types[name], pair[end]) for name, pair in bounds.items()}
                    for end in (0, 1)
                ]
                append.append_data_file(
                    DataFile.from_args(
                        content=DataFileContent.DATA,
                        file_path=f"file://{folder}/data/day={day}/{at}.parquet",
                        file_format=FileFormat.PARQUET,
                        partition=Record(day),
                        record_count=ROWS,
                        file_size_in_bytes=SIZE_BYTES,
                        column_sizes={},
                        value_counts=dict.fromkeys(column_ids, ROWS),
                        null_value_counts=dict.fromkeys(column_ids, 0),
                        nan_value_counts={},
                        lower_bounds=ends[0],
                        upper_bounds=ends[1],
                        key_metadata=None,
                        split_offsets=None,
                        equality_ids=None,
                        sort_order_id=None,
                        spec_id=table.spec().spec_id,
                    )
                )
    (folder / "metadata").write_text(table.metadata_location)


def delta(folder: Path, of: FileList) -> None:
    from deltalake import DeltaTable

    for number, files in enumerate(of.commits()):
        actions = [] if number else delta_header(of.schema, ["day"])
        actions += (
            delta_file(
                f"day={day}/{at}.parquet",
                {"day": str(day)},
                SIZE_BYTES,
                {
                    "numRecords": ROWS,
                    "minValues": {name: pair[0] for name, pair in bounds.items()},
                    "maxValues": {name: pair[1] for name, pair in bounds.items()},
                    "nullCount": dict.fromkeys(bounds, 0),
                },
            )
            for at, day, bounds in files
        )
        write_delta(folder, number, actions)
    DeltaTable(str(folder)).create_checkpoint()


def delta_header(schema: pa.Schema, partition_by: list[str]) -> list[dict[str, Any]]:
    fields = [
        {"name": field.name, "type": SPARK_TYPES[str(field.type)], "nullable": True, "metadata": {}}
        for field in schema
    ]
    metadata = {
        "id": "00000000-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": partition_by,
        "configuration": {},
        "createdTime": 1,
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def delta_file(path: str, partition: dict[str, str], size: int, stats: dict[str, Any]) -> dict[str, Any]:
    add = {
        "path": path,
        "partitionValues": partition,
        "size": size,
        "modificationTime": 1,
        "dataChange": True,
    }
    return {"add": {**add, "stats": json.dumps(stats)}}


def write_delta(folder: Path, version: int, actions: list[dict[str, Any]]) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")
