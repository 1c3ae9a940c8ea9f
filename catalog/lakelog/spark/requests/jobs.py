"""Jobs of procedures, which Spark runs between the preparation of a call and the call, and what comes of them."""

from __future__ import annotations

from typing import TypeAlias

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.schema import Expression
from lakelog.log import WriteRef
from lakelog.spark.requests.base import FreeJson, Message, Path
from lakelog.spark.requests.pieces import ChecksumTaken, ColumnComputed, ObjectCopied, ObjectToCopy
from lakelog.spark.requests.sources import FooterFound, PartitionPlace, Source
from lakelog.spark.requests.tables import TableFacts
from lakelog.spark.requests.writes import ClusteringGoal, CompactionGoal


class _Job(Message, frozen=True, kw_only=True, tag_field="kind"):
    """A job or its result, as `kind` says."""


class Compact(_Job, frozen=True, kw_only=True, tag="compact"):
    """Rewrite files of a table that may have rows like `where`, a condition in SQL, into files of at most so much."""

    table: Path
    where: str | None
    goal: CompactionGoal
    most_bytes: int


class Cluster(_Job, frozen=True, kw_only=True, tag="cluster"):
    """Put rows of a table in the order of its curve, of files that may have rows like `where`, a condition in SQL;
    begin nothing more once so many bytes were read. In a `dry` run only what it would do is counted. `overlap` is how
    many files a look-up of a point reads before it."""

    table: Path
    where: str | None
    goal: ClusteringGoal
    limit_bytes: int | None
    dry: bool
    overlap: float = 0


class ReadFooters(_Job, frozen=True, kw_only=True, tag="footers"):
    """Read the footers of the files that have these values in the names of their folders.

    `schema` is that of the table which shall have them, as Spark's JSON of a struct.
    """

    source: Source
    schema: FreeJson
    partition_filter: dict[str, str | None]


class FindSource(_Job, frozen=True, kw_only=True, tag="source"):
    """Find a table of that format in the session catalog; of a path, which is taken as it is, only with `footers`: read
    the footers of all files, which are Parquet files then."""

    source: Source
    format: str
    footers: bool


class ComputeStatistics(_Job, frozen=True, kw_only=True, tag="statistics"):
    """Compute the statistics of these columns of a table."""

    table: Path
    columns: tuple[str, ...]


class KeepTable(Message, frozen=True, kw_only=True):
    """A table to be kept in shape: compacted with that goal, into files of at most so much, clustered with the other,
    if there is one, and the statistics of these columns computed anew."""

    table: Path
    goal: CompactionGoal
    most_bytes: int
    clustering: ClusteringGoal | None = None
    statistics: tuple[str, ...] = ()


class Maintain(_Job, frozen=True, kw_only=True, tag="maintain"):
    """Do what is due for tables, a step of each at a time; begin nothing more after that time, or once so many bytes
    were read."""

    tables: tuple[KeepTable, ...]
    limit_us: int | None
    limit_bytes: int | None


class TakeChecksums(_Job, frozen=True, kw_only=True, tag="checksums"):
    """Read these data files, by URL, from beginning to end."""

    files: tuple[str, ...]


class CopyObjects(_Job, frozen=True, kw_only=True, tag="copy-objects"):
    """Copy these objects, or read them, and hash their bytes. `work` is what they are a part of, `what` says it."""

    work: str
    what: str
    objects: tuple[ObjectToCopy, ...]


class DeleteObjects(_Job, frozen=True, kw_only=True, tag="delete-objects"):
    """Delete these objects, by URL, of which some may be gone already; `work` is what they are a part of."""

    work: str
    what: str
    objects: tuple[str, ...]


class BuryVersions(_Job, frozen=True, kw_only=True, tag="bury-versions"):
    """Make tombstones of the plain commits from version `first` on, before `until`, of the log whose objects are in the
    folder `log`, a URL. `what` is the name of the table or namespace, up to version `last` of which all expires;
    `features` are those of commits that are known here."""

    what: str
    log: str
    first: int
    until: int
    last: int
    features: tuple[str, ...]


