"""Catching up with a source: what it did since the last import, as one commit, beside what was done here since.

The tag of the last import has exactly the files and rows that the source had then. What the source has now is compared
with that, and the difference is made here, where the files are as they were. Rule: no row that was deleted on either
side comes back. So a file that the source has rewritten, and of which rows were deleted or rewritten here, is refused:
its rows are in other files by now, and which of these are deleted is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.errors import CommitConflict, SourceDiverged
from lakelog.catalog.files import DataFile, Deletes, check_files, files_to_arrow, removed_file
from lakelog.catalog.imports.bounds import with_bounds_of
from lakelog.catalog.imports.changes import (
    IMPORTED,
    columns_of,
    definition_events,
    imported_event,
    is_same_object,
    numbered,
    specs_of,
    stored_by,
    vector_of,
    with_rows,
)
from lakelog.catalog.imports.source import Source, SourceVersion
from lakelog.catalog.logs import (
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
from lakelog.catalog.parquet import new_checks
from lakelog.catalog.planning import may_fail
from lakelog.catalog.schema import (
    ICEBERG,
    ICEBERG_ON,
    Metadata,
    Schema,
    dotted,
    refuse_generated,
    refuse_identity,
    value_of,
)
from lakelog.catalog.state import (
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
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from pyroaring import BitMap

_NAMED = 5


@dataclass(slots=True)
class Difference:
    """What the source did since the last import, by path. `changed` files have other deleted rows."""

    added: dict[str, DataFile] = field(default_factory=dict)
    removed: dict[str, DataFile] = field(default_factory=dict)
    changed: dict[str, DataFile] = field(default_factory=dict)


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
        raise InvalidInput(
            f"{head.name} was imported from {last.format} at {last.url}, and {source.url} is another "
            f"{source.format} source: choose another name for the new table"
        )
    return last


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


def difference(before: Mapping[str, DataFile], now: SourceVersion) -> Difference:
    """Return what has changed of a source's files."""
    found, live = Difference(), {file.path: file for file in with_rows(now.added)}
    for path, file in live.items():
        old = before.get(path)
        if old is None:
            found.added[path] = file
        elif not is_same_object(old, file):
            found.removed[path], found.added[path] = old, file
        elif _mark(old) != _mark(file):
            found.changed[path] = file
    found.removed |= {path: file for path, file in before.items() if path not in live}
    return found


