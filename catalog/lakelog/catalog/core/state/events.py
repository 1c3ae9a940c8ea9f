"""The events of the catalog's logs: what a commit of a namespace or of a table can say.

Events are facts, already decided: ids and values are in them, and folding them needs no clock and no I/O. What is
stored is exactly these structs; an unknown event or field is refused by name, because a reader that skips what it does
not know shows a wrong table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from lakelog.catalog.core.files import DataFile, RemovedFile, TableEstimates
from lakelog.catalog.core.schema import (
    Constraint,
    Definition,
    Metadata,
    PartitionSpec,
    Ranks,
    Schema,
    SortOrder,
    leave_out_empty,
    ready,
)
from lakelog.catalog.core.state.clones import Ancestor, Origin
from lakelog.catalog.core.state.imported_source import ImportedSource
from lakelog.log import Json
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


class _Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="event"):
    pass


# Namespaces


class NamespaceCreated(_Event, frozen=True, tag="namespace-created"):
    """The first commit of a namespace's log. `parent` is the location of the namespace that is to link it."""

    properties: dict[str, str]
    parent: Folder | None = None
    name: Name | None = None


class NamespaceAltered(_Event, frozen=True, tag="namespace-altered"):
    set: dict[str, str]
    removed: tuple[str, ...] = ()


class EntryLinked(_Event, frozen=True, tag="entry-linked"):
    """A name now leads to an object: from this commit on the object exists for all readers.

    `space` is relation or namespace, `kind` says what it is (table, namespace). `location` is relative to the
    warehouse, or a URL where the user chose the place.
    """

    space: Word
    name: Name
    kind: Word
    id: Id
    location: Location


class EntryDefined(_Event, frozen=True, tag="entry-defined"):
    """A name now stands for a view or a function, which have no log of their own.

    The id is new, or the same name's (then this replaces what the name stood for), or of what was dropped before (and
    is restored), or was unlinked elsewhere by the same transaction (and is moved). `space` is relation or function.
    """

    space: Word
    name: Name
    id: Id
    definition: Definition


class EntryUnlinked(_Event, frozen=True, tag="entry-unlinked"):
    """A name was removed. One that was `dropped` is remembered by its id, until it is restored or purged."""

    space: Word
    name: Name
    id: Id
    dropped: bool = False


class EntryForgotten(_Event, frozen=True, tag="entry-forgotten"):
    """The log `id`, created for this namespace but never linked in it, is about to be removed and cannot be linked."""

    id: Id


class EntryPurged(_Event, frozen=True, tag="entry-purged"):
    """The object that was dropped with this id can no longer be restored."""

    id: Id


class EntryRenamed(_Event, frozen=True, tag="entry-renamed"):
    space: Word
    name: Name
    id: Id
    new_name: Name


class NamespaceDropped(_Event, frozen=True, tag="namespace-dropped"):
    """Stands in the sealing commit: from here on nothing can be linked in this namespace."""

    cascade: bool


class NamespaceMoved(_Event, frozen=True, tag="namespace-moved"):
    """From here on the namespace is linked in another one, whose location is `parent`, or has another name there."""

    parent: Folder
    name: Name


class NamespaceRestored(_Event, frozen=True, tag="namespace-restored"):
    """Stands in the commit that restores a dropped namespace, with all that it held when it was dropped."""

    parent: Folder
    name: Name


class NamespacePurged(_Event, frozen=True, tag="namespace-purged"):
    """Stands in the commit that purges a dropped namespace: it can no longer be restored."""


class CutSaved(_Event, frozen=True, tag="cut-saved"):
    """The versions of all logs that the namespace leads to have a name now, of the root those of the whole warehouse.

    The object `_cut/<object>` in the namespace's folder, with this hash, lists them.
    """

    name: Name
    object: CutObject
    hash: Hash
    logs: Number


class CutDropped(_Event, frozen=True, tag="cut-dropped"):
    name: Name


# Tables


class TableCreated(_Event, frozen=True, tag="table-created"):
    """The first commit of a table's log. `namespace` is the log that it is to be linked in, under `name`."""

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
    """The table's metadata and all of its files are replaced by these; its history and its id stay."""

    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: dict[str, str]
    provider: str | None = None
    comment: str | None = None


class SchemaChanged(_Event, frozen=True, tag="schema-changed"):
    schema: Schema


class PartitioningChanged(_Event, frozen=True, tag="partitioning-changed"):
    spec: PartitionSpec


class SortOrderChanged(_Event, frozen=True, tag="sort-order-changed"):
    sort_order: SortOrder


