"""The events of the catalog's logs, which make up the commits of namespaces and tables.

Events are facts, already decided. Ids and values are in them, and folding them needs no clock and no I/O.
Exactly these structs are stored. An unknown event or field is refused by name, because a reader that skips it
would show a wrong table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from lakelog.catalog.core.files.column_statistics import TableEstimates
from lakelog.catalog.core.files.data_file import DataFile, RemovedFile
from lakelog.catalog.core.schema.constraints import Constraint
from lakelog.catalog.core.schema.curve import Ranks
from lakelog.catalog.core.schema.definition import SPACES, Definition, EntryKind, NameSpace
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.state.clones import CloneOrigin, TableAncestor
from lakelog.catalog.core.state.imported_source import ImportedSource
from lakelog.catalog.core.state.refs import RefKind
from lakelog.log import Json
from lakelog.log.errors import InvalidInput
from lakelog.log.grammar import (
    CutObject,
    Folder,
    Hash,
    Id,
    Int32,
    Int64,
    Location,
    Name,
    Number,
    Word,
)
from lakelog.log.secrets import masked, masked_properties


class _Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="event",
):
    pass


def _check_in_one_place(name: str, files: Sequence[object], sidecar: int | None) -> None:
    if files and sidecar is not None:
        raise ValueError(f"its {name} files are in the event and in a sidecar")


# Namespaces


class NamespaceCreated(_Event, frozen=True, tag="namespace-created"):
    """The first commit of a namespace's log. `parent` is the location of the namespace that will link it."""

    properties: dict[str, str]
    parent: Folder | None = None
    name: Name | None = None


class NamespaceAltered(_Event, frozen=True, tag="namespace-altered"):
    """Properties of a namespace are set and removed."""

    set: dict[str, str]
    removed: tuple[str, ...] = ()


class EntryLinked(_Event, frozen=True, tag="entry-linked"):
    """A name now leads to an object. From this commit on the object exists for all readers.

    `space` is relation or namespace, and `kind` is the kind of object (table, namespace). `location` is
    relative to the warehouse, or a URL if the user chose the place.
    """

    space: NameSpace
    name: Name
    kind: EntryKind
    id: Id
    location: Location

    def __post_init__(self) -> None:
        if self.kind in SPACES:
            raise ValueError(f"a {self.kind} has a definition, and no log")


class EntryDefined(_Event, frozen=True, tag="entry-defined"):
    """A name now stands for a view or a function, which have no log of their own.

    The id may be new, or the name's present id if this replaces its definition. It may be an id that was
    dropped before, if this restores it, or that the same transaction unlinked elsewhere, if this moves it.
    `space` is relation or function.
    """

    space: NameSpace
    name: Name
    id: Id
    definition: Definition


class EntryUnlinked(_Event, frozen=True, tag="entry-unlinked"):
    """A name was removed. If it was `dropped`, it is remembered by its id, until it is restored or purged."""

    space: NameSpace
    name: Name
    id: Id
    dropped: bool = False


class EntryForgotten(_Event, frozen=True, tag="entry-forgotten"):
    """The log `id`, created for this namespace but never linked in it, will be removed and cannot be
    linked."""

    id: Id


class EntryPurged(_Event, frozen=True, tag="entry-purged"):
    """The object that was dropped with this id can no longer be restored."""

    id: Id


class EntryRenamed(_Event, frozen=True, tag="entry-renamed"):
    """The object of `name` is now called `new_name`."""

    space: NameSpace
    name: Name
    id: Id
    new_name: Name


class NamespaceDropped(_Event, frozen=True, tag="namespace-dropped"):
    """Part of the sealing commit. From here on nothing can be linked in this namespace."""

    cascade: bool


class NamespaceRestored(_Event, frozen=True, tag="namespace-restored"):
    """Part of the commit that restores a dropped namespace, with everything that it held when it was
    dropped."""

    parent: Folder
    name: Name


class NamespacePurged(_Event, frozen=True, tag="namespace-purged"):
    """Part of the commit that purges a dropped namespace, which can no longer be restored."""


class CutSaved(_Event, frozen=True, tag="cut-saved"):
    """The present versions of all logs that the namespace leads to are saved under a name.

    For the root these are the logs of the whole warehouse. The object `_cut/<object>` in the namespace's
    folder, with this hash, lists the versions.
    """

    name: Name
    object: CutObject
    hash: Hash
    logs: Number


