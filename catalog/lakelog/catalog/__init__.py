"""Namespaces and tables on object storage: what commits mean, and the Python client.

from lakelog.catalog import Catalog

catalog = Catalog("/data/lake")
catalog.create_namespace("sales")
orders = catalog.create_table("sales.orders", arrow_schema, partition_by=["region"])
orders = orders.append(arrow_table)
orders.scan(columns=["id"], filter="region = 'EU'").to_arrow()
"""

from lakelog.catalog.audit import (
    AuditEntry,
)
from lakelog.catalog.backups import (
    BackedUp,
    Backup,
    BackupCutGone,
    BackupProblem,
    CheckedBackup,
    Copied,
    CopiedTable,
    LeftOut,
    LogInBackup,
    RestoredTable,
    RestoredWarehouse,
)
from lakelog.catalog.catalog import (
    Catalog,
)
from lakelog.catalog.catalog_names import (
    CatalogNames,
)
from lakelog.catalog.changelog import (
    Changes,
)
from lakelog.catalog.clones import Materialized
from lakelog.catalog.commit_history import (
    History,
)
from lakelog.catalog.ddl import (
    DroppedEntry,
    Stage,
)
from lakelog.catalog.erasure import (
    ErasedTable,
    Forgotten,
    Lost,
    is_signed,
)
from lakelog.catalog.errors import (
    BatchCommitted,
    CheckViolated,
    ClockNotTrusted,
    ColumnExists,
    CommitConflict,
    ConstraintExists,
    DoneInPart,
    FunctionExists,
    LinkedElsewhere,
    LocationTaken,
    MultiplePrimaryKeys,
    NameReassigned,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchColumn,
    NoSuchConstraint,
    NoSuchFunction,
    NoSuchNamespace,
    NoSuchRef,
    NoSuchTable,
    NoSuchView,
    NoSuchWarehouse,
    OwnersUnknown,
    RefExists,
    RowsUnproven,
    SourceDiverged,
    StreamStopped,
    TableExists,
    TableRenamed,
    ValuesGone,
    ViewExists,
)
from lakelog.catalog.files import (
    ColumnEstimates,
    ColumnStats,
    Constant,
    DataFile,
    Deletes,
    Positions,
    TableEstimates,
)
from lakelog.catalog.iceberg import (
    Exported,
    ExportedView,
)
from lakelog.catalog.imports import (
    FolderTable,
    Imported,
    KnownFolder,
)
from lakelog.catalog.logs import (
    Observation,
    Token,
)
from lakelog.catalog.maintenance import (
    Adoption,
    Checksum,
    Expired,
    Vacuumed,
)
from lakelog.catalog.merge import (
    Merge,
)
from lakelog.catalog.names import (
    Location,
    Name,
)
from lakelog.catalog.parquet import (
    FoundFile,
    Ingestible,
)
from lakelog.catalog.pictures import (
    Sheet,
)
from lakelog.catalog.planning import (
    Aggregate,
    TopRows,
)
from lakelog.catalog.scan import (
    Scan,
)
from lakelog.catalog.schema import (
    ArrowExpression,
    AtomicType,
    Bounds,
    Column,
    Constraint,
    Default,
    Dependency,
    Expression,
    Field,
    Filter,
    FunctionDefinition,
    Generated,
    Identity,
    Metadata,
    Obstacle,
    PartitionField,
    PartitionSpec,
    Predicate,
    Ranks,
    Reference,
    Scalar,
    Schema,
    SortField,
    SortOrder,
    SparkType,
    Stated,
    StatedField,
    StructType,
    TableChange,
    Transform,
    Type,
    ValuesTaken,
    ViewColumn,
    ViewDefinition,
    Written,
    col,
)
from lakelog.catalog.state import (
    ClusteringGoal,
    Goal,
    Group,
    HistoryEntry,
    Ref,
    RowCounts,
    SavedCut,
)
from lakelog.catalog.table import (
    Table,
)
from lakelog.catalog.telemetry import (
    to_opentelemetry,
)
from lakelog.catalog.times import (
    Moment,
)
from lakelog.catalog.tools import (
    ArrowRows,
)
from lakelog.catalog.transaction import (
    Transaction,
)
from lakelog.catalog.upkeep import (
    Advice,
    Compacted,
    Due,
    Health,
    KeyDepth,
    LastDay,
    Maintained,
    SizeClass,
)
from lakelog.catalog.writes import (
    FilesMatchInPart,
    Rewritten,
    StreamBatch,
)
from lakelog.log import LogOptions, WriteRef
from lakelog.log.checks.findings import Finding, Findings, Severity
from lakelog.log.errors import (
    AlreadyExists,
    CommitUnknown,
    ConflictError,
    FormatError,
    InvalidInput,
    LakelogError,
    LogSealed,
    NotFound,
    PermissionDenied,
    StorageError,
    Unsupported,
    UnsupportedFormat,
    WriteFenced,
)

