"""The two ways in which rows are changed, as tests ask for them."""

from __future__ import annotations

MODES = ("merge-on-read", "copy-on-write")


def in_mode(mode: str) -> str:
    """Return the TBLPROPERTIES that make all statements on a table go that way."""
    settings = ", ".join(f"'lakelog.write.{name}.mode' = '{mode}'" for name in ("delete", "update", "merge"))
    return f"TBLPROPERTIES ({settings})"
