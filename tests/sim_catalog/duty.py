"""Doctors on call, with a table each. A doctor who goes off duty has seen that another stays.

Under snapshot isolation two of them may go at once, each relying on the other; serializable transactions must not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.transaction import Transaction

NO_DOCTOR = "no doctor is on duty"
DOCTORS = ("duty.ann", "duty.bob")
SCHEMA = pa.schema([("on", pa.int64())])


def row(on: int) -> pa.Table:
    return pa.table({"on": [on]}, schema=SCHEMA)


def found(catalog: Catalog) -> None:
    catalog.create_namespace("duty")
    for name in DOCTORS:
        catalog.create_table(name, SCHEMA).append(row(1))


def on_duty(catalog: CatalogNames) -> dict[str, int]:
    return {name: sum(on for (on,) in rows) for name, rows in look(catalog).items()}


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    """Go off duty if another one is on it, else come back."""
    doctor = world.rng.choice(DOCTORS)

    def change(tx: Transaction) -> None:
        on = on_duty(tx)
        goes = on[doctor] == 1 and sum(on.values()) > 1
        tx.load_table(doctor).overwrite(row(0 if goes else 1))

    world.transact(catalog, "change of duty", world.isolation, change)


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {name: read_rows(catalog.load_table(name)) for name in DOCTORS}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    return None if any(on for name in DOCTORS for (on,) in tables[name]) else NO_DOCTOR
