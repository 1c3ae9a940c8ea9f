"""Clients who look at several logs at one moment: now, at a time of the past, or at a saved cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog
from lakelog.catalog.engine import CatalogNames
from lakelog.log import InvalidInput, LakelogError, NotFound

Check = Callable[[CatalogNames], str | None]


def deed(world: CatalogWorld, name: str, checks: Mapping[str, Check], catalog: Catalog) -> None:
    choice = world.rng.random()
    label, check = world.rng.choice(sorted(checks.items()))
    if choice < 0.5:
        tx = catalog.begin()
        look(world, tx, label, check, "a transaction")
        return
    if choice < 0.7:
        saved_cut(world, name, checks, catalog)
        return
    times = [commit.time_us for _, commit in world.truth.entries()]
    at_us = max(world.founded_us, world.rng.choice(times) + world.rng.choice((-1, 0, 0, 1)))
    past = world.new_catalog(name, as_of=at_us)
    look(world, past, label, check, f"the catalog as of {at_us}", may_be_to_come=True)


def saved_cut(world: CatalogWorld, name: str, checks: Mapping[str, Check], catalog: Catalog) -> None:
    """Save a cut, or look at one that another client saved: it can be seen whatever expires."""
    saved_cuts = sorted(catalog.cuts())
    if not saved_cuts or world.rng.random() < 0.4:
        catalog.save_cut(f"cut {len(world.requests)} {world.tick()}")
        world.count("cuts saved")
        return
    cut = world.rng.choice(saved_cuts)
    label, check = world.rng.choice(sorted(checks.items()))
    past = world.new_catalog(name, as_of=cut)
    look(world, past, label, check, f"the saved cut {cut!r}", may_be_gone=False)


def look(
    world: CatalogWorld,
    catalog: CatalogNames,
    what: str,
    check: Check,
    where: str,
    *,
    may_be_gone: bool | None = None,
    may_be_to_come: bool = False,
) -> None:
    """Check what a catalog shows. What has expired, or is as of a time that is not over, need not be shown, but must
    not be shown wrong."""
    if may_be_gone is None:
        may_be_gone = world.expires
    try:
        problem = check(catalog)
    except (NotFound, InvalidInput) as error:
        if may_be_to_come and "in the future" in str(error):
            world.count("looks at what is to come")
            return
        if not may_be_gone:
            world.fail(f"{where} cannot be shown: {type(error).__name__}: {error}")
        world.count("looks at what has expired")
        return
    except LakelogError as error:
        world.count(f"looks given up: {type(error).__name__}")
        raise
    world.count(f"looks at {what}")
    if problem is not None:
        world.fail(f"in {where} {problem}")
