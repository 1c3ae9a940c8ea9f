"""What imports cost, by the number of the source's files: the first one, and one that finds nothing new.

The sources are folders. The files are links to a few, since only their footers are read: of Iceberg and Parquet all of
them, of Delta none, as its log has the statistics. Each import has a process of its own, whose peak of memory is shown
(with all that is loaded before: about 145 MiB).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog import Catalog, DataFile
from lakelog.log import wait_for_background
from programs import story
from programs.bench.measure import seconds

ROWS = 10
LINKS_MAX = 30_000
"""Of one file: file systems have a limit."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench imports", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--formats", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    arguments = parser.parse_args()
    lines = [
        line for format in arguments.formats for files in arguments.files for line in _measure(format, files)
    ]
    story.table(
        ["format", "files", "import", "seconds", "CPU", "peak MiB", "lines shown"],
        lines,
        title="What imports cost, by the number of files",
    )


def _measure(format: str, files: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        source = _apart(_made, format, folder, files)
        lines = []
        for what in ("the first", "with nothing new"):
            spent, cpu, peak, shown = _apart(_imported, format, folder, source)
            lines.append(
                [format, f"{files:,}", what, f"{spent:.1f}", f"{cpu:.1f}", f"{peak:,.0f}", str(shown)]
            )
        assert Catalog(Path(folder) / "w").load_table("t").row_count == files * ROWS
        return lines


def _apart(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a process of its own, whose peak of memory is then its alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def _made(format: str, folder: str, files: int) -> str:
    source = SOURCES[format](Path(folder), files)
    wait_for_background()
    return source


def _imported(format: str, folder: str, source: str) -> tuple[float, float, float, int]:
    """Import, and return seconds, those of the CPU, the peak of memory in MiB, and how many lines were shown."""
    catalog, shown = Catalog(Path(folder) / "w"), list[str]()
    before = _cpu()
    spent = seconds(lambda: catalog.import_table(source, "t", format=format, progress=shown.append))
    cpu = _cpu() - before
    wait_for_background()
    return spent, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(shown)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _rows(start: int) -> pa.Table:
    ids = range(start, start + ROWS)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "name": [f"name {id}" for id in ids], "v": [0.5] * ROWS}
    )


def _linked(first: Path, name: Callable[[int], str], files: int) -> list[str]:
    """Make `files` files beside `first`, which is one; return their names."""
    names = []
    for number in range(files):
        if number % LINKS_MAX == 0:
            origin = first.with_name(f"_origin-{number}")
            origin.write_bytes(first.read_bytes())
        path = first.with_name(name(number))
        os.link(origin, path)
        names.append(path.name)
    return names


def _iceberg(folder: Path, files: int) -> str:
    table = Catalog(folder / "origin").create_table("t", _rows(0).schema)
    table = table.append(_rows(0))
    (path,) = table.head.all_files()["path"].to_pylist()
    (entry,) = table.head.entries([path]).values()
    write = table.begin_write()
    data = Path(table.location) / "data"
    names = _linked(
        data / path.removeprefix("data/"), lambda n: f"{write.version:020d}-{write.id}-{n}.parquet", files
    )
    entries = tuple(
        DataFile(
            path=f"data/{name}",
            size_bytes=entry.size_bytes,
            rows=ROWS,
            spec_id=entry.spec_id,
            stats=entry.stats,
            footer_crc=entry.footer_crc,
        )
        for name in names
    )
    return table.commit_write(write, "overwrite", entries, filter="true").export_iceberg().url


def _delta(folder: Path, files: int) -> str:
    source = folder / "delta"
    log = source / "_delta_log"
    log.mkdir(parents=True)
    columns = [
        {"name": name, "type": type, "nullable": True, "metadata": {}}
        for name, type in (("id", "long"), ("name", "string"), ("v", "double"))
    ]
    bounds = {"minValues": {"id": 0, "name": "name 0"}, "maxValues": {"id": ROWS - 1, "name": "name 9"}}
    stats = json.dumps({"numRecords": ROWS, **bounds, "nullCount": {"id": 0, "name": 0, "v": 0}})
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": columns}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1,
            }
        },
    ]
    for number in range(files):
        path = f"part-{number:05d}-00000000-0000-0000-0000-000000000000-c000.snappy.parquet"
        add = {"path": path, "partitionValues": {}, "size": 1_000, "modificationTime": 1, "dataChange": True}
        actions.append({"add": {**add, "stats": stats}})
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")
    return str(source)


def _parquet(folder: Path, files: int) -> str:
    source = folder / "files"
    source.mkdir()
    first = source / "_first.parquet"
    pq.write_table(_rows(0), first)
    _linked(first, lambda n: f"part-{n}.parquet", files)
    return str(source)


SOURCES: dict[str, Callable[[Path, int], str]] = {"iceberg": _iceberg, "delta": _delta, "parquet": _parquet}

if __name__ == "__main__":
    main()
