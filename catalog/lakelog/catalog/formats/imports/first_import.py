"""The first import of a source: a new table, whose versions are those of the source.

Rule: no name leads to the table before all of its versions are committed, so that nothing is there until all of it is.
It must not know the format of a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.ddl import CREATE, Stage, StageRequest, create_from, created_event, stage_table
from lakelog.catalog.core.files import DataFile, check_files, removed_file
from lakelog.catalog.core.logs import NameTree, TableHead, TrackedLog, files_event, merged_drafts, read_vector
from lakelog.catalog.core.schema import is_setting, kept_of_import, warn_of_import
from lakelog.catalog.core.state import (
    COMMENT,
    Operation,
    PartitioningChanged,
    TableEvent,
    TableState,
    apply,
    encode,
)
from lakelog.catalog.formats.imports.bounds import with_bounds_of
from lakelog.catalog.formats.imports.changes import (
    columns_of,
    definition_events,
    imported_event,
    is_same_object,
    numbered,
    specs_of,
    stored,
    tag_event,
    with_rows,
)
from lakelog.catalog.formats.imports.claims import Watch
from lakelog.catalog.formats.imports.copies import Copies, stamps_in
from lakelog.catalog.formats.imports.source import Source, SourceVersion
from lakelog.catalog.names import Identifier
from lakelog.log import Draft, View, WriteRef
from lakelog.log.stores import Stamp

if TYPE_CHECKING:
    from pyroaring import BitMap

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What is imported, and how. `versions` counts for the first import of a table; with `copy`, the table has copies
    of the files. `note` is given what the table does not have of the source. `watch` has seen that no table has adopted
    files in the folder of the source."""

    tree: NameTree
    source: Source
    watch: Watch
    identifier: Identifier
    versions: int
    progress: Progress
    note: Progress = warn_of_import
    dry_run: bool = False
    copy: bool = False


def create_table(request: ImportRequest) -> TableHead:
    """Make the table of that name with the newest versions of the source, each as a commit.

    TableExists, NoSuchNamespace; Unsupported and InvalidInput for what a lakelog table cannot have. Nothing is visible
    then.
    """
    tree, source = request.tree, request.source
    # Before the source's files are looked at: what is another object by the time that it is copied was replaced since.
    stamps = stamps_in(tree.logs.places.open_url, source.url) if request.copy else {}
    left = _with_last(source.versions(request.versions))
    version, is_last = next(left)
    schema = columns_of(version, None)
    specs = specs_of(version, schema)
    properties, dropped = kept_of_import(
        {name: value for name, value in source.properties.items() if is_setting(name)}
    )
    for note in dropped:
        request.note(note)
    staged = StageRequest(
        kind=CREATE,
        identifier=request.identifier,
        schema=schema,
        partitioning=(),
        sort_by=(),
        cluster_by=(),
        properties={name: value for name, value in properties.items() if name != COMMENT},
        location=None,
        comment=properties.get(COMMENT),
        provider=None,
    )
    # Ids are the source's, by which its later versions name the same columns.
    stage = msgspec.structs.replace(stage_table(tree, staged), schema=schema, spec=specs[0])
    importing = _Importing(request, stage, stamps)

    def go_on(tracked: TrackedLog[TableState], view: View[TableState]) -> View[TableState]:
        for version, is_last in left:
            view = importing.next(tracked, view, version, is_last)
        return view

    more = [PartitioningChanged(spec=spec) for spec in specs[1:]]
    return create_from(tree, stage, importing.first(version, more, is_last), go_on)


def _with_last(versions: Iterator[SourceVersion]) -> Iterator[tuple[SourceVersion, bool]]:
    """Yield versions, each with whether it is the last one."""
    before = next(versions)
    for version in versions:
        yield before, False
        before = version
    yield before, True


