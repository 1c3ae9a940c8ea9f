"""Clones: tables that begin with the files of another table, at their place, and have a log of their own from there on.

Rule: a file is deleted by the table that owns it alone, and not before each clone that needs it has said, in the
clone's own log, that it does not. The promise of the owner comes before any name leads to the clone. It must not know
what is deleted, or when.
"""

from lakelog.catalog.keeping.clones.cloning import (
    clone_table,
    first_commit,
    stage_like,
)
from lakelog.catalog.keeping.clones.materializing import (
    CopyFiles,
    Materialized,
    materialize,
)
from lakelog.catalog.keeping.clones.namespaces import (
    clone_namespace,
)

__all__ = [
    "CopyFiles",
    "Materialized",
    "clone_namespace",
    "clone_table",
    "first_commit",
    "materialize",
    "stage_like",
]
