"""Views that clients of Iceberg create and replace. lakelog keeps a view as a single query in Spark's SQL.

Rule: a view that would not be shown as the client defined it is refused by name. A view's former versions and the
summaries of its versions are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.schema import ViewColumn, ViewDefinition, schema_to_spark
from lakelog.catalog.engine.definitions import create_view, replace_view
from lakelog.catalog.engine.exports import iceberg_views
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.formats.iceberg import VIEW_DIALECT, check_plain
from lakelog.catalog.formats.iceberg_commits import schema_of_client
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import InvalidInput, Unsupported

Json = Mapping[str, Any]

_QUERY_COLUMNS = "spark.query-column-names"


def define_for_client(
    catalog: CatalogNames,
    name: Identifier,
    request: Json,
    *,
    is_commit: bool = False,
    token: Token | None = None,
) -> None:
    """Create a view, or with `is_commit` replace it, as a client of Iceberg requests in the REST protocol's JSON.

    Raises ViewExists, TableExists, NoSuchNamespace, NoSuchView. Raises CommitConflict if a requirement does not hold,
    and InvalidInput or Unsupported if a part cannot be kept.
    """
    try:
        if is_commit:
            _replace(catalog, name, request, token)
        else:
            view = _definition(request["schema"], request["view-version"], request.get("properties") or {})
            if request.get("location") is not None:
                raise Unsupported("a view has its place in its namespace: leave the location out")
            _check_shown(catalog, view)
            create_view(catalog, name, view, token=token)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"the request is not as Iceberg's protocol has it ({type(error).__name__}: {error})"
        ) from error


def rename_view(catalog: CatalogNames, old: Identifier, new: Identifier, token: Token | None = None) -> None:
    """Give a view another name. Raises NoSuchView, TableExists or NoSuchNamespace."""
    catalog.rename_view(old, new, token=token)


def _replace(catalog: CatalogNames, name: Identifier, request: Json, token: Token | None) -> None:
    present = catalog.load_view(name)
    shown_views, left_out = iceberg_views(catalog, name[:-1])
    if name not in shown_views:
        raise Unsupported(
            left_out.get(name, f"the view {quoted(name)} cannot be shown to clients of Iceberg")
        )
    document = msgspec.json.decode(shown_views[name].metadata)
    for requirement in request["requirements"]:
        if requirement["type"] != "assert-view-uuid":
            raise InvalidInput(f"the requirement {requirement['type']!r} is not known")
        if requirement["uuid"].lower() != document["view-uuid"]:
            raise CommitConflict(
                f"{quoted(name)} is another view than the client has loaded. Nothing was changed: load it again",
                version=0,
            )
    schema, version, properties = _updated(document, request["updates"])
    view = _definition(schema, version, properties)
    _check_shown(catalog, view)
    replace_view(catalog, name, view, expected=present, token=token)


def _updated(document: Any, updates: Sequence[Json]) -> tuple[Json, Json, dict[str, str]]:
    """Return the schema, the version and the properties of a view after updates."""
    schemas, versions = list(document["schemas"]), list(document["versions"])
    current, properties = document["current-version-id"], dict(document["properties"])
    for update in updates:
        match update["action"]:
            case "assign-uuid":
                if update["uuid"].lower() != document["view-uuid"]:
                    raise InvalidInput("the uuid of a view cannot be changed")
            case "upgrade-format-version":
                if update["format-version"] != 1:
                    raise Unsupported(f"version {update['format-version']} of views is not supported: use 1")
            case "add-schema":
                new_id = max(schema["schema-id"] for schema in schemas) + 1
                schemas.append({**update["schema"], "schema-id": new_id})
            case "set-location":
                if update["location"].rstrip("/") != document["location"]:
                    raise Unsupported("a view has its place in its namespace: leave the location as it is")
            case "set-properties":
                properties |= update["updates"]
            case "remove-properties":
                for key in update["removals"]:
                    properties.pop(key, None)
            case "add-view-version":
                versions.append(update["view-version"])
            case "set-current-view-version":
                version_id = update["view-version-id"]
                current = versions[-1]["version-id"] if version_id == -1 else version_id
            case action:
                raise InvalidInput(f"the update {action!r} is not known: use one of Iceberg's REST protocol")
    version = next(candidate for candidate in reversed(versions) if candidate["version-id"] == current)
    schema_id = version["schema-id"]
    schema = (
        schemas[-1]
        if schema_id == -1
        else next(candidate for candidate in schemas if candidate["schema-id"] == schema_id)
    )
    return schema, version, properties


def _definition(schema: Json, version: Json, properties: Mapping[str, str]) -> ViewDefinition:
    representations = version["representations"]
    if len(representations) != 1 or representations[0]["type"] != "sql":
        raise Unsupported("lakelog keeps a view as one query: give a single representation, of type sql")
    if representations[0]["dialect"].lower() != VIEW_DIALECT:
        raise Unsupported(
            f"lakelog keeps views in the SQL of {VIEW_DIALECT}, and not of {representations[0]['dialect']}: create the "
            f"view with {VIEW_DIALECT}"
        )
    kept_properties = dict(properties)
    query_columns = kept_properties.pop(_QUERY_COLUMNS, None)
    return ViewDefinition(
        text=representations[0]["sql"],
        columns=tuple(
            ViewColumn(
                name=column["name"],
                type=column["type"],
                nullable=column["nullable"],
                comment=column["metadata"].get("comment"),
            )
            for column in schema_to_spark(schema_of_client(schema))["fields"]
        ),
        query_columns=tuple(query_columns.split(",")) if query_columns else (),
        catalog=version.get("default-catalog"),
        namespace=tuple(version["default-namespace"]),
        properties=kept_properties,
    )


def _check_shown(catalog: CatalogNames, view: ViewDefinition) -> None:
    """Raise Unsupported for a view that clients of Iceberg would not see."""
    functions = (
        [name[-1] for name in catalog.list_functions(view.namespace)]
        if catalog.namespace_exists(view.namespace)
        else []
    )
    check_plain(view, functions)
