"""The answers to a client of Iceberg's REST catalog that also writes, by request path.

Rule: a request is answered with success only if its whole effect is in the log. If a part cannot be kept, the request
is refused by name. No request leaves a state in this process, so any number of servers may answer the same client.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec

from lakelog.catalog import Catalog, engine
from lakelog.catalog.engine.exports import iceberg_metadata
from lakelog.catalog.engine.iceberg_commits import commit_for_clients, create_for_client, stage_for_client
from lakelog.catalog.engine.iceberg_views import define_for_client, rename_view
from lakelog.catalog.formats.iceberg_commits import ClientCommit, is_create
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, Unsupported
from lakelog.rest import documents
from lakelog.rest.access import (
    CREATE,
    DROP,
    LOCAL_CALLER,
    READ,
    VERBS,
    WRITE,
    KnownCaller,
    NeededRight,
    rights_in,
)
from lakelog.rest.answers import (
    HttpAnswer,
    RequestRoute,
    WarehouseAnswers,
    answer_of_error,
    answer_with_credentials,
    error_answer,
    namespace_in,
    run_route,
    spellings,
)
from lakelog.rest.client_words import RequestNames
from lakelog.rest.vending import AccessRequest, CredentialVendor, TableGrant

BODY_BYTES_MAX = 64 * 1024 * 1024
LOCATION = "location"
"""The member of a request to create a table, and the property of a namespace, that has a place for tables."""
_REPORT_BYTES = 4096
_LOGGER = logging.getLogger("lakelog.rest")
_NO_ACCESS = AccessRequest()

Json = Mapping[str, Any]
T = TypeVar("T")


class _StagedTable(msgspec.Struct, frozen=True):
    """The place and the id of a table in its metadata."""

    location: str
    uuid: str = msgspec.field(name="table-uuid")


class NewNamespace(msgspec.Struct, frozen=True):
    """The request to create a namespace."""

    namespace: tuple[str, ...]
    properties: dict[str, str] | None = None


class PropertyUpdates(msgspec.Struct, frozen=True):
    """The request to set and remove properties of a namespace."""

    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class ClientIdentifier(msgspec.Struct, frozen=True):
    """The name of a table or view in requests."""

    namespace: tuple[str, ...]
    name: str

    @property
    def identifier(self) -> Identifier:
        return (*self.namespace, self.name)


class RenameRequest(msgspec.Struct, frozen=True):
    """The request to rename a table or view."""

    source: ClientIdentifier
    destination: ClientIdentifier

    def names(self, *, is_of_view: bool) -> RequestNames:
        return RequestNames(
            [self.source.identifier], is_of_view=is_of_view, new_name=self.destination.identifier
        )


class TableCommitRequest(msgspec.Struct, frozen=True):
    """The request to commit to a table."""

    requirements: list[dict[str, Any]]
    updates: list[dict[str, Any]]
    identifier: ClientIdentifier | None = None

    @property
    def commit(self) -> ClientCommit:
        return ClientCommit(self.requirements, self.updates)


class JointCommitRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The request to commit to several tables."""

    table_changes: list[TableCommitRequest]


