"""Jobs of procedures and their results. Spark runs them between the preparation of a call and the call."""

from __future__ import annotations

from typing import TypeAlias

from lakelog.catalog import Expression
from lakelog.catalog.engine import DataFile
from lakelog.log import WriteRef
from lakelog.spark.requests.base import FreeJson, Message, Path
from lakelog.spark.requests.pieces import ChecksumTaken, ColumnComputed, ObjectCopied, ObjectToCopy
from lakelog.spark.requests.sources import FooterFound, ForeignSource, PartitionPlace
from lakelog.spark.requests.tables import TableFacts
from lakelog.spark.requests.writes import ClusteringGoal, CompactionGoal


class _Job(Message, frozen=True, kw_only=True, tag_field="kind"):
    """A job or its result, as `kind` says."""


class CompactFiles(_Job, frozen=True, kw_only=True, tag="compact"):
    """Rewrite files of a table that may have rows like `where`, a condition in SQL, into files of at most
    `most_bytes`."""

    table: Path
    where: str | None
    goal: CompactionGoal
    most_bytes: int


class ClusterFiles(_Job, frozen=True, kw_only=True, tag="cluster"):
    """Put rows of a table in the order of its curve.

    It takes files that may have rows like `where`, a condition in SQL. It begins no new step after reading
    `limit_bytes`. A `dry` run only counts the work. `overlap` is how many files a look-up of a point reads
    before the job.
    """

    table: Path
    where: str | None
    goal: ClusteringGoal
    limit_bytes: int | None
    dry: bool
    overlap: float = 0


class ReadFooters(_Job, frozen=True, kw_only=True, tag="footers"):
    """Read the footers of the files that have these values in the names of their folders.

    `schema` is the schema of the table that shall have the files, as Spark's JSON of a struct.
    """

    source: ForeignSource
    schema: FreeJson
    partition_filter: dict[str, str | None]


class FindSource(_Job, frozen=True, kw_only=True, tag="source"):
    """Find a table of that format in the session catalog.

    A path is taken as it is. With `footers`, also read the footers of all its files, which are Parquet files
    then.
    """

    source: ForeignSource
    format: str
    footers: bool


class ComputeStatistics(_Job, frozen=True, kw_only=True, tag="statistics"):
    """Compute the statistics of these columns of a table."""

    table: Path
    columns: tuple[str, ...]


class KeepTable(Message, frozen=True, kw_only=True):
    """A table to be kept in shape.

    It is compacted by `goal` into files of at most `most_bytes`, and clustered by `clustering` if given. The
    statistics of the columns `statistics` are computed again.
    """

    table: Path
    goal: CompactionGoal
    most_bytes: int
    clustering: ClusteringGoal | None = None
    statistics: tuple[str, ...] = ()


class MaintainTables(_Job, frozen=True, kw_only=True, tag="maintain"):
    """Do the due upkeep of tables, a step of each at a time.

    Begin no new step after that time, or after reading so many bytes.
    """

    tables: tuple[KeepTable, ...]
    limit_us: int | None
    limit_bytes: int | None


class TakeChecksums(_Job, frozen=True, kw_only=True, tag="checksums"):
    """Read these data files, by URL, from beginning to end."""

    files: tuple[str, ...]


class CopyObjects(_Job, frozen=True, kw_only=True, tag="copy-objects"):
    """Copy these objects, or read them, and hash their bytes.

    `work` is the id of the whole work, and `what` its name.
    """

    work: str
    what: str
    objects: tuple[ObjectToCopy, ...]


class DeleteObjects(_Job, frozen=True, kw_only=True, tag="delete-objects"):
    """Delete these objects, by URL. Some may be gone. `work` is the id of the whole work."""

    work: str
    what: str
    objects: tuple[str, ...]


class BuryVersions(_Job, frozen=True, kw_only=True, tag="bury-versions"):
    """Make tombstones of the plain commits from version `first` on, before `until`.

    The log's objects are in the folder `log`, a URL. `what` is the name of the table or namespace, whose
    versions up to `last` expire. `features` are the features of commits that lakelog knows here.
    """

    what: str
    log: str
    first: int
    until: int
    last: int
    features: tuple[str, ...]


