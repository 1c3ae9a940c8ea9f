"""Clients that expire old versions and delete what no client can reach, while others work."""

from __future__ import annotations

import datetime as dt
from functools import partial

from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog

NO_TIME = dt.timedelta(0)
LONG_TIME = dt.timedelta(days=365)
"""Longer than any run, and shorter than clients' clocks are wrong."""


def populate(world: CatalogWorld, *, purges: bool = True) -> None:
    world.expires = True
    for i in range(world.rng.randint(1, 2)):
        deeds = world.rng.randint(1, 3) * (3 if world.about else 1)
        world.spawn(f"cleaner {i}", deeds, partial(deed, world, purges))


def deed(world: CatalogWorld, purges: bool, catalog: Catalog) -> None:
    if world.chosen({"expire": 0.6, "vacuum": 0.4}) == "expire":
        catalog.expire(retain_last=world.rng.randint(1, 4), dry_run=False)
        world.count("expiries")
        return
    is_purged = purges and world.rng.random() < 0.5
    report = catalog.vacuum(
        older_than=NO_TIME, dropped_older_than=NO_TIME if is_purged else LONG_TIME, dry_run=False
    )
    if not is_purged and any(each.kind.startswith("dropped") for each in report):
        world.fail("purged what was dropped a moment ago, as if that were a year")
    world.count("vacuums")
