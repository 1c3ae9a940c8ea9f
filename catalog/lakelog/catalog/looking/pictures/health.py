"""The damage that a picture names. Advice on a table's health is upkeep's own. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from lakelog.catalog.keeping.upkeep import Advice, CommitFacts, command_name
from lakelog.catalog.looking.pictures.model import ChangePicture, LogPicture
from lakelog.catalog.names import Identifier


def done_by(changes: Sequence[ChangePicture]) -> list[CommitFacts]:
    """Return the facts about a picture's commits that a table's health depends on."""
    return [
        CommitFacts(
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


def damage_of(changes: Iterable[ChangePicture], path: Identifier | None, location: str) -> list[Advice]:
    """Return the damage that reading met, in the log of a table or namespace or in the logs below it."""
    damage = [change for change in changes if change.kind == "damage"]
    if not damage:
        return []
    if path is None:
        command = f"lakelog fsck {command_name(None, location)}"
    else:
        command = (
            f'lakelog fsck "$LAKELOG_WAREHOUSE" {command_name(path, location)}' if path else "lakelog fsck"
        )
    return [Advice(level="damage", what=f"{len(damage):,} × damage: {damage[0].text}", command=command)]


def damaged_logs(logs: Sequence[LogPicture]) -> list[Advice]:
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
