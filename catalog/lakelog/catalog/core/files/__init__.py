"""The set of data files of a table: their entries, statistics, deleted rows and row ids, and its stored form.

Rule: pure. A file's entry is never changed in place; a set of files is a value, cheap to change.

It must not know how files are read or written, which files a query needs, or that there are commits.
"""

from lakelog.catalog.core.files.column_statistics import ColumnEstimates, TableEstimates
from lakelog.catalog.core.files.comparison import Hashes, ManifestComparison, are_among, hashes_of
from lakelog.catalog.core.files.copies import copy_suffix, hash_in, origin_of, path_hash
from lakelog.catalog.core.files.data_file import (
    BASE_SCHEMA,
    CONSTANTS,
    CRC,
    CURVE,
    CURVE_HIGH,
    CURVE_LOW,
    DELETED,
    DELETES,
    FIRST_ROW,
    FOOTER,
    NAMES,
    VERSION,
    ColumnStats,
    DataFile,
    check_files,
    constants_from_json,
    constants_to_json,
    decode_files,
    decode_removed,
    file_path,
    files_from_arrow,
    files_to_arrow,
    is_elsewhere,
    is_of_iceberg_client,
    names_from_json,
    physical_rows,
    removed_file,
    started_at,
)
from lakelog.catalog.core.files.deletion_vectors import (
    POSITION_LIMIT,
    DeletedPositions,
    DeletionVector,
    deletes_from_json,
    deletes_to_json,
    inline_bytes,
    inline_deletes,
)
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.file_tables import converted, empty, joined, live_twice, without
from lakelog.catalog.core.files.leaves import Fetch
from lakelog.catalog.core.files.manifest_bounds import EXACT_BELOW_BYTES
from lakelog.catalog.core.files.manifests import Entries, contents
from lakelog.catalog.core.files.puffin import (
    AROUND_BYTES,
    HEAD_BYTES,
    VECTOR_MAGIC,
    PuffinVector,
    bitmap_in,
    puffin_of_vectors,
)
from lakelog.catalog.core.files.row_ids import given_twice, with_ids, with_version
from lakelog.catalog.core.files.statistics import (
    MeasuredColumn,
    footer_statistics,
    lower_text,
    measured_columns,
    upper_text,
)
from lakelog.catalog.core.files.stored_sets import StoredFileSet

__all__ = [
    "AROUND_BYTES",
    "BASE_SCHEMA",
    "CONSTANTS",
    "CRC",
    "CURVE",
    "CURVE_HIGH",
    "CURVE_LOW",
    "ColumnEstimates",
    "ColumnStats",
    "ManifestComparison",
    "DELETED",
    "DELETES",
    "DataFile",
    "EXACT_BELOW_BYTES",
    "DeletionVector",
    "Entries",
    "FIRST_ROW",
    "FOOTER",
    "Fetch",
    "FileSet",
    "HEAD_BYTES",
    "Hashes",
    "MeasuredColumn",
    "NAMES",
    "POSITION_LIMIT",
    "DeletedPositions",
    "StoredFileSet",
    "TableEstimates",
    "VECTOR_MAGIC",
    "VERSION",
    "PuffinVector",
    "are_among",
    "bitmap_in",
    "check_files",
    "constants_from_json",
    "constants_to_json",
    "contents",
    "converted",
    "copy_suffix",
    "decode_files",
    "decode_removed",
    "deletes_from_json",
    "deletes_to_json",
    "empty",
    "file_path",
    "files_from_arrow",
    "files_to_arrow",
    "footer_statistics",
    "given_twice",
    "hash_in",
    "hashes_of",
    "inline_bytes",
    "inline_deletes",
    "is_elsewhere",
    "is_of_iceberg_client",
    "joined",
    "live_twice",
    "lower_text",
    "measured_columns",
    "names_from_json",
    "origin_of",
    "path_hash",
    "physical_rows",
    "puffin_of_vectors",
    "removed_file",
    "started_at",
    "upper_text",
    "with_version",
    "without",
    "with_ids",
]
