"""How long dropped objects are kept. These are policies only: no object is safe to delete because of its age."""

from __future__ import annotations

DROPPED_RETENTION_DAYS = 7
"""A dropped table or namespace can be restored for this long after its drop. Then vacuum may purge it."""

DAY_US = 86_400_000_000


def kept_until_us(dropped_us: int, days: float = DROPPED_RETENTION_DAYS) -> int:
    """Return the time from which on an object dropped at `dropped_us` may be purged, in microseconds since
    1970."""
    return dropped_us + round(days * DAY_US)
