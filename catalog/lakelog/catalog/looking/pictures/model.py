"""What a picture says: the one model that the page, the JSON, notebooks and the terminal's graph share. Pure.

A picture is of one table, or of a namespace with all below it (the root's is the whole warehouse). Texts in it are
masked where secrets may stand in them, and bounded only where a page is made of it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lakelog.catalog.keeping.upkeep import Advice, KeyDepth, SizeClass

FORMAT = 1
"""Of the JSON. A member that is absent has its default: none, nothing, or zero."""


class _Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class Log(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A table or a namespace, with its size now. `changes` counts those that the picture has. `problem` is why it
    cannot be read."""

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


class Writer(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """Who wrote, as they said of themselves, and how much of what the picture shows."""

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


class Change(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """One change of a log, or what stands in its place: transactions that were `aborted` and changed nothing, versions
    that have `expired`, or are `older` than what was read (all from `first_version` to `version`), or `damage`.

    `log`, `writer` and `lane` are places in the picture's lists. `base` is the version that it was prepared on, where
    that is not the one before it: it was rebased over those between. Of several changes of one version each is by
    itself. `transaction` is the id of one over several logs, `transaction_logs` how many. `joins` is the lane whose
    contents this one takes over. `count` is how many changes of the log a folded one stands for.
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


class Lane(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A line in the drawing: of a table, main or a branch; of a namespace, one of its logs, or all others.

    A branch has the contents of `of_version` on the lane `of`, was made in the version `begun`, and dropped in the
    version `ended`; None where that is not in the picture. Lanes that are not there together share a `column`.
    """

    name: str
    kind: Literal["main", "branch", "log", "others"]
    column: int
    of: int | None = None
    of_version: int | None = None
    begun: int | None = None
    ended: int | None = None


class Ref(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A tag or branch as it is now."""

    name: str
    kind: str
    version: int
    rows: int = 0
    files: int = 0
    size_bytes: int = 0


class Column(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A column, whose `id` it keeps for ever."""

    id: int
    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


class Definition(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """What a table is from `version` on, until the next definition."""

    version: int
    columns: tuple[Column, ...]
    properties: dict[str, str] = {}
    partitioning: tuple[str, ...] = ()
    sorting: tuple[str, ...] = ()
    clustering: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    comment: str | None = None
    provider: str | None = None


class Partition(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The files of one partition; of `count` of them together where they are many."""

    values: str
    files: int
    rows: int
    size_bytes: int
    deleted_rows: int = 0
    small_files: int = 0
    count: int = 1


class File(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A data file. `first` and `last` are where its values of the key begin and end among those of all files, of
    1000; `low` and `high` are these values."""

    path: str
    partition: str
    rows: int
    size_bytes: int
    deleted_rows: int = 0
    low: str | None = None
    high: str | None = None
    first: int | None = None
    last: int | None = None


class Layout(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The live data files of the newest version. `files` are the largest and those with most deleted rows, and with a
    `key` (the column that rows are clustered or sorted by) some at even distances in its order.

    `overlap` is how many files, on average, may hold a value of the key that one holds; `keys` says more of each
    column that rows are clustered or sorted by.
    """

    file_count: int
    rows: int
    size_bytes: int
    deleted_rows: int = 0
    target_bytes: int
    partitions: tuple[Partition, ...] = ()
    sizes: tuple[SizeClass, ...] = ()
    files: tuple[File, ...] = ()
    key: str | None = None
    overlap: float | None = None
    keys: tuple[KeyDepth, ...] = ()


class DroppedThing(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """What was dropped and can be restored."""

    kind: str
    name: str
    dropped_us: int
    kept_until_us: int
    user: str | None = None
    command: str


class Picture(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """What a table or a namespace holds, and what happened to it: changes with the newest first."""

    format: int
    kind: Literal["table", "namespace", "warehouse"]
    name: str
    location: str
    made_us: int
    lakelog: str
    logs: tuple[Log, ...] = ()
    writers: tuple[Writer, ...] = ()
    lanes: tuple[Lane, ...] = ()
    changes: tuple[Change, ...] = ()
    definitions: tuple[Definition, ...] = ()
    refs: tuple[Ref, ...] = ()
    layout: Layout | None = None
    health: tuple[Advice, ...] = ()
    dropped: tuple[DroppedThing, ...] = ()
    left_out: tuple[str, ...] = ()
