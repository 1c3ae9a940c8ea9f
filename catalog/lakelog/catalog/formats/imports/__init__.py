"""Tables of other formats become lakelog's, without copying a byte: their files stay where they are, and their own.

Rule: a source is read and never written, and a file of it never deleted. What is not certain of a file is refused or
left out. It must not know who asks for an import.
"""

from lakelog.catalog.formats.imports.changes import IMPORTED
from lakelog.catalog.formats.imports.claims import (
    CLAIM,
    Claim,
    check_files_unclaimed,
    check_unclaimed,
    claim_of,
    drop_claim,
    is_claim,
    put_claim,
    upwards,
)
from lakelog.catalog.formats.imports.folder_table import FolderTable, KnownFolder
from lakelog.catalog.formats.imports.importing import (
    Imported,
    import_table,
)

__all__ = [
    "CLAIM",
    "Claim",
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
