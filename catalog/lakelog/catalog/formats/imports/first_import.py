"""The first import of a source: a new table, whose versions are the source's versions.

Rule: no name leads to the table before all of its versions are committed. So the table becomes visible as a
whole. This module must not know the format of a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.ddl import (
    CREATE,
    StagedTable,
    StageRequest,
    create_from,
    created_event,
    stage_table,
)
from lakelog.catalog.core.files import DataFile, check_files, removed_file
from lakelog.catalog.core.logs import (
    NameTree,
    Progress,
    TableHead,
    TrackedLog,
    files_event,
    merged_drafts,
    read_vector,
)
from lakelog.catalog.core.schema import is_setting, kept_of_import, warn_of_import
from lakelog.catalog.core.state import (
    COMMENT,
    OperationKind,
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
from lakelog.catalog.formats.imports.claims import FolderWatch
from lakelog.catalog.formats.imports.copies import SourceCopies, stamps_in
from lakelog.catalog.formats.imports.source import ImportSource, SourceVersion
from lakelog.catalog.names import Identifier
from lakelog.log import Draft, LogView, WriteRef
from lakelog.log.stores import Stamp

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The source of an import, and its options.

    `versions` counts for the first import of a table. With `copy`, the table has copies of the files. `note`
    receives the features of the source that the table lacks. `watch` checked that no table adopted files in
    the folder of the source.
    """

    tree: NameTree
    source: ImportSource
    watch: FolderWatch
    identifier: Identifier
    versions: int
    progress: Progress
    note: Progress = warn_of_import
    dry_run: bool = False
    copy: bool = False


def create_table(request: ImportRequest) -> TableHead:
    """Make the table of that name with the newest versions of the source, each as a commit.

    Raises TableExists or NoSuchNamespace. Raises Unsupported or InvalidInput for content that a lakelog table
    cannot have. Nothing is visible after an error.
    """
    tree, source = request.tree, request.source
    # Taken before the source's files are read. If the object that is copied differs from the stamp, it was
    # replaced.
    stamps = stamps_in(tree.logs.places.open_url, source.url) if request.copy else {}
    versions = _with_last(source.versions(request.versions))
    version, is_last = next(versions)
    schema = columns_of(version, None)
    specs = specs_of(version, schema)
    properties, notes = kept_of_import(
        {name: value for name, value in source.properties.items() if is_setting(name)}
    )
    for note in notes:
        request.note(note)
    stage_request = StageRequest(
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
    # Ids are the source's because its later versions identify columns by them.
    stage = msgspec.structs.replace(stage_table(tree, stage_request), schema=schema, spec=specs[0])
    commits = _Importing(request, stage, stamps)

    def go_on(tracked: TrackedLog[TableState], view: LogView[TableState]) -> LogView[TableState]:
        for version, is_last in versions:
            view = commits.next(tracked, view, version, is_last)
        return view

    more = [PartitioningChanged(spec=spec) for spec in specs[1:]]
    return create_from(tree, stage, commits.first(version, more, is_last), go_on)


def _with_last(versions: Iterator[SourceVersion]) -> Iterator[tuple[SourceVersion, bool]]:
    """Yield versions, each with whether it is the last version."""
    previous = next(versions)
    for version in versions:
        yield previous, False
        previous = version
    yield previous, True


class _Importing:
    """Makes the commits of an import in their order."""

    def __init__(self, request: ImportRequest, stage: StagedTable, stamps: Mapping[str, Stamp]) -> None:
        self._request = request
        self._logs = logs = request.tree.logs
        self._stage = stage
        self._live: dict[str, DataFile] = {}
        self._done = 0
        self._copies: SourceCopies | None = None
        if request.copy:
            table_log = logs.table(stage.location)
            self._copies = SourceCopies(table_log, logs.places.open_url, request.progress, stamps=stamps)

    def first(self, version: SourceVersion, more: list[PartitioningChanged], is_last: bool) -> Draft:
        table_log = self._logs.table(self._stage.location)
        events: list[TableEvent] = [created_event(self._stage), *more]
        state = TableState()
        for event in events:
            state = apply(state, event, 1, ())
        return self._draft(table_log, state, events, version, self._stage.write, is_last)

    def next(
        self,
        tracked: TrackedLog[TableState],
        view: LogView[TableState],
        version: SourceVersion,
        is_last: bool,
    ) -> LogView[TableState]:
        write = WriteRef(id=self._logs.new_id(), version=view.version)
        events, state = definition_events(version, view.state.current), view.state
        for event in events:
            state = apply(state, event, view.version + 1, ())
        if events:
            files = with_bounds_of(self._live.values(), view.state.current.schema, state.current.schema)
            self._live = {file.path: file for file in files}
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
        """Return the commit of a version, if `events` change the version before to `state`."""
        metadata = state.current
        self._request.watch.meet(version.added)
        if self._copies is not None:
            version = self._copies.of(version, write)
            self._copies.copy()
        files = stored(tracked, write, list(with_rows(version.added)))
        new_files, pairs = [], []
        again = {path: self._live.pop(path) for path in version.removed if path in self._live}
        for file in files:
            old_entry = again.get(file.path)
            if old_entry is not None and is_same_object(old_entry, file) and _grows(tracked, old_entry, file):
                pairs.append((old_entry, _with_deletes(old_entry, file)))
                del again[file.path]
            else:
                new_files.append(file)
        old_files = [removed_file(file) for file in again.values()]
        new_files = numbered(new_files, state.next_row)
        check_files(new_files, metadata.schema, metadata.specs)
        drafts = [Draft(events=encode(events), write=write)]
        if new_files or old_files or pairs:
            event, blobs = files_event(OperationKind.IMPORT, new_files, old_files, metadata, changed=pairs)
            drafts.append(Draft(events=encode([event]), blobs=blobs))
        ref = self._logs.new_id() if is_last else None
        copies = self._copies is not None
        last: list[TableEvent] = [imported_event(self._request.source, version, ref, copies=copies)]
        if ref is not None:
            last.append(tag_event(ref))
        drafts.append(Draft(events=encode(last)))
        self._done += 1
        for file in new_files:
            # The fold gives a file without a version the version of its commit.
            self._live[file.path] = msgspec.structs.replace(file, version=self._done)
        self._live |= {new_entry.path: new_entry for _, new_entry in pairs}
        self._request.progress(
            f"version {version.id} of the source: {len(new_files):,} files added, {len(old_files):,} removed, "
            f"{len(pairs):,} with more deleted rows"
        )
        return merged_drafts(drafts)


def _grows(tracked: TrackedLog[TableState], file_before: DataFile, file_after: DataFile) -> bool:
    """Return whether more rows of a file are deleted, and no row came back."""

    def deleted(file: DataFile) -> BitMap:
        return read_vector(tracked.store, tracked.prefix, file.deletes, file.physical_rows)

    return deleted(file_before) < deleted(file_after)


def _with_deletes(file_before: DataFile, file_after: DataFile) -> DataFile:
    return msgspec.structs.replace(file_before, rows=file_after.rows, deletes=file_after.deletes)