class CutDropped(_Event, frozen=True, tag="cut-dropped"):
    """A cut of the namespace is dropped. The versions that it named may expire."""

    name: Name


# Tables


class TableCreated(_Event, frozen=True, tag="table-created"):
    """The first commit of a table's log. `namespace` is the location of the log that will link it, under
    `name`."""

    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: dict[str, str]
    namespace: Folder | None = None
    name: Name | None = None
    provider: str | None = None
    comment: str | None = None
    own_location: bool = False


class TableReplaced(_Event, frozen=True, tag="table-replaced"):
    """The table's metadata and all of its files are replaced by these. Its history and its id stay."""

    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: dict[str, str]
    provider: str | None = None
    comment: str | None = None


class SchemaChanged(_Event, frozen=True, tag="schema-changed"):
    """The table has the columns of `schema` from here on."""

    schema: Schema


class PartitioningChanged(_Event, frozen=True, tag="partitioning-changed"):
    """New data files are partitioned by `spec`."""

    spec: PartitionSpec


class SortOrderChanged(_Event, frozen=True, tag="sort-order-changed"):
    sort_order: SortOrder


class ClusteringChanged(_Event, frozen=True, tag="clustering-changed"):
    """From here on writes cluster their rows by these columns, given by their ids. Without columns, they do
    not.

    `ranks` are boundaries of their values, by which the rows of several columns lie along a curve (see
    `schema.curve`).
    """

    columns: tuple[Int32, ...]
    ranks: Ranks | None = None


class TableAltered(_Event, frozen=True, tag="table-altered"):
    """Properties were set or removed. For Spark the comment is a property, too."""

    set: dict[str, str]
    removed: tuple[str, ...] = ()


class ConstraintAdded(_Event, frozen=True, tag="constraint-added"):
    """From here on the table has this constraint. All present rows are known to satisfy a CHECK."""

    constraint: Constraint


class ConstraintDropped(_Event, frozen=True, tag="constraint-dropped"):
    name: str


class FileChange(_Event, frozen=True, kw_only=True):
    """The change of a line's contents by an operation: `removed` files go, then `added` files come.

    `operation` is the word of a `conflicts.OperationKind`. Files are in the event itself. If they are many, they
    are Arrow in the commit's sidecar of the given index instead, never both.

    A file with some newly deleted rows is removed, and added with its new vector. `changed_files` counts such
    files, and `deleted_rows` the rows that are deleted by it. The other counts leave them out. `of_changes`
    counts the earlier changes of its version, each with `rows-appended`, whose rows these are. With 0, the
    rows are its own. Of the rows that an update or merge adds, `updated_rows` replace others, `inserted_rows`
    are new, and the rest are copies. They are None if that is not known.
    """

    operation: Word
    added: tuple[DataFile, ...] = ()
    removed: tuple[RemovedFile, ...] = ()
    added_sidecar: Number | None = None
    removed_sidecar: Number | None = None
    added_files: Number = 0
    added_rows: Number = 0
    added_bytes: Number = 0
    removed_files: Number = 0
    removed_rows: Number = 0
    removed_bytes: Number = 0
    filter: str | None = None
    changed_files: Number = 0
    deleted_rows: Number = 0
    of_changes: Number = 0
    inserted_rows: Number | None = None
    updated_rows: Number | None = None

    def __post_init__(self) -> None:
        _check_in_one_place("added", self.added, self.added_sidecar)
        _check_in_one_place("removed", self.removed, self.removed_sidecar)


class FilesChanged(FileChange, frozen=True, tag="files-changed"):
    """The table's own contents were changed."""


class RowsAppended(_Event, frozen=True, tag="rows-appended"):
    """This many rows are this author's, in the files that a later change of this version adds (see
    `of_changes`)."""

    rows: Number


class BranchFilesChanged(FileChange, frozen=True, kw_only=True, tag="branch-files-changed"):
    """The contents of a branch were changed, and nothing else. A stream that follows the table skips it."""

    branch: Name


