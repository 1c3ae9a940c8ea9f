"""The parts of a log's check that know tables and namespaces: manifests, and differences of states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    CRC,
    DELETES,
    FIRST_ROW,
    FOOTER,
    Fetch,
    FileSet,
    ManifestComparison,
    StoredFileSet,
    converted,
    decode_files,
    decode_removed,
    deletes_to_json,
    physical_rows,
)
from lakelog.catalog.core.state import (
    TAG,
    ClonePromise,
    ContentLine,
    FileChange,
    NamespaceCreated,
    NamespaceRestored,
    NamespaceState,
    Ref,
    TableCreated,
    TableMoved,
    TableRestored,
    TableState,
    names_difference,
    names_digest,
    namespace_events,
    pages_in,
    table_events,
)
from lakelog.catalog.keeping.maintenance.fsck.authors_rows import AuthorsRows
from lakelog.catalog.keeping.maintenance.fsck.identity_checks import TakenValues
from lakelog.catalog.keeping.maintenance.fsck.retained import DataFileFacts, RetainedFiles
from lakelog.log import Commit, Json
from lakelog.log.errors import FormatError, LakelogError, StorageError

T = TypeVar("T")
_SEEN_OF_FILES = ("path", "size", "rows", "spec")
"""Columns of a table of files that decide, with deletes and row ids, which rows a reader gets."""


@dataclass(slots=True)
class NamespaceJudge:
    """Judges a namespace's log, and notes the location of the namespace that links it.

    None if it is not known.
    """

    linked_in: str | None = None

    def manifests(self, state: Json) -> Mapping[str, str]:
        return pages_in(state)

    def difference(self, replayed_state: NamespaceState, stored_state: NamespaceState) -> str | None:
        try:
            names = names_difference(replayed_state, stored_state)
        except FormatError as error:
            return error.message
        return f"other {names} than in a replay" if names else None

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        for event in _known(namespace_events, commit):
            if isinstance(event, NamespaceCreated | NamespaceRestored):
                self.linked_in = event.parent

    def expired(self) -> None:
        self.linked_in = None

    def begins(self, state: NamespaceState) -> None:
        """Names need no notes."""

    def reads(self, state: NamespaceState, fetch: Fetch) -> str:
        return names_digest(state, fetch)


@dataclass(slots=True)
class TableJudge:
    """Judges a table's log, and notes its link and all data files of the readable versions."""

    fetch: Fetch
    linked_in: str | None = None
    retained: RetainedFiles = field(default_factory=RetainedFiles)
    taken: TakenValues = field(default_factory=TakenValues)
    authors: AuthorsRows = field(default_factory=AuthorsRows)
    compared: ManifestComparison = field(init=False)

    def __post_init__(self) -> None:
        self.compared = ManifestComparison(self.fetch)

    def manifests(self, state: Json) -> Mapping[str, str]:
        roots = [state["files"], *(ref["files"] for ref in state.get("refs", {}).values())]
        roots += [item["files"] for item in state.get("clones", {}).values()]
        roots += [state["adopted"]["files"]] if state.get("adopted") else []
        lists = [msgspec.convert(item, StoredFileSet) for item in roots]
        return {name: sha256 for files in lists for name, sha256 in files.objects.items()}

    def difference(self, replayed_state: TableState, stored_state: TableState) -> str | None:
        if replayed_state.metadata != stored_state.metadata:
            return "other metadata than in a replay"
        if replayed_state.link != stored_state.link:
            return "another name than in a replay"
        if replayed_state.next_row != stored_state.next_row:
            return f"the next row's id is {stored_state.next_row} there, and {replayed_state.next_row} in a replay"
        if replayed_state.streams != stored_state.streams:
            return "other batches of streams than in a replay"
        if replayed_state.identities != stored_state.identities:
            return "other values of identity columns are taken than in a replay"
        if replayed_state.main != stored_state.main or not _same_refs(replayed_state.refs, stored_state.refs):
            return "other tags or branches than in a replay"
        if replayed_state.origins != stored_state.origins or not _same_promises(
            replayed_state.clones, stored_state.clones
        ):
            return "other clones, or another origin as a clone, than in a replay"
        if (replayed_state.erased, replayed_state.erasing) != (stored_state.erased, stored_state.erasing):
            return "another erasure than in a replay"
        replayed_source, stored_source = (
            adoption and adoption.source for adoption in (replayed_state.adopted, stored_state.adopted)
        )
        if replayed_source != stored_source:
            return "other adopted files than in a replay"
        pairs = [
            (
                "" if name == "main" else f"of {name}: ",
                replayed_state.on(name).files,
                stored_state.on(name).files,
            )
            for name in ("main", *sorted(replayed_state.refs))
        ]
        if replayed_state.adopted is not None and stored_state.adopted is not None:
            pairs.insert(0, ("of adopted files: ", replayed_state.adopted.files, stored_state.adopted.files))
        pairs += [
            (f"kept for the clone {id}: ", promise.files, stored_state.clones[id].files)
            for id, promise in replayed_state.clones.items()
        ]
        for title, own, stored_files in pairs:
            why = self._difference_of_files(own, stored_files)
            if why is not None:
                return title + why
        self.compared.keep(stored_files for _, _, stored_files in pairs)
        return None

    def _difference_of_files(self, replayed_set: FileSet, stored_set: FileSet) -> str | None:
        counts = ("file_count", "row_count", "size_bytes")
        for name in counts:
            replayed_value, stored_value = getattr(replayed_set, name), getattr(stored_set, name)
            if replayed_value != stored_value:
                return f"{name} is {stored_value} there, and {replayed_value} in a replay"
        try:
            # Most of a snapshot's files are in manifests of the previous snapshot, with which this snapshot
            # was compared.
            apart = self.compared.apart(replayed_set, stored_set)
            if apart is None:
                apart = replayed_set.table(self.fetch), stored_set.table(self.fetch)
            different = different_files(*apart)
            wrong = self.compared.with_wrong_bounds(stored_set)
            if different is None and wrong is not None:
                different = (
                    f"the bounds of the manifest {wrong} leave out files that are in it: plans miss them"
                )
        except StorageError:
            raise
        except FormatError as error:
            return f"its files cannot be read: {error.message}"
        except LakelogError:
            return None  # a manifest has expired since
        if different is None:
            replayed_set.rest_on(stored_set)
        return different

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        facts_by_path: dict[str, DataFileFacts] = {}
        for event in _known(table_events, commit):
            self.taken.passed(event, commit.version)
            self.authors.passed(event)
            if isinstance(event, TableCreated | TableMoved | TableRestored):
                self.linked_in = event.namespace
            if isinstance(event, FileChange):
                # A file that a commit adds and removes is in no version, and may have been deleted.
                removals = list(event.removed)
                if event.removed_sidecar is not None and blobs is not None:
                    removals = decode_removed(blobs[event.removed_sidecar])
                for removed_entry in removals:
                    facts_by_path.pop(removed_entry.path, None)
                for file in event.added:
                    vectors = frozenset([deletes_to_json(file.deletes)] if file.deletes is not None else [])
                    facts_by_path[file.path] = DataFileFacts(
                        file.size_bytes, file.physical_rows, file.crc, file.footer_crc, vectors
                    )
                if event.added_sidecar is not None and blobs is not None:
                    facts_by_path |= facts_of(decode_files(blobs[event.added_sidecar]))
        self.authors.ends(commit.version)
        self.retained.add(facts_by_path)

    def expired(self) -> None:
        if self.retained or self.linked_in is not None or self.taken.ranges:
            self.linked_in, self.taken = None, TakenValues(problems=self.taken.problems)
            self.retained.forget()

    def begins(self, state: TableState) -> None:
        self.taken.begins(state.identities)
        try:
            # Files that were kept for clones then, and are not any more, may be gone: no reader goes back to
            # them.
            for line in state.lines():
                for files in line.files.parts(self.fetch):
                    self.retained.add(facts_of(files))
        except LakelogError:
            return  # the manifest is reported

    def reads(self, state: TableState, fetch: Fetch) -> str:
        digest = sha256()
        counters = (state.streams, state.next_row, state.identities)
        digest.update(msgspec.json.encode(counters, order="sorted"))
        for line in state.kept():
            digest.update(msgspec.json.encode((line.line, line.current), order="sorted"))
            files = line.files.table(fetch)
            columns = [name for name in (*_SEEN_OF_FILES, DELETES, FIRST_ROW) if name in files.column_names]
            for row in files.select(columns).sort_by("path").to_pylist():
                row_values = {name: value for name, value in row.items() if value is not None}
                digest.update(msgspec.json.encode(row_values, order="sorted"))
        return digest.hexdigest()


