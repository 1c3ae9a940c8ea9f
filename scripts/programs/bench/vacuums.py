"""Vacuum of a table that has very many objects which no version has, on a folder and on S3 (versitygw).

The objects are empty, and named as those of writes that began long ago. What is timed is the vacuum: its lists, the
fence, the deletions. On S3 each deletion of the server is one of a file on the same disk. `--tables` is of
so many small tables, on S3 behind a proxy that holds each PUT 60 ms, each GET 25 and each LIST 50.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log import new_id
from lakelog.testing.versitygw import versitygw
from programs import story
from programs.bench.writers import slowly

HELD = ["60", "25", "50"]
WRITES = 1000
"""Files of one write."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--on", choices=("folder", "s3"), nargs="+", default=["folder", "s3"])
    parser.add_argument(
        "--tables", type=int, default=0, help="vacuum so many tables with a file to delete each"
    )
    arguments = parser.parse_args()
    if arguments.tables:
        _many_tables(arguments.tables)
        return
    lines = []
    for on in arguments.on:
        with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
            server = versitygw(Path(folder) / "s3") if on == "s3" else nullcontext()
            with server as s3, nullcontext() if s3 is None else s3.credentials():
                lines.append([on, *_measured(Path(folder), s3, arguments.files)])
    story.table(["on", "objects", "list only, s", "vacuum, s", "CPU s of the client"], lines, title=__doc__)


def _measured(folder: Path, s3: object, files: int) -> list[object]:
    place = str(folder / "w") if s3 is None else "s3://lake/w"
    options = {} if s3 is None else s3.options  # type: ignore[attr-defined]
    catalog = Catalog(place, options=options)
    schema = pa.schema({"id": pa.int64()})
    table = catalog.create_table("t", schema).append(pa.table({"id": [1]}, schema))
    location = table.location.removeprefix("s3://lake/")
    data = Path(table.location) / "data" if s3 is None else next((folder / "s3").rglob(location)) / "data"
    for write in range(-(-files // WRITES)):
        id = new_id()
        for number in range(min(WRITES, files - write * WRITES)):
            os.close(os.open(data / f"{1:020d}-{id}-{number:05d}.parquet", os.O_CREAT | os.O_WRONLY))
    began = time.perf_counter()
    [looked] = catalog.vacuum("t", older_than=dt.timedelta(0), trust_clock=True)
    listed = time.perf_counter() - began
    assert looked.files == files, looked
    cpu, began = time.process_time(), time.perf_counter()
    [done] = catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
    took = time.perf_counter() - began
    assert done.files == files and len(list(data.iterdir())) == 1, done
    return [f"{files:,}", f"{listed:.1f}", f"{took:.1f}", f"{time.process_time() - cpu:.1f}"]


def _many_tables(count: int) -> None:
    schema = pa.schema({"id": pa.int64()})
    with (
        tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder,
        versitygw(Path(folder) / "s3") as s3,
        s3.credentials(),
        slowly(s3.endpoint, HELD) as (settings, _),
    ):
        direct = Catalog("s3://lake/w", options=s3.options)
        for number in range(count):
            table = direct.create_table(f"t{number}", schema).append(pa.table({"id": [1]}, schema))
            place = next((Path(folder) / "s3").rglob(table.location.removeprefix("s3://lake/")))
            (place / "data" / f"{1:020d}-{new_id()}-00000.parquet").touch()
        catalog = Catalog("s3://lake/w", options=settings)
        began = time.perf_counter()
        done = catalog.vacuum(older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
        took = time.perf_counter() - began
        assert sum(each.files for each in done) == count and not any(each.error for each in done), done
    story.table(["tables", "vacuum of all, s"], [[f"{count:,}", f"{took:.1f}"]], title=__doc__)


if __name__ == "__main__":
    main()