class WritableAnswers(WarehouseAnswers):
    """Answers requests that read or change a warehouse. Threads may share it.

    If a request changes a table, the answer has the table's newest metadata.
    """

    body_bytes_max = BODY_BYTES_MAX
    endpoints = [*documents.ENDPOINTS, *documents.WRITE_ENDPOINTS]
    is_writable = True

    def __init__(self, catalog: Catalog, vendor: CredentialVendor | None = None) -> None:
        super().__init__(catalog, vendor)
        self._writable = catalog

    def answer(
        self,
        method: str,
        target: str,
        known: str = "",
        body: bytes = b"",
        client: str = "",
        caller: KnownCaller = LOCAL_CALLER,
        delegation: str = "",
    ) -> HttpAnswer:
        """See `WarehouseAnswers.answer`. `body` is the JSON of a request that changes something.

        The caller's name is the user in each commit, if the server knows its callers.
        """
        if method in ("GET", "HEAD"):
            return super().answer(method, target, known, caller=caller, delegation=delegation)
        path, _, query = target.partition("?")
        candidates = spellings(path)
        parts = candidates[0]
        if len(candidates) > 1:
            # Java's clients write a space as +; others write + itself. The name that exists is meant.
            existing_paths = [candidate for candidate in candidates if self._exists(path, candidate, caller)]
            if len(existing_paths) > 1:
                return error_answer(
                    400, "BadRequestException", f"{path} is the path of two names: rename one"
                )
            parts = existing_paths[0] if existing_paths else parts
        try:
            request = AccessRequest(caller, delegation)
            route = self._change(method, parts, parse_qs(query), _Body(body), client, request)
        except LakelogError as error:
            return answer_of_error(error)
        if route is None:
            return error_answer(404, "NotFoundException", f"this catalog has no {method} {path}")
        with engine.writing_as(engine.bounded_facts({engine.USER: caller.name or None})):
            return run_route(route, caller)

    def _exists(self, path: str, parts: list[str], caller: KnownCaller) -> bool:
        is_object = len(parts) > 4 and parts[3] in ("tables", "views")
        request = AccessRequest(caller)
        return self._read(path, parts[:5] if is_object else parts[:3], {}, request).status == 200

    def _change(
        self,
        method: str,
        parts: list[str],
        query: Mapping[str, list[str]],
        body: _Body,
        client: str,
        request: AccessRequest,
    ) -> RequestRoute | None:
        """Return the route of a request that changes something. None if there is no such request.

        Raises InvalidInput for another body. Each case names the rights that it takes, because a route has them all
        before anything is done.
        """
        if "" in parts:
            return None
        match method, parts:
            case "POST", ["v1", "namespaces"]:
                return self._to_create_namespace(body.of(NewNamespace))
            case "POST", ["v1", "namespaces", name, "properties"]:
                namespace, properties = namespace_in(name), body.of(PropertyUpdates)
                names = (*(properties.updates or ()), *(properties.removals or ()))
                needs = (*rights_in(namespace, (READ, WRITE)), *_rights_to_place(names))
                return RequestRoute(
                    needs, lambda: self._alter_namespace(namespace, properties), RequestNames([namespace])
                )
            case "DELETE", ["v1", "namespaces", name]:
                namespace = namespace_in(name)
                needs = (*rights_in(namespace[:-1], (DROP,)), *rights_in(namespace, (DROP,)))
                return RequestRoute(needs, lambda: self._drop_namespace(namespace), RequestNames([namespace]))
            case "POST", ["v1", "namespaces", name, "tables"]:
                return self._to_create_table(namespace_in(name), body.json(), client, request)
            case "POST", ["v1", "namespaces", name, "register"]:
                return RequestRoute(rights_in(namespace_in(name), (READ, CREATE)), _refuse_register)
            case "POST", ["v1", "namespaces", name, "tables", table]:
                return self._to_commit((*namespace_in(name), table), body.of(TableCommitRequest), client)
            case "DELETE", ["v1", "namespaces", name, "tables", table]:
                namespace, identifier = namespace_in(name), (*namespace_in(name), table)
                purges = query.get("purgeRequested", ["false"])[0].lower() == "true"
                return RequestRoute(
                    rights_in(namespace, (DROP,)),
                    lambda: self._drop_table(identifier, purge=purges),
                    RequestNames([identifier]),
                )
            case "POST", ["v1", "namespaces", name, "tables", table, "metrics"]:
                identifier, report = (*namespace_in(name), table), body.json()
                return RequestRoute(
                    rights_in(identifier[:-1], (READ,)),
                    lambda: self._log_metrics(identifier, report),
                    RequestNames([identifier]),
                )
            case "POST", ["v1", "tables", "rename"]:
                rename = body.of(RenameRequest)
                return RequestRoute(
                    _rights_to_rename(rename),
                    lambda: self._rename_table(rename),
                    rename.names(is_of_view=False),
                )
            case "POST", ["v1", "transactions", "commit"]:
                return self._to_commit_together(body.of(JointCommitRequest), client)
            case "POST", ["v1", "namespaces", name, "views"]:
                namespace, definition = namespace_in(name), body.json()
                needs = (*rights_in(namespace, (READ, CREATE)), *_rights_to_resolve(definition))
                view_name = _name_of_new(definition, "view")
                return RequestRoute(
                    needs,
                    lambda: self._create_view((*namespace, view_name), definition),
                    RequestNames([(*namespace, view_name)], is_of_view=True),
                )
            case "POST", ["v1", "namespaces", name, "views", view]:
                namespace, definition = namespace_in(name), body.json()
                needs = (*rights_in(namespace, (READ, WRITE)), *_rights_to_resolve(definition))
                return RequestRoute(
                    needs,
                    lambda: self._replace_view((*namespace, view), definition),
                    RequestNames([(*namespace, view)], is_of_view=True),
                )
            case "DELETE", ["v1", "namespaces", name, "views", view]:
                namespace = namespace_in(name)
                return RequestRoute(
                    rights_in(namespace, (DROP,)),
                    lambda: self._drop_view((*namespace, view)),
                    RequestNames([(*namespace, view)], is_of_view=True),
                )
            case "POST", ["v1", "views", "rename"]:
                rename = body.of(RenameRequest)
                return RequestRoute(
                    _rights_to_rename(rename),
                    lambda: self._rename_view(rename),
                    rename.names(is_of_view=True),
                )
            case _:
                return None

    # Namespaces

    def _to_create_namespace(self, request: NewNamespace) -> RequestRoute:
        if not request.namespace:
            raise InvalidInput("the name of the namespace is empty: give it at least one part")
        _refuse_separator(request.namespace)
        # It is created in the namespace above. Grants that leave its own name out do not reach it.
        needs = (
            *rights_in(request.namespace[:-1], (CREATE,)),
            *rights_in(request.namespace, (READ, CREATE)),
            *_rights_to_place(request.properties or ()),
        )
        return RequestRoute(needs, lambda: self._create_namespace(request), RequestNames([request.namespace]))

    def _create_namespace(self, request: NewNamespace) -> HttpAnswer:
        self._writable.create_namespace(request.namespace, request.properties or {})
        return _answer(documents.namespace(self._writable, request.namespace))

    def _alter_namespace(self, name: Identifier, request: PropertyUpdates) -> HttpAnswer:
        updates, removals = request.updates or {}, request.removals or []
        both = sorted(updates.keys() & set(removals))
        if both:
            return error_answer(
                422,
                "UnprocessableEntityException",
                f"the property {both[0]} is set and removed: choose one of both",
            )
        present = self._writable.load_namespace(name)
        missing = sorted(set(removals) - present.keys())
        removed_names = sorted(set(removals) & present.keys())
        if updates or removed_names:
            self._writable.alter_namespace(name, set=updates, remove=removed_names)
        return _answer({"updated": sorted(updates), "removed": removed_names, "missing": missing})

    def _drop_namespace(self, name: Identifier) -> HttpAnswer:
        self._writable.drop_namespace(name)
        return HttpAnswer(204)

    # Tables

    def _to_create_table(
        self, namespace: Identifier, definition: Json, client: str, request: AccessRequest
    ) -> RequestRoute:
        name = (*namespace, _name_of_new(definition, "table"))
        members = [member for member, value in definition.items() if value is not None]
        needs = (*rights_in(namespace, (READ, CREATE)), *_rights_to_place(members))
        return RequestRoute(
            needs, lambda: self._create_table(name, definition, client, request), RequestNames([name])
        )

    def _create_table(
        self, identifier: Identifier, definition: Json, client: str, request: AccessRequest
    ) -> HttpAnswer:
        # A header that is refused is refused before anything is done.
        wants_credentials = self._vendor is not None and request.wants_credentials()
        if definition.get("stage-create"):
            metadata = stage_for_client(self._writable, identifier, definition)
            document = {"metadata": msgspec.Raw(metadata), "config": {}}
            if not wants_credentials:
                return _answer(document)
            return self._staged_answer(identifier, metadata, document, request.caller)
        create_for_client(self._writable, identifier, definition, client)
        return self._after_commit(identifier, request)

    def _staged_answer(
        self, name: Identifier, metadata: bytes, document: Any, caller: KnownCaller
    ) -> HttpAnswer:
        """Return the answer with a staged table, and credentials for its files.

        They may write, whatever the caller's rights to other tables are: the files are a part of the creation.
        """
        assert self._vendor is not None
        vendor, staged_table = self._vendor, msgspec.json.decode(metadata, type=_StagedTable)
        url = staged_table.location
        grant = TableGrant(writes=True, deletes=caller.rights.has(NeededRight(DROP, name[:-1])))
        return answer_with_credentials(
            name, url, document, lambda: vendor.config(url, staged_table.uuid, grant)
        )

    def _to_commit(self, name: Identifier, request: TableCommitRequest, client: str) -> RequestRoute:
        if request.identifier is not None and request.identifier.identifier != name:
            raise InvalidInput(
                f"the request is about {quoted(request.identifier.identifier)}, and its path about {quoted(name)}"
            )
        return RequestRoute(
            _rights_to_commit(name, request),
            lambda: self._commit(name, request, client),
            RequestNames([name], is_commit=True),
        )

    def _commit(self, name: Identifier, request: TableCommitRequest, client: str) -> HttpAnswer:
        _commit_all(self._writable, [(name, request.commit)], client)
        return self._after_commit(name)

    def _after_commit(self, name: Identifier, request: AccessRequest = _NO_ACCESS) -> HttpAnswer:
        """Return the newest metadata of a table whose commit was made. A failure now does not undo the commit.

        A `request` to create the table may also want credentials. Answers to commits have none, in this protocol.
        """
        try:
            table = self._writable.load_table(name)
            url, metadata = iceberg_metadata(table)
            return self.loaded_answer(name, table, documents.loaded(url, metadata), request)
        except LakelogError as error:
            return error_answer(
                500,
                "CommitStateUnknownException",
                f"the commit to {quoted(name)} was made, and its metadata or its credentials cannot be had now: "
                f"{error}. Load the table",
            )

    def _to_commit_together(self, request: JointCommitRequest, client: str) -> RequestRoute:
        commits: list[tuple[Identifier, ClientCommit]] = []
        needs: list[NeededRight] = []
        for change in request.table_changes:
            if change.identifier is None:
                raise InvalidInput("a change of several tables has to name each table: give its identifier")
            commits.append((change.identifier.identifier, change.commit))
            needs += _rights_to_commit(change.identifier.identifier, change)
        about = RequestNames([name for name, _ in commits], is_commit=True)
        return RequestRoute(needs, lambda: self._commit_together(commits, client), about)

    def _commit_together(self, commits: list[tuple[Identifier, ClientCommit]], client: str) -> HttpAnswer:
        _commit_all(self._writable, commits, client)
        return HttpAnswer(204)

    def _drop_table(self, name: Identifier, *, purge: bool) -> HttpAnswer:
        self._writable.drop_table(name, purge=purge)
        return HttpAnswer(204)

    def _log_metrics(self, name: Identifier, report: Json) -> HttpAnswer:
        """Log the beginning of a client's report on its scan or commit."""
        self._writable.load_table(name)
        text = msgspec.json.encode(report)[:_REPORT_BYTES].decode(errors="replace")
        _LOGGER.info("a client reports on %s: %s", quoted(name), text)
        return HttpAnswer(204)

    def _rename_table(self, request: RenameRequest) -> HttpAnswer:
        _check_new_name(request.destination)
        self._writable.rename_table(request.source.identifier, request.destination.identifier)
        return HttpAnswer(204)

    # Views

    def _create_view(self, name: Identifier, request: Json) -> HttpAnswer:
        define_for_client(self._writable, name, request)
        return _answer(self._view(name))

    def _replace_view(self, name: Identifier, request: Json) -> HttpAnswer:
        define_for_client(self._writable, name, request, is_commit=True)
        return _answer(self._view(name))

    def _drop_view(self, name: Identifier) -> HttpAnswer:
        self._writable.drop_view(name)
        return HttpAnswer(204)

    def _rename_view(self, request: RenameRequest) -> HttpAnswer:
        _check_new_name(request.destination)
        rename_view(self._writable, request.source.identifier, request.destination.identifier)
        return HttpAnswer(204)