def _same_refs(replayed_refs: Mapping[str, Ref], stored_refs: Mapping[str, Ref]) -> bool:
    """Return whether tags and branches are the same, ignoring their files.

    A snapshot may come from a client that did not record the lines from which tags were made.
    """
    if replayed_refs.keys() != stored_refs.keys():
        return False
    for name, ref in replayed_refs.items():
        stored_ref = stored_refs[name]
        line = ContentLine() if ref.kind == TAG and stored_ref.line == ContentLine() else ref.line
        if replace(ref, files=stored_ref.files, line=line) != stored_ref:
            return False
    return True


def _same_promises(
    replayed_promises: Mapping[str, ClonePromise], stored_promises: Mapping[str, ClonePromise]
) -> bool:
    """Return whether the promises to clones are the same, ignoring the files."""
    return replayed_promises.keys() == stored_promises.keys() and all(
        replace(promise, files=stored_promises[id].files) == stored_promises[id]
        for id, promise in replayed_promises.items()
    )


def facts_of(files: pa.Table) -> dict[str, DataFileFacts]:
    """Return the log's facts of each file, by its path."""
    columns = (files["path"].to_pylist(), files["size"].to_pylist(), physical_rows(files).to_pylist())
    checksums = (
        files[name].to_pylist() if name in files.column_names else [None] * files.num_rows
        for name in (CRC, FOOTER)
    )
    texts = files[DELETES].to_pylist() if DELETES in files.column_names else [None] * files.num_rows
    vectors = [frozenset([text] if text is not None else []) for text in texts]
    return {path: DataFileFacts(*facts) for path, *facts in zip(*columns, *checksums, vectors, strict=True)}


