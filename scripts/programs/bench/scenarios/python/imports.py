"""The cost of imports, by the number of the source's files: the first import, and an import that finds nothing new.

The sources are folders. The files are links to a few real files, because imports only read footers. They read all
footers for Iceberg and Parquet, and none for Delta, whose log has the statistics. Each import has a process of its own.
Its peak memory is shown, without its memory before the import (about 145 MiB).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog import Catalog, engine
from lakelog.catalog.engine import DataFile
from lakelog.log import wait_for_background
from programs.bench.data.file_lists import delta_file, delta_header, write_delta
from programs.bench.measure import apart, cost
from programs.bench.places import folder
from programs.bench.scenario import Row

ROWS = 10
LINKS_MAX = 30_000
"""Links to a file, because file systems have a limit."""


def measure(
    files: Sequence[int] = (1_000, 100_000),
    formats: Sequence[Literal["iceberg", "delta", "parquet"]] = ("iceberg", "delta", "parquet"),
) -> Iterator[Row]:
    for format in formats:
        for number in files:
            with folder() as place:
                source = apart(_made, format, place, number)
                for label in ("the first", "with nothing new"):
                    row = apart(_imported, format, place, source)
                    yield {"format": format, "files": number, "import": label, **row}
                assert Catalog(place / "w").load_table("t").row_count == number * ROWS


def _made(format: str, place: Path, files: int) -> str:
    source = SOURCES[format](place, files)
    wait_for_background()
    return source


def _imported(format: str, place: Path, source: str) -> dict[str, Any]:
    catalog, progress_lines = Catalog(place / "w"), list[str]()
    import_cost = cost(
        lambda: catalog.import_table(source, "t", format=format, progress=progress_lines.append),
        "s",
        "CPU s",
        "peak MB",
    )
    return {**import_cost, "lines shown": len(progress_lines)}


def _rows(start: int) -> pa.Table:
    ids = range(start, start + ROWS)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "name": [f"name {id}" for id in ids], "v": [0.5] * ROWS}
    )


def _linked(first: Path, name: Callable[[int], str], files: int) -> list[str]:
    """Make `files` links beside `first`, with its content. Return their names."""
    names = []
    for number in range(files):
        if number % LINKS_MAX == 0:
            origin = first.with_name(f"_origin-{number}")
            origin.write_bytes(first.read_bytes())
        path = first.with_name(name(number))
        os.link(origin, path)
        names.append(path.name)
    return names


def _iceberg(place: Path, files: int) -> str:
    table = Catalog(place / "origin").create_table("t", _rows(0).schema)
    table = table.append(_rows(0))
    (path,) = table.table_head.all_files()["path"].to_pylist()
    (entry,) = table.table_head.entries([path]).values()
    write = engine.begin_write(table)
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
    return engine.commit_write(table, write, "overwrite", entries, filter="true").export_iceberg().url


def _delta(place: Path, files: int) -> str:
    bounds = {"minValues": {"id": 0, "name": "name 0"}, "maxValues": {"id": ROWS - 1, "name": "name 9"}}
    stats = {"numRecords": ROWS, **bounds, "nullCount": {"id": 0, "name": 0, "v": 0}}
    names = (f"part-{at:05d}-00000000-0000-0000-0000-000000000000-c000.snappy.parquet" for at in range(files))
    additions = [delta_file(name, {}, 1_000, stats) for name in names]
    write_delta(place / "delta", 0, [*delta_header(_rows(0).schema, []), *additions])
    return str(place / "delta")


def _parquet(place: Path, files: int) -> str:
    source = place / "files"
    source.mkdir()
    first = source / "_first.parquet"
    pq.write_table(_rows(0), first)
    _linked(first, lambda n: f"part-{n}.parquet", files)
    return str(source)


SOURCES: dict[str, Callable[[Path, int], str]] = {"iceberg": _iceberg, "delta": _delta, "parquet": _parquet}
