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
from lakelog.catalog.commit_history import History
from lakelog.catalog.core.ddl import DroppedEntry
from lakelog.catalog.core.files import (
    ColumnStats,
)
from lakelog.catalog.core.logs import Observation, Token
from lakelog.catalog.core.parquet import FoundFile, Ingestible
from lakelog.catalog.core.planning import Aggregate
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
    StructType,
    TableChange,
    Transform,
    Type,
    TypedValue,
    ViewColumn,
    ViewDefinition,
    col,
)
from lakelog.catalog.core.state import HistoryEntry, Ref, RowCounts, SavedCut
from lakelog.catalog.core.writes import FilesMatchInPart, StreamBatch
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
from lakelog.catalog.foreign_words import MODULE as _FOREIGN_NAMES
from lakelog.catalog.names import Location, Name
from lakelog.catalog.scan import Scan
from lakelog.catalog.table import Table
from lakelog.catalog.table_alteration import TableAlteration
from lakelog.catalog.telemetry import to_opentelemetry
from lakelog.catalog.times import Moment
from lakelog.catalog.transaction import Transaction
from lakelog.log import LogOptions
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
    from lakelog.catalog.formats.iceberg import Exported
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
    from lakelog.catalog.merge import Merge
    from lakelog.log.checks.findings import Finding, Findings, Severity

__all__ = [
    "Adoption",
    "Advice",
    "Aggregate",
    "AlreadyExists",
    "ArrowExpression",
    "AtomicType",
    "AuditEntry",
    "BackedUp",
    "Backup",
    "BackupCutGone",
    "BackupProblem",
    "BatchCommitted",
    "Bounds",
    "Catalog",
    "Changes",
    "CheckViolated",
    "CheckedBackup",
    "Checksum",
    "ClockNotTrusted",
    "Column",
    "ColumnExists",
    "ColumnStats",
    "CommitConflict",
    "CommitUnknown",
    "Compacted",
    "ConflictError",
    "Constraint",
    "ConstraintExists",
    "Copied",
    "CopiedTable",
    "Default",
    "DeletedBackups",
    "Dependency",
    "DoneInPart",
    "DroppedEntry",
    "Engine",
    "ErasedTable",
    "ExpectedClustering",
    "Expired",
    "Exported",
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
    "Predicate",
    "Ranks",
    "Ref",
    "RefExists",
    "Reference",
    "RestoredTable",
    "RestoredWarehouse",
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
    "StorageError",
    "StreamBatch",
    "StreamStopped",
    "StructType",
    "Table",
    "TableAlteration",
    "TableChange",
    "TableExists",
    "TableRenamed",
    "Token",
    "Transaction",
    "Transform",
    "Type",
    "TypedValue",
    "Unsupported",
    "UnsupportedFormat",
    "Vacuumed",
    "ValuesGone",
    "VersionsBuried",
    "VersionsToBury",
    "ViewColumn",
    "ViewDefinition",
    "ViewExists",
    "WriteFenced",
    "col",
    "is_signed",
    "to_opentelemetry",
]

_LATER = {
    "lakelog.catalog.formats.iceberg": ("Exported",),
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
    "lakelog.catalog.merge": ("Merge",),
    "lakelog.log.checks.findings": (
        "Finding",
        "Findings",
        "Severity",
    ),
}
"""What is loaded when it is first asked for, by the module that has it: what the core does not need."""


if not TYPE_CHECKING:  # a type checker that sees it takes any name for one that is there

    def __getattr__(name: str) -> Any:
        """Return what is loaded only now: Python asks here for what this module does not have (PEP 562)."""
        for module, names in _LATER.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        if name in _FOREIGN_NAMES:
            # An AttributeError would lose the advice in `from lakelog.catalog import …`.
            raise ImportError(f"lakelog.catalog has no {name}: {_FOREIGN_NAMES[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
