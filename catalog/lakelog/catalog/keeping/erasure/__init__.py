"""Erasure: matching rows are removed from every part and version of a table, and a receipt confirms it.

Rule: it composes existing operations. Files are rewritten as a delete does, and versions expire. A fence and
a vacuum delete objects that nothing reaches. The erasure adds the order, the check of all remaining objects,
and the receipt. A call that dies at any write has lost nothing, and the next call completes the work. This
package must not know engines: the caller provides the code that rewrites.
"""

from lakelog.catalog.keeping.erasure.forgetting import forget
from lakelog.catalog.keeping.erasure.model import ErasedTable, Forgotten, Lost
from lakelog.catalog.keeping.erasure.receipt import is_signed, signer_of
from lakelog.catalog.keeping.erasure.work import ErasureWork, as_planned, as_written, stored_names

__all__ = [
    "ErasedTable",
    "ErasureWork",
    "Forgotten",
    "Lost",
    "as_planned",
    "as_written",
    "forget",
    "is_signed",
    "signer_of",
    "stored_names",
]
