"""Clones: tables that begin with the files of another table, which stay in place. Each has a log of its own.

Rule: only the table that owns a file deletes it. It does so after each clone that needs the file has
recorded, in the clone's own log, that it does not any more. The owner's promise comes before any name leads
to the clone. This package must not know what is deleted, or when.
"""

from lakelog.catalog.keeping.clones.cloning import clone_table
from lakelog.catalog.keeping.clones.materializing import CopyFiles, Materialized, materialize
from lakelog.catalog.keeping.clones.namespaces import clone_namespace

__all__ = [
    "CopyFiles",
    "Materialized",
    "clone_namespace",
    "clone_table",
    "materialize",
]
