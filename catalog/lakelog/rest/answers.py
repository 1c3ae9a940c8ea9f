"""The answers to a client of Iceberg's REST catalog, by request path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, unquote_plus

import msgspec

from lakelog.catalog import Catalog, NoSuchNamespace, NoSuchTable, NoSuchView
from lakelog.catalog.engine.exports import iceberg_metadata, iceberg_views
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import (
    FormatError,
    InvalidInput,
    LakelogError,
    NotFound,
    PermissionDenied,
    Unsupported,
)
from lakelog.rest import documents

_ERRORS: tuple[tuple[type[LakelogError], int, str], ...] = (
    (NoSuchNamespace, 404, "NoSuchNamespaceException"),
    (NoSuchTable, 404, "NoSuchTableException"),
    (NoSuchView, 404, "NoSuchViewException"),
    (NotFound, 404, "NotFoundException"),
    (PermissionDenied, 403, "ForbiddenException"),
    (Unsupported, 400, "UnsupportedOperationException"),
    (InvalidInput, 400, "BadRequestException"),
    # Clients resend a request after a 503, which would be useless here.
    (FormatError, 500, "InternalServerError"),
)
_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP status and a body: JSON, unless the headers have another Content-Type."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class WarehouseAnswers:
    """Answers requests about a warehouse. Threads may share it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def answer(self, method: str, target: str, known: str = "") -> HttpAnswer:
        """Return the answer to `method` for a path with its query. Never raises a LakelogError.

        `known` are the ETags of the client's answers, in the form of the header If-None-Match.
        """
        path, _, query = target.partition("?")
        if method not in _READS:
            return error_answer(
                405,
                "UnsupportedOperationException",
                f"this catalog is read only, and {method} was asked for: write with lakelog, and read here",
                {"Allow": ", ".join(_READS)},
            )
        answers = [self._read(path, parts, parse_qs(query)) for parts in _spellings(path)]
        good_answers = [candidate for candidate in answers if candidate.status == 200]
        if len(good_answers) > 1:
            return error_answer(
                400,
                "BadRequestException",
                f"{path} is the path of two names, since clients write a space as + too: rename one of them",
            )
        if not good_answers:
            return answers[0]
        return _as_asked(good_answers[0], method, known)

    def _read(self, path: str, parts: list[str], query: Mapping[str, list[str]]) -> HttpAnswer:
        document_of = self._route(parts, query)
        if document_of is None:
            return error_answer(404, "NotFoundException", f"this catalog has no {path}")
        try:
            return HttpAnswer(200, msgspec.json.encode(document_of()))
        except LakelogError as error:
            for kind, status, name in _ERRORS:
                if isinstance(error, kind):
                    return error_answer(status, name, str(error))
            return error_answer(503, "ServiceUnavailableException", str(error))

    def _route(self, parts: list[str], query: Mapping[str, list[str]]) -> Callable[[], Any] | None:
        if "" in parts:
            return None  # the protocol has no tables in the root, whose name is empty
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
                return lambda: self._table((*_namespace(name), table), query.get("snapshots", ["all"])[0])
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

    def _table(self, name: Identifier, snapshots: str) -> Any:
        if snapshots not in ("all", "refs"):
            raise InvalidInput(f"there are no snapshots {snapshots!r}: ask for all, or for refs")
        url, metadata = iceberg_metadata(self._catalog.load_table(name))
        return documents.loaded(url, documents.with_refs_only(metadata) if snapshots == "refs" else metadata)

    def _views(self, namespace: Identifier) -> Any:
        views, _ = iceberg_views(self._catalog, namespace)
        return documents.identifiers(list(views))

    def _view(self, name: Identifier) -> Any:
        views, left_out = iceberg_views(self._catalog, name[:-1])
        if name in left_out:
            raise Unsupported(left_out[name])
        if name not in views:
            raise NoSuchView(f"there is no view {quoted(name)}: list its namespace to see which exist")
        return documents.loaded(views[name].url, views[name].metadata)


def _namespace(text: str) -> Identifier:
    return tuple(text.split(documents.SEPARATOR)) if text else ()


def _spellings(path: str) -> list[list[str]]:
    """Return the possible parts of a path. Java's clients write a space as +; Rust's and Go's write + itself."""
    parts = path.strip("/").split("/")
    readings = [[unquote(part) for part in parts], [unquote_plus(part) for part in parts]]
    return readings if "+" in path else readings[:1]


def _as_asked(answer: HttpAnswer, method: str, known: str) -> HttpAnswer:
    headers = {"ETag": f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'}
    if headers["ETag"] in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return HttpAnswer(304, headers=headers)
    return HttpAnswer(204) if method == "HEAD" else HttpAnswer(200, answer.body, headers)


def error_answer(
    status: int, name: str, message: str, headers: Mapping[str, str] | None = None
) -> HttpAnswer:
    body = msgspec.json.encode({"error": {"message": message, "type": name, "code": status}})
    return HttpAnswer(status, body, headers or {})
