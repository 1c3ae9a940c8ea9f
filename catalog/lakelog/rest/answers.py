"""The answers to a client of Iceberg's REST catalog, by request path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, unquote_plus

import msgspec

from lakelog.catalog import (
    Catalog,
    DoneInPart,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    Table,
    TableExists,
    TableRenamed,
    engine,
)
from lakelog.catalog.engine.exports import borrows_files, iceberg_metadata, iceberg_views
from lakelog.catalog.engine.keyed_requests import KeyReused
from lakelog.catalog.names import Identifier, quoted, quoted_where_needed
from lakelog.log.errors import (
    AlreadyExists,
    CommitUnknown,
    ConflictError,
    FormatError,
    InvalidInput,
    LakelogError,
    NotFound,
    PermissionDenied,
    Unsupported,
)
from lakelog.rest import documents
from lakelog.rest.access import LOCAL_CALLER, READ, SEE, KnownCaller, NeededRight
from lakelog.rest.client_words import RequestNames, with_known_words
from lakelog.rest.vending import AccessRequest, CredentialVendor, grant_of, reaches

_ERRORS: tuple[tuple[type[LakelogError], int, str], ...] = (
    (NoSuchNamespace, 404, "NoSuchNamespaceException"),
    (NoSuchTable, 404, "NoSuchTableException"),
    (NoSuchView, 404, "NoSuchViewException"),
    (NotFound, 404, "NotFoundException"),
    (NamespaceExists, 409, "AlreadyExistsException"),
    (TableExists, 409, "AlreadyExistsException"),
    (AlreadyExists, 400, "BadRequestException"),
    (KeyReused, 422, "UnprocessableEntityException"),
    (NamespaceNotEmpty, 409, "NamespaceNotEmptyException"),
    (ConflictError, 409, "CommitFailedException"),
    # A client that gets this looks for its snapshot, and does not simply send the request again.
    (CommitUnknown, 500, "CommitStateUnknownException"),
    (DoneInPart, 500, "InternalServerError"),
    (PermissionDenied, 403, "ForbiddenException"),
    (Unsupported, 400, "UnsupportedOperationException"),
    (InvalidInput, 400, "BadRequestException"),
    # Clients resend a request after a 503, which would be useless here.
    (FormatError, 500, "InternalServerError"),
)
_OF_OTHER_NAMES: Mapping[type[LakelogError], str] = {
    NamespaceNotEmpty: "the namespace is not empty: drop its tables, views and namespaces first",
    TableRenamed: "the table was renamed since it was loaded, and nothing was changed",
}
"""Errors whose own messages show names that were not asked for, and the message for a caller who may not see all."""

_READS = ("GET", "HEAD")
_NO_STORE = "no-store"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP status and a body: JSON, unless the headers have another Content-Type."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestRoute:
    """The rights that a request takes, and the work that it is. It is done only for a caller who has all of them."""

    needs: Sequence[NeededRight]
    run: Callable[[], HttpAnswer]
    about: RequestNames = RequestNames()


class WarehouseAnswers:
    """Answers requests about a warehouse. Threads may share it."""

    body_bytes_max = 0
    endpoints: Sequence[str] = documents.ENDPOINTS
    is_writable = False

    def __init__(self, catalog: Catalog, vendor: CredentialVendor | None = None) -> None:
        """With `vendor`, clients that ask for credentials get them, to read and write the files of a table."""
        self._catalog = catalog
        self._vendor = vendor
        if vendor is not None:
            self.endpoints = [*self.endpoints, documents.CREDENTIALS_ENDPOINT]

    def answer(
        self,
        method: str,
        target: str,
        known: str = "",
        body: bytes = b"",
        client: str = "",
        caller: KnownCaller = LOCAL_CALLER,
        delegation: str = "",
        idempotency_key: str | None = None,
    ) -> HttpAnswer:
        """Return the answer to `method` for a path with its query. Never raises a LakelogError.

        `known` are the ETags of the client's answers, in the form of the header If-None-Match. `client` is the
        client's name for itself, as in the header User-Agent. `delegation` is the header X-Iceberg-Access-Delegation.
        """
        path, _, query = target.partition("?")
        if method not in _READS:
            return error_answer(
                405,
                "UnsupportedOperationException",
                f"this catalog is read only, and {method} was asked for: write with lakelog, and read here",
                {"Allow": ", ".join(_READS)},
            )
        request = AccessRequest(caller, delegation if method == "GET" else "")
        answers = [
            self._read(path, parts, parse_qs(query, keep_blank_values=True), request)
            for parts in spellings(path)
        ]
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

    def check_ready(self) -> None:
        """Read the names of the warehouse. Raises LakelogError if requests could not be answered now."""
        self._catalog.list_namespaces()

    def _read(
        self, path: str, parts: list[str], query: Mapping[str, list[str]], request: AccessRequest
    ) -> HttpAnswer:
        route = self._route(parts, query, request)
        if route is None:
            return error_answer(404, "NotFoundException", f"this catalog has no {path}")
        return run_route(route, request.caller)

    def _route(
        self, parts: list[str], query: Mapping[str, list[str]], request: AccessRequest
    ) -> RequestRoute | None:
        if "" in parts:
            return None  # the protocol has no tables in the root, whose name is empty
        match parts:
            case ["v1", "config"]:
                return _reading(lambda: documents.config(self.endpoints, takes_keys=self.is_writable))
            case ["v1", "namespaces"]:
                parent = namespace_in(query.get("parent", [""])[0])
                return _reading(
                    lambda: self._namespaces(parent, query, request.caller),
                    NeededRight(SEE, parent),
                    about=parent,
                )
            case ["v1", "namespaces", name]:
                namespace = namespace_in(name)
                return _reading(
                    lambda: documents.namespace(self._catalog, namespace),
                    NeededRight(READ, namespace),
                    about=namespace,
                )
            case ["v1", "namespaces", name, "tables"]:
                namespace = namespace_in(name)
                return _reading(
                    lambda: self._tables(namespace, query), NeededRight(READ, namespace), about=namespace
                )
            case ["v1", "namespaces", name, "tables", table]:
                namespace, snapshots = namespace_in(name), query.get("snapshots", ["all"])[0]
                identifier = (*namespace, table)
                return RequestRoute(
                    (NeededRight(READ, namespace),),
                    lambda: self._table(identifier, snapshots, request),
                    RequestNames([identifier]),
                )
            case ["v1", "namespaces", name, "tables", table, "credentials"] if self._vendor is not None:
                identifier, vendor = (*namespace_in(name), table), self._vendor
                return RequestRoute(
                    (NeededRight(READ, identifier[:-1]),),
                    lambda: self._credentials(identifier, vendor, request.caller),
                    RequestNames([identifier]),
                )
            case ["v1", "namespaces", name, "views"]:
                namespace = namespace_in(name)
                return _reading(
                    lambda: self._views(namespace, query), NeededRight(READ, namespace), about=namespace
                )
            case ["v1", "namespaces", name, "views", view]:
                namespace, identifier = namespace_in(name), (*namespace_in(name), view)
                return _reading(
                    lambda: self._view(identifier), NeededRight(READ, namespace), about=identifier
                )
            case _:
                return None

    def _namespaces(self, parent: Identifier, query: Mapping[str, list[str]], caller: KnownCaller) -> Any:
        visible_names = [name for name in self._catalog.list_namespaces(parent) if caller.rights.sees(name)]
        names, token = _page(visible_names, query)
        return {**documents.namespaces(names), **token}

    def _tables(self, namespace: Identifier, query: Mapping[str, list[str]]) -> Any:
        names, token = _page(self._catalog.list_tables(namespace), query)
        return {**documents.identifiers(names), **token}

    def _table(self, name: Identifier, snapshots: str, request: AccessRequest) -> HttpAnswer:
        if snapshots not in ("all", "refs"):
            raise InvalidInput(f"there are no snapshots {snapshots!r}: ask for all, or for refs")
        table = self._catalog.load_table(name)
        url, metadata = iceberg_metadata(table)
        document = documents.loaded(
            url, documents.with_refs_only(metadata) if snapshots == "refs" else metadata
        )
        return self.loaded_answer(name, table, document, request)

    def loaded_answer(
        self, name: Identifier, table: Table, document: Any, request: AccessRequest
    ) -> HttpAnswer:
        """Return the answer with a table's document, and with credentials if the client wants any that there can be.

        The protocol lets a server hand out none. So a table that a role cannot reach is still loaded, by clients with
        credentials of their own. Raises StorageError if there are no credentials now.
        """
        vendor = self._vendor
        if vendor is None or not request.wants_credentials():
            return HttpAnswer(200, msgspec.json.encode(document))
        return answer_with_credentials(
            name, table.location, document, lambda: self._config(vendor, name, table, request.caller)
        )

    def _credentials(self, name: Identifier, vendor: CredentialVendor, caller: KnownCaller) -> HttpAnswer:
        table = self._catalog.load_table(name)
        config = self._config(vendor, name, table, caller)
        return _secret_answer(documents.credentials(table.location, config))

    def _config(
        self, vendor: CredentialVendor, name: Identifier, table: Table, caller: KnownCaller
    ) -> Mapping[str, str]:
        """Return the settings by which a client reaches a table's files.

        Raises Unsupported if a role's credentials cannot reach all of them.
        """
        if reaches(table.location, self._catalog.warehouse):
            raise Unsupported(
                f"there are no credentials for {quoted(name)}: the warehouse is in its folder, and they would reach "
                "all tables. Use credentials of your own"
            )
        if borrows_files(table):
            # Credentials for its own folder would keep clients from the other files, which their own may reach.
            raise Unsupported(
                f"there are no credentials for {quoted(name)}: it is a clone, and needs files of other tables. "
                "Materialize it, expire older versions and vacuum it, or use credentials of your own"
            )
        grant = grant_of(caller, name[:-1], is_writable=self.is_writable)
        return vendor.config(table.location, table.id, grant)

    def _views(self, namespace: Identifier, query: Mapping[str, list[str]]) -> Any:
        views, _ = iceberg_views(self._catalog, namespace)
        names, token = _page(list(views), query)
        return {**documents.identifiers(names), **token}

    def _view(self, name: Identifier) -> Any:
        try:
            views, left_out = iceberg_views(self._catalog, name[:-1])
        except NoSuchNamespace as error:
            raise NoSuchView(
                f"there is no view {quoted(name)}, as {error.message.removeprefix('there is ')}"
            ) from error
        if name in left_out:
            raise Unsupported(left_out[name])
        if name not in views:
            raise NoSuchView(f"there is no view {quoted(name)}: list its namespace to see which exist")
        return documents.loaded(views[name].url, views[name].metadata)


def answer_of_error(error: LakelogError, message: str | None = None) -> HttpAnswer:
    """Return the answer to a request that failed so, with another `message` if it is given.

    503 says that nothing was done, so the request may be sent again.
    """
    text = str(error) if message is None else message
    for kind, status, name in _ERRORS:
        if isinstance(error, kind):
            return error_answer(status, name, text)
    return error_answer(503, "ServiceUnavailableException", text)


def run_route(route: RequestRoute, caller: KnownCaller) -> HttpAnswer:
    """Do the work of a request, if the caller may. Otherwise return a refusal that depends on names alone."""
    lacking = caller.rights.lacks(route.needs)
    if lacking is not None:
        place = (
            f"the namespace {quoted_where_needed(lacking.namespace)}"
            if lacking.namespace
            else f"the {'whole ' if lacking.has_all_below else ''}warehouse"
        )
        return error_answer(
            403,
            "ForbiddenException",
            f"{caller.name} may not {lacking.verb} in {place}: ask for the right, which the server's file of rights "
            "gives",
        )
    try:
        with (
            engine.advising(engine.SEND_REQUEST),
            nullcontext() if caller.sees_all_names else engine.without_suggestions(),
        ):
            return route.run()
    except LakelogError as error:
        message = None if caller.sees_all_names else _OF_OTHER_NAMES.get(type(error))
        return answer_of_error(error, with_known_words(error, message or str(error), route.about))


def answer_with_credentials(
    name: Identifier, url: str, document: Any, find_config: Callable[[], Mapping[str, str]]
) -> HttpAnswer:
    """Return the answer with the document of a table at `url`, and with credentials unless they are Unsupported."""
    try:
        return _secret_answer(documents.with_credentials(document, name, url, find_config()))
    except Unsupported:
        return HttpAnswer(200, msgspec.json.encode(document))


def _secret_answer(document: Any) -> HttpAnswer:
    """Return an answer that no cache may keep.

    It has no ETag, because a client that has the metadata still needs new credentials.
    """
    return HttpAnswer(200, msgspec.json.encode(document), {"Cache-Control": _NO_STORE})


def _reading(document_of: Callable[[], Any], *needs: NeededRight, about: Identifier = ()) -> RequestRoute:
    return RequestRoute(
        needs, lambda: HttpAnswer(200, msgspec.json.encode(document_of())), RequestNames([about])
    )


def namespace_in(text: str) -> Identifier:
    return tuple(text.split(documents.SEPARATOR)) if text else ()


def _page(names: list[Identifier], query: Mapping[str, list[str]]) -> tuple[list[Identifier], dict[str, str]]:
    """Return a page of sorted names, and the member of the answer that leads to the next page.

    A page's token is the last name of the page before, so names that come and go move no other. Without a `pageToken`
    in the query, the page has all names.
    """
    if "pageToken" not in query:
        return names, {}
    last, size = query["pageToken"][0], query.get("pageSize", ["1000"])[0]
    if not (size.isascii() and size.isdigit() and 0 < len(size) < 10 and int(size)):
        raise InvalidInput(f"{size!r} is not a size of a page: give a number of at least 1")
    later_names = [name for name in names if not last or name[-1] > last.removeprefix("after:")]
    page = later_names[: int(size)]
    return page, {"next-page-token": f"after:{page[-1][-1]}"} if len(later_names) > len(page) else {}


def spellings(path: str) -> list[list[str]]:
    """Return the possible parts of a path. Java's clients write a space as +; Rust's and Go's write + itself."""
    parts = path.strip("/").split("/")
    readings = [[unquote(part) for part in parts], [unquote_plus(part) for part in parts]]
    return readings if "+" in path else readings[:1]


def _as_asked(answer: HttpAnswer, method: str, known: str) -> HttpAnswer:
    if answer.headers.get("Cache-Control") == _NO_STORE:
        return HttpAnswer(204) if method == "HEAD" else answer
    headers = {"ETag": f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'}
    if headers["ETag"] in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return HttpAnswer(304, headers=headers)
    return HttpAnswer(204) if method == "HEAD" else HttpAnswer(200, answer.body, headers)


def error_answer(
    status: int, name: str, message: str, headers: Mapping[str, str] | None = None
) -> HttpAnswer:
    body = msgspec.json.encode({"error": {"message": message, "type": name, "code": status}})
    return HttpAnswer(status, body, headers or {})
