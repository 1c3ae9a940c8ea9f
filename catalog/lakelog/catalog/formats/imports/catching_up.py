"""Catching up with a source: what it did since the last import, as one commit, beside what was done here since.

The tag of the last import has exactly the files and rows that the source had then. What the source has now is compared
with that, and the difference is made here, where the files are as they were. Rule: no row that was deleted on either
side comes back. So a file that the source has rewritten, and of which rows were deleted or rewritten here, is refused:
its rows are in other files by now, and which of these are deleted is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.files import DataFile, Deletes, check_files, origin_of, removed_file
from lakelog.catalog.core.logs import (
    NothingToDo,
    TableHead,
    Written,
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
    Operation,
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
from lakelog.catalog.formats.imports.differences import Difference, difference, is_same, mark_of
from lakelog.catalog.formats.imports.fitting import (
    check_constraints,
    check_new_files,
    check_partitionings,
    listed,
)
from lakelog.catalog.formats.imports.source import Source, SourceVersion
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap


def last_import(head: TableHead, source: Source) -> ImportedSource:
    """Return what was imported last. InvalidInput where the table is of no source, or of another one."""
    last, adopted = head.state.source, head.state.adopted
    if last is None and adopted is not None:
        raise InvalidInput(
            f"{head.name} has adopted the files of {adopted.source.url}, and catches up with no source any more: "
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
    """Return the source's files as they were imported last. SourceDiverged where that is not known any more."""
    last = head.state.source
    ref = head.state.refs.get(IMPORTED)
    if last is None or ref is None or ref.id != last.ref:
        raise SourceDiverged(
            f"{head.name} has no tag {IMPORTED} of its last import any more, so that it cannot catch up with "
            f"{'its source' if last is None else last.url}: import the source as another table"
        )
    tagged = head.on(IMPORTED)
    return tagged.entries(tagged.all_files()["path"].to_pylist())


def catch_up(head: TableHead, source: Source, now: SourceVersion, write: WriteRef | None = None) -> TableHead:
    """Commit what the source did since the last import, as it is `now`; nothing where it did nothing. `write` is the
    one that has copied files, where they are copied.

    SourceDiverged, naming files, where rows could be lost or come back; CommitConflict where another import was first.
    """
    last = last_import(head, source)
    write = write or head.begin_write()
    ref = head.logs.new_id()

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        written = Written(head.version, head.schema, no_files)
        check_conflicts(Operation.IMPORT, view, passed, written, head.name)
        current = head.at(view)
        if view.state.source != last:
            raise CommitConflict(
                f"{head.name} was imported by another client at the same time: import it again",
                version=view.version,
            )
        return _CatchingUp(current, source, now, write, ref).draft(imported_files(current))

    return head.commit_or_refresh(decide, None)


