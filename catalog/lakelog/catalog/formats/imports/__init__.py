"""Tables of other formats become lakelog's without copying a byte: their files stay in place.

Rule: an import reads a source, but never writes it, and never deletes its files. Facts about a file that are
not certain are refused or left out. This package must not know who requests an import.
"""

from lakelog.catalog.formats.imports.changes import IMPORTED
from lakelog.catalog.formats.imports.claims import (
    CLAIM,
    FolderClaim,
    check_files_unclaimed,
    check_unclaimed,
    claim_of,
    drop_claim,
    is_claim,
    put_claim,
    upwards,
)
from lakelog.catalog.formats.imports.folder_table import FolderTable, KnownFolder
from lakelog.catalog.formats.imports.importing import Imported, import_table

__all__ = [
    "CLAIM",
    "FolderClaim",
    "FolderTable",
    "IMPORTED",
    "Imported",
    "KnownFolder",
    "check_files_unclaimed",
    "check_unclaimed",
    "claim_of",
    "drop_claim",
    "import_table",
    "is_claim",
    "put_claim",
    "upwards",
]
