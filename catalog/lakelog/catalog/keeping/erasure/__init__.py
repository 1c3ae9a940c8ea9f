"""Erasure: rows that match a condition are gone from everything that a table has or had, and a receipt says so.

Rule: it composes what exists. Files are rewritten as a delete does, versions expire, a fence and a vacuum delete what
nothing reaches. What it adds is the order, the check of all that is left, and the receipt. A call that dies at any
write has lost nothing, and the next one ends the work. It must not know engines: who rewrites is asked for.
"""

from lakelog.catalog.keeping.erasure.forgetting import forget
from lakelog.catalog.keeping.erasure.model import ErasedTable, Forgotten, Lost
from lakelog.catalog.keeping.erasure.receipt import is_signed, signer_of
from lakelog.catalog.keeping.erasure.work import ErasureWork, as_planned, as_written, stored_names

__all__ = [
    "ErasedTable",
    "Forgotten",
    "Lost",
    "ErasureWork",
    "as_planned",
    "as_written",
    "forget",
    "is_signed",
    "signer_of",
    "stored_names",
]
