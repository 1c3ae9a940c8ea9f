"""The version of every log of a namespace, for programs that show what is new."""

from __future__ import annotations

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import chosen_scope
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.names import Identifier


@of_catalog
def log_versions(catalog: CatalogNames, namespace: Identifier) -> dict[str, int]:
    """Return the newest version of each log of a namespace and all below it, by location.

    A log that cannot be read has version 0. Makes a request for each log if nothing is newer. Raises NoSuchNamespace.
    """
    scope = chosen_scope(catalog._tree, namespace=namespace)
    versions = {log.location: 0 for log in scope.unreadable}
    versions |= {target.tracked.location: target.view.version for target in scope.namespaces}
    return versions | {target.tracked.location: target.view.version for target in scope.tables}
