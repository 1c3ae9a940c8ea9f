"""Patterns of SHOW TABLES … LIKE, for names before Spark sees them.

Spark would make an object of each name, of a million too. Spark applies the pattern again to the names that
it gets. So names that do not match may stay here, but no matching name may be left out. A pattern is a
regular expression of Java with `*` for any text, or several with `|` between them. Case does not matter.
Patterns with more than letters, digits and a few signs are left to Spark alone.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = re.compile(r"[A-Za-z0-9_\- *|.%]*")  # `%` is no wildcard to Spark here


def may_match(names: pa.StringArray, like: str | None) -> pa.StringArray:
    """Return the names that may match the pattern. All of them without a pattern."""
    if like is None or not _PLAIN.fullmatch(like):
        return names
    inner = like.strip(" ").replace("*", ".*")
    return names.filter(pc.match_substring_regex(names, f"(?is)^(?:{inner})$"))
