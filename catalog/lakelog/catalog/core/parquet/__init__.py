"""Rows to and from data files: reading, writing, conforming, ordering, copying, and files of other writers.

Rule: a file is opened only if its size and footer match the log; values are never changed silently.

It must not commit anything: it returns entries of files, and the caller decides whether they are committed.
"""

from lakelog.catalog.core.parquet.add_files import (
    NOT_THERE,
    FoundFile,
    converted_stats,
    data_files,
    literal_of,
)
from lakelog.catalog.core.parquet.copying import copied_files, live_rows
from lakelog.catalog.core.parquet.curve_cuts import FILE_LEAST, FILE_MOST
from lakelog.catalog.core.parquet.curve_order import along_curve
from lakelog.catalog.core.parquet.discovery import found_files, is_hidden, partition_of, read_footer
from lakelog.catalog.core.parquet.given_rows import Ingestible
from lakelog.catalog.core.parquet.ingest import written_files, written_partitions, written_rows
from lakelog.catalog.core.parquet.leftovers import kept_by_commit
from lakelog.catalog.core.parquet.opening import MAGIC, open_parquet
from lakelog.catalog.core.parquet.proofs import check_rows, new_checks, required
from lakelog.catalog.core.parquet.read_ahead import in_order
from lakelog.catalog.core.parquet.reading import (
    ID_FIELDS,
    read_files,
    read_placed_rows,
    read_positions,
    with_row_ids,
)
from lakelog.catalog.core.parquet.row_bytes import decoded_rows
from lakelog.catalog.core.parquet.row_order import transformed
from lakelog.catalog.core.parquet.temporary import left_folders

__all__ = [
    "with_row_ids",
    "FILE_LEAST",
    "FILE_MOST",
    "FoundFile",
    "ID_FIELDS",
    "Ingestible",
    "MAGIC",
    "NOT_THERE",
    "along_curve",
    "converted_stats",
    "copied_files",
    "data_files",
    "decoded_rows",
    "found_files",
    "in_order",
    "is_hidden",
    "kept_by_commit",
    "left_folders",
    "literal_of",
    "live_rows",
    "new_checks",
    "open_parquet",
    "partition_of",
    "read_files",
    "read_footer",
    "read_placed_rows",
    "read_positions",
    "transformed",
    "written_files",
    "written_partitions",
    "written_rows",
    "check_rows",
    "required",
]
