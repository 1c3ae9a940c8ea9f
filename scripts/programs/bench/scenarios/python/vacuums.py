"""Vacuum of a table with very many objects that no version has, on a folder and on S3 (versitygw).

The objects are empty, and have names of writes that began long ago. The time is that of the vacuum: its lists, the
fence, the deletions. On S3 the server deletes each object as a file on the same disk. `--tables` measures so many small
tables, on S3 behind a proxy that delays each PUT by 60 ms, each GET by 25 and each LIST by 50.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa

from lakelog.catalog import Catalog, Table
from lakelog.testing.moto_server import S3Server
from programs.bench.measure import cost, seconds
from programs.bench.places import HELD_MS, folder, held_up, litter, s3
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64()})
ALL: dict[str, Any] = {"older_than": dt.timedelta(0), "trust_clock": True}


def measure(
    files: int = 1_000_000,
    on: Sequence[Literal["folder", "s3"]] = ("folder", "s3"),
    tables: Annotated[int, "vacuum so many tables with a file to delete each"] = 0,
) -> Iterator[Row]:
    for where in ["s3"] if tables else on:
        with folder() as place, ExitStack() as stack:
            server = stack.enter_context(s3(place)) if where == "s3" else None
            if server and tables:
                yield _many_tables(place, server, tables)
            else:
                yield {"on": where, **_one_table(place, server, files)}


def _one_table(place: Path, server: S3Server | None, files: int) -> Row:
    catalog = Catalog("s3://lake/w" if server else place / "w", options=server.options if server else {})
    data = _made(catalog, "t", place)
    litter(data, files)
    results = []
    list_s = seconds(lambda: results.extend(catalog.vacuum("t", **ALL)))
    vacuum_cost = cost(lambda: results.extend(catalog.vacuum("t", dry_run=False, **ALL)), "s", "CPU s")
    assert [result.files for result in results] == [files, files] and len(list(data.iterdir())) == 1, results
    return {
        "objects": files,
        "list only, s": list_s,
        "vacuum, s": vacuum_cost["s"],
        "CPU s": vacuum_cost["CPU s"],
    }


def _many_tables(place: Path, server: S3Server, count: int) -> Row:
    direct = Catalog("s3://lake/w", options=server.options)
    for number in range(count):
        litter(_made(direct, f"t{number}", place), 1)
    results = []
    with held_up(server, HELD_MS) as (settings, _):
        catalog = Catalog("s3://lake/w", options=settings)
        took = seconds(lambda: results.extend(catalog.vacuum(dry_run=False, **ALL)))
    assert sum(result.files for result in results) == count and not any(result.error for result in results), (
        results
    )
    return {"tables": count, "vacuum of all, s": took}


def _made(catalog: Catalog, name: str, place: Path) -> Path:
    """Make a table with a single row. Return the folder of its data files, which may be the server's."""
    table: Table = catalog.create_table(name, SCHEMA).append(pa.table({"id": [1]}, SCHEMA))
    location = table.location.removeprefix("s3://lake/")
    return (Path(location) if location.startswith("/") else next((place / "s3").rglob(location))) / "data"