def _mark(file: DataFile) -> tuple[int, int, int] | None:
    """Return what is different where other rows are deleted, wherever the vector is."""
    if file.deletes is None:
        return None
    return file.deletes.rows, file.deletes.size_bytes, file.deletes.crc


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
        if not (found.added or found.removed or found.changed or events):
            raise NothingToDo("the source is as it was")
        mine = self.head.entries([*found.added, *found.removed, *found.changed])
        schema = state.current.schema
        before = {file.path: file for file in with_bounds_of(before.values(), then.schema, schema)}
        mine = {file.path: file for file in with_bounds_of(mine.values(), self.head.schema, schema)}
        self._check(found, before, mine)
        fitting = with_bounds_of(found.added.values(), self.now.schema, state.current.schema)
        added = self._with_vectors(numbered(stored_by(self.write, fitting), state.next_row))
        check_files(added, state.current.schema, state.current.specs)
        self._check_rows(added, then, state.current)
        removed = [mine[path] for path in found.removed if path in mine]
        changed = self._changed(found.changed, before, mine, removed, added)
        event, blobs = files_event(
            Operation.IMPORT, added, [removed_file(file) for file in removed], state.current, changed=changed
        )
        drafts = [Draft(events=encode(events), write=self.write)]
        if added or removed or changed:
            drafts.append(Draft(events=encode([event]), blobs=blobs))
        main = self._main_after(added, removed, changed)
        drafts.append(self._tag(before, found, added, main, state.current, theirs))
        copies = self.head.state.source is not None and self.head.state.source.copies
        imported = imported_event(self.source, self.now, self.ref, copies=copies)
        drafts.append(Draft(events=encode([imported])))
        return merged_drafts(drafts)

    # Columns

    def _definition(self, then: Metadata) -> tuple[list[TableEvent], TableState, Metadata]:
        """Return the source's change of columns and partitionings since `then`, the state that it makes, and what the
        source has now, without what was changed here. SourceDiverged where both were changed."""
        state, ours = self.head.state, self.head.metadata
        columns = columns_of(self.now, then.schema)
        new = [spec for spec in specs_of(self.now, columns) if spec.id not in then.specs_by_id]
        is_ours = ours.schema != then.schema or ours.specs != then.specs
        if not is_ours:
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

    def _check_rows(self, added: Sequence[DataFile], then: Metadata, now: Metadata) -> None:
        """Raise unless new files fit what was demanded of the rows here since the last import."""
        if not added:
            return
        instead = "drop that, and import again"
        if value_of(now.properties, ICEBERG) == ICEBERG_ON:
            raise Unsupported(
                f"the property {ICEBERG.name} of {self.head.name} is {ICEBERG_ON}, and readers of Iceberg would not "
                "find the columns of imported files: set it to on-demand, and import again"
            )
        refuse_generated(now.schema, instead)
        refuse_identity(now.schema, instead)
        known: Schema = columns_of(self.now, then.schema)
        for path, column in now.schema.walk():
            if not column.nullable and (not known.has_id(column.id) or known.field_by_id(column.id).nullable):
                raise SourceDiverged(
                    f"the column {dotted(path)} of {self.head.name} is NOT NULL, and that of its source "
                    f"{self.source.url} is not: drop NOT NULL, and import again"
                )
        for requirement in new_checks(then, now):
            files = files_to_arrow(added, now.schema, now.specs)
            fails = may_fail(files, requirement.condition, now.specs).to_pylist()
            bad = [file.path for file, fails_ in zip(added, fails, strict=True) if fails_]
            if bad:
                raise SourceDiverged(
                    f"{_listed(bad)} of {self.source.url} may have rows that violate {requirement.words} of "
                    f"{self.head.name}: drop the constraint, and import again"
                )

    # Files

    def _check(self, found: Difference, before: Mapping[str, DataFile], mine: Mapping[str, DataFile]) -> None:
        """Raise where the source has rewritten or deleted rows of files that were changed here too."""
        there = [path for path in found.added if path in mine and path not in found.removed]
        if there:
            raise SourceDiverged(
                f"{self.head.name} has {_listed(there)} already, which its source has added: its rows would be there "
                "twice. Delete them here, and import again"
            )
        gone = [path for path in (*found.removed, *found.changed) if path not in mine]
        moved = (
            [path for path in found.removed if path in mine and _mark(mine[path]) != _mark(before[path])]
            if found.added
            else []
        )
        if gone or moved:
            raise SourceDiverged(
                f"rows of {_listed([*gone, *moved])} were deleted or rewritten in {self.head.name} and, since the last "
                f"import, in its source {self.source.url} too, so that it is not known which rows are left. Import the "
                f"source as another table, or roll {self.head.name} back to its last import"
            )

    def _changed(
        self,
        theirs: Mapping[str, DataFile],
        before: Mapping[str, DataFile],
        mine: Mapping[str, DataFile],
        removed: list[DataFile],
        added: list[DataFile],
    ) -> list[tuple[DataFile, DataFile]]:
        """Return files that get more deleted rows. Those without a live row, and those of which rows come back, go to
        `removed` and `added`."""
        vectors: dict[str, BitMap] = {}
        grown: set[str] = set()
        for path, file in theirs.items():
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
            if rows and path in grown:
                changed.append((old, new))
            elif _mark(old) != _mark(new):
                # Bounds may be those of the rows that were live before.
                new = msgspec.structs.replace(new, stats={})
                removed.append(old)
                added += [new] if rows else []
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
        apart = {path: file for path, file in wanted.items() if not _is_same(main.get(path), file)}
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


def _is_same(one: DataFile | None, other: DataFile) -> bool:
    return one is not None and one.write_id == other.write_id and _mark(one) == _mark(other)


def _listed(paths: Sequence[str]) -> str:
    """Return some of the paths, and how many others there are."""
    named = ", ".join(islice(paths, _NAMED))
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"the file {named}" if len(paths) == 1 else f"the files {named}{more}"
