"""The model of a picture, which the page, the JSON, notebooks and the terminal's graph share. Pure.

A picture shows a table, or a namespace with all below it (the root's is the whole warehouse). Its texts are masked if
they may hold secrets, and cut only if a page is made of it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lakelog.catalog.keeping.upkeep import Advice, KeyDepth, SizeClass

FORMAT = 1
"""The format of the JSON. A member that is absent has its default: none, nothing, or zero."""


class _Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class LogPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A table or a namespace, with its present size. `changes` counts its changes in the picture. `problem` is the
    reason if it cannot be read."""

    kind: str
    name: str
    location: str
    log_id: str | None = None
    dropped: bool = False
    version: int = 0
    time_us: int | None = None
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    changes: int = 0
    problem: str | None = None


class WriterPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A writer, by its own words, with the sums of its changes in the picture."""

    user: str | None = None
    engine: str | None = None
    client: str | None = None
    application: str | None = None
    host: str | None = None
    changes: int = 0
    added_rows: int = 0
    added_bytes: int = 0
    first_us: int | None = None
    last_us: int | None = None


class ChangePicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A change of a log, or an entry in its place.

    Such an entry is of transactions that were `aborted` and changed nothing, of versions that have `expired` or are
    `older` than the versions that were read (all from `first_version` to `version`), or of `damage`.

    `log`, `writer` and `lane` are places in the picture's lists. `base` is the version on which the change was
    prepared, if it was rebased over later versions. Changes that share a version have an entry each. `transaction` is
    the id of a transaction over several logs, and `transaction_logs` their number. `joins` is the lane whose contents
    this change takes over. `count` is the number of the log's changes that a folded entry stands for.
    """

    kind: Literal["commit", "aborted", "expired", "older", "damage"] = "commit"
    log: int = 0
    version: int
    first_version: int | None = None
    time_us: int | None = None
    operation: str = ""
    text: str = ""
    writer: int | None = None
    lane: int = 0
    joins: int | None = None
    base: int | None = None
    commit_id: str | None = None
    transaction: str | None = None
    transaction_logs: int = 0
    query: str | None = None
    statement: str | None = None
    added_rows: int = 0
    added_files: int = 0
    added_bytes: int = 0
    removed_rows: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    deleted_rows: int = 0
    count: int = 1


class LanePicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A line in the drawing: main or a branch of a table; a log of a namespace, or all its other logs.

    A branch has the contents of `of_version` on the lane `of`. It was made in the version `begun` and dropped in the
    version `ended`; None if that is not in the picture. Lanes that do not overlap share a `column`.
    """

    name: str
    kind: Literal["main", "branch", "log", "others"]
    column: int
    of: int | None = None
    of_version: int | None = None
    begun: int | None = None
    ended: int | None = None


class RefPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A tag or branch in its present state."""

    name: str
    kind: str
    version: int
    rows: int = 0
    files: int = 0
    size_bytes: int = 0


class ColumnPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A column, whose `id` it keeps for ever."""

    id: int
    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


class DefinitionPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The definition of a table from `version` on, until the next definition."""

    version: int
    columns: tuple[ColumnPicture, ...]
    properties: dict[str, str] = {}
    partitioning: tuple[str, ...] = ()
    sorting: tuple[str, ...] = ()
    clustering: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    comment: str | None = None
    provider: str | None = None


class PartitionPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The files of a partition, or of `count` partitions together if there are many."""

    values: str
    files: int
    rows: int
    size_bytes: int
    deleted_rows: int = 0
    small_files: int = 0
    count: int = 1


class FilePicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A data file. `low` and `high` are the bounds of its key. `first` and `last` are their places among the bounds of
    all files, scaled to 1000."""

    path: str
    partition: str
    rows: int
    size_bytes: int
    deleted_rows: int = 0
    low: str | None = None
    high: str | None = None
    first: int | None = None
    last: int | None = None


class LayoutPicture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The live data files of the newest version.

    `files` has the largest files and the files with most deleted rows. If there is a `key` (the column by which rows
    are clustered or sorted), it also has files at even distances along it. `overlap` is the average number of files
    that may hold a value of the key. `keys` says more about each column by which rows are clustered or sorted.
    """

    file_count: int
    rows: int
    size_bytes: int
    deleted_rows: int = 0
    target_bytes: int
    partitions: tuple[PartitionPicture, ...] = ()
    sizes: tuple[SizeClass, ...] = ()
    files: tuple[FilePicture, ...] = ()
    key: str | None = None
    overlap: float | None = None
    keys: tuple[KeyDepth, ...] = ()


class DroppedThing(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A dropped object that can be restored."""

    kind: str
    name: str
    dropped_us: int
    kept_until_us: int
    user: str | None = None
    command: str


class Picture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The contents and the changes of a table or a namespace; the newest change comes first."""

    format: int
    kind: Literal["table", "namespace", "warehouse"]
    name: str
    location: str
    made_us: int
    lakelog: str
    logs: tuple[LogPicture, ...] = ()
    writers: tuple[WriterPicture, ...] = ()
    lanes: tuple[LanePicture, ...] = ()
    changes: tuple[ChangePicture, ...] = ()
    definitions: tuple[DefinitionPicture, ...] = ()
    refs: tuple[RefPicture, ...] = ()
    layout: LayoutPicture | None = None
    health: tuple[Advice, ...] = ()
    dropped: tuple[DroppedThing, ...] = ()
    left_out: tuple[str, ...] = ()
