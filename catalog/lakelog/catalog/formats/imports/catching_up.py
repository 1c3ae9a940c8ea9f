"""Catching up with a source: a commit of its changes since the last import, beside the table's own.

The tag of the last import has exactly the files and rows of the source at that time. The source's present
state is compared with the tag. The difference is applied here if the table's files are unchanged. Rule: no
row that either side deleted comes back. So a file that the source rewrote is refused if its rows were deleted
or rewritten here. Its rows are in other files then, and which of them are deleted is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.files import DataFile, DeletionVector, check_files, origin_of, removed_file
from lakelog.catalog.core.logs import (
    NothingToDo,
    OperationFacts,
    TableHead,
    check_conflicts,
    files_event,
    merged_drafts,
    no_files,
    read_vector,
    write_vectors,
)
from lakelog.catalog.core.schema import Metadata
from lakelog.catalog.core.state import (
    MAIN,
    TAG,
    ImportedSource,
    OperationKind,
    RefSet,
    TableEvent,
    TableState,
    apply,
    encode,
)
from lakelog.catalog.errors import CommitConflict, SourceDiverged
from lakelog.catalog.formats.imports.bounds import with_bounds_of
from lakelog.catalog.formats.imports.changes import (
    IMPORTED,
    columns_of,
    definition_events,
    imported_event,
    numbered,
    specs_of,
    stored_by,
    vector_of,
)
from lakelog.catalog.formats.imports.described import has_one_again, with_columns
from lakelog.catalog.formats.imports.differences import SourceDifference, difference, is_same, mark_of
from lakelog.catalog.formats.imports.fitting import (
    check_constraints,
    check_new_files,
    check_partitionings,
    listed,
)
from lakelog.catalog.formats.imports.source import ImportSource, SourceVersion
from lakelog.log import Commit, Draft, LogView, WriteRef
from lakelog.log.errors import InvalidInput
from lakelog.log.placing import Decide

if TYPE_CHECKING:
    from pyroaring import BitMap


def last_import(head: TableHead, source: ImportSource) -> ImportedSource:
    """Return the last import. Raises InvalidInput if the table has no source, or another source."""
    last, adoption = head.state.source, head.state.adopted
    if last is None and adoption is not None:
        raise InvalidInput(
            f"{head.name} has adopted the files of {adoption.source.url}, and catches up with no source any more: "
            "choose another name for a new table"
        )
    if last is None:
        raise InvalidInput(
            f"{head.name} is there, and was not imported: choose another name for the table of {source.url}"
        )
    if (last.format, last.identity) != (source.format, source.identity):
        if last.format == source.format == "parquet" and last.url == source.url:
            raise InvalidInput(
                f"{head.name} was imported from {last.url} {_way(last.identity, last.url)}, and not "
                f"{_way(source.identity, source.url)}, which may find other files and partitions there: import it as "
                "the first time"
            )
        raise InvalidInput(
            f"{head.name} was imported from {last.format} at {last.url}, and {source.url} is another "
            f"{source.format} source: choose another name for the new table"
        )
    return last


def _way(identity: str, url: str) -> str:
    return "by its path" if identity == url else "by the name of a table"


def imported_files(head: TableHead) -> dict[str, DataFile]:
    """Return the source's files as of the last import. Raises SourceDiverged if they are not known any more."""
    last = head.state.source
    ref = head.state.refs.get(IMPORTED)
    if last is None or ref is None or ref.id != last.ref:
        raise SourceDiverged(
            f"{head.name} has no tag {IMPORTED} of its last import any more, so that it cannot catch up with "
            f"{'its source' if last is None else last.url}: import the source as another table"
        )
    tag_head = head.on(IMPORTED)
    return tag_head.entries(tag_head.all_files()["path"].to_pylist())


def catch_up(
    head: TableHead, source: ImportSource, version: SourceVersion, write: WriteRef | None = None
) -> TableHead:
    """Commit the source's changes from the last import to `version`. Commits nothing if there are none.

    `write` is the write that copied the files, if they are copied. Raises SourceDiverged, naming files, if
    rows could be lost or come back. Raises CommitConflict if another import was first.
    """
    return head.commit_or_refresh(_deciding(head, source, version, write or head.begin_write()), None)


