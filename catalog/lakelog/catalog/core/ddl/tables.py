"""Staging and renaming of tables. Drops are in `drop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from lakelog.catalog.core.ddl import staging, table_places
from lakelog.catalog.core.ddl.staging import StagedTable
from lakelog.catalog.core.ddl.table_places import LOCATION_LIMIT_BYTES
from lakelog.catalog.core.logs.cache import JointLogChange
from lakelog.catalog.core.logs.commits import (
    Token,
    base_of,
    commit_changes,
    or_applied,
    was_applied,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.name_tree import (
    FoundLog,
    NameTree,
    check_not_forgotten,
    no_such_table,
)
from lakelog.catalog.core.schema.arrow_types import schema_from_arrow
from lakelog.catalog.core.schema.constraints import StatedConstraint, with_all
from lakelog.catalog.core.schema.curve import clustering_from
from lakelog.catalog.core.schema.definition_methods import spark_type_of
from lakelog.catalog.core.schema.foreign_properties import check_for_provider, warn_of_foreign
from lakelog.catalog.core.schema.generated import check_defined
from lakelog.catalog.core.schema.iceberg_limits import check_iceberg
from lakelog.catalog.core.schema.identity import check_identity
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import Written, sort_order_from, spec_from_transforms
from lakelog.catalog.core.schema.properties.checking import (
    check_alterable,
    check_bloom_columns,
    check_columns_named,
    check_properties,
)
from lakelog.catalog.core.schema.properties.policy import check_policy
from lakelog.catalog.core.schema.schema import Schema, assign_ids, refuse_names_of_spark
from lakelog.catalog.core.schema.spark_types import SparkType, schema_from_spark
from lakelog.catalog.core.state.events import EntryLinked, EntryRenamed, EntryUnlinked, TableMoved, encode
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.core.state.namespace_state import (
    RELATION,
    TABLE,
    NamespaceState,
)
from lakelog.catalog.core.state.property_changes import COMMENT
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import NoSuchTable, TableExists
from lakelog.catalog.names import Identifier, check_name, quoted
from lakelog.log import Commit, Draft, LogView, WriteRef, canonical_url
from lakelog.log.errors import ConflictError, InvalidInput, LogSealed, NotFound, Unsupported
from lakelog.log.placing import Decide

ATTEMPTS_MAX = 3


ColumnTypes: TypeAlias = Mapping[str, pa.DataType | SparkType]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """The arguments of a staged table, as the caller gave them.

    If it `is_quiet`, nothing warns of properties of other formats that have no effect.
    """

    kind: str
    identifier: Identifier | None
    schema: Schema | pa.Schema | ColumnTypes
    partitioning: Sequence[Written]
    sort_by: Sequence[Written]
    cluster_by: Sequence[str | Sequence[str]]
    properties: Mapping[str, str]
    location: str | None
    comment: str | None
    provider: str | None
    constraints: Sequence[StatedConstraint | Mapping[str, Any]] = ()
    is_quiet: bool = False


def stage_table(tree: NameTree, request: StageRequest) -> StagedTable:
    """Decide everything about the new table, from the present state. It is not visible yet."""
    staging.check_kind(request.kind)
    check_properties(request.properties)
    check_for_provider(request.properties, request.provider)
    if not request.is_quiet:
        warn_of_foreign(request.properties)
    check_policy(request.properties)
    check_alterable(request.properties)
    if request.identifier is None and request.location is None:
        raise InvalidInput("a staged table needs a name or a location: give one of them")
    existing_table = _existing(tree, request)
    if existing_table is not None and request.kind == staging.CREATE:
        if request.identifier is not None:
            raise staging.table_exists(request.identifier)
        raise TableExists(f"there is a table at {request.location} already")
    if existing_table is None and request.kind == staging.REPLACE:
        raise _missing(request)
    if existing_table is not None:
        return _replacing(tree, request, existing_table)
    return _creating(tree, request)


def _existing(tree: NameTree, request: StageRequest) -> FoundLog[TableState] | None:
    if request.identifier is not None:
        check_name(request.identifier[-1], "table")
        return tree.find_table(request.identifier)
    assert request.location is not None
    table_log = tree.logs.table(tree.logs.location(request.location))
    try:
        view = table_log.at_its_place()
    except NotFound:
        return None
    return None if view.sealed else FoundLog(table_log, view)


def _missing(request: StageRequest) -> NoSuchTable:
    if request.identifier is not None:
        return no_such_table(request.identifier)
    return NoSuchTable(f"there is no table at {request.location}")


def _creating(tree: NameTree, request: StageRequest) -> StagedTable:
    table_id = tree.logs.new_id()
    namespace: FoundLog[NamespaceState] | None = None
    if request.identifier is not None:
        namespace = tree.known_namespace(request.identifier[:-1])
        if namespace is None and request.identifier[:-1]:
            raise tree.missing_namespace(request.identifier[:-1])
        if namespace is not None:
            staging.check_no_view(namespace.view.state, request.identifier)
    if request.location is not None:
        location = _chosen(tree, request.location)
        last_version = _last_version(tree, location)
    else:
        location = table_places.new_table(tree.logs, namespace, table_id)
        last_version = 0
    return _stage(tree, request, None, namespace, table_id, location, begun=last_version)


def _last_version(tree: NameTree, location: str) -> int:
    """Return the last version of a dropped table's log at a place, 0 if there is none.

    A write into a new table there starts from that version. So a fence of the old table does not apply to it.
    """
    try:
        return tree.logs.table(location).at_its_place().version
    except NotFound:
        return 0


def _chosen(tree: NameTree, url: str) -> str:
    """Return the location of a place that the user chose. Raises InvalidInput for lakelog's own places."""
    table_places.check_separate(tree.logs, url)
    location = tree.logs.location(url)
    if len(url.encode()) > LOCATION_LIMIT_BYTES:
        raise InvalidInput(
            f"the location {url[:60]}… is longer than {LOCATION_LIMIT_BYTES} bytes: choose a shorter one"
        )
    inside = tree.logs.url(location) != location
    foreign = _foreign_content(tree, location)
    if foreign is not None:
        raise InvalidInput(
            f"the location {url} holds {foreign!r}, which is not part of a lakelog table: choose an empty or new "
            "folder, and insert the rows of the present files"
        )
    if inside:
        # Create the warehouse first: a table alone in it would look like foreign content.
        tree.root()
    return location


