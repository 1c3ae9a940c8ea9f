"""A client that makes, copies or purges clones dies at each of its writes: no row is lost, nothing is kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.answers.failing_store import Death, Fault
from tests.integration.catalog.answers.test_answers import failing, objects_of, options

from lakelog.catalog import Catalog, col
from lakelog.catalog.keeping.maintenance import Severity
from lakelog.log import LakelogError, MemoryStore

NOW = dt.timedelta(0)
SCHEMA = pa.schema({"id": pa.int64(), "day": pa.string()})
FAULTS = (Fault.DIES, Fault.LOST_DIES, Fault.ENDS)


class Failed(Exception):
    """A vacuum reported that it could not do its work at one place."""


Work = Callable[[Catalog, Any], object]

WORKS: dict[str, tuple[str | None, Work]] = {
    "clone": ("n", lambda c, t: c.clone("n.a", "n.new", token=t)),
    "clone of a version": ("n", lambda c, t: c.clone("n.a", "n.new", version=2, token=t)),
    "clone of a clone": ("n", lambda c, t: c.clone("n.b", "n.new", token=t)),
    "clone of a namespace": ("", lambda c, t: c.clone_namespace("n", "m", token=t)),
    "materialize": (None, lambda c, t: c.load_table("n.b").materialize()),
    "purge": ("n.c", lambda c, t: c.drop_table("n.c", purge=True, token=t)),
    "vacuum": (None, lambda c, t: vacuum(c)),
}
MAY_BE_GONE = {"purge": {"n.c"}}
"""Tables that the work itself drops."""


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [f"d{id % 2}" for id in ids]}, schema=SCHEMA)


def opened_catalog(warehouse: str) -> Catalog:
    return Catalog(warehouse, log_options=options())


def vacuum(catalog: Catalog) -> None:
    for each in catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False):
        if each.error is not None:
            raise Failed(each.error)


def prepare(warehouse: str) -> None:
    """`n.c` is a clone of `n.b`, which is one of `n.a`; `n.a` and `n.b` have files that clones alone need."""
    catalog = opened_catalog(warehouse)
    catalog.create_namespace("n")
    table = catalog.create_table("n.a", SCHEMA, partition_by=["day"]).append(rows(1, 2, 3, 4))
    table.delete(col("id") == 2)
    catalog.clone("n.a", "n.b").append(rows(7)).delete(col("id") == 3)
    catalog.clone("n.b", "n.c")
    catalog.clone("n.a", "n.gone")
    catalog.drop_table("n.gone")
    catalog.load_table("n.b").append(rows(8))
    catalog.load_table("n.a").append(rows(9))


ROWS = {
    "n.a": [1, 3, 4, 9],
    "n.b": [1, 4, 7, 8],
    "n.c": [1, 4, 7],
    "n.new": None,
    "m.a": [1, 3, 4, 9],
    "m.b": [1, 4, 7, 8],
    "m.c": [1, 4, 7],
}
NEW = {"clone": [1, 3, 4, 9], "clone of a version": [1, 2, 3, 4], "clone of a clone": [1, 4, 7, 8]}


def check(catalog: Catalog, title: str, expected: dict[str, list[int] | None]) -> set[str]:
    """Check the rows of all tables, and return those that are there."""
    there = set()
    for name, ids in expected.items():
        if catalog.namespace_exists(name[0]) and catalog.table_exists(name):
            there.add(name)
            found_rows = sorted(catalog.load_table(name).to_arrow()["id"].to_pylist())
            assert found_rows == (NEW[title] if ids is None else ids), (name, found_rows)
    return there


@pytest.fixture
def put_back(warehouse: str) -> Iterator[Callable[[], str]]:
    prepare(warehouse)
    objects = objects_of(warehouse)

    def again() -> str:
        for name, store in MemoryStore._named.items():
            if name.startswith(warehouse):
                store._objects = dict(objects.get(name, {}))
        return warehouse

    yield again


@pytest.mark.parametrize("title", WORKS)
def test_a_client_may_die_at_each_of_its_writes(
    title: str, put_back: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of, work = WORKS[title]
    warehouse = put_back()
    with failing(monkeypatch, None, Fault.ONCE) as counted:
        work(opened_catalog(warehouse), None if of is None else opened_catalog(warehouse).token(of))
    writes = sorted(counted.writes)
    assert len(writes) > 2
    for number, at in enumerate(writes):
        # Each write fails in one way, and all ways are met; the last ones in each.
        for fault in FAULTS if at in writes[-3:] else FAULTS[number % 2 : number % 2 + 1]:
            warehouse = put_back()
            token = None if of is None else opened_catalog(warehouse).token(of)
            try:
                with failing(monkeypatch, at, fault):
                    work(opened_catalog(warehouse), token)
            except (Death, LakelogError, Failed):
                pass
            survives(title, work, warehouse, token, f"{title}: write {at} {fault}", whole=number % 3 == 0)


def survives(title: str, work: Work, warehouse: str, token: Any, what: str, *, whole: bool) -> None:
    """Check what is there, that the work can be done again, and that no file goes which a clone has."""
    removed_texts = MAY_BE_GONE.get(title, set())
    report = check(opened_catalog(warehouse), title, ROWS)
    assert {"n.a", "n.b", "n.c"} - removed_texts <= report, what
    assert not ("m.a" in report) ^ ("m.c" in report), what
    if title != "vacuum":
        work(opened_catalog(warehouse), token)
    report = check(opened_catalog(warehouse), title, ROWS)
    texts = {"n.new"} if title in NEW else {"m.a", "m.b", "m.c"} if title == "clone of a namespace" else set()
    assert texts <= report, what
    only_clones_need(opened_catalog(warehouse), "n.a")
    vacuum(opened_catalog(warehouse))
    catalog = opened_catalog(warehouse)
    expected = {name: ids for name, ids in ROWS.items() if name != "n.a"}
    assert check(catalog, title, expected) == report - {"n.a"}, what
    if not whole:
        return
    damage = catalog.fsck(deep=True).of(Severity.DAMAGE)
    assert not damage, (what, damage)
    ends(catalog, report, what)


def only_clones_need(catalog: Catalog, name: str) -> None:
    catalog.load_table(name).overwrite(rows(99))
    catalog.expire(name, retain_last=1, dry_run=False)


def ends(catalog: Catalog, there: set[str], what: str) -> None:
    """Once all clones are gone, nothing is kept for any."""
    for name in sorted(there - {"n.a"}):
        catalog.drop_table(name)
    vacuum(catalog)
    vacuum(opened_catalog(catalog.warehouse))
    assert not opened_catalog(catalog.warehouse).load_table("n.a").table_head.state.clones, what
