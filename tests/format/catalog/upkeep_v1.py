"""Makes the golden warehouse of definitions, identity values and upkeep, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.upkeep_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any
from unittest.mock import patch

from tests.format.catalog.warehouse_v1 import build as built
from tests.format.catalog.warehouse_v1 import golden_store
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.files.column_statistics import ColumnEstimates, TableEstimates
from lakelog.catalog.core.schema.definition import FunctionDefinition, ViewColumn, ViewDefinition
from lakelog.catalog.core.schema.identity import ValuesTaken
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.engine import DataFile
from lakelog.log import MemoryStore

NOTHING = dt.timedelta(0)
VIEW = ViewDefinition(
    text="SELECT id, name FROM orders WHERE id > 1",
    columns=(
        ViewColumn(name="id", type="long", nullable=False),
        ViewColumn(name="name", type="string", comment="as printed"),
    ),
    query_columns=("id", "name"),
    namespace=("shop",),
    properties={"owner": "ada"},
)
FUNCTION = FunctionDefinition(language="sql", body="price * 1.2", parameters="price DOUBLE", returns="DOUBLE")
FIELDS: list[tuple[str, str, dict[str, Any]]] = [
    ("id", "long", {"identity.start": 1, "identity.step": 1, "identity.allowExplicitInsert": False}),
    ("name", "string", {}),
    ("day", "date", {}),
]
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": type, "nullable": True, "metadata": metadata}
        for name, type, metadata in FIELDS
    ],
}


def fill(catalog: Catalog, store: MemoryStore) -> None:
    catalog.create_namespace("shop")
    engine.create_view(catalog, "shop.named", VIEW)
    engine.create_function(catalog, "shop.gross", FUNCTION)
    catalog.create_namespace("views", {"comment": "of the shop"})
    engine.create_view(catalog, "views.named", VIEW)
    engine.create_function(catalog, "views.gross", FUNCTION)
    catalog.drop_function("views.gross")
    catalog.expire(namespace="views", retain_last=1, dry_run=False)
    table = engine.commit_stage(
        catalog, engine.stage(catalog, "create", "shop.orders", schema_from_spark(SCHEMA))
    )
    table = table.alter([{"change": "set-property", "key": "k", "value": "v"}])
    table = table.alter(
        [
            {"change": "set-clustering", "columns": [["name"]]},
            {"change": "set-sort-order", "fields": [{"transform": "identity", "column": ["day"]}]},
        ]
    )
    write = engine.begin_write(table)
    file = DataFile(
        path=f"data/{write.version:020}-{write.id}-0.parquet",
        size_bytes=2000,
        rows=3,
        spec_id=table.spec.id,
        write_id=write.id,
    )
    taken = [ValuesTaken(column=1, first=1, last=3)]
    table = engine.commit_write(table, write, "append", [file], values=taken)
    column = ColumnEstimates(type="long", distinct=3, nulls=0, min=1, max=3, average_bytes=8, most_bytes=8)
    engine.commit_statistics(
        table, TableEstimates(version=table.version, rows=3, size_bytes=48, columns={1: column})
    )
    catalog.save_cut("before")
    catalog.drop_cut("before")
    catalog.create_table("shop.gone", schema_from_spark(SCHEMA))
    catalog.drop_table("shop.gone", purge=True)
    catalog.create_namespace("old")
    catalog.create_table("old.things", schema_from_spark(SCHEMA))
    catalog.drop_namespace("old", cascade=True)
    catalog.undrop_namespace("old")
    leave_behind(catalog, store)
    for _ in range(2):  # the second time, what was found without a log has been there for long enough
        catalog.vacuum(older_than=NOTHING, dropped_older_than=NOTHING, dry_run=False)
    catalog.expire("shop.orders", version=2, dry_run=False)
    catalog.drop_namespace("old", cascade=True)
    # What a purge says would be tombstones if this one came to its end.
    with patch("lakelog.log.expiry.expire", die), contextlib.suppress(Death):
        catalog.vacuum(older_than=NOTHING, dropped_older_than=NOTHING, dry_run=False)


class Death(BaseException):
    """Caught by none that goes on."""


def die(*_arguments: object, **_options: object) -> None:
    raise Death


def leave_behind(catalog: Catalog, store: MemoryStore) -> None:
    """Leave what writers do that die: a data file that no commit names, and one of a table that was never made."""
    table = catalog.load_table("shop.orders")
    stage = engine.stage(catalog, "create", "shop.never", schema_from_spark(SCHEMA))
    for place, write in ((table.location, engine.begin_write(table)), (stage.location, stage.write)):
        folder = place.partition("memory://golden/")[2] or place
        store.put(f"{folder}/data/{write.version:020}-{write.id}-0.parquet", b"PAR1")


def build() -> dict[str, bytes]:
    """Return the objects of the warehouse. Vacuum knows its folders and files by their ids, which have no 0 and 1."""
    store = golden_store()
    return built(
        lambda catalog: fill(catalog, store),
        store=store,
        digits="abcdefghij",
        clock_us=lambda: 1_800_000_000_000_000,
    )


if __name__ == "__main__":
    write_objects(build())