class ClusteringChanged(_Event, frozen=True, tag="clustering-changed"):
    """From here on writes cluster their rows by these columns, given by their ids; by none: not at all.

    `ranks` are boundaries of their values, by which the rows of several columns lie along a curve (see `schema.curve`).
    """

    columns: tuple[Int32, ...]
    ranks: Ranks | None = None


class TableAltered(_Event, frozen=True, tag="table-altered"):
    """Properties (and the comment, which is one of them to Spark) were set or removed."""

    set: dict[str, str]
    removed: tuple[str, ...] = ()


class ConstraintAdded(_Event, frozen=True, tag="constraint-added"):
    """From here on the table has this constraint; all present rows are known to satisfy a CHECK."""

    constraint: Constraint


class ConstraintDropped(_Event, frozen=True, tag="constraint-dropped"):
    name: str


class FileChange(_Event, frozen=True, kw_only=True):
    """One operation's change of a line of contents.

    `operation` is the word of one of `conflicts.Operation`. Files are in the event itself, or, when they are many, as
    Arrow in the commit's sidecar of the given index; never in both.

    A file of which rows are deleted is removed, and added with its new vector. `changed_files` counts these, and
    `deleted_rows` the rows that are deleted by it; the other counts leave them out. `of_changes` counts the changes
    before this one in its version whose rows these are, each with `rows-appended`; 0: its own.
    Of rows that an update or merge adds, `updated_rows` have the place of others, and `inserted_rows` are new; the rest
    are copies. None where that is not known.
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


class FilesChanged(FileChange, frozen=True, tag="files-changed"):
    """The table's own contents were changed."""


class RowsAppended(_Event, frozen=True, tag="rows-appended"):
    """So many rows are this author's, in the files that a later change of this version adds (see `of_changes`)."""

    rows: Number


class BranchFilesChanged(FileChange, frozen=True, kw_only=True, tag="branch-files-changed"):
    """The contents of a branch were changed, and nothing else: a stream that follows the table skips it."""

    branch: Name


class RefSet(FileChange, frozen=True, kw_only=True, tag="ref-set"):
    """There is a tag or branch `name` from here on, in the place of any other of that name.

    It has the files that the line `of` has at this point, with this event's change; where there is one and it is a
    branch, `of` is `ahead` of it, or, `apart`, may never have had them. `version` is the one whose contents these are,
    None for the commit's own. `metadata` is a tag's, None where it is that of the table at this point.
    """

    name: Name
    kind: Word
    id: Id
    of: Name
    version: Number | None = None
    ahead: bool = False
    apart: bool = False
    metadata: Metadata | None = None


class RefDropped(_Event, frozen=True, tag="ref-dropped"):
    name: Name
    kind: Word


class FastForwarded(_Event, frozen=True, tag="fast-forwarded"):
    """`branch` has all that the branch `to` has, by the change of files before this, and nothing else."""

    branch: Name
    to: Name


class IdentityTaken(_Event, frozen=True, tag="identity-taken"):
    """The values of an identity column from `first` on, step by step, up to `last` are taken from here on.

    By rows of the same commit, or for those of one that may follow. They are beyond all that were taken before.
    """

    column: Int32
    first: Int64
    last: Int64


class RolledBack(_Event, frozen=True, tag="rolled-back"):
    """The table is as it was at `version` again; `files-changed` in the same commit has the files.

    `metadata` is the table's from here on, None where only the rows are those of before. A generation of 0 in it begins
    a new one: the table was replaced since.
    """

    version: Number
    metadata: Metadata | None = None


class StatisticsComputed(_Event, frozen=True, tag="statistics-computed"):
    """Statistics of some columns, from a scan of all rows of a version."""

    estimates: TableEstimates


class StreamCommitted(_Event, frozen=True, tag="stream-committed"):
    """The rows that this commit changes are those of a batch of a stream, which must not be committed twice."""

    stream: str
    batch: Number


class SourceImported(_Event, frozen=True, tag="source-imported"):
    """The changes of files and columns of this commit are those of a version of a source."""

    source: ImportedSource


class FilesAdopted(_Event, frozen=True, tag="files-adopted"):
    """Files of the table's source are the table's own from here on, so that a vacuum may delete them; the table has no
    source any more. The files are in the event itself or in the sidecar of that index."""

    source: ImportedSource
    files: tuple[RemovedFile, ...] = ()
    files_sidecar: Number | None = None


class AdoptedDeleted(_Event, frozen=True, tag="adopted-files-deleted"):
    """Adopted files that no version had any more are deleted."""

    files: tuple[RemovedFile, ...] = ()
    files_sidecar: Number | None = None