# Rights


def _rights_to_commit(name: Identifier, request: TableCommitRequest) -> tuple[NeededRight, ...]:
    return rights_in(name[:-1], (READ, CREATE if is_create(request.requirements) else WRITE))


def _rights_to_rename(request: RenameRequest) -> tuple[NeededRight, ...]:
    """Return the rights to take a name away, and to give the new name.

    An object that comes into another namespace is under the rights there. So the caller needs all verbs that it could
    get by that in the old namespace, too.
    """
    source, destination = request.source.namespace, request.destination.namespace
    return (*rights_in(source, (READ, WRITE, DROP)), *rights_in(destination, (CREATE,)))


def _rights_to_place(names: Iterable[str]) -> tuple[NeededRight, ...]:
    """Return the rights to choose a place for tables, if a place is among the names of members or properties.

    It may be in the folder of any other namespace, or in any other folder that the server may write to.
    """
    if LOCATION not in names:
        return ()
    return tuple(NeededRight(verb, (), has_all_below=True) for verb in VERBS)


def _rights_to_resolve(definition: Json) -> tuple[NeededRight, ...]:
    """Return the right to read the namespace in which a view's names are looked up: errors name functions there."""
    updates = definition.get("updates")
    versions = (
        [update.get("view-version") for update in updates if isinstance(update, dict)]
        if isinstance(updates, list)
        else []
    )
    needs: list[NeededRight] = []
    for version in (definition.get("view-version"), *versions):
        namespace = version.get("default-namespace") if isinstance(version, dict) else None
        if namespace is not None:
            if not isinstance(namespace, list) or not all(isinstance(part, str) for part in namespace):
                raise InvalidInput("the default-namespace of a view is a list of texts")
            needs.append(NeededRight(READ, tuple(namespace)))
    return tuple(needs)


