"""The answers to a client of Iceberg's REST catalog that also writes, by request path.

Rule: a request is answered with success only if its whole effect is in the log. If a part cannot be kept, the request
is refused by name. No request leaves a state in this process, so any number of servers may answer the same client.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import msgspec

from lakelog.catalog import Catalog, engine
from lakelog.catalog.engine.exports import iceberg_metadata
from lakelog.catalog.engine.iceberg_commits import (
    RepeatedCommit,
    commit_for_clients,
    create_for_client,
    stage_for_client,
)
from lakelog.catalog.engine.iceberg_views import define_for_client, rename_view
from lakelog.catalog.engine.keyed_requests import EarlierCommit, KeyedRequest
from lakelog.catalog.formats.iceberg_commits import ClientCommit
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import (
    InvalidInput,
    LakelogError,
    NotFound,
    Unsupported,
)
from lakelog.rest import documents
from lakelog.rest.access import (
    CREATE,
    DROP,
    LOCAL_CALLER,
    READ,
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
from lakelog.rest.client_bodies import (
    JointCommitRequest,
    Json,
    NewNamespace,
    PropertyUpdates,
    RenameRequest,
    RequestBody,
    StagedTableForm,
    TableCommitRequest,
    check_new_name,
    name_of_new,
    refuse_separator,
)
from lakelog.rest.client_words import RequestNames
from lakelog.rest.request_repeats import RequestRepeats, request_with_key, token_before
from lakelog.rest.request_rights import (
    rights_to_commit,
    rights_to_place,
    rights_to_rename,
    rights_to_resolve,
)
from lakelog.rest.vending import AccessRequest, CredentialVendor, TableGrant

BODY_BYTES_MAX = 64 * 1024 * 1024
_REPORT_BYTES = 4096
_LOGGER = logging.getLogger("lakelog.rest")
_NO_ACCESS = AccessRequest()

Token = engine.Token | None


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
        self._repeats = RequestRepeats(catalog)

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
        """See `WarehouseAnswers.answer`. `body` is the JSON of a request that changes something.

        The caller's name is the user in each commit, if the server knows its callers. With `idempotency_key`, as in the
        header of that name, the client may send the request again.
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
            keyed = request_with_key(idempotency_key, caller, [method.encode(), target.encode(), body])
            route = self._change(method, parts, parse_qs(query), RequestBody(body), client, request, keyed)
        except LakelogError as error:
            return answer_of_error(error)
        if route is None:
            return error_answer(404, "NotFoundException", f"this catalog has no {method} {path}")
        facts = engine.bounded_facts({engine.USER: caller.name or None})
        with engine.writing_as({**facts, **(keyed.facts if keyed is not None else {})}):
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
        body: RequestBody,
        client: str,
        request: AccessRequest,
        keyed: KeyedRequest | None,
    ) -> RequestRoute | None:
        """Return the route of a request that changes something. None if there is no such request.

        Raises InvalidInput for another body. Each case names the rights that it takes, because a route has them all
        before anything is done.
        """
        if "" in parts:
            return None
        match method, parts:
            case "POST", ["v1", "namespaces"]:
                return self._to_create_namespace(body.of(NewNamespace), keyed)
            case "POST", ["v1", "namespaces", name, "properties"]:
                namespace, properties = namespace_in(name), body.of(PropertyUpdates)
                names = (*(properties.updates or ()), *(properties.removals or ()))
                needs = (*rights_in(namespace, (READ, WRITE)), *rights_to_place(names))
                return RequestRoute(
                    needs,
                    lambda: self._repeats.once(
                        keyed,
                        namespace,
                        namespace,
                        lambda token: self._alter_namespace(namespace, properties, token),
                        lambda earlier: _altered(properties),
                    ),
                    RequestNames([namespace]),
                )
            case "DELETE", ["v1", "namespaces", name]:
                namespace = namespace_in(name)
                needs = (*rights_in(namespace[:-1], (DROP,)), *rights_in(namespace, (DROP,)))
                return RequestRoute(
                    needs,
                    lambda: self._repeats.once(
                        keyed, namespace[:-1], namespace, partial(self._drop_namespace, namespace), _done
                    ),
                    RequestNames([namespace]),
                )
            case "POST", ["v1", "namespaces", name, "tables"]:
                return self._to_create_table(namespace_in(name), body.json(), client, request, keyed)
            case "POST", ["v1", "namespaces", name, "register"]:
                return RequestRoute(rights_in(namespace_in(name), (READ, CREATE)), _refuse_register)
            case "POST", ["v1", "namespaces", name, "tables", table]:
                return self._to_commit(
                    (*namespace_in(name), table), body.of(TableCommitRequest), client, keyed
                )
            case "DELETE", ["v1", "namespaces", name, "tables", table]:
                namespace, identifier = namespace_in(name), (*namespace_in(name), table)
                purges = query.get("purgeRequested", ["false"])[0].lower() == "true"
                return RequestRoute(
                    rights_in(namespace, (DROP,)),
                    lambda: self._repeats.once(
                        keyed,
                        namespace,
                        identifier,
                        lambda token: self._drop_table(identifier, token, purge=purges),
                        # A purge has more steps than the drop, which may be missing.
                        lambda earlier: (
                            self._drop_table(identifier, token_before(earlier, keyed), purge=True)
                            if purges
                            else HttpAnswer(204)
                        ),
                    ),
                    RequestNames([identifier]),
                )
            case "POST", ["v1", "namespaces", name, "tables", table, "metrics"]:
                identifier, report = (*namespace_in(name), table), body.json()
                return RequestRoute(
                    rights_in(identifier[:-1], (READ,)),
                    lambda: self._log_metrics(identifier, report),
                    RequestNames([identifier]),
                )
            case "POST", ["v1", "tables" | "views" as objects, "rename"]:
                return self._to_rename(body.of(RenameRequest), keyed, is_of_view=objects == "views")
            case "POST", ["v1", "transactions", "commit"]:
                return self._to_commit_together(body.of(JointCommitRequest), client, keyed)
            case "POST", ["v1", "namespaces", name, "views"]:
                definition = body.json()
                identifier = (*namespace_in(name), name_of_new(definition, "view"))
                return self._to_define_view(identifier, definition, keyed, is_commit=False)
            case "POST", ["v1", "namespaces", name, "views", view]:
                return self._to_define_view((*namespace_in(name), view), body.json(), keyed, is_commit=True)
            case "DELETE", ["v1", "namespaces", name, "views", view]:
                namespace, identifier = namespace_in(name), (*namespace_in(name), view)
                return RequestRoute(
                    rights_in(namespace, (DROP,)),
                    lambda: self._repeats.once(
                        keyed, namespace, identifier, partial(self._drop_view, identifier), _done
                    ),
                    RequestNames([identifier], is_of_view=True),
                )
            case _:
                return None

    # Namespaces

    def _to_create_namespace(self, request: NewNamespace, keyed: KeyedRequest | None) -> RequestRoute:
        if not request.namespace:
            raise InvalidInput("the name of the namespace is empty: give it at least one part")
        refuse_separator(request.namespace)
        # It is created in the namespace above. Grants that leave its own name out do not reach it.
        needs = (
            *rights_in(request.namespace[:-1], (CREATE,)),
            *rights_in(request.namespace, (READ, CREATE)),
            *rights_to_place(request.properties or ()),
        )
        parent = request.namespace[:-1]
        return RequestRoute(
            needs,
            lambda: self._repeats.once(
                keyed,
                parent,
                parent,
                partial(self._create_namespace, request),
                lambda earlier: self._repeats.answer(
                    request.namespace,
                    earlier,
                    lambda: _answer(documents.namespace(self._writable, request.namespace)),
                ),
            ),
            RequestNames([request.namespace]),
        )

    def _create_namespace(self, request: NewNamespace, token: Token) -> HttpAnswer:
        self._writable.create_namespace(request.namespace, request.properties or {}, token=token)
        return _answer(documents.namespace(self._writable, request.namespace))

    def _alter_namespace(self, name: Identifier, request: PropertyUpdates, token: Token) -> HttpAnswer:
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
            self._writable.alter_namespace(name, set=updates, remove=removed_names, token=token)
        return _answer({"updated": sorted(updates), "removed": removed_names, "missing": missing})

    def _drop_namespace(self, name: Identifier, token: Token) -> HttpAnswer:
        self._writable.drop_namespace(name, token=token)
        return HttpAnswer(204)

    # Tables

    def _to_create_table(
        self,
        namespace: Identifier,
        definition: Json,
        client: str,
        request: AccessRequest,
        keyed: KeyedRequest | None,
    ) -> RequestRoute:
        name = (*namespace, name_of_new(definition, "table"))
        members = [member for member, value in definition.items() if value is not None]
        needs = (*rights_in(namespace, (READ, CREATE)), *rights_to_place(members))
        if definition.get("stage-create"):
            keyed = None  # nothing is stored
        return RequestRoute(
            needs,
            lambda: self._repeats.once(
                keyed,
                namespace,
                namespace,
                lambda token: self._create_table(name, definition, client, request, keyed),
                lambda earlier: self._repeats.answer(
                    name, earlier, lambda: self._after_commit(name, request)
                ),
            ),
            RequestNames([name]),
        )

    def _create_table(
        self,
        identifier: Identifier,
        definition: Json,
        client: str,
        request: AccessRequest,
        keyed: KeyedRequest | None,
    ) -> HttpAnswer:
        # A header that is refused is refused before anything is done.
        wants_credentials = self._vendor is not None and request.wants_credentials()
        if definition.get("stage-create"):
            metadata = stage_for_client(self._writable, identifier, definition)
            document = {"metadata": msgspec.Raw(metadata), "config": {}}
            if not wants_credentials:
                return _answer(document)
            return self._staged_answer(identifier, metadata, document, request.caller)
        repeat = self._repeats.of_namespace(keyed, identifier[:-1])
        create_for_client(self._writable, identifier, definition, client, repeat)
        return self._after_commit(identifier, request)

    def _staged_answer(
        self, name: Identifier, metadata: bytes, document: Any, caller: KnownCaller
    ) -> HttpAnswer:
        """Return the answer with a staged table, and credentials for its files.

        They may write, whatever the caller's rights to other tables are: the files are a part of the creation.
        """
        assert self._vendor is not None
        vendor, staged_table = self._vendor, msgspec.json.decode(metadata, type=StagedTableForm)
        url = staged_table.location
        grant = TableGrant(writes=True, deletes=caller.rights.has(NeededRight(DROP, name[:-1])))
        return answer_with_credentials(
            name, url, document, lambda: vendor.config(url, staged_table.uuid, grant)
        )

    def _to_commit(
        self, name: Identifier, request: TableCommitRequest, client: str, keyed: KeyedRequest | None
    ) -> RequestRoute:
        if request.identifier is not None and request.identifier.identifier != name:
            raise InvalidInput(
                f"the request is about {quoted(request.identifier.identifier)}, and its path about {quoted(name)}"
            )
        return RequestRoute(
            rights_to_commit(name, request),
            lambda: self._commit(name, request, client, keyed),
            RequestNames([name], is_commit=True),
        )

    def _commit(
        self, name: Identifier, request: TableCommitRequest, client: str, keyed: KeyedRequest | None
    ) -> HttpAnswer:
        commits = [(name, request.commit)]

        def commit(repeat: RepeatedCommit | None) -> HttpAnswer:
            self._commit_all(commits, client, repeat)
            return self._after_commit(name)

        return self._repeats.commit_once(
            keyed,
            commits,
            commit,
            lambda earlier: self._repeats.answer(name, earlier, lambda: self._after_commit(name)),
        )

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

    def _to_commit_together(
        self, request: JointCommitRequest, client: str, keyed: KeyedRequest | None
    ) -> RequestRoute:
        commits: list[tuple[Identifier, ClientCommit]] = []
        needs: list[NeededRight] = []
        for change in request.table_changes:
            if change.identifier is None:
                raise InvalidInput("a change of several tables has to name each table: give its identifier")
            commits.append((change.identifier.identifier, change.commit))
            needs += rights_to_commit(change.identifier.identifier, change)
        about = RequestNames([name for name, _ in commits], is_commit=True)
        return RequestRoute(needs, lambda: self._commit_together(commits, client, keyed), about)

    def _commit_together(
        self, commits: list[tuple[Identifier, ClientCommit]], client: str, keyed: KeyedRequest | None
    ) -> HttpAnswer:
        def commit(repeat: RepeatedCommit | None) -> HttpAnswer:
            self._commit_all(commits, client, repeat)
            return HttpAnswer(204)

        return self._repeats.commit_once(keyed, commits, commit, _done)

    def _commit_all(
        self, commits: list[tuple[Identifier, ClientCommit]], client: str, repeat: RepeatedCommit | None
    ) -> None:
        """Commit, with errors as this protocol has them: only a table or namespace is not found."""
        try:
            commit_for_clients(self._writable, commits, client, repeat)
        except NotFound as error:
            if answer_of_error(error).status == 404 and not _is_of_name(error):
                raise InvalidInput(error.message) from error
            raise

    def _drop_table(self, name: Identifier, token: Token, *, purge: bool) -> HttpAnswer:
        self._writable.drop_table(name, purge=purge, token=token)
        return HttpAnswer(204)

    def _log_metrics(self, name: Identifier, report: Json) -> HttpAnswer:
        """Log the beginning of a client's report on its scan or commit."""
        self._writable.load_table(name)
        text = msgspec.json.encode(report)[:_REPORT_BYTES].decode(errors="replace")
        _LOGGER.info("a client reports on %s: %s", quoted(name), text)
        return HttpAnswer(204)

    # Views

    def _to_define_view(
        self, name: Identifier, definition: Json, keyed: KeyedRequest | None, *, is_commit: bool
    ) -> RequestRoute:
        namespace = name[:-1]
        return RequestRoute(
            (*rights_in(namespace, (READ, WRITE if is_commit else CREATE)), *rights_to_resolve(definition)),
            lambda: self._repeats.once(
                keyed,
                namespace,
                name,
                lambda token: self._define_view(name, definition, token, is_commit=is_commit),
                lambda earlier: self._repeats.answer(name, earlier, lambda: _answer(self._view(name))),
            ),
            RequestNames([name], is_of_view=True),
        )

    def _define_view(self, name: Identifier, request: Json, token: Token, *, is_commit: bool) -> HttpAnswer:
        define_for_client(self._writable, name, request, is_commit=is_commit, token=token)
        return _answer(self._view(name))

    def _drop_view(self, name: Identifier, token: Token) -> HttpAnswer:
        self._writable.drop_view(name, token=token)
        return HttpAnswer(204)

    # Tables and views

    def _to_rename(
        self, request: RenameRequest, keyed: KeyedRequest | None, *, is_of_view: bool
    ) -> RequestRoute:
        source, destination = request.source.identifier, request.destination.identifier

        def rename(token: Token) -> HttpAnswer:
            check_new_name(request.destination)
            if is_of_view:
                rename_view(self._writable, source, destination, token)
            else:
                self._writable.rename_table(source, destination, token=token)
            return HttpAnswer(204)

        return RequestRoute(
            rights_to_rename(request),
            lambda: self._repeats.once(keyed, source[:-1], source, rename, _done),
            request.names(is_of_view=is_of_view),
        )


def _is_of_name(error: NotFound) -> bool:
    return error.kind in ("no-such-table", "no-such-namespace", "table-renamed")


def _refuse_register() -> HttpAnswer:
    raise Unsupported(
        "a metadata file cannot be registered, as the table would have its history in two places: import it by "
        "`lakelog import`, which copies no file"
    )


def _answer(document: Any) -> HttpAnswer:
    return HttpAnswer(200, msgspec.json.encode(document))


def _done(earlier_commit: EarlierCommit) -> HttpAnswer:
    return HttpAnswer(204)


def _altered(request: PropertyUpdates) -> HttpAnswer:
    """Return the answer to a change of properties that was made before. It does not know which were missing then."""
    return _answer(
        {"updated": sorted(request.updates or ()), "removed": sorted(request.removals or ()), "missing": []}
    )
