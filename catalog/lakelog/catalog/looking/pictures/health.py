"""The damage that a picture names, and how a table is: the advice is upkeep's own. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from lakelog.catalog.keeping.upkeep import Advice, Done, command_name
from lakelog.catalog.looking.pictures.model import Change, Log
from lakelog.catalog.names import Identifier


def done_by(changes: Sequence[Change]) -> list[Done]:
    """Return what counts of the commits of a picture for a table's health."""
    return [
        Done(
            version=change.version,
            time_us=change.time_us or 0,
            operations=frozenset(change.operation.split(", ")),
            passed=0 if change.base is None else max(0, change.version - 1 - change.base),
            removed_files=change.removed_files,
            removed_bytes=change.removed_bytes,
        )
        for change in changes
        if change.kind == "commit"
    ]


def damage_of(changes: Iterable[Change], path: Identifier | None, location: str) -> list[Advice]:
    """Return the damage that was met where the log of a table or namespace, or those below it, were read."""
    met = [change for change in changes if change.kind == "damage"]
    if not met:
        return []
    if path is None:
        command = f"lakelog fsck {command_name(None, location)}"
    else:
        command = (
            f'lakelog fsck "$LAKELOG_WAREHOUSE" {command_name(path, location)}' if path else "lakelog fsck"
        )
    return [Advice(level="damage", what=f"{len(met):,} × damage: {met[0].text}", command=command)]


def damaged_logs(logs: Sequence[Log]) -> list[Advice]:
    """Return the logs that cannot be read."""
    return [
        Advice(
            level="damage",
            what=f"The {log.kind} {log.name} cannot be read: {log.problem}",
            command=f"lakelog fsck {shlex.quote(log.location)}" if log.location else "lakelog fsck",
        )
        for log in logs
        if log.problem is not None
    ]
