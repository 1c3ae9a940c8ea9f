"""Rows to and from data files: reading, writing, conforming, ordering, copying, and files of other writers.

Rule: a file is opened only where its size and footer are those that the log names; values are never changed silently.
It must not commit anything: it returns entries of files, and the caller decides whether they are committed.
"""

from lakelog.catalog.core.parquet.add_files import (
    NOT_THERE,
    FoundFile,
    converted_stats,
    data_files,
    literal_of,
)
from lakelog.catalog.core.parquet.copying import (
    copied_files,
    live_rows,
)
from lakelog.catalog.core.parquet.curve_cuts import (
    FILE_LEAST,
    FILE_MOST,
)
from lakelog.catalog.core.parquet.curve_order import (
    along_curve,
)
from lakelog.catalog.core.parquet.discovery import (
    found_files,
    is_hidden,
    partition_of,
    read_footer,
)
from lakelog.catalog.core.parquet.given_rows import (
    Ingestible,
    stream_of,
)
from lakelog.catalog.core.parquet.ingest import (
    RowChecks,
    few_rows,
    rows_written_in,
    written_files,
    written_partitions,
    written_rows,
)
from lakelog.catalog.core.parquet.leftovers import (
    kept_by_commit,
)
from lakelog.catalog.core.parquet.numbering import (
    Numbering,
)
from lakelog.catalog.core.parquet.opening import (
    MAGIC,
    footer_crc_of,
    open_parquet,
)
from lakelog.catalog.core.parquet.plain_arrow import (
    PlainStream,
    first_line,
    plain_type,
    recast,
    unsliced,
    unsliced_batch,
    with_parts,
)
from lakelog.catalog.core.parquet.proofs import (
    check_rows,
    new_checks,
    required,
)
from lakelog.catalog.core.parquet.read_ahead import (
    in_order,
)
from lakelog.catalog.core.parquet.reading import (
    ID_FIELDS,
    OpenUrl,
    PlacedRows,
    read_files,
    read_placed_rows,
    read_positions,
)
from lakelog.catalog.core.parquet.row_bytes import (
    decoded_all,
    decoded_rows,
    encoded_rows,
)
from lakelog.catalog.core.parquet.row_order import (
    transformed,
)
from lakelog.catalog.core.parquet.temporary import (
    left_folders,
    temporary_folder,
)
from lakelog.catalog.core.parquet.writing import (
    OpenFile,
    codec_of,
)

__all__ = [
    "FILE_LEAST",
    "FILE_MOST",
    "FoundFile",
    "ID_FIELDS",
    "Ingestible",
    "MAGIC",
    "NOT_THERE",
    "Numbering",
    "OpenFile",
    "OpenUrl",
    "PlacedRows",
    "PlainStream",
    "RowChecks",
    "check_rows",
    "codec_of",
    "converted_stats",
    "along_curve",
    "copied_files",
    "live_rows",
    "transformed",
    "decoded_all",
    "decoded_rows",
    "encoded_rows",
    "data_files",
    "few_rows",
    "first_line",
    "footer_crc_of",
    "found_files",
    "in_order",
    "is_hidden",
    "kept_by_commit",
    "left_folders",
    "literal_of",
    "new_checks",
    "open_parquet",
    "partition_of",
    "plain_type",
    "read_files",
    "read_footer",
    "read_placed_rows",
    "read_positions",
    "recast",
    "required",
    "rows_written_in",
    "stream_of",
    "temporary_folder",
    "unsliced",
    "unsliced_batch",
    "with_parts",
    "written_files",
    "written_partitions",
    "written_rows",
]
