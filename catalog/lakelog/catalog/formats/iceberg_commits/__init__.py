"""Commits of Iceberg's clients, translated to changes of lakelog's tables.

Rule: a client's commit becomes a single commit of the log. Its requirements were checked on the version before. A
request is refused by name if lakelog would not give it back as it came. The client's manifests are read once. This
package must not know HTTP, or which names lead to a table.
"""

from lakelog.catalog.formats.iceberg_commits.columns import schema_of_client
from lakelog.catalog.formats.iceberg_commits.commits import (
    ClientCommit,
    OtherRequestCommitted,
    PlannedCommit,
    VersionMoved,
    apply_planned,
    check_same_request,
    fact_of_creation,
    fill_created,
    planned,
    was_committed,
)
from lakelog.catalog.formats.iceberg_commits.creation import creation_updates, new_table, staged_document
from lakelog.catalog.formats.iceberg_commits.requirements import is_create
from lakelog.catalog.formats.iceberg_commits.updates import as_protocol

__all__ = [
    "ClientCommit",
    "OtherRequestCommitted",
    "PlannedCommit",
    "VersionMoved",
    "apply_planned",
    "as_protocol",
    "check_same_request",
    "creation_updates",
    "fact_of_creation",
    "fill_created",
    "is_create",
    "new_table",
    "planned",
    "schema_of_client",
    "staged_document",
    "was_committed",
]
