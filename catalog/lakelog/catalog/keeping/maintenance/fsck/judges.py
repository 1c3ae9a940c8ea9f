"""The parts of a log's check that know tables and namespaces: their manifests, and how two states differ."""

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
    Comparison,
    Fetch,
    FileSet,
    converted,
    decode_files,
    decode_removed,
    deletes_to_json,
    physical_rows,
)
from lakelog.catalog.core.files import Root as FilesRoot
from lakelog.catalog.core.state import (
    TAG,
    FileChange,
    Line,
    NamespaceCreated,
    NamespaceMoved,
    NamespaceRestored,
    NamespaceState,
    Promise,
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
    """Judges a namespace's log, and notes in which namespace (a location) it is to be linked: None where not known."""

    linked_in: str | None = None

    def manifests(self, state: Json) -> Mapping[str, str]:
        return pages_in(state)

    def difference(self, replayed: NamespaceState, stored: NamespaceState) -> str | None:
        try:
            differing = names_difference(replayed, stored)
        except FormatError as error:
            return error.message
        return f"other {differing} than in a replay" if differing else None

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        for event in _known(namespace_events, commit):
            if isinstance(event, NamespaceCreated | NamespaceMoved | NamespaceRestored):
                self.linked_in = event.parent

    def expired(self) -> None:
        self.linked_in = None

    def begins(self, state: NamespaceState) -> None:
        """Nothing is to be noted of names."""

    def reads(self, state: NamespaceState, fetch: Fetch) -> str:
        return names_digest(state, fetch)


@dataclass(slots=True)
class TableJudge:
    """Judges a table's log, and notes where it is to be linked and all data files of the versions that can be read."""

    fetch: Fetch
    linked_in: str | None = None
    retained: RetainedFiles = field(default_factory=RetainedFiles)
    taken: TakenValues = field(default_factory=TakenValues)
    authors: AuthorsRows = field(default_factory=AuthorsRows)
    compared: Comparison = field(init=False)

    def __post_init__(self) -> None:
        self.compared = Comparison(self.fetch)

    def manifests(self, state: Json) -> Mapping[str, str]:
        named = [state["files"], *(ref["files"] for ref in state.get("refs", {}).values())]
        named += [each["files"] for each in state.get("clones", {}).values()]
        named += [state["adopted"]["files"]] if state.get("adopted") else []
        lists = [msgspec.convert(each, FilesRoot) for each in named]
        return {
            each.name: each.object_sha256 for files in lists for each in (*files.manifests, *files.removed)
        }

    def difference(self, replayed: TableState, stored: TableState) -> str | None:
        if replayed.metadata != stored.metadata:
            return "other metadata than in a replay"
        if replayed.link != stored.link:
            return "another name than in a replay"
        if replayed.next_row != stored.next_row:
            return f"the next row's id is {stored.next_row} there, and {replayed.next_row} in a replay"
        if replayed.streams != stored.streams:
            return "other batches of streams than in a replay"
        if replayed.identities != stored.identities:
            return "other values of identity columns are taken than in a replay"
        if replayed.main != stored.main or not _same_refs(replayed.refs, stored.refs):
            return "other tags or branches than in a replay"
        if replayed.origins != stored.origins or not _same_promises(replayed.clones, stored.clones):
            return "other clones, or another origin as a clone, than in a replay"
        if (replayed.erased, replayed.erasing) != (stored.erased, stored.erasing):
            return "another erasure than in a replay"
        one, other = (each and each.source for each in (replayed.adopted, stored.adopted))
        if one != other:
            return "other adopted files than in a replay"
        pairs = [
            ("" if name == "main" else f"of {name}: ", replayed.on(name).files, stored.on(name).files)
            for name in ("main", *sorted(replayed.refs))
        ]
        if replayed.adopted is not None and stored.adopted is not None:
            pairs.insert(0, ("of adopted files: ", replayed.adopted.files, stored.adopted.files))
        pairs += [
            (f"kept for the clone {id}: ", promise.files, stored.clones[id].files)
            for id, promise in replayed.clones.items()
        ]
        for what, own, others in pairs:
            why = self._difference_of_files(own, others)
            if why is not None:
                return what + why
        self.compared.keep(others for _, _, others in pairs)
        return None

    def _difference_of_files(self, replayed: FileSet, stored: FileSet) -> str | None:
        counts = ("file_count", "row_count", "size_bytes")
        for name in counts:
            one, other = getattr(replayed, name), getattr(stored, name)
            if one != other:
                return f"{name} is {other} there, and {one} in a replay"
        try:
            # Most of a snapshot's files are in manifests of the one before it, with which this was compared.
            apart = self.compared.apart(replayed, stored)
            if apart is None:
                apart = replayed.table(self.fetch), stored.table(self.fetch)
            different = different_files(*apart)
            wrong = self.compared.with_wrong_bounds(stored)
            if different is None and wrong is not None:
                different = (
                    f"the bounds of the manifest {wrong} leave out files that are in it: plans miss them"
                )
        except StorageError:
            raise
        except FormatError as error:
            return f"its files cannot be read: {error.message}"
        except LakelogError:
            return None  # a manifest has expired meanwhile
        if different is None:
            replayed.rest_on(stored)
        return different

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        added: dict[str, DataFileFacts] = {}
        for event in _known(table_events, commit):
            self.taken.passed(event, commit.version)
            self.authors.passed(event)
            if isinstance(event, TableCreated | TableMoved | TableRestored):
                self.linked_in = event.namespace
            if isinstance(event, FileChange):
                # A file that a commit adds and removes is in no version, and may have been deleted.
                removed = list(event.removed)
                if event.removed_sidecar is not None and blobs is not None:
                    removed = decode_removed(blobs[event.removed_sidecar])
                for gone in removed:
                    added.pop(gone.path, None)
                for file in event.added:
                    vectors = frozenset([deletes_to_json(file.deletes)] if file.deletes is not None else [])
                    added[file.path] = DataFileFacts(
                        file.size_bytes, file.physical_rows, file.crc, file.footer_crc, vectors
                    )
                if event.added_sidecar is not None and blobs is not None:
                    added |= facts_of(decode_files(blobs[event.added_sidecar]))
        self.authors.ends(commit.version)
        self.retained.add(added)

    def expired(self) -> None:
        if self.retained or self.linked_in is not None or self.taken.ranges:
            self.linked_in, self.taken = None, TakenValues(problems=self.taken.problems)
            self.retained.forget()

    def begins(self, state: TableState) -> None:
        self.taken.begins(state.identities)
        try:
            # What was kept for clones then, and is no more, may be gone: no reader goes back to it.
            for line in state.lines():
                for files in line.files.parts(self.fetch):
                    self.retained.add(facts_of(files))
        except LakelogError:
            return  # the manifest is reported

    def reads(self, state: TableState, fetch: Fetch) -> str:
        seen = sha256()
        kept = (state.streams, state.next_row, state.identities)
        seen.update(msgspec.json.encode(kept, order="sorted"))
        for line in state.kept():
            seen.update(msgspec.json.encode((line.line, line.current), order="sorted"))
            files = line.files.table(fetch)
            named = [name for name in (*_SEEN_OF_FILES, DELETES, FIRST_ROW) if name in files.column_names]
            for row in files.select(named).sort_by("path").to_pylist():
                known = {name: value for name, value in row.items() if value is not None}
                seen.update(msgspec.json.encode(known, order="sorted"))
        return seen.hexdigest()


def _same_refs(replayed: Mapping[str, Ref], stored: Mapping[str, Ref]) -> bool:
    """Return whether tags and branches are the same, ignoring their files.

    A snapshot may be of a client that did not record the lines that tags were made from.
    """
    if replayed.keys() != stored.keys():
        return False
    for name, ref in replayed.items():
        other = stored[name]
        line = Line() if ref.kind == TAG and other.line == Line() else ref.line
        if replace(ref, files=other.files, line=line) != other:
            return False
    return True


def _same_promises(replayed: Mapping[str, Promise], stored: Mapping[str, Promise]) -> bool:
    """Return whether the same is kept for the same clones, ignoring the files."""
    return replayed.keys() == stored.keys() and all(
        replace(promise, files=stored[id].files) == stored[id] for id, promise in replayed.items()
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


def different_files(one: pa.Table, other: pa.Table) -> str | None:
    """Return how two sets of files differ, None where they do not: neither order nor the width of types counts."""
    one, other = (table.combine_chunks().sort_by("path") for table in (one, other))
    if not one["path"].equals(other["path"]):
        return "other data files than in a replay"
    for name in sorted({*one.column_names, *other.column_names}):
        left, right = (
            table[name] if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows)])
            for table in (one, other)
        )
        if not _same(left, right):
            return f"other values of {name} than in a replay"
    return None


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    if left.null_count == right.null_count == len(left):
        return True
    if left.null_count != right.null_count:
        return False
    try:
        right = converted(right, left.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        left = converted(left, right.type)
    equal = pc.or_(pc.equal(left, right).fill_null(False), pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)).fill_null(False))
    return bool(pc.all(equal).as_py())


def _known(decode: Callable[[Commit], Sequence[T]], commit: Commit) -> Sequence[T]:
    """Return the events of a commit; none where they cannot be read, which the fold reports."""
    try:
        return decode(commit)
    except LakelogError:
        return []