class ClonePromised(FileChange, frozen=True, kw_only=True, tag="clone-promised"):
    """The table keeps files for the clone whose log is `clone`, at `location`, until that needs them no more.

    They are those that main has at this point, with this event's change, and of version `version`; or, with `of`, those
    that are kept for that other clone, with its metadata. `metadata` is what it was then, None where it is that of the
    table at this point.
    """

    clone: Id
    location: Folder
    version: Number
    of: Id | None = None
    metadata: Metadata | None = None


class CloneReleased(_Event, frozen=True, tag="clone-released"):
    """Nothing is kept for these clones any more, which are purged, or have released this log."""

    clones: tuple[Id, ...]


class TableCloned(_Event, frozen=True, kw_only=True, tag="table-cloned"):
    """The table is a clone of the table `of`, of its version `version`; `metadata` is its own from here on.

    It follows `table-created` in the log's first commit. The rows come with the next change of files, which names files
    of the logs `origins` by absolute places. Ids of rows go on from `next_row`, values of identity columns after
    `identities`, by column. `ancestors` are those of `of`, the first one first.
    """

    of: Id
    version: Number
    metadata: Metadata
    origins: tuple[Origin, ...]
    next_row: Number = 0
    identities: dict[Int32, Int64] = {}
    ancestors: tuple[Ancestor, ...] = ()


class OriginsReleased(_Event, frozen=True, tag="origins-released"):
    """No version of this clone that can be read has files of these logs any more, and none will."""

    logs: tuple[Id, ...]


class RowsErased(_Event, frozen=True, kw_only=True, tag="rows-erased"):
    """From here on no line of the table has a row that an erasure is about, nor a file with one.

    Versions before this one expire. Lists of files that are stored from here on are written anew, as older ones have
    entries of the files that are gone. `filter` is text for people, with `?` for every literal.
    """

    erasure: Id
    filter: str
    reference: str | None = None


class ErasureEnded(_Event, frozen=True, kw_only=True, tag="erasure-ended"):
    """All objects that an erasure was about are gone, as `statement` says, the receipt in JSON.

    `signature` is that of its bytes in UTF-8 by the key `signed_by`, Ed25519, both as hexadecimal digits.
    """

    erasure: Id
    statement: str
    signature: str | None = None
    signed_by: str | None = None


class TableDropped(_Event, frozen=True, tag="table-dropped"):
    """Stands in the sealing commit: the moment at which the table is gone."""


class TableMoved(_Event, frozen=True, tag="table-moved"):
    """From here on the table is linked in the namespace whose location is `namespace`, under `name`."""

    namespace: Folder
    name: Name


class TableRestored(_Event, frozen=True, tag="table-restored"):
    """Stands in the commit that restores a dropped table, and says where it is linked from here on."""

    namespace: Folder
    name: Name


class TablePurged(_Event, frozen=True, tag="table-purged"):
    """Stands in the commit that purges a dropped table: from here on its files are deleted."""


# Maintenance of either


class HistoryExpired(_Event, frozen=True, tag="history-expired"):
    """Versions before `version` are expired from here on."""

    version: Number


class FilesVacuumed(_Event, frozen=True, tag="files-vacuumed"):
    """A number of files that no retained version and no write under way can reach are deleted from here on.

    A namespace's names the folders in it, by id, that hold files but no log: they belong to creations under way, or to
    unfinished ones.
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
    | NamespaceMoved
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
_LEFT_OUT: dict[str, Json] = {
    "ranks": None, "changed_files": 0, "deleted_rows": 0, "of_changes": 0, "inserted_rows": None, "updated_rows": None,
    "apart": False,
}  # fmt: skip


def encode(events: Sequence[NamespaceEvent | TableEvent]) -> tuple[dict[str, Json], ...]:
    """Return `events` as the JSON objects that a commit carries: without secrets, which would stay for ever."""
    return tuple(map(_encoded, events))


def _encoded(event: NamespaceEvent | TableEvent) -> dict[str, Json]:
    encoded: dict[str, Json] = msgspec.to_builtins(event, order=None)
    for holder in (encoded, encoded.get("definition") or {}):
        for member in _PROPERTIES & holder.keys():
            holder[member] = masked_properties(holder[member])
    if isinstance(event, FileChange) and event.filter is not None:
        encoded["filter"] = masked(event.filter)
    if isinstance(event, RolledBack | RefSet | ClonePromised | TableCloned) and event.metadata is not None:
        leave_out_empty(encoded["metadata"])
    for member, default in _LEFT_OUT.items():
        if member in encoded and encoded[member] == default:
            del encoded[member]
    return encoded
