"""Cases of namespaces and of the names in them."""

from __future__ import annotations

from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case

from lakelog.catalog import FunctionDefinition, ViewDefinition, engine
from lakelog.catalog.core.state import name_pages, namespace_state, paged_map


def nothing(bench: Bench) -> None:
    """Leave the folder of the warehouse empty."""


def names(bench: Bench) -> None:
    """Namespaces in namespaces, names with dots, renames, drops, restores, views and functions."""
    catalog = bench.catalog
    catalog.create_namespace("sales", {"owner": "ada"})
    catalog.create_namespace(("sales", "raw.eu"))
    catalog.create_namespace("gone")
    catalog.create_table(("gone", "t"), NAMED).append(named(0))
    catalog.drop_namespace("gone", cascade=True)
    catalog.create_table("sales.orders", NAMED).append(named(1))
    catalog.rename_table("sales.orders", "sales.receipts")
    catalog.create_table("sales.orders", NAMED).append(named(2))
    catalog.create_table(("sales", "raw.eu", "a.b"), NAMED).append(named(3))
    catalog.rename_table(("sales", "raw.eu", "a.b"), "moved")
    catalog.create_table(("sales", "raw.eu", "a.b"), NAMED).append(named(4))
    catalog.drop_table("sales.orders")
    catalog.undrop_table("sales.orders", to="sales.again")
    catalog.drop_table("sales.receipts")
    catalog.create_namespace("back")
    catalog.create_table("back.t", NAMED).append(named(5))
    catalog.drop_namespace("back", cascade=True)
    catalog.undrop_namespace("back")
    engine.create_view(catalog, "sales.view", ViewDefinition(text="SELECT 1 AS one", columns=()))
    engine.create_function(
        catalog, "sales.double", FunctionDefinition(language="sql", body="2 * x", parameters="x INT")
    )
    catalog.create_table("purged", NAMED).append(named(6))
    catalog.drop_table("purged", purge=True)


def pages(bench: Bench) -> None:
    """Names in pages, and newer ones beside the pages."""
    catalog = bench.catalog
    catalog.create_namespace("n")
    for number in range(9):
        catalog.create_table(("n", f"t{number}"), NAMED)
    for number in range(3):
        engine.create_view(catalog, ("n", f"v{number}"), ViewDefinition(text=f"SELECT {number}", columns=()))
    catalog.drop_table("n.t8")
    catalog.expire(namespace="n", retain_last=1, dry_run=False)
    catalog.rename_table("n.t3", "n.renamed")
    catalog.drop_table("n.t4")
    tracked_log = catalog._tree.namespace(("n",)).tracked
    tracked_log.log.snapshot(tracked_log.current())
    catalog.create_table("n.last", NAMED)


def reopened(bench: Bench) -> None:
    """A place that had another table before: its versions are not those of the table that is there now."""
    place = str(bench.folder / "warehouse" / "places" / "t")
    catalog = bench.catalog
    catalog.create_table("old", NAMED, location=place).append(named(0))
    catalog.drop_table("old")
    catalog.create_table("t", NAMED, location=place).append(named(10))


CASES = (
    Case("nothing", "an empty warehouse", nothing),
    Case("names", "namespaces, renames, drops, restores, views and functions", names),
    Case(
        "pages",
        "names in pages",
        pages,
        [
            (namespace_state, "PAGED_FROM", 3),
            (paged_map, "PAGED_FROM", 3),
            (paged_map, "PAGE_NAMES", 3),
            (name_pages, "PAGE_NAMES", 3),
            (paged_map, "DIFFERENT_MIN", 2),
        ],
    ),
    Case("reopened", "a table at the place of a dropped one", reopened),
)
