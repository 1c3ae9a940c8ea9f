"""Durable, ordered logs of opaque commits on object storage. See log/README.md for the format."""

from lakelog.log.background import BackgroundThread, wait_for_background
from lakelog.log.changes import combined_ids, each_change
from lakelog.log.costs import NotedCommit, noting_commits
from lakelog.log.decisions import OpenUrl, WarehouseDecisions
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
from lakelog.log.format import (
    COMMIT_SIZE_MAX,
    Commit,
    Decision,
    Intent,
    Json,
    SettledIntent,
    Sidecar,
    WriteRef,
)
from lakelog.log.ids import ID_LENGTH, new_id
from lakelog.log.log import Log, refresh_many
from lakelog.log.options import LogOptions
from lakelog.log.proposals.pending import ByData
from lakelog.log.stores import (
    CountingStore,
    LocalStore,
    MemoryStore,
    ObjectStore,
    canonical_url,
    open_store,
)
from lakelog.log.together import LogPart, commit_together
from lakelog.log.view import (
    BlobRange,
    CarriedChange,
    CommittedChange,
    Draft,
    FeatureNames,
    GatheredChanges,
    LogView,
    NoFeatures,
    StateDump,
    StateProjection,
)

__all__ = [
    "COMMIT_SIZE_MAX",
    "ID_LENGTH",
    "AlreadyExists",
    "BackgroundThread",
    "BlobRange",
    "ByData",
    "CarriedChange",
    "Commit",
    "CommitUnknown",
    "CommittedChange",
    "ConflictError",
    "CountingStore",
    "Decision",
    "WarehouseDecisions",
    "Draft",
    "FeatureNames",
    "StateDump",
    "GatheredChanges",
    "FormatError",
    "NotedCommit",
    "noting_commits",
    "Intent",
    "InvalidInput",
    "Json",
    "LakelogError",
    "LocalStore",
    "Log",
    "LogOptions",
    "LogSealed",
    "MemoryStore",
    "NoFeatures",
    "NotFound",
    "ObjectStore",
    "OpenUrl",
    "LogPart",
    "PermissionDenied",
    "StateProjection",
    "SettledIntent",
    "Sidecar",
    "StorageError",
    "Unsupported",
    "UnsupportedFormat",
    "LogView",
    "WriteFenced",
    "WriteRef",
    "canonical_url",
    "combined_ids",
    "commit_together",
    "each_change",
    "new_id",
    "open_store",
    "refresh_many",
    "wait_for_background",
]
