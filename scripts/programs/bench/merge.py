"""Upserts from Python into TPC-H's lineitem: lakelog's in both row-level modes, and delta-rs'.

Each upsert runs in a process of its own, which reports its seconds and the most memory that it had; contenders take
turns. The table has 6 million rows (scale factor 1) in few files and in many, in the order of their keys; of the
source's rows, half are in the table, anywhere. With --source-gb, the source is a stream of that size, into a table of
lakelog's alone. Results are compared: a quick but wrong merge does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog import Catalog
from programs import story
from programs.bench.data import tpch
from programs.bench.measure import median

KEYS = ("l_orderkey", "l_linenumber")
MODES = ("merge-on-read", "copy-on-write")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench merge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor; 1 has 6 million rows")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the source (%(default)s)")
    parser.add_argument(
        "--files", default="20,2000", help="numbers of files of the table, with commas (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median counts (%(default)s)")
    parser.add_argument(
        "--source-gb", type=float, default=0, help="measure a stream of so many GB instead, in memory's form"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        print(json.dumps(_work(json.loads(arguments.worker))))
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as name:
        folder = Path(name)
        data = _lineitem(folder, arguments.scale)
        if arguments.source_gb:
            _large_source(folder, data, arguments.source_gb)
            return
        _source(data, arguments.rows, folder / "source.parquet")
        for files in map(int, arguments.files.split(",")):
            _few_rows(folder, data, files, arguments)


def _lineitem(folder: Path, scale: float) -> Path:
    """Return lineitem as one Parquet file."""
    made = tpch.lineitem(folder, scale)
    found = pq.ParquetFile(next(made.rglob("*.parquet")))
    # Views of texts, which its files have, are not known everywhere.
    texts = {pa.string_view(): pa.string()}
    schema = pa.schema([each.with_type(texts.get(each.type, each.type)) for each in found.schema_arrow])
    plain = made / "plain.parquet"
    with pq.ParquetWriter(plain, schema) as writer:
        for batch in found.iter_batches(1 << 17):
            writer.write_batch(batch.cast(schema))
    return plain


# A small source


def _source(data: Path, count: int, target: Path) -> None:
    """Write rows of which half have keys of the table, all of them with other values."""
    rows = pq.read_table(data)
    chosen = np.sort(np.random.default_rng(1).choice(rows.num_rows, count, replace=False))
    source = rows.take(pa.array(chosen))
    del rows
    keys = source["l_orderkey"].to_numpy().copy()
    # Keys of lineitem leave gaps: the last three bits of an order's number are at most 7, of which these are new.
    keys[::2] = -keys[::2]
    source = source.set_column(0, source.schema.field(0), pa.array(keys))
    comments = pa.array([f"changed {at}" for at in range(count)], source.schema.field("l_comment").type)
    at = source.schema.get_field_index("l_comment")
    pq.write_table(source.set_column(at, source.schema.field(at), comments), target)


def _few_rows(folder: Path, data: Path, files: int, arguments: argparse.Namespace) -> None:
    made = {
        **{f"lakelog, {mode}": _lakelog(folder / f"lakelog-{mode}-{files}", data, files, mode) for mode in MODES},
        "delta-rs": _delta(folder / f"delta-{files}", data, files),
    }  # fmt: skip
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in made}
    names = list(made)
    for number in range(arguments.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            found[name].append(_measured(folder, name, made[name], source=str(folder / "source.parquet")))
        answers = {name: each[-1]["answer"] for name, each in found.items()}
        if len(set(map(str, answers.values()))) > 1:
            raise RuntimeError(f"the tables differ after the merge: {answers}")
    lines = [
        [
            name,
            f"{median([each['seconds'] for each in rounds]):.2f}",
            f"{median([each['peak_mb'] for each in rounds]):,.0f}",
        ]
        for name, rounds in found.items()
    ]
    story.table(
        ["", "seconds", "peak memory, MB"],
        lines,
        title=f"upsert of {arguments.rows:,} rows into {answers['delta-rs'][0]:,} in {files:,} files, "
        f"medians of {arguments.rounds} rounds in turns",
    )
    for path in made.values():
        shutil.rmtree(path)


def _measured(folder: Path, name: str, table: Path, **more: Any) -> dict[str, Any]:
    """Run a merge in a process of its own, on a copy of the table."""
    copy = folder / "copy"
    shutil.copytree(table, copy, copy_function=os.link)
    asked = json.dumps({"table": str(copy), "is_delta": name == "delta-rs", **more})
    command = [sys.executable, "-W", "ignore", "-m", "programs.bench.merge", "--worker", asked]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(copy)
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found


def _parts(data: Path, files: int) -> Iterator[pa.Table]:
    file = pq.ParquetFile(data)
    length = -(-file.metadata.num_rows // files)
    waiting: list[pa.RecordBatch] = []
    for batch in file.iter_batches(length):
        waiting.append(batch)
        rows = pa.Table.from_batches(waiting)
        while rows.num_rows >= length:
            yield rows.slice(0, length)
            rows = rows.slice(length)
        waiting = rows.to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting)


def _lakelog(folder: Path, data: Path, files: int, mode: str) -> Path:
    folder.mkdir()
    properties = {"lakelog.write.merge.mode": mode}
    table = Catalog(str(folder)).create_table("lineitem", pq.read_schema(data), properties=properties)
    for part in _parts(data, files):
        table = table.append(part)
    return folder


def _delta(folder: Path, data: Path, files: int) -> Path:
    import deltalake

    for part in _parts(data, files):
        deltalake.write_deltalake(str(folder), part, mode="append")
    return folder


# In a process of its own


def _work(asked: dict[str, Any]) -> dict[str, Any]:
    source: Any = (
        _stream(Path(asked["data"]), asked["size"]) if "data" in asked else pq.read_table(asked["source"])
    )
    start = time.perf_counter()
    if asked["is_delta"]:
        import deltalake

        delta = deltalake.DeltaTable(asked["table"])
        on = " AND ".join(f"target.{key} = source.{key}" for key in KEYS)
        merge = delta.merge(source, on, source_alias="source", target_alias="target")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        Catalog(asked["table"]).load_table("lineitem").upsert(source, on=KEYS)
    seconds = time.perf_counter() - start
    peak = _peak_mb()
    return {"seconds": seconds, "peak_mb": peak, "answer": _answer(asked)}


def _peak_mb() -> float:
    """Return the most memory that this process had; what `resource` reports may be that of its parent."""
    (line,) = [
        each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM")
    ]
    return int(line.split()[1]) / 1024


def _answer(asked: dict[str, Any]) -> list[Any]:
    """Return what shows that the merge did the same as others."""
    columns = ["l_orderkey", "l_quantity", "l_comment"]
    if asked["is_delta"]:
        import deltalake

        rows = deltalake.DeltaTable(asked["table"]).to_pyarrow_table(columns=columns)
    else:
        rows = Catalog(asked["table"]).load_table("lineitem").scan(columns).to_arrow()
    changed = rows.filter(pc.starts_with(rows["l_comment"], "changed"))
    sums = (
        rows["l_orderkey"],
        rows["l_quantity"],
        changed["l_orderkey"],
        pc.binary_length(rows["l_comment"]),
    )
    return [rows.num_rows, changed.num_rows, *(str(pc.sum(each).as_py()) for each in sums)]


# A large source


def _stream(data: Path, size_bytes: float) -> pa.RecordBatchReader:
    """Return rows of lineitem, then the same ones with other keys, until there is so much."""
    file = pq.ParquetFile(data)

    def batches() -> Iterator[pa.RecordBatch]:
        left, number = size_bytes, 0
        while True:
            for batch in pq.ParquetFile(data, pre_buffer=False).iter_batches(32 * 1024):
                keys = pc.add(batch.column(0), number << 40)
                batch = batch.set_column(0, batch.schema.field(0), keys)
                left -= batch.nbytes
                yield batch
                if left <= 0:
                    return
            number += 1

    return pa.RecordBatchReader.from_batches(file.schema_arrow, batches())


def _large_source(folder: Path, data: Path, size_gb: float) -> None:
    lines = []
    for mode in MODES:
        table = _lakelog(folder / f"lakelog-{mode}", data, 20, mode)
        found = _measured(folder, "lakelog", table, data=str(data), size=size_gb * 1e9)
        lines.append([f"lakelog, {mode}", f"{found['seconds']:.1f}", f"{found['peak_mb']:,.0f}"])
    story.table(
        ["", "seconds", "peak memory, MB"], lines, title=f"upsert of a stream of {size_gb:g} GB into lineitem"
    )


if __name__ == "__main__":
    main()