def _foreign_content(tree: NameTree, location: str) -> str | None:
    """Return a key at a place that is not in the folders of a table.

    Costs a LIST, and another for each such folder.
    """
    table_log = tree.logs.table(location)
    prefix, after_key = (f"{table_log.prefix}/" if table_log.prefix else ""), ""
    while (key := next(iter(table_log.store.list_after(prefix, after_key)), None)) is not None:
        own = next(
            (folder for folder in ("_log", "_txn", "data") if key.startswith(f"{prefix}{folder}/")), None
        )
        if own is None:
            return key.removeprefix(prefix)
        # "0" is the character that sorts after the slash: so the next key is behind that folder.
        after_key = f"{prefix}{own}0"
    return None


def _replacing(tree: NameTree, request: StageRequest, existing: FoundLog[TableState]) -> StagedTable:
    metadata = existing.view.state.current
    url = tree.logs.url(existing.tracked.location)
    if request.location is not None and canonical_url(request.location) != url:
        raise Unsupported(
            f"REPLACE cannot move the table from {url} to {request.location}: leave the location out, or drop the "
            "table and create it there"
        )
    namespace = tree.known_namespace(request.identifier[:-1]) if request.identifier is not None else None
    return _stage(
        tree, request, existing, namespace, existing.view.log_id, existing.tracked.location, metadata
    )


def _stage(
    tree: NameTree,
    request: StageRequest,
    existing: FoundLog[TableState] | None,
    namespace: FoundLog[NamespaceState] | None,
    table_id: str,
    location: str,
    metadata: Metadata | None = None,
    *,
    begun: int = 0,
) -> StagedTable:
    """Return the stage.

    Its ids continue those of the replaced table, so that no two columns share a physical name.
    """
    schema = _schema(request.schema, metadata.schema.last_id if metadata is not None else 0)
    refuse_names_of_spark(schema.names)
    specs = metadata.specs if metadata is not None else ()
    commit_id = tree.logs.new_id()
    if existing is not None:
        existing.tracked.transaction.note_staged(commit_id, existing.view)
    version = existing.view.version if existing is not None else begun
    properties = dict(request.properties)
    property_comment = properties.pop(COMMENT, None)
    comment = request.comment if request.comment is not None else property_comment
    stage = StagedTable(
        kind=request.kind,
        identifier=request.identifier,
        namespace=None
        if request.identifier is None
        else namespace.tracked.location
        if namespace is not None
        else "",
        namespace_base=namespace.view.version if namespace is not None else 0,
        table_id=table_id,
        commit_id=commit_id,
        location=location,
        url=tree.logs.url(location),
        own_location=metadata.own_location if metadata is not None else request.location is not None,
        schema=schema,
        spec=spec_from_transforms(request.partitioning, schema, existing=specs),
        sort_order=sort_order_from(request.sort_by, schema),
        clustering=clustering_from(request.cluster_by, schema),
        properties=properties,
        provider=request.provider,
        comment=comment,
        replaced=existing.view.version if existing is not None else None,
        constraints=with_all((), request.constraints, schema),
        write=WriteRef(id=tree.logs.new_id(), version=version),
    )
    check_identity(stage)
    check_iceberg(schema, properties)
    check_columns_named(properties, schema)
    check_bloom_columns(properties, schema)
    return stage


