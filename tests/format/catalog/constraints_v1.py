"""Makes the golden warehouse of tables with constraints, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.constraints_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from typing import Any

from tests.format.catalog.warehouse_v1 import SCHEMA, build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark

OVER_0: dict[str, Any] = {
    "kind": "check",
    "name": "over_0",
    "columns": [["id"]],
    "sql": "id > 0",
    "predicate": {"op": ">", "args": [{"col": ["id"]}, {"lit": 0, "type": "long"}]},
}
NEAR: dict[str, Any] = {
    "kind": "check",
    "name": "near",
    "columns": [["place", "lat"], ["place", "lon"]],
    "sql": "abs(place.lat) + abs(place.lon) < 90",
    "rely": True,
}
KEYS: list[dict[str, Any]] = [
    {"kind": "primary-key", "name": "pk", "columns": [["id"], ["day"]]},
    {"kind": "unique", "name": "u", "columns": [["name"]], "rely": True},
    {
        "kind": "foreign-key",
        "name": "fk",
        "columns": [["day"]],
        "table": ["lake", "days"],
        "referenced": ["d"],
    },
]


def fill(catalog: Catalog) -> None:
    stage = engine.stage(catalog, "create", "t", schema_from_spark(SCHEMA), constraints=[OVER_0, *KEYS])
    table = engine.commit_stage(catalog, stage)
    table = table.alter([{"change": "add-constraint", "constraint": NEAR}])
    table = table.alter(
        [
            {"change": "drop-constraint", "name": "u"},
            {"change": "rename-column", "name": ["day"], "new_name": "date"},
            {"change": "update-column-nullability", "name": ["date"], "nullable": False},
        ]
    )
    table.table_head.tracked.log.snapshot(table.table_head.view)
    table.rollback_to_version(2)


if __name__ == "__main__":
    write_objects(build(fill))
