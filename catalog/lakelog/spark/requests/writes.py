"""Writing to a table that was loaded: rows that come, rows that go."""

from __future__ import annotations

from lakelog.catalog.core.files import DataFile, Positions
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.schema import Expression, ValuesTaken
from lakelog.catalog.core.writes import StreamBatch
from lakelog.log import WriteRef
from lakelog.spark.requests.base import Answer, InCatalog, LoadedChange, Message, OfLoaded, Path


class Delete(LoadedChange, frozen=True, kw_only=True, tag="delete"):
    """Delete the rows like `predicate`, which are those of whole files."""

    predicate: Expression


class Truncate(LoadedChange, frozen=True, tag="truncate"):
    """Delete all rows."""


class BeginWrite(OfLoaded, frozen=True, tag="begin_write"):
    """The id of a write that starts from the version which was loaded, and the token of its commit."""


class NextValue(Message, frozen=True, kw_only=True):
    """The next value of the identity column of that id."""

    column: int
    next: int


class Begun(Answer, frozen=True, kw_only=True):
    """A write: its files' names begin with what `write` says. `version` is the one it starts from, if it is another."""

    write: WriteRef
    token: Token | None
    identities: tuple[NextValue, ...]
    version: int | None = None


class BeginBatch(OfLoaded, frozen=True, kw_only=True, tag="begin_batch"):
    """The id of a write of a streaming query, which starts from the newest version.

    Its rows were made to fit an older version, and are written by the columns that `written_as` has: the newest must be
    like these two.
    """

    name: str
    written_as: int


class CommitWrite(LoadedChange, frozen=True, kw_only=True, tag="commit_write"):
    """Append, or replace what `filter` matches: `deletes` are its rows in files that have others too, where known, and
    `copies` have those others, where the table deletes by copying."""

    write: WriteRef
    operation: str
    files: tuple[DataFile, ...]
    filter: Expression | None = None
    deletes: tuple[Positions, ...] | None = None
    copies: tuple[DataFile, ...] | None = None
    batch: StreamBatch | None = None
    values: tuple[ValuesTaken, ...] = ()


class RowsChanged(Message, frozen=True, kw_only=True):
    """How many rows a commit has changed, as far as that is known."""

    inserted: int | None
    updated: int | None
    deleted: int | None
    copied: int | None


class CommitCost(Message, frozen=True, kw_only=True):
    """What a commit took: versions that were put or tried to, decisions that were made anew, waits for others, and
    requests to the store with their bytes."""

    attempts: int
    rebases: int
    waits: int
    waited_ms: int
    requests: int
    bytes_read: int
    bytes_written: int


class Written(Answer, frozen=True, kw_only=True):
    """Whether the files are part of the table now: those of a batch that it has already are not. `rows` says how many
    rows have changed. `mark` is what a streaming query keeps in its checkpoint, and sends `after` its next batch."""

    written: bool
    rows: RowsChanged | None = None
    mark: str | None = None
    cost: CommitCost | None = None


class CommittedRows(Answer, frozen=True, kw_only=True):
    """How many rows have changed, where that is known."""

    rows: RowsChanged | None = None
    cost: CommitCost | None = None


class CommitRows(LoadedChange, frozen=True, kw_only=True, tag="commit_rows"):
    """A delete, update or merge, on the version that it has read; `condition` holds for all rows that it has read. Of
    the rows in `files`, so many are new, and so many have the place of others, where tasks have counted them."""

    write: WriteRef
    operation: str
    files: tuple[DataFile, ...]
    removed: tuple[str, ...]
    deletes: tuple[Positions, ...]
    condition: Expression | None = None
    values: tuple[ValuesTaken, ...] = ()
    reads_others: bool = False
    inserted: int | None = None
    updated: int | None = None


class MakeToken(InCatalog, frozen=True, kw_only=True, tag="token"):
    """What identifies a change of that name, place or namespace when it is retried."""

    identifier: Path | None = None
    location: str | None = None
    namespace: Path | None = None

    def __post_init__(self) -> None:
        if [self.identifier, self.location, self.namespace].count(None) != 2:
            raise ValueError("a token is of an identifier, a location or a namespace")


class CompactionGoal(Message, frozen=True, kw_only=True):
    """Files shall be of about that size, and have less than that share of deleted rows; small ones are joined where
    `fan_in` of about one size are there, unless that is left to a clustering."""

    target_size_bytes: int
    deleted_ratio: float
    fan_in: int = 1
    joins: bool = True


class PlanCompaction(OfLoaded, frozen=True, kw_only=True, tag="plan_compaction"):
    """The next groups of files to be rewritten, and the files one group after the other as an Arrow stream."""

    goal: CompactionGoal
    predicate: Expression | None
    until: int
    limit_bytes: int


class ClusteringGoal(Message, frozen=True, kw_only=True):
    """Files shall be of about that size, in runs along the table's curve; those without an order wait until there are
    `fresh_min` of them. With `full`, all runs are merged. `key` are the ids of the columns that the table was clustered
    by when it began."""

    target_size_bytes: int
    key: tuple[int, ...]
    fresh_min: int = 1
    full: bool = False


class PlanClustering(OfLoaded, frozen=True, kw_only=True, tag="plan_clustering"):
    """The next groups of files to be put in order, and the files one group after the other as an Arrow stream."""

    goal: ClusteringGoal
    predicate: Expression | None
    until: int
    limit_bytes: int


class ExpectClustering(OfLoaded, frozen=True, kw_only=True, tag="expect_clustering"):
    """What a clustering would do, up to about so many bytes, and how files would lie then: from metadata alone."""

    goal: ClusteringGoal
    predicate: Expression | None
    limit_bytes: int | None


class ExpectedClustering(Answer, frozen=True, kw_only=True):
    """What would be read and written, and how many files a look-up of a point reads, on average, before and then."""

    read_files: int
    read_bytes: int
    written_files: int
    written_bytes: int
    deleted_rows: int
    is_left: bool
    overlap_before: float
    overlap_after: float


class CompactionGroup(Message, frozen=True, kw_only=True):
    """So many files that are rewritten together, by so many tasks if their rows are `spread`, which share the table's
    curve by stretches of `cell` places; no new file has rows on both sides of the place `cut` of it."""

    files: int
    rows: int
    size_bytes: int
    deleted: int
    tasks: int
    spread: bool
    cut: int | None = None
    cell: int = 1


class CompactionPlan(Answer, frozen=True, kw_only=True):
    groups: tuple[CompactionGroup, ...]


class Rewritten(Message, frozen=True, kw_only=True):
    """The files of a group give way to these."""

    removed: tuple[str, ...]
    files: tuple[DataFile, ...]


class CommitCompaction(LoadedChange, frozen=True, kw_only=True, tag="commit_compaction"):
    """Commit groups that were rewritten."""

    write: WriteRef
    groups: tuple[Rewritten, ...]


class Lost(Answer, frozen=True, kw_only=True):
    """Which groups were left out, as others have changed their files."""

    lost: tuple[int, ...]