def _instead_of(given: object) -> str:
    """Return what to write in place of something that is not a schema."""
    if isinstance(getattr(given, "schema", None), pa.Schema):
        return "write rows.schema"
    if hasattr(given, "__arrow_c_stream__"):
        return "write pyarrow.table(rows).schema"
    return 'give a pyarrow.Schema, or a dict of types by names, such as {"id": "bigint", "day": pyarrow.date32()}'


def _schema(schema: Schema | pa.Schema | ColumnTypes, after_id: int) -> Schema:
    if isinstance(schema, Mapping) and schema:
        fields = [
            {"name": name, "type": spark_type_of(type, (str(name),)), "nullable": True, "metadata": {}}
            for name, type in schema.items()
        ]
        return schema_from_spark({"type": "struct", "fields": fields}, after_id)
    if isinstance(schema, pa.Schema):
        # Only users of Python pass Arrow schemas; engines need not load Arrow to stage a table.
        return schema_from_arrow(schema, after_id)
    if not isinstance(schema, Schema):
        raise InvalidInput(f"a {type(schema).__name__} is not a schema: {_instead_of(schema)}")
    check_defined(schema)
    return assign_ids(schema, after_id)


def rename_table(tree: NameTree, old: Identifier, new: Identifier, token: Token | None) -> None:
    """Give a table another name, by a single commit of the table and its namespace, or both namespaces.

    The table's log has the commit too, so that a write which was prepared under the old name does not follow
    it. The table's objects stay at their place, and so do their permissions.
    """
    check_name(new[-1] if new else "", "table")
    for _ in range(ATTEMPTS_MAX):
        try:
            return or_applied(tree.logs, token, lambda: _rename(tree, old, new, token))
        except NoSuchTable as error:
            # The name may have gone to another table: then that table is renamed.
            if tree.find_table(old) is None:
                raise
            failure = error
    raise ConflictError(
        f"{quoted(old)} keeps changing while it is renamed: rename it again ({failure})", version=0
    )


def _rename(tree: NameTree, old: Identifier, new: Identifier, token: Token | None) -> None:
    source = tree.namespace(old[:-1])
    if was_applied(source.tracked, token) or was_applied_elsewhere(tree.logs, source.tracked, token):
        return
    table = tree.table(old)
    goal = source if old[:-1] == new[:-1] else tree.namespace(new[:-1])
    if tree.is_taken(new):
        raise staging.table_exists(new)

    def move(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        return Draft(events=encode([TableMoved(namespace=goal.tracked.location, name=new[-1])]))

    entries = (
        [(source, _renaming(table, old, new))]
        if goal.tracked.location == source.tracked.location
        else [(source, _unlinking(table, old)), (goal, _linking(table, new))]
    )
    decisions: list[tuple[FoundLog[Any], Decide[Any]]] = [*entries, (table, move)]
    changes = [
        JointLogChange(place.tracked, place.view, decide, base_of(token, place.tracked))
        for place, decide in decisions
    ]
    try:
        commit_changes(tree.logs, changes, token)
    except LogSealed as error:
        raise no_such_table(old) from error


def _renaming(found: FoundLog[TableState], old: Identifier, new: Identifier) -> Decide[NamespaceState]:
    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        entry = _entry_of(view, found, old)
        staging.check_free(view.state, new)
        rename_event = EntryRenamed(space=RELATION, name=old[-1], id=entry.id, new_name=new[-1])
        return Draft(events=encode([rename_event]))

    return decide


def _unlinking(found: FoundLog[TableState], old: Identifier) -> Decide[NamespaceState]:
    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        entry = _entry_of(view, found, old)
        return Draft(events=encode([EntryUnlinked(space=RELATION, name=old[-1], id=entry.id)]))

    return decide


def _linking(found: FoundLog[TableState], new: Identifier) -> Decide[NamespaceState]:
    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        staging.check_free(view.state, new)
        if found.tracked.transaction.creates_log:
            # The same transaction had linked it elsewhere, and here it becomes visible.
            check_not_forgotten(view.state, found.view.log_id, quoted(new))
        link_event = EntryLinked(
            space=RELATION,
            name=new[-1],
            kind=TABLE,
            id=found.view.log_id,
            location=found.tracked.location,
        )
        return Draft(events=encode([link_event]))

    return decide


def _entry_of(view: LogView[NamespaceState], found: FoundLog[TableState], name: Identifier) -> NamespaceEntry:
    entry = view.state.entry(RELATION, name[-1])
    if entry is None or entry.id != found.view.log_id:
        raise no_such_table(name)
    return entry
