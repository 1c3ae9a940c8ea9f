"""Every warehouse of the kit goes on: today's lakelog writes, maintains, exports and checks what is there."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import lakelog_reader
from tests.conformance.rehash import moved, objects_of, write_objects
from tests.conformance.run import PLACE

from lakelog.catalog import Catalog, Table, Unsupported
from lakelog.log.checks.findings import Severity

KIT = Path(__file__).parent / "kit"
NAMES = sorted(
    path.parent.name
    for path in KIT.glob("cases/*/case.json")
    if path.parent.name not in ("nothing", "refused")
)


def rows_of(warehouse: str, path: list[str], *way: str) -> list[str]:
    name = json.dumps(path) if any("." in part for part in path) else ".".join(path)
    answer = lakelog_reader.answer([warehouse, "rows", name, *way])
    return sorted(json.dumps(row) for row in answer["rows"])


def written(table: Table) -> int:
    """Append the table's own first row once more, and return the number of rows that came."""
    rows = table.to_arrow().slice(0, 1)
    table.append(rows)
    return int(rows.num_rows)


@pytest.mark.parametrize("name", NAMES)
def test_a_warehouse_of_the_kit_is_written_maintained_and_checked(name: str, tmp_path: Path) -> None:
    objects = {key: data for key, data in objects_of(KIT / "cases" / name).items() if key != "case.json"}
    write_objects(tmp_path, moved(objects, PLACE, str(tmp_path)))
    warehouse = str(tmp_path / "warehouse")
    catalog = Catalog(warehouse, options={"fsync": "off"})
    rows: dict[str, Any] = {}
    for path in lakelog_reader.answer([warehouse, "tables"]):
        if not catalog.table_exists(tuple(path)):
            continue  # it was dropped by its place, and its name was left
        before = rows_of(warehouse, path)
        count = written(catalog.load_table(tuple(path)))
        after = rows_of(warehouse, path)
        assert len(after) == len(before) + count and set(after) == set(before)
        table = catalog.load_table(tuple(path)).create_tag("went-on").compact()
        table.set_properties({"went": "on"})
        with suppress(Unsupported):  # of types and files that Iceberg cannot express
            table.refresh().export_iceberg()
        rows[json.dumps(path)] = after
    no_age = dt.timedelta(0)
    catalog.expire(older_than=no_age, dry_run=False, trust_clock=True)
    catalog.vacuum(older_than=no_age, dry_run=False, trust_clock=True)
    for key, expected in rows.items():
        assert rows_of(warehouse, json.loads(key)) == expected
        assert rows_of(warehouse, json.loads(key), "--ref", "went-on") == expected
    findings = Catalog(warehouse).fsck(deep=True, all_versions=True)
    assert findings.of(Severity.DAMAGE) == []
