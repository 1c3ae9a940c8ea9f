"""Namespaces and tables on object storage: what commits mean, and the Python client.

from lakelog.catalog import Catalog

catalog = Catalog("/data/lake")
catalog.create_namespace("sales")
orders = catalog.create_table("sales.orders", arrow_schema, partition_by=["region"])
orders = orders.append(arrow_table)
orders.scan(columns=["id"], filter="region = 'EU'").to_arrow()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakelog.catalog.catalog import Catalog
from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.commit_history import History
from lakelog.catalog.core.ddl import DroppedEntry, Stage
from lakelog.catalog.core.files import (
    ColumnEstimates,
    ColumnStats,
    Constant,
    DataFile,
    Deletes,
    Positions,
    TableEstimates,
)
from lakelog.catalog.core.logs import Observation, Token
from lakelog.catalog.core.parquet import FoundFile, Ingestible
from lakelog.catalog.core.planning import Aggregate, TopRows
from lakelog.catalog.core.schema import (
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
from lakelog.catalog.core.state import ClusteringGoal, Goal, Group, HistoryEntry, Ref, RowCounts, SavedCut
from lakelog.catalog.core.tools import ArrowRows
from lakelog.catalog.core.writes import FilesMatchInPart, Rewritten, StreamBatch
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
from lakelog.catalog.merge import Merge
from lakelog.catalog.names import Location, Name
from lakelog.catalog.scan import Scan
from lakelog.catalog.table import Table
from lakelog.catalog.telemetry import to_opentelemetry
from lakelog.catalog.times import Moment
from lakelog.catalog.transaction import Transaction
from lakelog.log import LogOptions, WriteRef
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

if TYPE_CHECKING:
    from lakelog.catalog.formats.iceberg import Exported, ExportedView
    from lakelog.catalog.formats.imports import FolderTable, Imported, KnownFolder
    from lakelog.catalog.keeping.backups import (
        BackedUp,
        Backup,
        BackupCutGone,
        BackupProblem,
        CheckedBackup,
        Copied,
        CopiedTable,
        DeletedBackups,
        LeftOut,
        LogInBackup,
        RestoredTable,
        RestoredWarehouse,
    )
    from lakelog.catalog.keeping.clones import Materialized
    from lakelog.catalog.keeping.erasure import ErasedTable, Forgotten, Lost, is_signed
    from lakelog.catalog.keeping.maintenance import (
        Adoption,
        Checksum,
        Engine,
        Expired,
        Vacuumed,
        VersionsBuried,
        VersionsToBury,
    )
    from lakelog.catalog.keeping.upkeep import (
        Advice,
        Compacted,
        Due,
        ExpectedClustering,
        Health,
        KeyDepth,
        KeyOverlap,
        LastDay,
        Maintained,
        SizeClass,
    )
    from lakelog.catalog.looking.audit import AuditEntry
    from lakelog.catalog.looking.changelog import Changes
    from lakelog.catalog.looking.pictures import Sheet
    from lakelog.log.checks.findings import Finding, Findings, Severity

__all__ = [
    "Adoption",
    "Advice",
    "Aggregate",
    "AlreadyExists",
    "ArrowExpression",
    "ArrowRows",
    "AtomicType",
    "AuditEntry",
    "BackedUp",
    "Backup",
    "BackupCutGone",
    "BackupProblem",
    "BatchCommitted",
    "Bounds",
    "Catalog",
    "CatalogNames",
    "Changes",
    "CheckViolated",
    "CheckedBackup",
    "Checksum",
    "ClockNotTrusted",
    "ClusteringGoal",
    "Column",
    "ColumnEstimates",
    "ColumnExists",
    "ColumnStats",
    "CommitConflict",
    "CommitUnknown",
    "Compacted",
    "ConflictError",
    "Constant",
    "Constraint",
    "ConstraintExists",
    "Copied",
    "CopiedTable",
    "DataFile",
    "Default",
    "DeletedBackups",
    "Deletes",
    "Dependency",
    "DoneInPart",
    "DroppedEntry",
    "Due",
    "Engine",
    "ErasedTable",
    "ExpectedClustering",
    "Expired",
    "Exported",
    "ExportedView",
    "Expression",
    "Field",
    "FilesMatchInPart",
    "Filter",
    "Finding",
    "Findings",
    "FolderTable",
    "Forgotten",
    "FormatError",
    "FoundFile",
    "FunctionDefinition",
    "FunctionExists",
    "Generated",
    "Goal",
    "Group",
    "Health",
    "History",
    "HistoryEntry",
    "Identity",
    "Imported",
    "Ingestible",
    "InvalidInput",
    "KeyDepth",
    "KeyOverlap",
    "KnownFolder",
    "LakelogError",
    "LastDay",
    "LeftOut",
    "LinkedElsewhere",
    "Location",
    "LocationTaken",
    "LogInBackup",
    "LogOptions",
    "LogSealed",
    "Lost",
    "Maintained",
    "Materialized",
    "Merge",
    "Metadata",
    "Moment",
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
    "Observation",
    "Obstacle",
    "OwnersUnknown",
    "PartitionField",
    "PartitionSpec",
    "PermissionDenied",
    "Positions",
    "Predicate",
    "Ranks",
    "Ref",
    "RefExists",
    "Reference",
    "RestoredTable",
    "RestoredWarehouse",
    "Rewritten",
    "RowCounts",
    "RowsUnproven",
    "SavedCut",
    "Scalar",
    "Scan",
    "Schema",
    "Severity",
    "Sheet",
    "SizeClass",
    "SortField",
    "SortOrder",
    "SourceDiverged",
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
    "Vacuumed",
    "ValuesGone",
    "ValuesTaken",
    "VersionsBuried",
    "VersionsToBury",
    "ViewColumn",
    "ViewDefinition",
    "ViewExists",
    "WriteFenced",
    "WriteRef",
    "Written",
    "col",
    "is_signed",
    "to_opentelemetry",
]

_LATER = {
    "lakelog.catalog.formats.iceberg": (
        "Exported",
        "ExportedView",
    ),
    "lakelog.catalog.formats.imports": (
        "FolderTable",
        "Imported",
        "KnownFolder",
    ),
    "lakelog.catalog.keeping.backups": (
        "BackedUp",
        "Backup",
        "BackupCutGone",
        "BackupProblem",
        "CheckedBackup",
        "Copied",
        "CopiedTable",
        "DeletedBackups",
        "LeftOut",
        "LogInBackup",
        "RestoredTable",
        "RestoredWarehouse",
    ),
    "lakelog.catalog.keeping.clones": ("Materialized",),
    "lakelog.catalog.keeping.erasure": (
        "ErasedTable",
        "Forgotten",
        "Lost",
        "is_signed",
    ),
    "lakelog.catalog.keeping.maintenance": (
        "Adoption",
        "Checksum",
        "Engine",
        "Expired",
        "Vacuumed",
        "VersionsBuried",
        "VersionsToBury",
    ),
    "lakelog.catalog.keeping.upkeep": (
        "Advice",
        "Compacted",
        "Due",
        "ExpectedClustering",
        "Health",
        "KeyDepth",
        "KeyOverlap",
        "LastDay",
        "Maintained",
        "SizeClass",
    ),
    "lakelog.catalog.looking.audit": ("AuditEntry",),
    "lakelog.catalog.looking.changelog": ("Changes",),
    "lakelog.catalog.looking.pictures": ("Sheet",),
    "lakelog.log.checks.findings": (
        "Finding",
        "Findings",
        "Severity",
    ),
}
"""What is loaded when it is first asked for, by the module that has it: what the core does not need."""


def __getattr__(name: str) -> Any:
    """Return what is loaded only now: Python asks here for what this module does not have (PEP 562)."""
    for module, names in _LATER.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
