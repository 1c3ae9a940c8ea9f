"""The state of a table's log: its metadata and its set of files, folded from events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import msgspec

from lakelog.catalog.core.files.column_statistics import TableEstimates
from lakelog.catalog.core.files.data_file import RemovedFile, decode_files, decode_removed
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.row_ids import UNCOMMITTED, next_row_after, with_version
from lakelog.catalog.core.schema.constraints import without
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import PartitionSpec, with_schema
from lakelog.catalog.core.state.adopted import AdoptedFiles, with_adopted, without_deleted
from lakelog.catalog.core.state.clones import (
    CloneOrigin,
    ClonePromise,
    TableAncestor,
    promised,
    without_clones,
    without_origins,
)
from lakelog.catalog.core.state.events import (
    AdoptedDeleted,
    BranchFilesChanged,
    ClonePromised,
    CloneReleased,
    ClusteringChanged,
    ConstraintAdded,
    ConstraintDropped,
    ErasureEnded,
    FastForwarded,
    FileChange,
    FilesAdopted,
    FilesChanged,
    FilesVacuumed,
    HistoryExpired,
    IdentityTaken,
    OriginsReleased,
    PartitioningChanged,
    RefDropped,
    RefSet,
    RolledBack,
    RowsAppended,
    RowsErased,
    SchemaChanged,
    SortOrderChanged,
    SourceImported,
    StatisticsComputed,
    StreamCommitted,
    TableAltered,
    TableCloned,
    TableCreated,
    TableDropped,
    TableEvent,
    TableMoved,
    TablePurged,
    TableReplaced,
    TableRestored,
)
from lakelog.catalog.core.state.imported_source import ImportedSource
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.property_changes import altered
from lakelog.catalog.core.state.refs import BRANCH, MAIN, TAG, ContentLine, Ref
from lakelog.catalog.errors import NoSuchRef
from lakelog.log.errors import FormatError


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version. `metadata` is None only before the first commit.

    `estimates` is the last result of `compute_statistics`. `streams` has the last committed batch of each
    stream that ever wrote here, even if its rows were removed since.

    `identities` has the last taken value of each identity column, by column id, also of dropped columns. A
    value is never taken twice, even after a rollback.

    Versions before `expired` have expired, whether or not they can still be read. No change may bring back a
    file that only they had. `link` is the name that the table has, or had when it was dropped. It is None if
    the table never had a name.

    `source` is the last imported version of a source. It is None if there was no import, or the table was
    replaced since. `adopted` has the files that it got from there and that it now owns.

    `clones` has the files that are kept for clones of the table, by the ids of the clones' logs. In a clone,
    `origins` are the logs that keep files for it, and `ancestors` the tables that it comes from, the first of
    them first.

    From version `erased` on, no line has a file with rows that an erasure applied to. File sets stored from
    then on have no entry from before. `erasing` is the id of the erasure that has not ended yet.

    `refs` has the tags and branches by name. `main` is the table's own line, or None if there never were any.
    All other members belong to main. If a state is seen `on` a tag or branch, `line` is its name, `files`
    (and for a tag `metadata`) are its own, and `whole` is the state itself.
    """

    metadata: Metadata | None = None
    files: FileSet = field(default_factory=FileSet.empty)
    link: NameLink | None = None
    expired: int = 0
    estimates: TableEstimates | None = None
    streams: Mapping[str, int] = field(default_factory=dict)
    next_row: int = 0
    identities: Mapping[int, int] = field(default_factory=dict)
    refs: Mapping[str, Ref] = field(default_factory=dict)
    main: ContentLine | None = None
    source: ImportedSource | None = None
    adopted: AdoptedFiles | None = None
    clones: Mapping[str, ClonePromise] = field(default_factory=dict)
    origins: tuple[CloneOrigin, ...] = ()
    ancestors: tuple[TableAncestor, ...] = ()
    erased: int = 0
    erasing: str | None = None
    line: str = MAIN
    whole: TableState | None = None

    def on(self, name: str) -> TableState:
        """Return the state as seen on a tag or branch, or on main. Raises NoSuchRef if there is no such
        name."""
        whole = self.whole or self
        if name == MAIN:
            return whole
        ref = whole.refs.get(name)
        if ref is None:
            names = ", ".join(sorted(whole.refs))
            raise NoSuchRef(f"there is no tag or branch {name}: the table has {names or 'none'}, and {MAIN}")
        metadata = whole.metadata if ref.metadata is None else ref.metadata
        return replace(whole, metadata=metadata, files=ref.files, estimates=None, line=name, whole=whole)

    @property
    def branches(self) -> list[str]:
        """The names of all branches except main."""
        return sorted(name for name, ref in self.refs.items() if ref.kind == BRANCH)

    def lines(self) -> list[TableState]:
        """Return the state on main and on every tag and branch: all files that the table itself needs."""
        return [self.on(name) for name in (MAIN, *sorted(self.refs))]

    def kept(self) -> list[TableState]:
        """Return the state on all lines, and as kept for each clone: all files that must not be deleted."""
        whole = self.whole or self
        clone_states = [
            replace(whole, metadata=promise.metadata, files=promise.files, line=f"clone {id}", whole=whole)
            for id, promise in sorted(whole.clones.items())
        ]
        return [*whole.lines(), *clone_states]

    @property
    def current(self) -> Metadata:
        if self.metadata is None:
            raise FormatError(
                "the table's log does not begin with its creation: find out which client wrote it"
            )
        return self.metadata


