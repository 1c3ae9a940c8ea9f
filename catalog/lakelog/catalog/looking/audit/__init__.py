"""Audits with verified hash chains (who changed which data, and how), and the metadata tables.

Rule: read only. All reports are checked against the hashes in the logs. It must not resolve names in ways
that write, and it changes nothing.
"""

from lakelog.catalog.looking.audit.arrow_audit import AUDIT_SCHEMA, audit_table
from lakelog.catalog.looking.audit.audit import AuditEntry, audit_entries
from lakelog.catalog.looking.audit.authors import author_of_definition, author_of_text, commits_of_definitions
from lakelog.catalog.looking.audit.metadata_tables import METADATA_TABLES, read_metadata

__all__ = [
    "AUDIT_SCHEMA",
    "AuditEntry",
    "METADATA_TABLES",
    "audit_entries",
    "audit_table",
    "author_of_definition",
    "author_of_text",
    "commits_of_definitions",
    "read_metadata",
]
