"""Commands and statements for people to paste, and sizes for people to read. Pure."""

from __future__ import annotations

import shlex

from lakelog.catalog.names import Identifier, quoted, quoted_where_needed
from lakelog.log.secrets import masked_urls

_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")


def size_text(size_bytes: int) -> str:
    """Return a size for people: 999 B, 1.2 MB."""
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(_SIZES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_SIZES[unit]}" if unit == 0 or value >= 99.95 else f"{value:.1f} {_SIZES[unit]}"


def command_name(path: Identifier | None, location: str) -> str:
    """Return a table's or namespace's name for a command line."""
    return shlex.quote(masked_urls(location) if path is None else quoted_where_needed(path))


def call(procedure: str, path: Identifier | None, more: str = "") -> str | None:
    """Return a statement that calls a procedure of a table. None for a table without a name."""
    if path is None:
        return None
    table = quoted(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"CALL lake.system.{procedure}(table => '{table}'{more})"
