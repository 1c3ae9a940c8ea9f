"""Random lives of a table, its clones and those that had its name: forgotten rows are in no object, others stay."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Callable

import pytest
from tests.integration.catalog.erasure.searching import found_in
from tests.integration.catalog.erasure.test_forgetting import NAME, SCHEMA, WHERE, client, rows, store_of

from lakelog.catalog import Catalog, StreamBatch, Table
from lakelog.catalog.files import manifest_bounds
from lakelog.catalog.logs import writing_as
from lakelog.catalog.state import BRANCH
from lakelog.log import wait_for_background
from lakelog.log.errors import LakelogError

STEPS = 18
DAY, NOW = dt.timedelta(days=1), dt.timedelta(0)
CLUSTERED = {"change": "set-clustering", "columns": [["name"], ["id"]]}


class Life:
    """A catalog in which a table `a.t` lives; what it does is drawn."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.warehouse = f"memory://{uuid.uuid4().hex}"
        self.catalog = client(self.warehouse)
        self.catalog.create_namespace("a")
        mode = self.draw.choice(["copy-on-write", "merge-on-read"])
        self.properties = {f"lakelog.write.{each}.mode": mode for each in ("delete", "update")}
        self.properties |= self.draw.choice([{}, {"lakelog.bloom-filter.columns": "name,id"}])
        self.properties |= self.draw.choice([{}, {"lakelog.iceberg": "on"}])
        self.partitioned = self.draw.choice([[], ["region"]])
        self.number = 100
        self.names = ["a.t"]
        self._create()

    def _create(self) -> None:
        made = self.catalog.create_table(
            "a.t", SCHEMA, properties=self.properties, partition_by=self.partitioned
        )
        made.append(rows(self.new(), marked=self.draw.random() < 0.5))

    def new(self) -> int:
        self.number += 1
        return self.number

    @property
    def table(self) -> Table:
        return self.catalog.load_table("a.t")

    @property
    def line(self) -> Table:
        branches = [name for name, ref in self.table.refs.items() if ref.kind == BRANCH]
        name = self.draw.choice([None, *branches])
        return self.table if name is None else self.catalog.load_table("a.t", ref=name)

    def step(self) -> None:
        self.draw.choice(STEPS_OF)(self)

    def clone(self) -> None:
        name = f"a.c{self.new()}"
        self.catalog.clone(self.draw.choice(self.names), name)
        self.names.append(name)

    def drop_clone(self) -> None:
        if len(self.names) > 1:
            self.catalog.drop_table(self.names.pop(self.draw.randrange(1, len(self.names))))

    def drop_and_create(self) -> None:
        self.catalog.drop_table("a.t")
        self._create()

    def drop_and_restore(self) -> None:
        name = self.draw.choice(self.names)
        self.catalog.drop_table(name)
        self.catalog.undrop_table(name)

    def quoting(self) -> None:
        with writing_as({"statement": f"DELETE FROM t WHERE name = '{NAME}'"}):
            self.line.append(rows(self.new()))

    def stream(self) -> None:
        number = self.new()
        self.table.append(rows(number, marked=True), batch=StreamBatch(stream="s", number=number))

    def together(self) -> None:
        with self.catalog.transaction() as transaction:
            transaction.load_table("a.t").append(rows(self.new(), marked=True))
            transaction.load_table("a.t").delete(f"id = {self.draw.randint(100, self.number)}")

    def others(self) -> dict[tuple[str, str | None], list[tuple[object, ...]]]:
        """Return the rows that are not to be forgotten, of each table and branch."""
        found: dict[tuple[str, str | None], list[tuple[object, ...]]] = {}
        for name in self.names:
            table = self.catalog.load_table(name)
            for ref in (None, *(each for each, of in table.refs.items() if of.kind == BRANCH)):
                line = table if ref is None else self.catalog.load_table(name, ref=ref)
                kept = [row for row in line.to_arrow().to_pylist() if row["name"] != NAME]
                found[name, ref] = sorted((row["id"], row["name"], row["region"]) for row in kept)
        return found


def _vacuum(catalog: Catalog) -> None:
    catalog.vacuum(older_than=NOW, dropped_older_than=DAY, dry_run=False, trust_clock=True)


STEPS_OF: list[Callable[[Life], object]] = [
    lambda life: life.line.append(rows(life.new(), life.new())),
    lambda life: life.line.append(rows(life.new(), marked=True)),
    lambda life: life.line.append(rows(life.new(), marked=True)),
    lambda life: life.line.delete(f"id < {life.draw.randint(90, life.number)}"),
    lambda life: life.line.delete(WHERE),
    lambda life: life.line.update({"region": "'US'"}, f"id > {life.draw.randint(90, life.number)}"),
    lambda life: life.line.update({"name": f"'{NAME}'"}, f"id = {life.draw.randint(100, life.number)}"),
    lambda life: life.line.overwrite(rows(life.new()), "id > 110"),
    lambda life: life.line.compact(),
    lambda life: life.table.create_tag(f"t{life.new()}"),
    lambda life: life.table.create_branch(f"b{life.new()}"),
    lambda life: life.table.rollback_to_version(max(1, life.table.version - 2)),
    lambda life: life.table.alter([CLUSTERED]).cluster(),
    lambda life: life.catalog.save_cut(f"cut{life.new()}"),
    lambda life: life.catalog.expire("a.t", retain_last=2, dry_run=False),
    lambda life: _vacuum(life.catalog),
    lambda life: life.catalog.load_table(life.draw.choice(life.names)).materialize(),
    *[Life.clone, Life.clone, Life.drop_clone, Life.drop_and_create, Life.drop_and_restore],
    *[Life.quoting, Life.stream, Life.together],
]


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(each, marks=pytest.mark.slow) for each in range(3, 100))]
)
def test_what_a_random_life_has_of_forgotten_rows_is_gone_or_named(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_bounds, "BOUNDED_FROM", 1)
    life = Life(seed)
    for _ in range(STEPS):
        try:
            life.step()
        except LakelogError:
            continue  # it cannot be done now
    wait_for_background()
    before = life.others()
    done = client(life.warehouse).forget("a.t", WHERE, dry_run=False)
    wait_for_background()
    life.catalog = client(life.warehouse)
    assert life.others() == before
    # A dropped table whose other rows a clone still has is named, and only then.
    assert all("clones need its files" in each for each in done.left), done.left
    assert done.left or not found_in(store_of(life.warehouse), ["ZQXJ"])
    assert not [each for each in life.catalog.fsck().found if each.severity.name != "NOTE"]
