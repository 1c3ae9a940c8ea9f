"""Where a table or namespace is linked, as its own log has it. Pure.

A name leads to it by an entry in a namespace's log. Every commit that makes, moves or restores such an entry is in its
own log too, in the same transaction: so a writer sees from its log alone which name it has.
"""

from __future__ import annotations

import msgspec

from lakelog.log.grammar import Folder, Name


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The location of a namespace's log, which is in the warehouse, and the name there."""

    namespace: Folder
    name: Name