class _Importing:
    """Makes the commits of one import, each of which follows the one before."""

    def __init__(self, request: ImportRequest, stage: Stage, stamps: Mapping[str, Stamp]) -> None:
        self._request = request
        self._logs = logs = request.tree.logs
        self._stage = stage
        self._live: dict[str, DataFile] = {}
        self._done = 0
        self._copies: Copies | None = None
        if request.copy:
            tracked = logs.table(stage.location)
            self._copies = Copies(tracked, logs.places.open_url, request.progress, stamps=stamps)

    def first(self, version: SourceVersion, more: list[PartitioningChanged], is_last: bool) -> Draft:
        tracked = self._logs.table(self._stage.location)
        events: list[TableEvent] = [created_event(self._stage), *more]
        state = TableState()
        for event in events:
            state = apply(state, event, 1, ())
        return self._draft(tracked, state, events, version, self._stage.write, is_last)

    def next(
        self,
        tracked: TrackedLog[TableState],
        view: View[TableState],
        version: SourceVersion,
        is_last: bool,
    ) -> View[TableState]:
        write = WriteRef(id=self._logs.new_id(), version=view.version)
        events, state = definition_events(version, view.state.current), view.state
        for event in events:
            state = apply(state, event, view.version + 1, ())
        if events:
            fitting = with_bounds_of(self._live.values(), view.state.current.schema, state.current.schema)
            self._live = {file.path: file for file in fitting}
        draft = self._draft(tracked, state, events, version, write, is_last)
        return tracked.commit(view, lambda _view, _passed: draft).view

    def _draft(
        self,
        tracked: TrackedLog[TableState],
        state: TableState,
        events: list[TableEvent],
        version: SourceVersion,
        write: WriteRef,
        is_last: bool,
    ) -> Draft:
        """Return the commit of a version, where `events` make `state` of the version before."""
        metadata = state.current
        self._request.watch.meet(version.added)
        if self._copies is not None:
            version = self._copies.of(version, write)
            self._copies.copy()
        files = stored(tracked, write, list(with_rows(version.added)))
        added, changed = [], []
        again = {path: self._live.pop(path) for path in version.removed if path in self._live}
        for file in files:
            before = again.get(file.path)
            if before is not None and is_same_object(before, file) and _grows(tracked, before, file):
                changed.append((before, _with_deletes(before, file)))
                del again[file.path]
            else:
                added.append(file)
        removed = [removed_file(file) for file in again.values()]
        added = numbered(added, state.next_row)
        check_files(added, metadata.schema, metadata.specs)
        drafts = [Draft(events=encode(events), write=write)]
        if added or removed or changed:
            event, blobs = files_event(Operation.IMPORT, added, removed, metadata, changed=changed)
            drafts.append(Draft(events=encode([event]), blobs=blobs))
        ref = self._logs.new_id() if is_last else None
        copies = self._copies is not None
        last: list[TableEvent] = [imported_event(self._request.source, version, ref, copies=copies)]
        if ref is not None:
            last.append(tag_event(ref))
        drafts.append(Draft(events=encode(last)))
        self._done += 1
        for file in added:
            # The fold gives a file that has none the version of its commit.
            self._live[file.path] = msgspec.structs.replace(file, version=self._done)
        self._live |= {after.path: after for _, after in changed}
        self._request.progress(
            f"version {version.id} of the source: {len(added):,} files added, {len(removed):,} removed, "
            f"{len(changed):,} with more deleted rows"
        )
        return merged_drafts(drafts)


def _grows(tracked: TrackedLog[TableState], before: DataFile, after: DataFile) -> bool:
    """Return whether more rows of a file are deleted, and none has come back."""

    def deleted(file: DataFile) -> BitMap:
        return read_vector(tracked.store, tracked.prefix, file.deletes, file.physical_rows)

    return deleted(before) < deleted(after)


def _with_deletes(before: DataFile, after: DataFile) -> DataFile:
    return msgspec.structs.replace(before, rows=after.rows, deletes=after.deletes)