def apply(
    state: TableState, event: TableEvent, version: int, blobs: Sequence[bytes], *, uncommitted: bool = False
) -> TableState:
    """Fold an event of the commit at `version`, whose sidecars are `blobs`. Total and deterministic.

    An `uncommitted` event belongs to a transaction, whose version is not known yet.
    """
    match event:
        case RowsAppended():  # first, as a version may have a thousand
            return state  # the change that adds their files follows
        case TableCreated():
            metadata = _fresh(event, version, (event.spec,), event.own_location)
            return TableState(metadata=metadata, link=_link(event))
        case TableReplaced():
            metadata = _fresh(
                event, version, _with_spec(state.current, event.spec), state.current.own_location
            )
            return replace(
                state,
                metadata=metadata,
                files=state.files.cleared(),
                estimates=None,
                main=_counted(state),
                source=None,
            )
        case SchemaChanged():
            specs = tuple(with_schema(spec, event.schema) for spec in state.current.specs)
            return _with(state, schema=event.schema, specs=specs)
        case PartitioningChanged():
            return _with(state, specs=_with_spec(state.current, event.spec))
        case SortOrderChanged():
            return _with(state, sort_order=event.sort_order)
        case ClusteringChanged():
            return _with(state, clustering=event.columns, ranks=event.ranks)
        case TableAltered():
            return _with(state, **altered(state.current, event.set, event.removed))
        case ConstraintAdded():
            return _with(state, constraints=(*state.current.constraints, event.constraint))
        case ConstraintDropped():
            return _with(state, constraints=without(state.current.constraints, event.name))
        case FilesChanged():
            estimates = state.estimates and state.estimates.with_added(event.added_rows)
            files, next_row = _changed(state, state.files, event, version, blobs, uncommitted)
            return replace(state, files=files, estimates=estimates, next_row=next_row, main=_counted(state))
        case BranchFilesChanged():
            ref = _branch(state, event.branch)
            files, next_row = _changed(state, ref.files, event, version, blobs, uncommitted)
            refs = {**state.refs, event.branch: ref.changed(files)}
            return replace(state, refs=refs, next_row=next_row)
        case RefSet():
            return _with_ref(state, event, version, blobs, uncommitted)
        case RefDropped():
            return _without_ref(state, event.name)
        case FastForwarded():
            return _joined_lines(state, event)
        case IdentityTaken():
            return replace(state, identities={**state.identities, event.column: event.last})
        case RolledBack():
            return (
                state
                if event.metadata is None
                else replace(state, metadata=_with_new_generation(event.metadata, version))
            )
        case StatisticsComputed():
            return replace(state, estimates=event.estimates.with_older(state.estimates))
        case StreamCommitted():
            return replace(state, streams={**state.streams, event.stream: event.batch})
        case SourceImported():
            return replace(state, source=event.source)
        case FilesAdopted():
            return replace(state, source=None, adopted=with_adopted(event, blobs))
        case AdoptedDeleted():
            return replace(state, adopted=without_deleted(state.adopted, event, blobs))
        case ClonePromised():
            return _with_promise(state, event, version, blobs, uncommitted)
        case CloneReleased():
            return replace(state, clones=without_clones(state.clones, event.clones))
        case TableCloned():
            return replace(
                state,
                metadata=msgspec.structs.replace(event.metadata, generation=version),
                origins=event.origins,
                ancestors=(*event.ancestors, TableAncestor(id=event.of, until=event.next_row)),
                next_row=event.next_row,
                identities=event.identities,
            )
        case OriginsReleased():
            return replace(state, origins=without_origins(state.origins, event.logs))
        case RowsErased():
            return replace(_without_boundaries(state), estimates=None, erased=version, erasing=event.erasure)
        case ErasureEnded():
            return replace(state, erasing=None if state.erasing == event.erasure else state.erasing)
        case TablePurged():
            return replace(
                _without_boundaries(state),
                files=state.files.cleared(),
                estimates=None,
                refs={},
                main=None,
                adopted=None,
                clones={},
            )
        case HistoryExpired():
            return replace(state, expired=max(state.expired, event.version))
        case TableMoved() | TableRestored():
            return replace(state, link=_link(event))
        case TableDropped() | FilesVacuumed():
            return state
    assert_never(event)


def _link(event: TableCreated | TableMoved | TableRestored) -> NameLink | None:
    if event.namespace is None or event.name is None:
        return None
    return NameLink(namespace=event.namespace, name=event.name)


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


def _with_new_generation(metadata: Metadata, version: int) -> Metadata:
    """Return metadata from before a replace with a new generation. Writes that started since the replace are
    for another table."""
    return metadata if metadata.generation else msgspec.structs.replace(metadata, generation=version)


