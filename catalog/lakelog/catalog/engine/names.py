"""Names for an engine: tables and views at once, and staged tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.ddl import StagedTable, StageRequest, stage_table
from lakelog.catalog.core.ddl import commit_stage as commit_staged
from lakelog.catalog.core.ddl import drop_table_at as drop_at
from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import TableHead, Token
from lakelog.catalog.core.schema import VIEW, Schema, StatedConstraint, ViewDefinition, Written
from lakelog.catalog.core.state import RELATION, TABLE
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.names import Identifier, Location, Name, identifier, spelled, table_identifier
from lakelog.catalog.table import Table


@of_catalog
def table_names(catalog: CatalogNames, namespace: Name = ()) -> pa.StringArray:
    """As `Catalog.list_tables`, but only the names, as an Arrow array. Fast for a million names."""
    return catalog._tree.listed(identifier(namespace), RELATION).names_array(RELATION, TABLE)


@of_catalog
def list_relations(catalog: CatalogNames, namespace: Name = ()) -> tuple[list[Identifier], list[Identifier]]:
    """Return the tables and the views directly in `namespace`, at the cost of either. Raises NoSuchNamespace."""
    path = identifier(namespace)
    state = catalog._tree.listed(path, RELATION)
    tables, views = state.names(RELATION, TABLE), state.names(RELATION, VIEW)
    return [(*path, name) for name in tables], [(*path, name) for name in views]


@of_catalog
def relation_names(catalog: CatalogNames, namespace: Name = ()) -> tuple[pa.StringArray, pa.StringArray]:
    """As `list_relations`, but only the names, as Arrow arrays."""
    state = catalog._tree.listed(identifier(namespace), RELATION)
    return state.names_array(RELATION, TABLE), state.names_array(RELATION, VIEW)


@of_catalog
def load_relation(catalog: CatalogNames, name: Name) -> Table | ViewDefinition:
    """Return the table or view of that name, at the cost of a table. Raises NoSuchTable if neither exists."""
    path = table_identifier(name)
    found_table = catalog._tree.find_table(path)
    if found_table is not None:
        return Table(TableHead.named(catalog._logs, found_table, path))
    view = catalog._tree.known_definition(path)
    if isinstance(view, ViewDefinition):
        return view
    raise catalog._tree.missing_table(path)


@of_catalog
def drop_table_at(catalog: CatalogNames, location: Location, *, token: Token | None = None) -> bool:
    """Drop a table that has no name, by its place. Returns False if it does not exist. Its data stays."""
    return drop_at(catalog._tree, catalog._logs.location(spelled(location)), token)


# Tables to be


@of_catalog
def stage(
    catalog: CatalogNames,
    kind: str,
    name: Name | None,
    schema: Schema | pa.Schema,
    *,
    partitioning: Sequence[Written] = (),
    sort_by: Sequence[Written] = (),
    cluster_by: Sequence[str | Sequence[str]] = (),
    properties: Mapping[str, str] | None = None,
    location: Location | None = None,
    comment: str | None = None,
    provider: str | None = None,
    constraints: Sequence[StatedConstraint | Mapping[str, Any]] = (),
) -> StagedTable:
    """Prepare a table, invisible before `commit_stage`: `kind` is create, replace or create-or-replace.

    If `constraints` have a CHECK, the writer of the files ensures that their rows satisfy it. Without a name,
    the table is at `location`. Raises TableExists, NoSuchTable, NoSuchNamespace, InvalidInput.
    """
    request = StageRequest(
        kind=kind,
        identifier=None if name is None else table_identifier(name),
        schema=schema,
        partitioning=partitioning,
        sort_by=sort_by,
        cluster_by=cluster_by,
        properties=properties or {},
        location=spelled(location),
        comment=comment,
        provider=provider,
        constraints=constraints,
    )
    return stage_table(catalog._tree, request)


@of_catalog
def commit_stage(catalog: CatalogNames, stage: StagedTable, files: Sequence[DataFile] = ()) -> Table:
    """Make a staged table visible, with the files that were written for it. A retry is safe."""
    return Table(commit_staged(catalog._tree, stage, files))