def changes_table(head: TableHead, source: ImportSource, version: SourceVersion, write: WriteRef) -> bool:
    """Return whether `catch_up` would commit anything. Raises as that does."""
    try:
        _deciding(head, source, version, write)(head.view, ())
    except NothingToDo:
        return False
    return True


def _deciding(
    head: TableHead, source: ImportSource, current_version: SourceVersion, write: WriteRef
) -> Decide[TableState]:
    last = last_import(head, source)
    ref = head.logs.new_id()

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        own_write = OperationFacts(head.version, head.schema, no_files)
        check_conflicts(OperationKind.IMPORT, view, passed_commits, own_write, head.name)
        current = head.at(view)
        if view.state.source != last:
            raise CommitConflict(
                f"{head.name} was imported by another client at the same time: import it again",
                version=view.version,
            )
        return _CatchingUp(current, source, current_version, write, ref).draft(imported_files(current))

    return decide


@dataclass(slots=True)
class _CatchingUp:
    """Decides the commit on a version of the table."""

    head: TableHead
    source: ImportSource
    now: SourceVersion
    write: WriteRef
    ref: str

    def draft(self, last_files: dict[str, DataFile]) -> Draft:
        diff = difference(last_files, self.now)
        last_metadata = self.head.on(IMPORTED).metadata
        events, state, theirs = self._definition(last_metadata)
        if not (diff.added or diff.removed or diff.changed or diff.described or events):
            raise NothingToDo("the source is as it was")
        mine = self.head.entries([*diff.added, *diff.removed, *diff.changed, *diff.described])
        schema = state.current.schema
        last_files = {
            file.path: file for file in with_bounds_of(last_files.values(), last_metadata.schema, schema)
        }
        mine = {file.path: file for file in with_bounds_of(mine.values(), self.head.schema, schema)}
        self._check(diff, last_files, mine)
        files = with_bounds_of(diff.added.values(), self.now.schema, state.current.schema)
        new_files = self._with_vectors(numbered(stored_by(self.write, files), state.next_row))
        if new_files:
            columns = columns_of(self.now, last_metadata.schema)
            check_new_files(self.head.name, self.source.url, new_files, columns, last_metadata, state.current)
        check_files(new_files, state.current.schema, state.current.specs)
        old_files = [mine[path] for path in diff.removed if path in mine]
        changed_files = self._changed(diff, last_files, mine, old_files, new_files)
        event, blobs = files_event(
            OperationKind.IMPORT,
            new_files,
            [removed_file(file) for file in old_files],
            state.current,
            changed=changed_files,
        )
        drafts = [Draft(events=encode(events), write=self.write)]
        if new_files or old_files or changed_files:
            drafts.append(Draft(events=encode([event]), blobs=blobs))
        main = self._main_after(new_files, old_files, changed_files)
        drafts.append(self._tag(last_files, diff, new_files, main, state.current, theirs))
        gone_files = self._gone() | {
            origin_of(path): file.footer_crc
            for path, file in diff.removed.items()
            if path in mine and mark_of(mine[path]) != mark_of(file)
        }
        import_event = imported_event(self.source, self.now, self.ref, copies=self._copies(), gone=gone_files)
        drafts.append(Draft(events=encode([import_event])))
        return merged_drafts(drafts)

    def _copies(self) -> bool:
        return self.head.state.source is not None and self.head.state.source.copies

    def _gone(self) -> dict[str, int | None]:
        """Return the files that imports removed after rows of them were deleted here, with checksums."""
        last = self.head.state.source
        return {} if last is None else last.gone

    # Columns

    def _definition(self, past_metadata: Metadata) -> tuple[list[TableEvent], TableState, Metadata]:
        """Return the source's changes of columns and partitionings since `past_metadata`, and the results.

        The second result is the state of the table, and the third is the source's metadata without the
        table's own changes. Raises SourceDiverged if both sides changed columns or partitionings.
        """
        state, ours = self.head.state, self.head.metadata
        columns = columns_of(self.now, past_metadata.schema)
        specs = specs_of(self.now, columns)
        check_partitionings(self.head.name, self.source.url, specs, past_metadata)
        new = [spec for spec in specs if spec.id not in past_metadata.specs_by_id]
        is_ours = ours.schema != past_metadata.schema or ours.specs != past_metadata.specs
        if not is_ours:
            check_constraints(self.head.name, self.source.url, columns, ours)
            events = definition_events(self.now, ours)
            for event in events:
                state = apply(state, event, self.head.version + 1, ())
            theirs = msgspec.structs.replace(
                past_metadata, schema=state.current.schema, specs=state.current.specs
            )
            return events, state, theirs
        if columns != past_metadata.schema or new:
            raise SourceDiverged(
                f"the columns or the partitioning of {self.head.name} were changed, and so were those of its source "
                f"{self.source.url}: import the source as another table"
            )
        return [], state, past_metadata

    # Files

    def _check(
        self, diff: SourceDifference, last_files: Mapping[str, DataFile], mine: Mapping[str, DataFile]
    ) -> None:
        """Raise SourceDiverged if the source rewrote or deleted rows of files that were changed here too."""
        if present_paths := self._there(diff, mine):
            raise SourceDiverged(
                f"{self.head.name} has {listed(present_paths)} already, which its source has added: its rows would be "
                "there twice. Delete them here, and import again"
            )
        gone_checksums = self._gone()
        back = [
            path
            for path, file in diff.added.items()
            if (key := origin_of(path)) in gone_checksums
            and (gone_checksums[key] is None or file.footer_crc in (None, gone_checksums[key]))
        ]
        if back:
            raise SourceDiverged(
                f"the source {self.source.url} has {listed(back)} again, which was removed by an import, and of "
                f"which rows had been deleted in {self.head.name}: they would come back. Import the source as another "
                "table"
            )
        gone_paths = [path for path in (*diff.removed, *diff.changed) if path not in mine]
        # Rows that were rewritten here have no value of a column that the table lacked then.
        gone_paths += [
            path
            for path, file in diff.described.items()
            if path not in mine
            and path not in diff.changed
            and has_one_again(last_files[path], file, self.now.schema)
        ]
        rewritten_paths = (
            [
                path
                for path in diff.removed
                if path in mine and mark_of(mine[path]) != mark_of(last_files[path])
            ]
            if diff.added
            else []
        )
        # An update by vectors deletes a row in one file, and writes it into another.
        both = [
            path
            for path in (diff.changed if diff.added else ())
            if path in mine and self._is_deleted_by_both(path, diff, last_files, mine)
        ]
        if gone_paths or rewritten_paths or both:
            files = listed([*gone_paths, *rewritten_paths, *both])
            raise SourceDiverged(
                f"rows of {files} were deleted or rewritten in {self.head.name} and, since the last import, in its "
                f"source {self.source.url} too, so that it is not known which rows are left. Import the source as "
                f"another table, or roll {self.head.name} back to its last import"
            )

    def _there(self, diff: SourceDifference, mine: Mapping[str, DataFile]) -> list[str]:
        """Return added files that the table already has. A file that is copied counts in any copy."""
        if not self._copies():
            return [path for path in diff.added if path in mine and path not in diff.removed]
        if not diff.added:
            return []
        live = [path for chunk in self.head.chunks() for path in chunk["path"].to_pylist()]
        origins = {origin_of(path) for path in live if path not in diff.removed}
        return [path for path in diff.added if origin_of(path) in origins]

    def _is_deleted_by_both(
        self,
        path: str,
        diff: SourceDifference,
        last_files: Mapping[str, DataFile],
        mine: Mapping[str, DataFile],
    ) -> bool:
        """Return whether a row was deleted both here and, since the last import, by the source."""
        if mark_of(mine[path]) == mark_of(last_files[path]):
            return False
        last_vector = self._vector(last_files[path])
        return not (self._vector(mine[path]) - last_vector).isdisjoint(
            vector_of(diff.changed[path].deletes) - last_vector
        )

    def _changed(
        self,
        diff: SourceDifference,
        last_files: Mapping[str, DataFile],
        mine: Mapping[str, DataFile],
        removed: list[DataFile],
        added: list[DataFile],
    ) -> list[tuple[DataFile, DataFile]]:
        """Return files that get more deleted rows.

        A file goes to `removed` and `added` instead if rows come back, if it has more columns, or if no row
        is live.
        """
        vectors: dict[str, BitMap] = {}
        grown: set[str] = set()
        for path, file in diff.changed.items():
            ours = self._vector(mine[path])
            vectors[path] = (ours - self._vector(last_files[path])) | vector_of(file.deletes)
            if ours < vectors[path]:
                grown.add(path)
        deletes = self._written(vectors)
        pairs = []
        for path, vector in vectors.items():
            old = mine[path]
            rows = old.physical_rows - len(vector)
            new = msgspec.structs.replace(old, rows=rows, deletes=deletes.get(path))
            if path in diff.described:
                new = with_columns(new, diff.described[path])
            elif rows and path in grown:
                pairs.append((old, new))
                continue
            elif mark_of(old) == mark_of(new):
                continue
            removed.append(old)
            # Bounds may be bounds of the rows that were live before.
            added += [msgspec.structs.replace(new, stats={})] if rows else []
        for path, file in diff.described.items():
            if path in mine and path not in diff.changed:
                removed.append(mine[path])
                added.append(with_columns(mine[path], file))
        return pairs

    def _vector(self, file: DataFile) -> BitMap:
        table_log = self.head.tracked
        return read_vector(table_log.store, table_log.prefix, file.deletes, file.physical_rows)

    def _written(self, vectors: Mapping[str, BitMap]) -> dict[str, DeletionVector]:
        table_log = self.head.tracked
        nonempty = {path: vector for path, vector in vectors.items() if vector}
        return write_vectors(table_log.store, table_log.prefix, self.write, nonempty) if nonempty else {}

    def _with_vectors(self, files: Iterable[DataFile]) -> list[DataFile]:
        all_files = list(files)
        deletes = self._written({file.path: vector_of(file.deletes) for file in all_files if file.deletes})
        return [msgspec.structs.replace(file, deletes=deletes.get(file.path)) for file in all_files]

    # The tag

    def _main_after(
        self,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        changed: Sequence[tuple[DataFile, DataFile]],
    ) -> dict[str, DataFile]:
        """Return the table's own files after this commit."""
        paths = self.head.all_files()["path"].to_pylist()
        files = self.head.entries(paths)
        for file in (*removed, *(old for old, _ in changed)):
            del files[file.path]
        return files | {file.path: file for file in (*added, *(new for _, new in changed))}

    def _tag(
        self,
        last_files: Mapping[str, DataFile],
        diff: SourceDifference,
        added: Sequence[DataFile],
        main: Mapping[str, DataFile],
        metadata: Metadata,
        theirs: Metadata,
    ) -> Draft:
        """Return the draft that sets the tag to the source's files, as a difference to the table's."""
        tag_files = {path: file for path, file in last_files.items() if path not in diff.removed}
        tag_files |= {file.path: file for file in added if file.path in diff.added}
        for path, file in diff.changed.items():
            tag_files[path] = msgspec.structs.replace(last_files[path], rows=file.rows, deletes=file.deletes)
        for path, file in diff.described.items():
            tag_files[path] = with_columns(tag_files[path], file)
        apart = {path: file for path, file in tag_files.items() if not is_same(main.get(path), file)}
        deletes = self._written(
            {path: vector_of(apart[path].deletes) for path in diff.changed if path in apart}
        )
        for path in diff.changed.keys() & apart.keys():
            apart[path] = msgspec.structs.replace(apart[path], deletes=deletes.get(path))
        foreign_files = [file for path, file in main.items() if path not in tag_files or path in apart]
        change, blobs = files_event(
            OperationKind.SET_REF,
            list(apart.values()),
            [removed_file(file) for file in foreign_files],
            metadata,
        )
        differs = bool(apart or foreign_files)
        event = RefSet(
            **{name: getattr(change, name) for name in change.__struct_fields__},
            name=IMPORTED,
            kind=TAG,
            id=self.ref,
            of=MAIN,
            ahead=differs,
            apart=differs,
            # Columns and CHECKs that only the table has do not belong to the source.
            metadata=None if theirs == metadata else theirs,
        )
        return Draft(events=encode([event]), blobs=blobs)
