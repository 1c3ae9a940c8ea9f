"""Names of files that are copies of a file elsewhere: each has the hash of its original's path. Pure."""

from __future__ import annotations

import hashlib
import re

_COPY = re.compile(r"-copy-([0-9a-f]{32})\.parquet$")


def path_hash(path: str) -> str:
    """Return the hash that stands for the path of an original in the names of its copies."""
    return hashlib.sha256(path.encode()).hexdigest()[:32]


def copy_suffix(path: str) -> str:
    """Return the last part of the name of a copy of the file at `path` (see `file_path`)."""
    return f"copy-{path_hash(path)}"


def hash_in(path: str) -> str | None:
    """Return the hash of the original's path in the name of a copy, None for another file."""
    match = _COPY.search(path)
    return None if match is None else match[1]


def origin_of(path: str) -> str:
    """Return a text that all copies of a source file share; the path of a file that is no copy."""
    return hash_in(path) or path