__all__ = [
    "Copied",
    "CopiedTable",
    "Bounds",
    "Ranks",
    "Materialized",
    "Adoption",
    "Exported",
    "ExportedView",
    "Observation",
    "Obstacle",
    "Aggregate",
    "AlreadyExists",
    "ArrowExpression",
    "ArrowRows",
    "AtomicType",
    "AuditEntry",
    "BatchCommitted",
    "Catalog",
    "CatalogNames",
    "Changes",
    "CheckViolated",
    "Checksum",
    "ClockNotTrusted",
    "Column",
    "ColumnEstimates",
    "ColumnExists",
    "ColumnStats",
    "CommitConflict",
    "CommitUnknown",
    "ConflictError",
    "Constant",
    "Constraint",
    "ConstraintExists",
    "DoneInPart",
    "DataFile",
    "Default",
    "Deletes",
    "Dependency",
    "DroppedEntry",
    "ErasedTable",
    "Expired",
    "Forgotten",
    "Lost",
    "is_signed",
    "Expression",
    "Field",
    "FilesMatchInPart",
    "Filter",
    "Finding",
    "Findings",
    "FolderTable",
    "FormatError",
    "FoundFile",
    "FunctionDefinition",
    "FunctionExists",
    "Generated",
    "ClusteringGoal",
    "Goal",
    "Group",
    "History",
    "HistoryEntry",
    "Identity",
    "Imported",
    "Ingestible",
    "InvalidInput",
    "KnownFolder",
    "LakelogError",
    "LinkedElsewhere",
    "Location",
    "LocationTaken",
    "LogOptions",
    "LogSealed",
    "Metadata",
    "Moment",
    "Merge",
    "MultiplePrimaryKeys",
    "Name",
    "NameReassigned",
    "NamespaceExists",
    "NamespaceNotEmpty",
    "NoSuchColumn",
    "NoSuchConstraint",
    "NoSuchFunction",
    "NoSuchNamespace",
    "NoSuchRef",
    "NoSuchTable",
    "NoSuchView",
    "NoSuchWarehouse",
    "NotFound",
    "OwnersUnknown",
    "PartitionField",
    "PartitionSpec",
    "PermissionDenied",
    "Positions",
    "Predicate",
    "Ref",
    "RefExists",
    "Reference",
    "Rewritten",
    "RowCounts",
    "RowsUnproven",
    "SavedCut",
    "Scalar",
    "Scan",
    "Schema",
    "Severity",
    "Sheet",
    "SourceDiverged",
    "SortField",
    "SortOrder",
    "SparkType",
    "Stage",
    "Stated",
    "StatedField",
    "StorageError",
    "StreamBatch",
    "StreamStopped",
    "StructType",
    "Table",
    "TableChange",
    "TableEstimates",
    "TableExists",
    "TableRenamed",
    "Token",
    "TopRows",
    "Transaction",
    "Transform",
    "Type",
    "Unsupported",
    "UnsupportedFormat",
    "Advice",
    "Health",
    "KeyDepth",
    "LastDay",
    "BackedUp",
    "Backup",
    "BackupCutGone",
    "BackupProblem",
    "LeftOut",
    "LogInBackup",
    "CheckedBackup",
    "RestoredTable",
    "RestoredWarehouse",
    "Due",
    "Compacted",
    "Maintained",
    "SizeClass",
    "Vacuumed",
    "ValuesGone",
    "ValuesTaken",
    "ViewColumn",
    "ViewDefinition",
    "ViewExists",
    "WriteFenced",
    "WriteRef",
    "Written",
    "col",
    "to_opentelemetry",
]
