"""Patterns of SHOW TABLES … LIKE, for names before Spark sees them: of a million, it would make objects of each.

Spark applies the pattern itself to what it is given, so that here names may stay that do not match, and none may be
left out that does. A pattern is one of Java's regular expressions with `*` for any text, several with `|`
between them, whatever the case. What is more than letters, digits and a few signs is left to Spark alone.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = re.compile(r"[A-Za-z0-9_\- *|.%]*")  # `%` is no wildcard to Spark here


def may_match(names: pa.StringArray, like: str | None) -> pa.StringArray:
    """Return the names that may match the pattern; all of them without one."""
    if like is None or not _PLAIN.fullmatch(like):
        return names
    inner = like.strip(" ").replace("*", ".*")
    return names.filter(pc.match_substring_regex(names, f"(?is)^(?:{inner})$"))