def different_files(replayed_table: pa.Table, stored_table: pa.Table) -> str | None:
    """Return the difference of two sets of files.

    None if there is none; order and the width of types do not count.
    """
    replayed_table, stored_table = (
        table.combine_chunks().sort_by("path") for table in (replayed_table, stored_table)
    )
    if not replayed_table["path"].equals(stored_table["path"]):
        return "other data files than in a replay"
    for name in sorted({*replayed_table.column_names, *stored_table.column_names}):
        one_column, other_column = (
            table[name] if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows)])
            for table in (replayed_table, stored_table)
        )
        if not _same(one_column, other_column):
            return f"other values of {name} than in a replay"
    return None


def _same(one_column: pa.ChunkedArray, other_column: pa.ChunkedArray) -> bool:
    if one_column.null_count == other_column.null_count == len(one_column):
        return True
    if one_column.null_count != other_column.null_count:
        return False
    try:
        other_column = converted(other_column, one_column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        one_column = converted(one_column, other_column.type)
    equal = pc.or_(
        pc.equal(one_column, other_column).fill_null(False),
        pc.and_(pc.is_null(one_column), pc.is_null(other_column)),
    )
    if pa.types.is_floating(one_column.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(one_column), pc.is_nan(other_column)).fill_null(False))
    return bool(pc.all(equal).as_py())


def _known(decode: Callable[[Commit], Sequence[T]], commit: Commit) -> Sequence[T]:
    """Return the events of a commit. Empty if they cannot be read, which the fold reports."""
    try:
        return decode(commit)
    except LakelogError:
        return []