def _with(state: TableState, **changes: Any) -> TableState:
    return replace(state, metadata=msgspec.structs.replace(state.current, **changes))


def _without_boundaries(state: TableState) -> TableState:
    """Return the state without boundaries, which are values of rows, also in tags and in promises to
    clones."""
    refs = {
        name: ref if ref.metadata is None else replace(ref, metadata=_unranked(ref.metadata))
        for name, ref in state.refs.items()
    }
    clones = {
        id: replace(promise, metadata=_unranked(promise.metadata)) for id, promise in state.clones.items()
    }
    return replace(state, metadata=_unranked(state.current), refs=refs, clones=clones)


def _unranked(metadata: Metadata) -> Metadata:
    return msgspec.structs.replace(metadata, ranks=None)


def _with_spec(metadata: Metadata, spec: PartitionSpec) -> tuple[PartitionSpec, ...]:
    return (*(spec_before for spec_before in metadata.specs if spec_before.id != spec.id), spec)


def _changed(
    state: TableState,
    files: FileSet,
    event: FileChange,
    version: int,
    blobs: Sequence[bytes],
    uncommitted: bool,
) -> tuple[FileSet, int]:
    """Return `files` with the change, and the id of the next row of the table."""
    stored_files = event.added if event.added_sidecar is None else decode_files(blobs[event.added_sidecar])
    new_files = with_version(stored_files, UNCOMMITTED if uncommitted else version)
    removed_files: Sequence[RemovedFile] = event.removed
    if event.removed_sidecar is not None:
        removed_files = decode_removed(blobs[event.removed_sidecar])
    if removed_files:
        files = files.removed(removed_files)
    files = files.added(new_files, state.current.schema, state.current.specs)
    return files, next_row_after(state.next_row, new_files)


def _counted(state: TableState) -> ContentLine | None:
    return state.main and state.main.changed()


def _with_ref(
    state: TableState, event: RefSet, version: int, blobs: Sequence[bytes], uncommitted: bool
) -> TableState:
    id, line = line_of(state, event.of)
    files, next_row = _changed(state, state.on(event.of).files, event, version, blobs, uncommitted)
    since = version if event.version is None else event.version
    if event.kind == TAG:
        own = ContentLine() if event.apart else ContentLine(contains={id: line.changes})
    else:
        own = ContentLine() if event.ahead else line.having({id: line.changes})
    ref = Ref(
        kind=event.kind,
        id=event.id,
        version=UNCOMMITTED if uncommitted and event.version is None else since,
        files=files,
        metadata=(event.metadata or state.current) if event.kind == TAG else None,
        line=msgspec.structs.replace(own, changes=0),
    )
    state = replace(_without_ref(state, event.name), next_row=next_row)
    state = replace(state, refs={**state.refs, event.name: ref}, main=state.main or ContentLine())
    if event.kind == BRANCH and event.of != event.name and not event.apart:
        # The line that it was made from has all of it, for the present.
        state = _with_line(state, event.of, line_of(state, event.of)[1].having({event.id: 0}))
    return state


def _without_ref(state: TableState, name: str) -> TableState:
    dropped_ref = state.refs.get(name)
    if dropped_ref is None:
        return state
    refs = {
        ref_name: replace(ref, line=ref.line.without(dropped_ref.id))
        for ref_name, ref in state.refs.items()
        if ref_name != name
    }
    return replace(state, refs=refs, main=state.main and state.main.without(dropped_ref.id))


def _with_promise(
    state: TableState, event: ClonePromised, version: int, blobs: Sequence[bytes], uncommitted: bool
) -> TableState:
    if event.of is None:
        files, _ = _changed(state, state.files, event, version, blobs, uncommitted)
        metadata = event.metadata or state.current
    else:
        files, metadata = promised(state.clones, event.of)
    promise = ClonePromise(location=event.location, version=event.version, files=files, metadata=metadata)
    return replace(state, clones={**state.clones, event.clone: promise})


def _joined_lines(state: TableState, event: FastForwarded) -> TableState:
    """Record that each of the two lines has all contents of the other."""
    (id, line), (other_id, target_line) = line_of(state, event.branch), line_of(state, event.to)
    state = _with_line(
        state, event.branch, line.having({**target_line.contains, other_id: target_line.changes}).without(id)
    )
    return _with_line(state, event.to, target_line.having({id: line.changes}))


def line_of(state: TableState, name: str) -> tuple[str, ContentLine]:
    """Return the id of main or of a branch, and its line."""
    if name == MAIN:
        return MAIN, state.main or ContentLine()
    ref = _branch(state, name)
    return ref.id, ref.line


def _branch(state: TableState, name: str) -> Ref:
    ref = state.refs.get(name)
    if ref is None or ref.kind != BRANCH:
        raise FormatError(
            f"the log changes the branch {name}, which does not exist: it was written by a faulty client"
        )
    return ref


def _with_line(state: TableState, name: str, line: ContentLine) -> TableState:
    if name == MAIN:
        return replace(state, main=line)
    return replace(state, refs={**state.refs, name: replace(state.refs[name], line=line)})
