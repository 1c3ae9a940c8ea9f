"""How long what was given up is kept. Policies and no more: nothing is safe, or unsafe, because of its age."""

from __future__ import annotations

DROPPED_RETENTION_DAYS = 7
"""A dropped table or namespace can be restored for so many days after its drop; after them, vacuum may purge it."""

DAY_US = 86_400_000_000


def kept_until_us(dropped_us: int, days: float = DROPPED_RETENTION_DAYS) -> int:
    """Return the time from which on what was dropped at `dropped_us` may be purged, in microseconds since 1970."""
    return dropped_us + round(days * DAY_US)
