"""Writing to a loaded table: adding, changing and deleting rows."""

from __future__ import annotations

from lakelog.catalog import Expression, StreamBatch, Token
from lakelog.catalog.engine import DataFile, DeletedPositions, ValuesTaken
from lakelog.log import WriteRef
from lakelog.spark.requests.base import (
    Answer,
    CatalogRequest,
    LoadedChange,
    LoadedTableRequest,
    Message,
    Path,
)


class DeleteRows(LoadedChange, frozen=True, kw_only=True, tag="delete"):
    """Delete the rows like `predicate`, which fill whole files."""

    predicate: Expression


class TruncateTable(LoadedChange, frozen=True, tag="truncate"):
    """Delete all rows."""


class BeginWrite(LoadedTableRequest, frozen=True, tag="begin_write"):
    """Return the id of a write that starts from the loaded version, and the token of its commit."""


class NextValue(Message, frozen=True, kw_only=True):
    """The next value of the identity column of that id."""

    column: int
    next: int


class BegunWrite(Answer, frozen=True, kw_only=True):
    """A write.

    Its files' names begin with `write`. `version` is the version that it starts from, if not the loaded
    version.
    """

    write: WriteRef
    token: Token | None
    identities: tuple[NextValue, ...]
    version: int | None = None


class BeginBatch(LoadedTableRequest, frozen=True, kw_only=True, tag="begin_batch"):
    """Return the id of a streaming query's write, which starts from the newest version.

    Its rows were made to fit an older version, and are written by the columns of the version `written_as`.
    The newest version must fit both of them.
    """

    name: str
    written_as: int


class CommitWrite(LoadedChange, frozen=True, kw_only=True, tag="commit_write"):
    """Append, or replace the rows that `filter` matches.

    `deletes` are matching rows in files that match in part, if known. `copies` have the other rows of these
    files, if the table deletes by copying.
    """

    write: WriteRef
    operation: str
    files: tuple[DataFile, ...]
    filter: Expression | None = None
    deletes: tuple[DeletedPositions, ...] | None = None
    copies: tuple[DataFile, ...] | None = None
    batch: StreamBatch | None = None
    values: tuple[ValuesTaken, ...] = ()


class RowsChanged(Message, frozen=True, kw_only=True):
    """How many rows a commit has changed, if known."""

    inserted: int | None
    updated: int | None
    deleted: int | None
    copied: int | None


class CommitCost(Message, frozen=True, kw_only=True):
    """The cost of a commit: attempts to put versions, repeated decisions, waits for other clients, and
    requests to the store with their bytes."""

    attempts: int
    rebases: int
    waits: int
    waited_ms: int
    requests: int
    bytes_read: int
    bytes_written: int


class WriteResult(Answer, frozen=True, kw_only=True):
    """Whether the files are part of the table now.

    If the table had the batch before, they are not. `rows` says how many rows have changed. `mark` is the
    text that a streaming query keeps in its checkpoint, and sends `after` its next batch.
    """

    written: bool
    rows: RowsChanged | None = None
    mark: str | None = None
    cost: CommitCost | None = None


class CommittedRows(Answer, frozen=True, kw_only=True):
    """How many rows have changed, if known."""

    rows: RowsChanged | None = None
    cost: CommitCost | None = None


class CommitRows(LoadedChange, frozen=True, kw_only=True, tag="commit_rows"):
    """A delete, update or merge, on the version that it has read.

    `condition` holds for all rows that it has read. Of the rows in `files`, `inserted` are new, and `updated`
    replace other rows, if tasks have counted them.
    """

    write: WriteRef
    operation: str
    files: tuple[DataFile, ...]
    removed: tuple[str, ...]
    deletes: tuple[DeletedPositions, ...]
    condition: Expression | None = None
    values: tuple[ValuesTaken, ...] = ()
    reads_others: bool = False
    inserted: int | None = None
    updated: int | None = None


class MakeToken(CatalogRequest, frozen=True, kw_only=True, tag="token"):
    """Return the token that identifies retries of a change of that name, place or namespace."""

    identifier: Path | None = None
    location: str | None = None
    namespace: Path | None = None

    def __post_init__(self) -> None:
        if [self.identifier, self.location, self.namespace].count(None) != 2:
            raise ValueError("a token is of an identifier, a location or a namespace")


class CompactionGoal(Message, frozen=True, kw_only=True):
    """Files shall be of about that size, and have less than that share of deleted rows.

    If there are `fan_in` small files of about the same size, they are joined. Without `joins`, that is left
    to a clustering.
    """

    target_size_bytes: int
    deleted_ratio: float
    fan_in: int = 1
    joins: bool = True


class PlanCompaction(LoadedTableRequest, frozen=True, kw_only=True, tag="plan_compaction"):
    """Return the next groups of files to rewrite, and their files, group after group, as an Arrow stream."""

    goal: CompactionGoal
    predicate: Expression | None
    until: int
    limit_bytes: int


class ClusteringGoal(Message, frozen=True, kw_only=True):
    """Files shall be of about that size, in runs along the table's curve.

    Files without an order wait until there are `fresh_min` of them. With `full`, all runs are merged. `key`
    are the ids of the table's clustering columns at the begin.
    """

    target_size_bytes: int
    key: tuple[int, ...]
    fresh_min: int = 1
    full: bool = False


class PlanClustering(LoadedTableRequest, frozen=True, kw_only=True, tag="plan_clustering"):
    """Return the next groups of files to put in order, and their files, group after group, as an Arrow
    stream."""

    goal: ClusteringGoal
    predicate: Expression | None
    until: int
    limit_bytes: int


class ExpectClustering(LoadedTableRequest, frozen=True, kw_only=True, tag="expect_clustering"):
    """Return the expected work of a clustering, up to about so many bytes, and the overlap after it.

    Reads metadata alone.
    """

    goal: ClusteringGoal
    predicate: Expression | None
    limit_bytes: int | None


class ClusteringExpectation(Answer, frozen=True, kw_only=True):
    """The expected reads and writes, and how many files a look-up of a point reads, on average, before and
    after."""

    read_files: int
    read_bytes: int
    written_files: int
    written_bytes: int
    deleted_rows: int
    is_left: bool
    overlap_before: float
    overlap_after: float


class CompactionGroup(Message, frozen=True, kw_only=True):
    """Files that are rewritten together.

    If their rows are `spread`, so many tasks rewrite them, and share the table's curve by stretches of `cell`
    places. No new file has rows on both sides of the curve's place `cut`.
    """

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


class RewrittenGroup(Message, frozen=True, kw_only=True):
    """A group whose files `removed` are replaced by `files`."""

    removed: tuple[str, ...]
    files: tuple[DataFile, ...]


class CommitCompaction(LoadedChange, frozen=True, kw_only=True, tag="commit_compaction"):
    """Commit groups that were rewritten."""

    write: WriteRef
    groups: tuple[RewrittenGroup, ...]


class LostGroups(Answer, frozen=True, kw_only=True):
    """The groups that were left out because other clients have changed their files."""

    lost: tuple[int, ...]