class RefSet(FileChange, frozen=True, kw_only=True, tag="ref-set"):
    """A tag or branch `name` exists from here on, and replaces any other of that name.

    It has the files of the line `of` at this point, with this event's change. If there is a change, `of` is
    `ahead` of a branch, and with `apart` it may never have had these contents. `version` is the version whose
    contents these are, or None for the commit's own. `metadata` is only for a tag, and None if it is the
    table's metadata at this point.
    """

    name: Name
    kind: RefKind
    id: Id
    of: Name
    version: Number | None = None
    ahead: bool = False
    apart: bool = False
    metadata: Metadata | None = None


class RefDropped(_Event, frozen=True, tag="ref-dropped"):
    """A branch or a tag is dropped."""

    name: Name
    kind: RefKind


class FastForwarded(_Event, frozen=True, tag="fast-forwarded"):
    """Through the preceding change of files, `branch` has all contents of the branch `to`, and nothing
    else."""

    branch: Name
    to: Name


class IdentityTaken(_Event, frozen=True, tag="identity-taken"):
    """The values of an identity column from `first` on, step by step, up to `last` are taken from here on.

    They are for rows of the same commit, or of a commit that may follow. They are beyond all values that were
    taken before.
    """

    column: Int32
    first: Int64
    last: Int64


class RolledBack(_Event, frozen=True, tag="rolled-back"):
    """The table is as it was at `version` again. `files-changed` in the same commit has the files.

    `metadata` is the table's from here on, or None if only the rows are restored. A generation of 0 in it
    begins a new generation, because the table was replaced since.
    """

    version: Number
    metadata: Metadata | None = None


class StatisticsComputed(_Event, frozen=True, tag="statistics-computed"):
    """Statistics of some columns, from a scan of all rows of a version."""

    estimates: TableEstimates


class StreamCommitted(_Event, frozen=True, tag="stream-committed"):
    """The rows that this commit changes are a batch of a stream, which must not be committed twice."""

    stream: str
    batch: Number


class SourceImported(_Event, frozen=True, tag="source-imported"):
    """The file and column changes of this commit are those of a version of a source."""

    source: ImportedSource


class FilesAdopted(_Event, frozen=True, tag="files-adopted"):
    """Files of the table's source are the table's own from here on, so that a vacuum may delete them.

    The table has no source any more. The files are in the event itself or in the sidecar of that index.
    """

    source: ImportedSource
    files: tuple[RemovedFile, ...] = ()
    files_sidecar: Number | None = None

    def __post_init__(self) -> None:
        _check_in_one_place("files", self.files, self.files_sidecar)


class AdoptedDeleted(_Event, frozen=True, tag="adopted-files-deleted"):
    """Adopted files that no version had any more are deleted."""

    files: tuple[RemovedFile, ...] = ()
    files_sidecar: Number | None = None

    def __post_init__(self) -> None:
        _check_in_one_place("files", self.files, self.files_sidecar)


class ClonePromised(FileChange, frozen=True, kw_only=True, tag="clone-promised"):
    """The table keeps files for the clone with the log `clone`, at `location`, until the clone needs them no
    more.

    They are main's files at this point, with this event's change, of version `version`. With `of`, they are
    the files that are kept for that other clone, with its metadata. `metadata` is the version's, or None if
    it is the table's metadata at this point.
    """

    clone: Id
    location: Folder
    version: Number
    of: Id | None = None
    metadata: Metadata | None = None


class CloneReleased(_Event, frozen=True, tag="clone-released"):
    """Nothing is kept for these clones any more. They are purged, or have released this log."""

    clones: tuple[Id, ...]


class TableCloned(_Event, frozen=True, kw_only=True, tag="table-cloned"):
    """The table is a clone of the table `of`, of its version `version`. `metadata` is its own from here on.

    It follows `table-created` in the log's first commit. The rows come with the next change of files, which
    names files of the logs `origins` by absolute paths. Row ids continue from `next_row`, and values of
    identity columns after `identities`, by column. `ancestors` are the ancestors of `of`, the first of them
    first.
    """

    of: Id
    version: Number
    metadata: Metadata
    origins: tuple[CloneOrigin, ...]
    next_row: Number = 0
    identities: dict[Int32, Int64] = {}
    ancestors: tuple[TableAncestor, ...] = ()


class OriginsReleased(_Event, frozen=True, tag="origins-released"):
    """No readable version of this clone has files of these logs any more, and none will."""

    logs: tuple[Id, ...]


