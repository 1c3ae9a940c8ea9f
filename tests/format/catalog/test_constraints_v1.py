"""The format of constraints: what a release wrote is read for ever, and today's code writes the same bytes."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.constraints_v1 import fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema.constraints import (
    CheckConstraint,
    Constraint,
    ForeignKey,
    PrimaryKey,
    UniqueConstraint,
)

GOLDEN = Path(__file__).parent / "constraints_v1"

OVER_0 = CheckConstraint(
    name="over_0",
    columns=(1,),
    sql="id > 0",
    predicate={"op": ">", "args": [{"col": ["id"]}, {"lit": 0, "type": "long"}]},
)
NEAR = CheckConstraint(name="near", columns=(9, 10), sql="abs(place.lat) + abs(place.lon) < 90", rely=True)
PK = PrimaryKey(name="pk", columns=(1, 2))
UNIQUE = UniqueConstraint(name="u", columns=(3,), rely=True)
FK = ForeignKey(name="fk", columns=(2,), table=("lake", "days"), referenced=("d",))


def test_today_writes_what_the_release_wrote() -> None:
    golden = released(GOLDEN)
    assert build(fill) == golden


def test_constraints_of_every_version_are_read() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")

    def at(version: int) -> tuple[Constraint, ...]:
        return table.at(version=version).constraints

    assert at(1) == (OVER_0, PK, UNIQUE, FK)
    assert at(2) == (OVER_0, PK, UNIQUE, FK, NEAR)
    assert at(3) == (OVER_0, PK, FK, NEAR)
    assert table.constraints == at(2)
    assert not table.at(version=3).schema.find(["date"]).nullable
    assert [entry.operation for entry in table.history()] == [
        "rollback",
        "change schema, drop constraint",
        "add constraint",
        "create, add constraint",
    ]