@dataclass(slots=True)
class _CatchingUp:
    """Decides the commit on one version of the table."""

    head: TableHead
    source: Source
    now: SourceVersion
    write: WriteRef
    ref: str

    def draft(self, before: dict[str, DataFile]) -> Draft:
        found = difference(before, self.now)
        then = self.head.on(IMPORTED).metadata
        events, state, theirs = self._definition(then)
        if not (found.added or found.removed or found.changed or found.described or events):
            raise NothingToDo("the source is as it was")
        mine = self.head.entries([*found.added, *found.removed, *found.changed, *found.described])
        schema = state.current.schema
        before = {file.path: file for file in with_bounds_of(before.values(), then.schema, schema)}
        mine = {file.path: file for file in with_bounds_of(mine.values(), self.head.schema, schema)}
        self._check(found, before, mine)
        fitting = with_bounds_of(found.added.values(), self.now.schema, state.current.schema)
        added = self._with_vectors(numbered(stored_by(self.write, fitting), state.next_row))
        if added:
            columns = columns_of(self.now, then.schema)
            check_new_files(self.head.name, self.source.url, added, columns, then, state.current)
        check_files(added, state.current.schema, state.current.specs)
        removed = [mine[path] for path in found.removed if path in mine]
        changed = self._changed(found, before, mine, removed, added)
        event, blobs = files_event(
            Operation.IMPORT, added, [removed_file(file) for file in removed], state.current, changed=changed
        )
        drafts = [Draft(events=encode(events), write=self.write)]
        if added or removed or changed:
            drafts.append(Draft(events=encode([event]), blobs=blobs))
        main = self._main_after(added, removed, changed)
        drafts.append(self._tag(before, found, added, main, state.current, theirs))
        gone = self._gone() | {
            origin_of(path): file.footer_crc
            for path, file in found.removed.items()
            if path in mine and mark_of(mine[path]) != mark_of(file)
        }
        imported = imported_event(self.source, self.now, self.ref, copies=self._copies(), gone=gone)
        drafts.append(Draft(events=encode([imported])))
        return merged_drafts(drafts)

    def _copies(self) -> bool:
        return self.head.state.source is not None and self.head.state.source.copies

    def _gone(self) -> dict[str, int | None]:
        """Return the files that were removed by imports while rows of them were deleted here, with their checksums."""
        last = self.head.state.source
        return {} if last is None or last.gone is msgspec.UNSET else last.gone

    # Columns

    def _definition(self, then: Metadata) -> tuple[list[TableEvent], TableState, Metadata]:
        """Return the source's change of columns and partitionings since `then`, the state that it makes, and what the
        source has now, without what was changed here. SourceDiverged where both were changed."""
        state, ours = self.head.state, self.head.metadata
        columns = columns_of(self.now, then.schema)
        specs = specs_of(self.now, columns)
        check_partitionings(self.head.name, self.source.url, specs, then)
        new = [spec for spec in specs if spec.id not in then.specs_by_id]
        is_ours = ours.schema != then.schema or ours.specs != then.specs
        if not is_ours:
            check_constraints(self.head.name, self.source.url, columns, ours)
            events = definition_events(self.now, ours)
            for event in events:
                state = apply(state, event, self.head.version + 1, ())
            theirs = msgspec.structs.replace(then, schema=state.current.schema, specs=state.current.specs)
            return events, state, theirs
        if columns != then.schema or new:
            raise SourceDiverged(
                f"the columns or the partitioning of {self.head.name} were changed, and so were those of its source "
                f"{self.source.url}: import the source as another table"
            )
        return [], state, then

    # Files

    def _check(self, found: Difference, before: Mapping[str, DataFile], mine: Mapping[str, DataFile]) -> None:
        """Raise where the source has rewritten or deleted rows of files that were changed here too."""
        if there := self._there(found, mine):
            raise SourceDiverged(
                f"{self.head.name} has {listed(there)} already, which its source has added: its rows would be there "
                "twice. Delete them here, and import again"
            )
        known = self._gone()
        back = [
            path
            for path, file in found.added.items()
            if (key := origin_of(path)) in known
            and (known[key] is None or file.footer_crc in (None, known[key]))
        ]
        if back:
            raise SourceDiverged(
                f"the source {self.source.url} has {listed(back)} again, which was removed by an import, and of "
                f"which rows had been deleted in {self.head.name}: they would come back. Import the source as another "
                "table"
            )
        gone = [path for path in (*found.removed, *found.changed) if path not in mine]
        # Rows that were rewritten here have no value of a column that was not there then.
        gone += [
            path
            for path, file in found.described.items()
            if path not in mine
            and path not in found.changed
            and has_one_again(before[path], file, self.now.schema)
        ]
        moved = (
            [path for path in found.removed if path in mine and mark_of(mine[path]) != mark_of(before[path])]
            if found.added
            else []
        )
        # An update by vectors deletes a row in one file, and writes it into another.
        both = [
            path
            for path in (found.changed if found.added else ())
            if path in mine and self._is_deleted_by_both(path, found, before, mine)
        ]
        if gone or moved or both:
            files = listed([*gone, *moved, *both])
            raise SourceDiverged(
                f"rows of {files} were deleted or rewritten in {self.head.name} and, since the last import, in its "
                f"source {self.source.url} too, so that it is not known which rows are left. Import the source as "
                f"another table, or roll {self.head.name} back to its last import"
            )

    def _there(self, found: Difference, mine: Mapping[str, DataFile]) -> list[str]:
        """Return added files that the table has already: of a file that is copied, in any copy."""
        if not self._copies():
            return [path for path in found.added if path in mine and path not in found.removed]
        if not found.added:
            return []
        live = [path for chunk in self.head.chunks() for path in chunk["path"].to_pylist()]
        origins = {origin_of(path) for path in live if path not in found.removed}
        return [path for path in found.added if origin_of(path) in origins]

    def _is_deleted_by_both(
        self, path: str, found: Difference, before: Mapping[str, DataFile], mine: Mapping[str, DataFile]
    ) -> bool:
        """Return whether a row has been deleted here and, since the last import, by the source."""
        if mark_of(mine[path]) == mark_of(before[path]):
            return False
        then = self._vector(before[path])
        return not (self._vector(mine[path]) - then).isdisjoint(vector_of(found.changed[path].deletes) - then)

    def _changed(
        self,
        found: Difference,
        before: Mapping[str, DataFile],
        mine: Mapping[str, DataFile],
        removed: list[DataFile],
        added: list[DataFile],
    ) -> list[tuple[DataFile, DataFile]]:
        """Return files that get more deleted rows. Those without a live row, those of which rows come back, and those
        with more columns go to `removed` and `added`."""
        vectors: dict[str, BitMap] = {}
        grown: set[str] = set()
        for path, file in found.changed.items():
            ours = self._vector(mine[path])
            vectors[path] = (ours - self._vector(before[path])) | vector_of(file.deletes)
            if ours < vectors[path]:
                grown.add(path)
        written = self._written(vectors)
        changed = []
        for path, vector in vectors.items():
            old = mine[path]
            rows = old.physical_rows - len(vector)
            new = msgspec.structs.replace(old, rows=rows, deletes=written.get(path))
            if path in found.described:
                new = with_columns(new, found.described[path])
            elif rows and path in grown:
                changed.append((old, new))
                continue
            elif mark_of(old) == mark_of(new):
                continue
            removed.append(old)
            # Bounds may be those of the rows that were live before.
            added += [msgspec.structs.replace(new, stats={})] if rows else []
        for path, file in found.described.items():
            if path in mine and path not in found.changed:
                removed.append(mine[path])
                added.append(with_columns(mine[path], file))
        return changed

    def _vector(self, file: DataFile) -> BitMap:
        tracked = self.head.tracked
        return read_vector(tracked.store, tracked.prefix, file.deletes, file.physical_rows)

    def _written(self, vectors: Mapping[str, BitMap]) -> dict[str, Deletes]:
        tracked = self.head.tracked
        some = {path: vector for path, vector in vectors.items() if vector}
        return write_vectors(tracked.store, tracked.prefix, self.write, some) if some else {}

    def _with_vectors(self, files: Iterable[DataFile]) -> list[DataFile]:
        listed = list(files)
        written = self._written({file.path: vector_of(file.deletes) for file in listed if file.deletes})
        return [msgspec.structs.replace(file, deletes=written.get(file.path)) for file in listed]

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
        before: Mapping[str, DataFile],
        found: Difference,
        added: Sequence[DataFile],
        main: Mapping[str, DataFile],
        metadata: Metadata,
        theirs: Metadata,
    ) -> Draft:
        """Return the event that gives the tag what the source has now, as the difference to the table's own files."""
        wanted = {path: file for path, file in before.items() if path not in found.removed}
        wanted |= {file.path: file for file in added if file.path in found.added}
        for path, file in found.changed.items():
            wanted[path] = msgspec.structs.replace(before[path], rows=file.rows, deletes=file.deletes)
        for path, file in found.described.items():
            wanted[path] = with_columns(wanted[path], file)
        apart = {path: file for path, file in wanted.items() if not is_same(main.get(path), file)}
        written = self._written(
            {path: vector_of(apart[path].deletes) for path in found.changed if path in apart}
        )
        for path in found.changed.keys() & apart.keys():
            apart[path] = msgspec.structs.replace(apart[path], deletes=written.get(path))
        others = [file for path, file in main.items() if path not in wanted or path in apart]
        change, blobs = files_event(
            Operation.SET_REF, list(apart.values()), [removed_file(file) for file in others], metadata
        )
        differs = bool(apart or others)
        event = RefSet(
            **{name: getattr(change, name) for name in change.__struct_fields__},
            name=IMPORTED,
            kind=TAG,
            id=self.ref,
            of=MAIN,
            ahead=differs,
            apart=differs,
            # Neither columns nor CHECKs that only the table has are the source's.
            metadata=None if theirs == metadata else theirs,
        )
        return Draft(events=encode([event]), blobs=blobs)