class _Body:
    """The body of a request. It is decoded when its form is known."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def of(self, type_: type[T]) -> T:
        """Return the body as a struct. Raises InvalidInput for JSON of another form."""
        try:
            return msgspec.json.decode(self._data, type=type_)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the body is not what this request takes: {error}") from None

    def json(self) -> Json:
        return self.of(dict[str, Any])


def _commit_all(catalog: Catalog, commits: list[tuple[Identifier, ClientCommit]], client: str) -> None:
    """Commit, with errors as this protocol has them: only a table or namespace is not found."""
    try:
        commit_for_clients(catalog, commits, client)
    except NotFound as error:
        if answer_of_error(error).status == 404 and not _is_of_name(error):
            raise InvalidInput(error.message) from error
        raise


def _is_of_name(error: NotFound) -> bool:
    return error.kind in ("no-such-table", "no-such-namespace", "table-renamed")


def _refuse_register() -> HttpAnswer:
    raise Unsupported(
        "a metadata file cannot be registered, as the table would have its history in two places: import it by "
        "`lakelog import`, which copies no file"
    )


def _name_of_new(request: Json, kind: str) -> str:
    """Return the name in a request to create a table or view. Raises InvalidInput without a good name."""
    name = request.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"the request to create a {kind} has no name")
    _refuse_separator((name,))
    return name


def _check_new_name(new: ClientIdentifier) -> None:
    """Raise InvalidInput for a name that paths of this protocol cannot have."""
    if not new.namespace:
        raise InvalidInput(
            f"the new name {new.name!r} is in no namespace, where no client would find it: give one"
        )
    _refuse_separator((new.name,))


def _refuse_separator(names: tuple[str, ...]) -> None:
    if any(documents.SEPARATOR in name for name in names):
        raise InvalidInput("a name has the character that separates names in paths: choose another name")


def _answer(document: Any) -> HttpAnswer:
    return HttpAnswer(200, msgspec.json.encode(document))
