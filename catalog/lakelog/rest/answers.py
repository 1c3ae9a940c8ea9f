"""What a client of Iceberg's REST catalog is answered, by the path that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from lakelog.catalog import Catalog, NoSuchNamespace, NoSuchTable, NoSuchView
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, PermissionDenied, Unsupported
from lakelog.rest import documents

_ERRORS: tuple[tuple[type[LakelogError], int, str], ...] = (
    (NoSuchNamespace, 404, "NoSuchNamespaceException"),
    (NoSuchTable, 404, "NoSuchTableException"),
    (NoSuchView, 404, "NoSuchViewException"),
    (NotFound, 404, "NotFoundException"),
    (PermissionDenied, 403, "ForbiddenException"),
    (Unsupported, 400, "UnsupportedOperationException"),
    (InvalidInput, 400, "BadRequestException"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status, and JSON."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Answers:
    """Answers requests about a warehouse. Safe to share between threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def answer(self, method: str, target: str) -> Answer:
        """Return the answer to `method` for a path with its query. Never raises a LakelogError."""
        path, _, query = target.partition("?")
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if method not in ("GET", "HEAD"):
            return _error(
                405,
                "UnsupportedOperationException",
                f"this catalog is read only, and {method} was asked for: write with lakelog, and read here",
            )
        found = self._route(parts, parse_qs(query))
        if found is None:
            return _error(404, "NotFoundException", f"this catalog has no {path}")
        try:
            made = found()
        except LakelogError as error:
            for kind, status, name in _ERRORS:
                if isinstance(error, kind):
                    return _error(status, name, str(error))
            return _error(503, "ServiceUnavailableException", str(error))
        if method == "HEAD":
            return Answer(204)
        return Answer(200, msgspec.json.encode(made))

    def _route(self, parts: list[str], query: Mapping[str, list[str]]) -> Callable[[], Any] | None:
        match parts:
            case ["v1", "config"]:
                return documents.config
            case ["v1", "namespaces"]:
                return lambda: self._namespaces(_namespace(query.get("parent", [""])[0]))
            case ["v1", "namespaces", name]:
                return lambda: documents.namespace(self._catalog, _namespace(name))
            case ["v1", "namespaces", name, "tables"]:
                return lambda: self._tables(_namespace(name))
            case ["v1", "namespaces", name, "tables", table]:
                return lambda: self._table((*_namespace(name), table))
            case ["v1", "namespaces", name, "views"]:
                return lambda: self._views(_namespace(name))
            case ["v1", "namespaces", name, "views", view]:
                return lambda: self._view((*_namespace(name), view))
            case _:
                return None

    def _namespaces(self, parent: Identifier) -> Any:
        return documents.namespaces(self._catalog.list_namespaces(parent))

    def _tables(self, namespace: Identifier) -> Any:
        return documents.identifiers(self._catalog.list_tables(namespace))

    def _table(self, name: Identifier) -> Any:
        return documents.loaded(*self._catalog.load_table(name).iceberg_metadata())

    def _views(self, namespace: Identifier) -> Any:
        shown, _ = self._catalog.iceberg_views(namespace)
        return documents.identifiers(list(shown))

    def _view(self, name: Identifier) -> Any:
        shown, left_out = self._catalog.iceberg_views(name[:-1])
        if name in left_out:
            raise Unsupported(left_out[name])
        if name not in shown:
            raise NoSuchView(f"there is no view {quoted(name)}: list its namespace to see which exist")
        return documents.loaded(shown[name].url, shown[name].metadata)


def _namespace(text: str) -> Identifier:
    return tuple(text.split(documents.SEPARATOR)) if text else ()


def _error(status: int, name: str, message: str) -> Answer:
    return Answer(status, msgspec.json.encode({"error": {"message": message, "type": name, "code": status}}))
