"""The place at which a table or namespace is linked, from its own log. Pure.

A name leads to it by an entry in a namespace's log. Every commit that makes, moves or restores such an entry
is also in its own log, in the same transaction. So a writer sees its name from its log alone.
"""

from __future__ import annotations

import msgspec

from lakelog.log.grammar import Folder, Name


class NameLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The location of a namespace's log in the warehouse, and the name there."""

    namespace: Folder
    name: Name
