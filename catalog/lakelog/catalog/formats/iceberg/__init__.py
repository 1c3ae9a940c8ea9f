"""Iceberg's metadata of a table, beside lakelog's own: what a reader of Iceberg finds of it.

Rule: an export is derived. It is a function of a version of the log, of the export that it continues and of the table's
place, and lakelog reads none of it but to go on from there. Only `exporter` reads and writes a store; all else is pure.
It must not know names, sessions or who asks for an export.
"""

from lakelog.catalog.formats.iceberg.avro_files import (
    DATA,
    DELETED,
    avro_name,
    partition_names,
    read_all,
)
from lakelog.catalog.formats.iceberg.exporter import (
    Exported,
    export_anew,
    export_with_metadata,
    newest_metadata,
)
from lakelog.catalog.formats.iceberg.following import (
    Following,
)
from lakelog.catalog.formats.iceberg.leftovers import (
    objects_of,
    unneeded,
)
from lakelog.catalog.formats.iceberg.metadata_json import (
    exported_version,
)
from lakelog.catalog.formats.iceberg.values import (
    from_partition,
)
from lakelog.catalog.formats.iceberg.views import (
    ExportedView,
    view_document,
)

__all__ = [
    "DATA",
    "DELETED",
    "Exported",
    "ExportedView",
    "Following",
    "avro_name",
    "export_anew",
    "export_with_metadata",
    "exported_version",
    "from_partition",
    "newest_metadata",
    "objects_of",
    "partition_names",
    "read_all",
    "unneeded",
    "view_document",
]
