"""All declared operations, for the page of reference and for tests.

No command and no call loads this module.
"""

from __future__ import annotations

from lakelog.catalog.operations import copies, formats, maintaining
from lakelog.catalog.operations.declare import DeclaredOperation

EVERY = tuple(
    operation
    for module in (maintaining, copies, formats)
    for operation in vars(module).values()
    if isinstance(operation, DeclaredOperation)
)
