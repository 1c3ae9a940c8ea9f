"""Tables by their names and places: what there is, loading, changing and dropping."""

from __future__ import annotations

from lakelog.catalog.core.schema import Expression, Scalar, TableChange, ViewDefinition
from lakelog.spark.requests.base import (
    Answer,
    FoundBy,
    FreeJson,
    Listing,
    LoadedTable,
    Message,
    Named,
    NamedChange,
    NamedRef,
    OfLoaded,
    Path,
    Ref,
)


class ListTables(Listing, frozen=True, tag="list_tables"):
    """Which tables are directly in a namespace."""


class Tables(Answer, frozen=True, kw_only=True):
    tables: tuple[Path, ...]


class TableExists(Named, frozen=True, tag="table_exists"):
    """Whether there is such a table."""


class LoadTable(Named, frozen=True, kw_only=True, tag="load_table"):
    """The facts of a table, or of it at a version or time, or on a tag or branch."""

    version: int | None = None
    timestamp_us: int | None = None
    on: NamedRef | None = None


class LoadRelation(Named, frozen=True, tag="load_relation"):
    """The object of a name: the facts of a table, or a view."""


class MayCompute(OfLoaded, frozen=True, tag="may_compute"):
    """Refuse writes that would run what is stored, where the catalog's `stored-code` forbids it."""


class Transformed(Message, frozen=True, kw_only=True):
    """A column, or a transform of one, by which rows are partitioned or sorted."""

    transform: str
    args: tuple[int, ...]
    column: Path


class PartitionFacts(Transformed, frozen=True, kw_only=True):
    """A partition field. `result` is the type of its values, as Spark calls it."""

    field_id: int
    name: str
    result: str


class SortFacts(Transformed, frozen=True, kw_only=True):
    """A field of the sort order: `direction` is `asc` or `desc`, `nulls` is `first` or `last`."""

    direction: str
    nulls: str


class RankedColumn(Message, frozen=True, kw_only=True):
    """A column of a clustering, and the boundaries of its values, each above the one before."""

    column: Path
    bounds: tuple[Scalar, ...]


class CurveFacts(Message, frozen=True, kw_only=True):
    """The curve along which new rows are ordered: that of a generation of boundaries, with ranks of so many bits."""

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


class Estimate(Message, frozen=True, kw_only=True):
    """What is known of a whole column, of type `type`: for Spark's optimizer."""

    column: str
    type: str
    distinct: int | None = None
    nulls: int | None = None
    min: Scalar = None
    max: Scalar = None
    average_bytes: int | None = None
    most_bytes: int | None = None


class BloomFacts(Message, frozen=True, kw_only=True):
    """Which columns new files have Bloom filters of, each for `ndv` different values at most; `fpp` is how often it
    takes another value for one of them."""

    columns: tuple[Path, ...]
    fpp: float
    ndv: int


class TableFacts(Answer, frozen=True, kw_only=True):
    """One version of a table. `schema` is Spark's JSON, with ids and physical names in its metadata.

    `write_modes` are those of DELETE, UPDATE and MERGE. `estimates` are missing once rows were added. With
    `computes`, a write runs what is stored, and `may_compute` says whether it may.
    """

    id: str
    version: int
    past: bool
    step: int
    ref: Ref | None = None
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
    estimates: tuple[Estimate, ...]
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

    `looked_at` is the version, if any, all of whose rows Spark has held against what is to be true of them.
    """

    changes: tuple[TableChange, ...]
    ref: Ref | None = None
    looked_at: LoadedTable | None = None


class DropTable(NamedChange, frozen=True, kw_only=True, tag="drop_table"):
    """Drop a table; with `purge` so that it cannot be undone."""

    purge: bool = False


class RenameTable(NamedChange, frozen=True, kw_only=True, tag="rename_table"):
    """Give a table another name."""

    to: Path
