"""What a table's log amounts to: its metadata and its set of files, folded from events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import msgspec
import pyarrow as pa

from lakelog.catalog.column_statistics import TableEstimates
from lakelog.catalog.constraints import without
from lakelog.catalog.data_file import DataFile, RemovedFile, decode_files, decode_removed
from lakelog.catalog.events import (
    ClusteringChanged,
    ConstraintAdded,
    ConstraintDropped,
    FilesChanged,
    FilesVacuumed,
    HistoryExpired,
    IdentityTaken,
    PartitioningChanged,
    RolledBack,
    SchemaChanged,
    SortOrderChanged,
    StatisticsComputed,
    StreamCommitted,
    TableAltered,
    TableCreated,
    TableDropped,
    TableEvent,
    TableMoved,
    TablePurged,
    TableReplaced,
    TableRestored,
    table_events,
)
from lakelog.catalog.file_set import FileSet
from lakelog.catalog.manifests import Fetch
from lakelog.catalog.metadata import Metadata, leave_out_empty
from lakelog.catalog.partitioning import PartitionSpec, with_schema
from lakelog.catalog.row_ids import UNCOMMITTED, next_row_after, with_version
from lakelog.catalog.stored_types import ready
from lakelog.log import Commit, Dump, Json
from lakelog.log.errors import InvalidInput

COMMENT = "comment"
"""The property that Spark keeps a table's comment in."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version. `metadata` is None only before the first commit.

    `estimates` are what `compute_statistics` found last. `streams` has the last batch committed of each stream:
    of all that ever wrote here, whatever became of the rows.

    `identities` has the last value that was taken of each identity column, by its id, also of columns that are gone:
    what was taken once is never taken again, whatever the table goes back to.

    Versions before `expired` are let go of, whether or not they can still be read: no change may bring a file back that
    only they had.
    """

    metadata: Metadata | None = None
    files: FileSet = field(default_factory=FileSet.empty)
    expired: int = 0
    estimates: TableEstimates | None = None
    streams: Mapping[str, int] = field(default_factory=dict)
    next_row: int = 0
    identities: Mapping[int, int] = field(default_factory=dict)

    @property
    def current(self) -> Metadata:
        assert self.metadata is not None, "a table's log begins with its creation"
        return self.metadata


def apply(
    state: TableState, event: TableEvent, version: int, blobs: Sequence[bytes], *, uncommitted: bool = False
) -> TableState:
    """Fold one event of the commit at `version`, whose sidecars are `blobs`. Total and deterministic.

    An `uncommitted` one is a transaction's, of whose version nobody knows.
    """
    match event:
        case TableCreated():
            return TableState(metadata=_fresh(event, version, (event.spec,), event.own_location))
        case TableReplaced():
            metadata = _fresh(
                event, version, _with_spec(state.current, event.spec), state.current.own_location
            )
            return replace(state, metadata=metadata, files=state.files.cleared(), estimates=None)
        case SchemaChanged():
            specs = tuple(with_schema(spec, event.schema) for spec in state.current.specs)
            return _with(state, schema=event.schema, specs=specs)
        case PartitioningChanged():
            return _with(state, specs=_with_spec(state.current, event.spec))
        case SortOrderChanged():
            return _with(state, sort_order=event.sort_order)
        case ClusteringChanged():
            return _with(state, clustering=event.columns)
        case TableAltered():
            return _with(state, **_altered(state.current, event.set, event.removed))
        case ConstraintAdded():
            return _with(state, constraints=(*state.current.constraints, event.constraint))
        case ConstraintDropped():
            return _with(state, constraints=without(state.current.constraints, event.name))
        case FilesChanged():
            known = state.estimates and state.estimates.with_added(event.added_rows)
            added = with_version(_added(event, blobs), UNCOMMITTED if uncommitted else version)
            return replace(
                state,
                files=_changed(state, event, added, blobs),
                estimates=known,
                next_row=next_row_after(state.next_row, added),
            )
        case IdentityTaken():
            return replace(state, identities={**state.identities, event.column: event.last})
        case RolledBack():
            return (
                state
                if event.metadata is None
                else replace(state, metadata=_as_before(event.metadata, version))
            )
        case StatisticsComputed():
            return replace(state, estimates=event.estimates.with_older(state.estimates))
        case StreamCommitted():
            return replace(state, streams={**state.streams, event.stream: event.batch})
        case TablePurged():
            return replace(state, files=state.files.cleared())
        case HistoryExpired():
            return replace(state, expired=max(state.expired, event.version))
        case TableDropped() | TableMoved() | TableRestored() | FilesVacuumed():
            return state
    assert_never(event)


def _fresh(
    event: TableCreated | TableReplaced, version: int, specs: tuple[PartitionSpec, ...], own_location: bool
) -> Metadata:
    return Metadata(
        schema=event.schema,
        specs=specs,
        sort_order=event.sort_order,
        properties=event.properties,
        provider=event.provider,
        comment=event.comment,
        own_location=own_location,
        generation=version,
    )


def _as_before(metadata: Metadata, version: int) -> Metadata:
    """Metadata of before a replace begins anew: writes that started since that are for another table."""
    return metadata if metadata.generation else msgspec.structs.replace(metadata, generation=version)


def _with(state: TableState, **changes: Any) -> TableState:
    return replace(state, metadata=msgspec.structs.replace(state.current, **changes))


def _with_spec(metadata: Metadata, spec: PartitionSpec) -> tuple[PartitionSpec, ...]:
    return (*(other for other in metadata.specs if other.id != spec.id), spec)


def _altered(metadata: Metadata, set_: Mapping[str, str], removed: Sequence[str]) -> dict[str, Any]:
    properties = {key: value for key, value in metadata.properties.items() if key not in removed}
    comment = None if COMMENT in removed else metadata.comment
    for key, value in set_.items():
        if key == COMMENT:
            comment = value
        else:
            properties[key] = value
    return {"properties": properties, "comment": comment}


def _added(event: FilesChanged, blobs: Sequence[bytes]) -> Sequence[DataFile] | pa.Table:
    return event.added if event.added_sidecar is None else decode_files(blobs[event.added_sidecar])


def _changed(
    state: TableState,
    event: FilesChanged,
    added: Sequence[DataFile] | pa.Table,
    blobs: Sequence[bytes],
) -> FileSet:
    files, metadata = state.files, state.current
    removed: Sequence[RemovedFile] = event.removed
    if event.removed_sidecar is not None:
        removed = decode_removed(blobs[event.removed_sidecar])
    if removed:
        files = files.removed(removed)
    return files.added(added, metadata.schema, metadata.specs)


class _Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    metadata: Metadata
    files: Any
    expired: int = 0
    estimates: TableEstimates | None = None
    streams: dict[str, int] = {}
    next_row: int = 0
    identities: dict[int, int] = {}


ready(_Root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableDump(Dump):
    files: FileSet


class TableProjection:
    """How the log folds, dumps and loads a table (see `lakelog.log.Projection`).

    `fetch` reads manifests by name, so that a dump can merge small ones that are not in memory.
    """

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch

    def initial(self) -> TableState:
        return TableState()

    def apply(self, state: TableState, commit: Commit, blobs: Sequence[bytes]) -> TableState:
        for event in table_events(commit):
            state = apply(state, event, commit.version, blobs, uncommitted=not commit.commit_id)
        return state

    def dump(self, state: TableState, version: int) -> Dump:
        files, blobs = state.files.dump(version, self._fetch)
        stored = _Root(
            metadata=state.current,
            files=files,
            expired=state.expired,
            estimates=state.estimates,
            streams=dict(state.streams),
            next_row=state.next_row,
            identities=dict(state.identities),
        )
        root = msgspec.to_builtins(stored)
        if not state.current.constraints:
            # As it was before there were any, so that older readers can read it.
            del root["metadata"]["constraints"]
        leave_out_empty(root["metadata"])
        return _TableDump(
            root=root,
            blobs=blobs,
            uses=[stored["name"] for part in ("manifests", "removed") for stored in files[part]],
            files=state.files,
        )

    def stored(self, dump: Dump) -> None:
        """Tell the set of files that its new manifests are durable, so that the next snapshot names them again."""
        assert isinstance(dump, _TableDump)
        dump.files.stored(dump.blobs)

    def load(self, root: Json) -> TableState:
        try:
            stored = msgspec.convert(root, _Root, str_keys=True)
        except msgspec.ValidationError as error:
            raise InvalidInput(
                f"what is there is not a table's log, but perhaps a namespace's ({error})"
            ) from None
        files = FileSet.load(stored.files)
        return TableState(
            metadata=stored.metadata,
            files=files,
            expired=stored.expired,
            estimates=stored.estimates,
            streams=stored.streams,
            next_row=stored.next_row,
            identities=stored.identities,
        )
