"""Tables by their names and places: listing, loading, changing and dropping."""

from __future__ import annotations

from lakelog.catalog import Expression, Scalar, TableChange, ViewDefinition
from lakelog.spark.requests.base import (
    Answer,
    FoundBy,
    FreeJson,
    LoadedRef,
    LoadedTable,
    LoadedTableRequest,
    Message,
    NamedChange,
    NamedObject,
    NamedRef,
    NameListing,
    Path,
)


class ListTables(NameListing, frozen=True, tag="list_tables"):
    """List the tables directly in a namespace."""


class TableList(Answer, frozen=True, kw_only=True):
    tables: tuple[Path, ...]


class LookUpTable(NamedObject, frozen=True, tag="table_exists"):
    """Return whether the table exists."""


class LoadTable(NamedObject, frozen=True, kw_only=True, tag="load_table"):
    """Return the facts of a table, at a version or time, or on a tag or branch, if given."""

    version: int | None = None
    timestamp_us: int | None = None
    on: NamedRef | None = None


class LoadRelation(NamedObject, frozen=True, tag="load_relation"):
    """Return the object of a name: the facts of a table, or a view."""


class MayCompute(LoadedTableRequest, frozen=True, tag="may_compute"):
    """Refuse writes that would run stored code, if the catalog's `stored-code` forbids it."""


class TransformTerm(Message, frozen=True, kw_only=True):
    """A column, or a transform of a column, by which rows are partitioned or sorted."""

    transform: str
    args: tuple[int, ...]
    column: Path


class PartitionFacts(TransformTerm, frozen=True, kw_only=True):
    """A partition field. `result` is the type of its values, as Spark calls it."""

    field_id: int
    name: str
    result: str


class SortFacts(TransformTerm, frozen=True, kw_only=True):
    """A field of the sort order: `direction` is `asc` or `desc`, `nulls` is `first` or `last`."""

    direction: str
    nulls: str


class RankedColumn(Message, frozen=True, kw_only=True):
    """A column of a clustering, and the boundaries of its values, in ascending order."""

    column: Path
    bounds: tuple[Scalar, ...]


class CurveFacts(Message, frozen=True, kw_only=True):
    """The curve along which new rows are ordered.

    It has a generation of boundaries, and ranks of so many bits.
    """

    generation: int
    bits: int
    columns: tuple[RankedColumn, ...]


class ConstraintFacts(Message, frozen=True, kw_only=True):
    """A constraint with the names of its columns. `kind` is `check`, `primary-key`, `unique` or `foreign-key`."""

    kind: str
    name: str
    rely: bool
    columns: tuple[Path, ...]
    sql: str | None = None
    predicate: Expression | None = None
    table: Path | None = None
    referenced: tuple[str, ...] | None = None


class OptimizerEstimate(Message, frozen=True, kw_only=True):
    """The statistics of a whole column, of type `type`, for Spark's optimizer."""

    column: str
    type: str
    distinct: int | None = None
    nulls: int | None = None
    min: Scalar = None
    max: Scalar = None
    average_bytes: int | None = None
    most_bytes: int | None = None


class BloomFacts(Message, frozen=True, kw_only=True):
    """The columns of which new files have Bloom filters.

    Each filter holds `ndv` different values at most. `fpp` is its rate of false positives.
    """

    columns: tuple[Path, ...]
    fpp: float
    ndv: int


class TableFacts(Answer, frozen=True, kw_only=True):
    """The facts of a table's version.

    `schema` is Spark's JSON, with ids and physical names in its metadata. `write_modes` are the modes of
    DELETE, UPDATE and MERGE. `estimates` are missing after rows were added. With `computes`, a write runs
    stored code, and `may_compute` says whether it may.
    """

    id: str
    version: int
    past: bool
    step: int
    ref: LoadedRef | None = None
    found_by: FoundBy | None = None
    location: str
    own_location: bool
    provider: str | None
    comment: str | None
    schema: FreeJson
    spec_id: int
    partitioning: tuple[PartitionFacts, ...]
    sort_order: tuple[SortFacts, ...]
    clustering: tuple[Path, ...]
    curve: CurveFacts | None = None
    constraints: tuple[ConstraintFacts, ...]
    estimates: tuple[OptimizerEstimate, ...]
    properties: dict[str, str]
    target_file_size_bytes: int
    compression_codec: str
    bloom: BloomFacts | None = None
    write_modes: dict[str, str]
    computes: bool = False


class FoundView(Answer, frozen=True, kw_only=True):
    view: ViewDefinition


class AlterTable(NamedChange, frozen=True, kw_only=True, tag="alter_table"):
    """Change the definition of a table, at a place also on a branch.

    `looked_at` is the version whose rows Spark has checked against the new constraints, if any.
    """

    changes: tuple[TableChange, ...]
    ref: LoadedRef | None = None
    looked_at: LoadedTable | None = None


class DropTable(NamedChange, frozen=True, kw_only=True, tag="drop_table"):
    """Drop a table. With `purge`, the drop cannot be undone."""

    purge: bool = False


class RenameTable(NamedChange, frozen=True, kw_only=True, tag="rename_table"):
    """Give a table another name."""

    to: Path
