"""Makes the golden warehouse of the catalog's format 1, with ids that count and a clock that ticks.

`python -m tests.format.catalog.warehouse_v1 FOLDER` writes it. What a release has written is never edited: from
then on, a new form of the format gets a folder of its own beside it.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.format.writing import write_objects

from lakelog.catalog import Catalog, ColumnStats, Table, engine
from lakelog.catalog.core.ddl import namespaces
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.engine import DataFile
from lakelog.log import LogOptions, MemoryStore

NEVER = 2**62

FIELDS = [
    ("id", "long", False),
    ("day", "date", True),
    ("name", "string", True),
    ("price", "decimal(10,2)", True),
    ("at", "timestamp", True),
    ("tags", {"type": "array", "elementType": "string", "containsNull": True}, True),
    (
        "place",
        {
            "type": "struct",
            "fields": [
                {"name": "lat", "type": "double", "nullable": True, "metadata": {}},
                {"name": "lon", "type": "double", "nullable": True, "metadata": {}},
            ],
        },
        True,
    ),
    (
        "counts",
        {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": False},
        True,
    ),
]
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": type, "nullable": nullable, "metadata": {}} for name, type, nullable in FIELDS
    ],
}


def data_file(table: Table, number: int, day: int) -> DataFile:
    """A file that a commit may name; it is not read here."""
    fields = table.spec.fields
    return DataFile(
        path=f"data/{number:05}.parquet",
        size_bytes=1000 + number,
        rows=10,
        spec_id=table.spec.id,
        partition={fields[0].id: day, fields[1].id: number % 4},
        stats={
            1: ColumnStats(nulls=0, min=number * 10, max=number * 10 + 9),
            2: ColumnStats(nulls=1, min=day, max=day),
            3: ColumnStats(nulls=2, min="a", max="zz"),
            4: ColumnStats(nulls=0, min="-1.50", max="99.99"),
            5: ColumnStats(nulls=0, min=1_700_000_000_000_000, max=1_700_000_000_000_001),
        },
        write_id="w" * 26,
    )


def one_by_one(works: Sequence[Callable[[], None]]) -> None:
    """Side by side, the ids would be given out in any order."""
    for work in works:
        work()


def released(folder: Path) -> dict[str, bytes]:
    """Return the objects that a release wrote, as `build` returns those of today."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_says_the_same(folder: Path, fill: Callable[[Catalog], None]) -> None:
    """Assert that today's code writes the same objects as a release, and that their commits say the same.

    Bytes of Arrow, and all that hashes them, are Arrow's business.
    """
    golden, written_data = released(folder), build(fill)
    assert written_data.keys() == golden.keys()
    for key, data in golden.items():
        if key.endswith(".json") and "/_log/0" in key:
            assert json.loads(written_data[key])["events"] == json.loads(data)["events"], key


def golden_store() -> MemoryStore:
    """Return an empty store, whose clock goes on by a second each time that it is looked at."""
    ticks = itertools.count(1_790_000_000_000_000, 1_000_000)
    return MemoryStore("memory://golden", clock_us=lambda: next(ticks))


def build(
    fill: Callable[[Catalog], None] | None = None,
    *,
    store: MemoryStore | None = None,
    digits: str = "0123456789",
    clock_us: Callable[[], int] = lambda: 0,
) -> dict[str, bytes]:
    """Return the objects of a golden warehouse by their keys; of this one, unless another one's `fill` is given.

    They are made in `store`, or else in a new one. Ids count in `digits`. The client's clock is `clock_us`, by which
    vacuum judges ages; commits have the store's.
    """
    written = str.maketrans("0123456789", digits)
    ids, store = itertools.count(1), store or golden_store()
    drawn_texts: list[str] = []

    def new_id() -> str:
        drawn_texts.append(f"id{next(ids):024}".translate(written))
        return drawn_texts[-1]

    options = LogOptions(
        in_parallel=one_by_one,
        clock_us=clock_us,
        new_id=new_id,
        in_background=lambda _name, work: work(),
        hint_every_versions=lambda _state: NEVER,  # hints are derived, and the release wrote fewer
    )
    with (
        patch.object(places, "open_store", lambda url, _options: store),
        # The release chose ids of namespaces at random, as is done where a name had another one.
        patch.object(namespaces, "likely_id", lambda parent, name: drawn_texts[-1]),
    ):
        (fill or fill_all)(
            Catalog("memory://golden", writer={"engine": "golden", "user": "ada"}, log_options=options)
        )
    return {key: data for key in store.list_after("") if (data := store.get(key)) is not None}


def fill_all(catalog: Catalog) -> None:
    """Let everything happen that the format has words for."""
    catalog.create_namespace("sales", {"owner": "ada"})
    catalog.create_namespace(("sales", "raw.eu"))
    catalog.alter_namespace("sales", set={"comment": "all of them"}, remove=["owner"])
    catalog.create_namespace("gone")
    catalog.drop_namespace("gone")
    partitioning: list[Any] = [
        {"transform": "identity", "args": [], "column": ["day"]},
        {"transform": "bucket", "args": [4], "column": ["id"]},
    ]
    stage = engine.stage(
        catalog,
        "create",
        "sales.orders",
        schema_from_spark(SCHEMA),
        partitioning=partitioning,
        sort_by=["name"],
        properties={"k": "v"},
        comment="orders",
        provider="parquet",
    )
    table = engine.commit_stage(catalog, stage)
    table = engine.commit_write(
        table, engine.begin_write(table), "append", [data_file(table, 1, 20000), data_file(table, 2, 20001)]
    )
    table = table.alter(
        [
            {
                "change": "add-column",
                "name": ["note"],
                "type": "string",
                "default": {"current": "'none'"},
            },
            {"change": "rename-column", "name": ["place", "lat"], "new_name": "latitude"},
            {"change": "set-property", "key": "k", "value": "w"},
        ]
    )
    table = table.alter(
        [
            {
                "change": "set-partitioning",
                "fields": [partitioning[0], {"transform": "month", "column": ["at"]}],
            }
        ]
    )
    many = [data_file(table, number, 20100 + number) for number in range(10, 260)]
    table = engine.commit_write(table, engine.begin_write(table), "append", many)
    table = table.delete([("day", "=", dt.date(2024, 10, 4))])
    table.table_head.tracked.log.snapshot(table.table_head.view)
    catalog.rename_table("sales.orders", "sales.receipts")
    catalog.create_table("sales.dropped", schema_from_spark(SCHEMA))
    catalog.drop_table("sales.dropped")
    replaced_table = catalog.create_table("replaced", schema_from_spark(SCHEMA))
    engine.commit_stage(
        catalog,
        engine.stage(catalog, "replace", "replaced", replaced_table.schema, properties={"new": "yes"}),
    )
    replaced_table.refresh().truncate()
    with catalog.transaction() as tx:
        tx.create_namespace("books")
        tx.rename_table("replaced", ("books", "moved"))
        tx.create_table(("books", "made"), schema_from_spark(SCHEMA))
    catalog.drop_table(("books", "made"))
    catalog.undrop_table(("books", "made"), to=("books", "again"))
    catalog.save_cut("the end")
    catalog.save_cut("the end", namespace="sales")


if __name__ == "__main__":
    write_objects(build())
