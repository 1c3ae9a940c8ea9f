"""Iceberg's metadata of a table, stored beside lakelog's own. Readers of Iceberg read it.

Rule: an export is derived from a version of the log, the export that it continues, and the table's place.
Lakelog reads an export only to continue it. Only `exporter` reads and writes a store; all other modules are
pure. This package must not know names, sessions or who requests an export.
"""

from lakelog.catalog.formats.iceberg.avro_files import read_all
from lakelog.catalog.formats.iceberg.exporter import (
    Exported,
    export_anew,
    export_with_metadata,
    newest_metadata,
)
from lakelog.catalog.formats.iceberg.following import ExportFollower
from lakelog.catalog.formats.iceberg.leftovers import objects_of, unneeded
from lakelog.catalog.formats.iceberg.metadata_json import (
    Document,
    decoded_document,
    encode,
    exported_version,
    in_version_2,
)
from lakelog.catalog.formats.iceberg.snapshots import line_number_of, may_be_of_a_version
from lakelog.catalog.formats.iceberg.views import DIALECT as VIEW_DIALECT
from lakelog.catalog.formats.iceberg.views import ExportedView, check_plain, view_document

__all__ = [
    "Document",
    "Exported",
    "ExportedView",
    "ExportFollower",
    "VIEW_DIALECT",
    "check_plain",
    "decoded_document",
    "encode",
    "in_version_2",
    "export_anew",
    "export_with_metadata",
    "exported_version",
    "line_number_of",
    "may_be_of_a_version",
    "newest_metadata",
    "objects_of",
    "read_all",
    "unneeded",
    "view_document",
]