class RowsErased(_Event, frozen=True, kw_only=True, tag="rows-erased"):
    """From here on no line of the table has a row that an erasure applies to, nor a file with such a row.

    Versions before this version expire. File lists that are stored from here on are rewritten, because older
    lists have entries of the deleted files. `filter` is text for people, with `?` for every literal.
    """

    erasure: Id
    filter: str
    reference: str | None = None


class ErasureEnded(_Event, frozen=True, kw_only=True, tag="erasure-ended"):
    """All objects that an erasure applied to are gone. `statement`, the receipt in JSON, says so.

    `signature` is the signature of its UTF-8 bytes by the key `signed_by`, Ed25519, both as hexadecimal
    digits.
    """

    erasure: Id
    statement: str
    signature: str | None = None
    signed_by: str | None = None


class TableDropped(_Event, frozen=True, tag="table-dropped"):
    """Part of the sealing commit, at which the table is gone."""


class TableMoved(_Event, frozen=True, tag="table-moved"):
    """From here on the table is linked in the namespace at location `namespace`, under `name`."""

    namespace: Folder
    name: Name


class TableRestored(_Event, frozen=True, tag="table-restored"):
    """Part of the commit that restores a dropped table. It says where the table is linked from here on."""

    namespace: Folder
    name: Name


class TablePurged(_Event, frozen=True, tag="table-purged"):
    """Part of the commit that purges a dropped table. From here on its files are deleted."""


# Maintenance of namespaces and tables


class HistoryExpired(_Event, frozen=True, tag="history-expired"):
    """Versions before `version` are expired from here on."""

    version: Number


class FilesVacuumed(_Event, frozen=True, tag="files-vacuumed"):
    """A number of files that no retained version and no running write can reach are deleted from here on.

    In a namespace it names the folders, by id, that hold files but no log. They belong to creations in
    progress, or to unfinished creations.
    """

    files: Number
    size_bytes: Number
    begun: tuple[Id, ...] = ()


NamespaceEvent: TypeAlias = (
    NamespaceCreated
    | NamespaceAltered
    | EntryLinked
    | EntryDefined
    | EntryUnlinked
    | EntryRenamed
    | EntryForgotten
    | EntryPurged
    | NamespaceDropped
    | NamespaceRestored
    | NamespacePurged
    | CutSaved
    | CutDropped
    | HistoryExpired
    | FilesVacuumed
)
TableEvent: TypeAlias = (
    TableCreated
    | TableReplaced
    | SchemaChanged
    | PartitioningChanged
    | SortOrderChanged
    | ClusteringChanged
    | TableAltered
    | ConstraintAdded
    | ConstraintDropped
    | FilesChanged
    | RowsAppended
    | BranchFilesChanged
    | RefSet
    | RefDropped
    | FastForwarded
    | IdentityTaken
    | RolledBack
    | StatisticsComputed
    | StreamCommitted
    | SourceImported
    | FilesAdopted
    | AdoptedDeleted
    | ClonePromised
    | CloneReleased
    | TableCloned
    | OriginsReleased
    | RowsErased
    | ErasureEnded
    | TableDropped
    | TableMoved
    | TableRestored
    | TablePurged
    | HistoryExpired
    | FilesVacuumed
)


ready(NamespaceEvent, TableEvent)


_PROPERTIES = {"properties", "set", "configs"}


def encode(events: Sequence[NamespaceEvent | TableEvent]) -> tuple[dict[str, Json], ...]:
    """Return `events` as the JSON objects of a commit, without secrets, which would stay for ever.

    Raises InvalidInput for an event that no reader could read, because such a commit would close the log to all.
    """
    return tuple(map(_encoded, events))


def _encoded(event: NamespaceEvent | TableEvent) -> dict[str, Json]:
    result: dict[str, Json] = msgspec.to_builtins(event, order=None)
    if not isinstance(event, FileChange):  # files are made by lakelog alone, and there may be many
        try:
            msgspec.convert(result, type(event), strict=True, str_keys=True)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the change cannot be stored ({error}): give these types") from error
    for holder in (result, result.get("definition") or {}):
        for member in _PROPERTIES & holder.keys():
            holder[member] = masked_properties(holder[member])
    if isinstance(event, FileChange) and event.filter is not None:
        result["filter"] = masked(event.filter)
    return result
