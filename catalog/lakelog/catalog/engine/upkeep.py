"""The due upkeep of tables, for an engine that rewrites rows itself."""

from __future__ import annotations

from lakelog.catalog.catalog import Catalog
from lakelog.catalog.core.logs import NO_MAINTENANCE
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.keeping.upkeep import DueWork, due_in
from lakelog.catalog.names import Name
from lakelog.catalog.transaction import Transaction
from lakelog.log.errors import Unsupported


@of_catalog
def plan_upkeep(catalog: Catalog | Transaction, name: Name | None = None) -> list[DueWork]:
    """Return the due upkeep of the tables that `Catalog.maintain` would look at."""
    if isinstance(catalog, Transaction):
        raise Unsupported(NO_MAINTENANCE)
    catalog._logs.check_writable()
    return due_in(catalog._tree, catalog._scope_of(name, None, None))