class CountRows(_Job, frozen=True, kw_only=True, tag="count-rows"):
    """Count the rows like `predicate`, which is about these `columns`, in each file that the call has, as a table with
    these facts reads it; of those that lack any of the `stored` columns, by their names in files, nothing is known.

    `whole`: whatever a file says of itself, all of it is read.
    """

    table: TableFacts
    text: str
    predicate: Expression
    columns: tuple[str, ...]
    stored: tuple[str, ...] = ()
    whole: bool = False


class CopyRows(_Job, frozen=True, kw_only=True, tag="copy-rows"):
    """Write the rows of the files that the call has, but those like `predicate`, to files of a write of this table."""

    table: TableFacts
    text: str
    predicate: Expression
    write: WriteRef


AnyJob: TypeAlias = (
    Compact
    | Cluster
    | ReadFooters
    | FindSource
    | ComputeStatistics
    | Maintain
    | TakeChecksums
    | CountRows
    | CopyRows
    | CopyObjects
    | DeleteObjects
    | BuryVersions
)


class Compacted(_Job, frozen=True, kw_only=True, tag="compact"):
    """What was rewritten and committed, and the version of the table after that. `is_left`: a limit came before the
    end. Of a clustering, `overlap_before` is how many files a look-up of a point read before it, and in a dry run
    `overlap_after` what it would read then."""

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
    """The files, and the schemas that there are among them; `table_schema` is that of the job."""

    table_schema: FreeJson
    schemas: tuple[FreeJson, ...]
    files: tuple[FooterFound, ...]


class SourceFound(_Job, frozen=True, kw_only=True, tag="source"):
    """Where a source is. Of a table of Parquet files, its `columns` as Spark's JSON of a struct, the names of those
    that it is partitioned by, and its folders where the catalog knows them."""

    url: str
    columns: FreeJson | None = None
    partitioned_by: tuple[str, ...] = ()
    places: tuple[PartitionPlace, ...] | None = None
    footers: FootersRead | None = None


class StatisticsComputed(_Job, frozen=True, kw_only=True, tag="statistics"):
    """The statistics of that version of the table with that id."""

    version: int
    id: str
    rows: int
    columns: tuple[ColumnComputed, ...]


class KeptTable(Message, frozen=True, kw_only=True):
    """What was rewritten and committed of a table. `lost` groups were changed by others first; `is_left`: a limit came
    before the end; `error` is what ended it."""

    table: Path
    rewritten_files: int
    rewritten_bytes: int
    added_files: int
    added_bytes: int
    deleted_rows: int
    lost: int
    is_left: bool
    error: str | None
    statistics: StatisticsComputed | None = None


class Maintained(_Job, frozen=True, kw_only=True, tag="maintain"):
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
    """All of them are gone."""

    work: str


class VersionsBuried(_Job, frozen=True, kw_only=True, tag="bury-versions"):
    """How many commits have become tombstones, and their bytes with their sidecars. The versions `left` are none yet,
    in their order: intents, what says how one ended, and objects that are not as they should be."""

    commits: int
    size_bytes: int
    left: tuple[int, ...]


class RowsCounted(_Job, frozen=True, kw_only=True, tag="count-rows"):
    """How many rows there are in each file, in their order; -1 where that is not known."""

    counts: tuple[int, ...]


class RowsCopied(_Job, frozen=True, kw_only=True, tag="copy-rows"):
    """The new files."""

    files: tuple[DataFile, ...]


AnyResult: TypeAlias = (
    Compacted
    | FootersRead
    | SourceFound
    | StatisticsComputed
    | Maintained
    | ChecksumsTaken
    | RowsCounted
    | RowsCopied
    | ObjectsCopied
    | ObjectsDeleted
    | VersionsBuried
)