class CountRows(_Job, frozen=True, kw_only=True, tag="count-rows"):
    """Count the rows like `predicate` in each file of the call, as a table with these facts reads it.

    `predicate` is about these `columns`. The count of a file is unknown if it lacks any of the `stored`
    columns, by their names in files. With `whole`, all of a file is read, whatever its statistics say.
    """

    table: TableFacts
    text: str
    predicate: Expression
    columns: tuple[str, ...]
    stored: tuple[str, ...] = ()
    whole: bool = False


class CopyRows(_Job, frozen=True, kw_only=True, tag="copy-rows"):
    """Write the rows of the call's files, except rows like `predicate`, to files of a write of this table."""

    table: TableFacts
    text: str
    predicate: Expression
    write: WriteRef


AnyJob: TypeAlias = (
    CompactFiles
    | ClusterFiles
    | ReadFooters
    | FindSource
    | ComputeStatistics
    | MaintainTables
    | TakeChecksums
    | CountRows
    | CopyRows
    | CopyObjects
    | DeleteObjects
    | BuryVersions
)


class CompactResult(_Job, frozen=True, kw_only=True, tag="compact"):
    """The rewritten and committed files, and the table's version after that.

    `is_left` says that a limit came before the end. For a clustering, `overlap_before` is how many files a
    look-up of a point read before it. In a dry run, `overlap_after` is how many it would read after it.
    """

    rewritten_files: int
    rewritten_bytes: int
    added_files: int
    added_bytes: int
    deleted_rows: int
    current_version: int
    is_left: bool = False
    overlap_before: float = 0
    overlap_after: float = 0


class FootersRead(_Job, frozen=True, kw_only=True, tag="footers"):
    """The files and their schemas. `table_schema` is the schema of the job."""

    table_schema: FreeJson
    schemas: tuple[FreeJson, ...]
    files: tuple[FooterFound, ...]


class SourceFound(_Job, frozen=True, kw_only=True, tag="source"):
    """The place of a source.

    A table of Parquet files also has its `columns`, as Spark's JSON of a struct, and the names of its
    partition columns. It has its folders if the catalog knows them.
    """

    url: str
    columns: FreeJson | None = None
    partitioned_by: tuple[str, ...] = ()
    places: tuple[PartitionPlace, ...] | None = None
    footers: FootersRead | None = None


class StatisticsResult(_Job, frozen=True, kw_only=True, tag="statistics"):
    """The statistics of the table with that id, at that version."""

    version: int
    id: str
    rows: int
    columns: tuple[ColumnComputed, ...]


class KeptTable(Message, frozen=True, kw_only=True):
    """The rewritten and committed files of a table.

    Other clients changed `lost` groups first. `is_left` says that a limit came before the end. `error` is the
    error that ended the work.
    """

    table: Path
    rewritten_files: int
    rewritten_bytes: int
    added_files: int
    added_bytes: int
    deleted_rows: int
    lost: int
    is_left: bool
    error: str | None
    statistics: StatisticsResult | None = None


class MaintainResult(_Job, frozen=True, kw_only=True, tag="maintain"):
    """The tables in the order of the job, and how long they took."""

    tables: tuple[KeptTable, ...]
    took_us: int


class ChecksumsTaken(_Job, frozen=True, kw_only=True, tag="checksums"):
    """The files that could be read."""

    files: tuple[ChecksumTaken, ...]


class ObjectsCopied(_Job, frozen=True, kw_only=True, tag="copy-objects"):
    """The objects in the order of the job."""

    work: str
    objects: tuple[ObjectCopied, ...]


class ObjectsDeleted(_Job, frozen=True, kw_only=True, tag="delete-objects"):
    """All objects of the job are gone."""

    work: str


class BuryResult(_Job, frozen=True, kw_only=True, tag="bury-versions"):
    """How many commits have become tombstones, and their bytes with their sidecars.

    The versions `left`, in their order, are not tombstones yet: intents, commits that settle an intent, and
    damaged objects.
    """

    commits: int
    size_bytes: int
    left: tuple[int, ...]


class RowsCounted(_Job, frozen=True, kw_only=True, tag="count-rows"):
    """The row count of each file, in their order; -1 if it is not known."""

    counts: tuple[int, ...]


class RowsCopied(_Job, frozen=True, kw_only=True, tag="copy-rows"):
    """The new files."""

    files: tuple[DataFile, ...]


AnyResult: TypeAlias = (
    CompactResult
    | FootersRead
    | SourceFound
    | StatisticsResult
    | MaintainResult
    | ChecksumsTaken
    | RowsCounted
    | RowsCopied
    | ObjectsCopied
    | ObjectsDeleted
    | BuryResult
)
