"""Upserts from Python into TPC-H's lineitem: lakelog's in both row-level modes, and delta-rs'.

Each upsert runs in a process of its own, which reports its seconds and its peak memory. Contenders take turns. The
table has 6 million rows (scale factor 1) in few files and in many, in the order of their keys. Half of the source's
rows are in the table, anywhere. With --source-gb, only lakelog runs, and the source is a stream of that size in memory.
Results are compared, because a quick but wrong merge does not count.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from lakelog.catalog import Catalog
from programs.bench.data import tpch
from programs.bench.measure import apart, peak_mb, rotated, seconds
from programs.bench.places import folder
from programs.bench.scenario import Row

KEYS = ("l_orderkey", "l_linenumber")
MODES = ("merge-on-read", "copy-on-write")
DELTA = "delta-rs"


def measure(
    scale: Annotated[float, "TPC-H's scale factor; 1 has 6 million rows"] = 1,
    rows: Annotated[int, "of the source"] = 10_000,
    files: Annotated[Sequence[int], "numbers of files of the table"] = (20, 2000),
    rounds: int = 3,
    source_gb: Annotated[float, "measure a stream of so many GB instead"] = 0,
) -> Iterator[Row]:
    with folder() as place:
        data = _lineitem(place, scale)
        if source_gb:
            for mode in MODES:
                table = _lakelog(place / mode, data, 20, mode)
                result = _merged(place, mode, table, data, source_gb * 1e9)
                yield {
                    "": f"lakelog, {mode}",
                    "GB": source_gb,
                    "s": result["s"],
                    "peak MB": result["peak MB"],
                }
            return
        source = _source(data, rows, place / "source.parquet")
        for number in files:
            for row in _few_rows(place, data, source, number, rounds):
                yield {"rows": rows, "files": number, **row}


def _lineitem(place: Path, scale: float) -> Path:
    """Return lineitem as a single Parquet file."""
    dataset = tpch.lineitem(place, scale)
    source_file = pq.ParquetFile(next(dataset.rglob("*.parquet")))
    # Its files have string views, which not every contender knows.
    texts = {pa.string_view(): pa.string()}
    schema = pa.schema(
        [
            schema_field.with_type(texts.get(schema_field.type, schema_field.type))
            for schema_field in source_file.schema_arrow
        ]
    )
    plain = dataset / "plain.parquet"
    with pq.ParquetWriter(plain, schema) as writer:
        for batch in source_file.iter_batches(1 << 17):
            writer.write_batch(batch.cast(schema))
    return plain


def _source(data: Path, count: int, target: Path) -> Path:
    """Write rows with changed values. Half of them have keys of the table."""
    rows = pq.read_table(data)
    positions = np.sort(np.random.default_rng(1).choice(rows.num_rows, count, replace=False))
    source = rows.take(pa.array(positions))
    keys = source["l_orderkey"].to_numpy().copy()
    # Keys of lineitem leave gaps in the last three bits of an order's number. These keys lie in the gaps.
    keys[::2] = -keys[::2]
    source = source.set_column(0, source.schema.field(0), pa.array(keys))
    comments = pa.array([f"changed {at}" for at in range(count)], source.schema.field("l_comment").type)
    at = source.schema.get_field_index("l_comment")
    pq.write_table(source.set_column(at, source.schema.field(at), comments), target)
    return target


def _few_rows(place: Path, data: Path, source: Path, files: int, rounds: int) -> Iterator[Row]:
    tables = {mode: _lakelog(place / f"{mode}-{files}", data, files, mode) for mode in MODES}
    tables[DELTA] = place / f"delta-{files}"
    for part in _parts(data, files):
        write_deltalake(str(tables[DELTA]), part, mode="append")
    results_by_table: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for number in range(rounds):
        for name in rotated(list(tables), number):
            results_by_table[name].append(_merged(place, name, tables[name], source))
        answers = {name: past[-1]["answer"] for name, past in results_by_table.items()}
        if len(set(map(str, answers.values()))) > 1:
            raise RuntimeError(f"the tables differ after the merge: {answers}")
    for name, results in results_by_table.items():
        label = name if name == DELTA else f"lakelog, {name}"
        yield {"": label, **{key: [result[key] for result in results] for key in ("s", "peak MB")}}
        shutil.rmtree(tables[name])


def _merged(place: Path, name: str, table: Path, source: Path, size: float = 0) -> dict[str, Any]:
    """Merge in a process of its own, into a copy of the table."""
    copy = place / "copy"
    shutil.copytree(table, copy, copy_function=os.link)
    result: dict[str, Any] = apart(_merge, copy, name == DELTA, source, size)
    shutil.rmtree(copy)
    return result


def _parts(data: Path, files: int) -> Iterator[pa.Table]:
    """Yield the rows in this number of parts."""
    file = pq.ParquetFile(data)
    length = -(-file.metadata.num_rows // files)
    unsent_batches: list[pa.RecordBatch] = []
    for batch in file.iter_batches(length):
        rows = pa.Table.from_batches([*unsent_batches, batch])
        while rows.num_rows >= length:
            yield rows.slice(0, length)
            rows = rows.slice(length)
        unsent_batches = rows.to_batches()
    if unsent_batches:
        yield pa.Table.from_batches(unsent_batches)


def _lakelog(place: Path, data: Path, files: int, mode: str) -> Path:
    properties = {"lakelog.write.merge.mode": mode}
    table = Catalog(place).create_table("lineitem", pq.read_schema(data), properties=properties)
    for part in _parts(data, files):
        table = table.append(part)
    return place


# In a process of its own


def _merge(place: Path, is_delta: bool, data: Path, size: float) -> dict[str, Any]:
    source = _stream(data, size) if size else pq.read_table(data)

    def into_delta() -> None:
        on = " AND ".join(f"target.{key} = source.{key}" for key in KEYS)
        merge = DeltaTable(str(place)).merge(source, on, source_alias="source", target_alias="target")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    spent_s = seconds(
        into_delta if is_delta else lambda: Catalog(place).load_table("lineitem").upsert(source, on=KEYS)
    )
    return {"s": spent_s, "peak MB": peak_mb(), "answer": _answer(place, is_delta)}


def _answer(place: Path, is_delta: bool) -> list[Any]:
    """Return the facts that show whether the merge did the same as other merges."""
    columns = ["l_orderkey", "l_quantity", "l_comment"]
    if is_delta:
        rows = DeltaTable(str(place)).to_pyarrow_table(columns=columns)
    else:
        rows = Catalog(place).load_table("lineitem").scan(columns).to_arrow()
    changed_rows = rows.filter(pc.starts_with(rows["l_comment"], "changed"))
    lengths = pc.binary_length(rows["l_comment"])
    sums = (rows["l_orderkey"], rows["l_quantity"], changed_rows["l_orderkey"], lengths)
    return [rows.num_rows, changed_rows.num_rows, *(str(pc.sum(column).as_py()) for column in sums)]


def _stream(data: Path, size_bytes: float) -> pa.RecordBatchReader:
    """Return rows of lineitem, then the same rows with other keys, until the stream has this size."""

    def batches() -> Iterator[pa.RecordBatch]:
        remaining_bytes, number = size_bytes, 0
        while True:
            for batch in pq.ParquetFile(data, pre_buffer=False).iter_batches(32 * 1024):
                keys = pc.add(batch.column(0), number << 40)
                batch = batch.set_column(0, batch.schema.field(0), keys)
                remaining_bytes -= batch.nbytes
                yield batch
                if remaining_bytes <= 0:
                    return
            number += 1

    return pa.RecordBatchReader.from_batches(pq.read_schema(data), batches())
