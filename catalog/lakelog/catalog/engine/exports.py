"""Tables and views for readers of Iceberg, through a REST catalog."""

from __future__ import annotations

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.schema import ICEBERG_VERSION, SPACES, VIEW, ViewDefinition, leads_clients
from lakelog.catalog.core.state import MAIN
from lakelog.catalog.engine.operations import of_catalog, of_table
from lakelog.catalog.formats.iceberg import (
    Document,
    ExportedView,
    decoded_document,
    encode,
    export_with_metadata,
    in_version_2,
    newest_metadata,
    view_document,
)
from lakelog.catalog.looking.audit import commits_of_definitions
from lakelog.catalog.names import Identifier, Name, identifier
from lakelog.catalog.table import Table
from lakelog.log.errors import InvalidInput, PermissionDenied


@of_table
def iceberg_metadata(table: Table) -> tuple[str, bytes]:
    """Return the URL and the JSON of Iceberg's metadata of the newest version.

    Exports that version if it was not exported. A client that may only read gets the newest export. The JSON is in
    version 2 of the format if the table's properties say so, and if that can have it. It lacks properties that would
    lead clients elsewhere, because writers could set them in older versions of lakelog, and can forge an export.
    Raises Unsupported as `Table.export_iceberg`.
    """
    try:
        export, metadata = table._exported(None)
        url = export.url
    except PermissionDenied:
        if (newest_export := newest_metadata(table.table_head)) is None:
            raise
        url, metadata = newest_export
    document = decoded_document(metadata)
    shown_document = _without_leading_properties(_shown(document))
    return url, metadata if shown_document is document else encode(shown_document)


@of_table
def borrows_files(table: Table) -> bool:
    """Return whether versions of the table may need files in folders of other tables, as a clone's do."""
    return bool(table.table_head.state.origins)


@of_table
def metadata_to_commit_on(table: Table) -> tuple[Document, int]:
    """Return the metadata as `iceberg_metadata` does, decoded, and the version that it is the metadata of.

    That may be a later version than the metadata says, after transactions that were aborted. Raises PermissionDenied
    for a client that may only read.
    """
    head = table.table_head.on(MAIN).refreshed()
    export, metadata = export_with_metadata(head)
    return _shown(decoded_document(metadata)), max(export.version, head.version)


def _shown(document: Document) -> Document:
    """Return metadata in the version of the format that the table's properties ask for, if it can be."""
    if ICEBERG_VERSION.of(document["properties"]) != "2":
        return document
    return in_version_2(document) or document


def _without_leading_properties(document: Document) -> Document:
    properties = document["properties"]
    kept_properties = {name: value for name, value in properties.items() if not leads_clients(name)}
    return document if kept_properties == properties else document | {"properties": kept_properties}


@of_catalog
def iceberg_views(
    catalog: CatalogNames, namespace: Name
) -> tuple[dict[Identifier, ExportedView], dict[Identifier, str]]:
    """Return the views directly in `namespace` as Iceberg's views, and the views that cannot be, with the
    reasons.

    Raises NoSuchNamespace. If there are views, reads the commits since the oldest of their definitions.
    """
    path = identifier(namespace)
    namespace_log = catalog._tree.namespace(path)
    namespace_log.tracked.transaction.note_name_read(SPACES[VIEW], None)
    views = dict(namespace_log.view.state.definitions(SPACES[VIEW]))
    commits = commits_of_definitions(namespace_log, VIEW, views)
    functions: dict[Identifier, list[str]] = {}
    documents: dict[Identifier, ExportedView] = {}
    reasons: dict[Identifier, str] = {}
    for name, stored_view in sorted(views.items()):
        view = stored_view.definition
        assert isinstance(view, ViewDefinition)
        if view.namespace not in functions:
            function_names = (
                catalog.list_functions(view.namespace) if catalog._tree.find_namespace(view.namespace) else []
            )
            functions[view.namespace] = [function_name[-1] for function_name in function_names]
        commit = commits.get(name)
        try:
            documents[*path, name] = view_document(
                view,
                name=name,
                id=stored_view.id,
                location=catalog._logs.url(namespace_log.tracked.location),
                version=1 if commit is None else commit.version,
                time_us=0 if commit is None else commit.time_us,
                functions=functions[view.namespace],
            )
        except InvalidInput as error:
            reasons[*path, name] = str(error)
    return documents, reasons
