"""Views and functions that an engine has understood: creating and replacing them, and the authors of stored
code."""

from __future__ import annotations

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.ddl import define
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.schema import FunctionDefinition, ViewDefinition
from lakelog.catalog.engine.operations import of_catalog, of_table
from lakelog.catalog.errors import FunctionExists, ViewExists
from lakelog.catalog.names import Name, table_identifier
from lakelog.catalog.table_version import TableVersion


@of_catalog
def create_view(
    catalog: CatalogNames,
    name: Name,
    view: ViewDefinition,
    *,
    or_replace: bool = False,
    if_not_exists: bool = False,
    token: Token | None = None,
) -> None:
    """Create a view. Raises ViewExists (unless `or_replace` or `if_not_exists`), TableExists, NoSuchNamespace."""
    try:
        define(catalog._tree, table_identifier(name), view, create=True, replace=or_replace, token=token)
    except ViewExists:
        if not if_not_exists:
            raise


@of_catalog
def replace_view(
    catalog: CatalogNames,
    name: Name,
    view: ViewDefinition,
    *,
    expected: ViewDefinition | None = None,
    token: Token | None = None,
) -> None:
    """Replace an existing view by `view`.

    Raises NoSuchView, and CommitConflict if it is no longer `expected`.
    """
    path = table_identifier(name)
    define(catalog._tree, path, view, create=False, replace=True, expected=expected, token=token)


@of_catalog
def create_function(
    catalog: CatalogNames,
    name: Name,
    function: FunctionDefinition,
    *,
    or_replace: bool = False,
    if_not_exists: bool = False,
    token: Token | None = None,
) -> None:
    """Create a function. Raises FunctionExists (unless `or_replace` or `if_not_exists`), NoSuchNamespace."""
    try:
        define(catalog._tree, table_identifier(name), function, create=True, replace=or_replace, token=token)
    except FunctionExists:
        if not if_not_exists:
            raise


@of_table
def author_of_text(table: TableVersion, text: str) -> str | None:
    """Return the writer who brought a text into the table's definition (a CHECK, a default), and the log's
    version.

    None if that commit has expired.
    """
    from lakelog.catalog.looking.audit import author_of_text

    return author_of_text(table.table_head, table.version, text)


@of_catalog
def author_of_definition(catalog: CatalogNames, name: Name, kind: str) -> str | None:
    """Return the writer of a view or function (`kind`) as it is now, with the log and its version.

    None if that commit has expired.
    """
    from lakelog.catalog.looking.audit import author_of_definition

    return author_of_definition(catalog._tree, kind, table_identifier(name))
