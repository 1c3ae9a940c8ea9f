"""The changes of a picture: from an audit's entries to changes, their writers and their lanes.

Pure: entries come in, the newest first. It must not know the reading of a log, or the drawing of lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lakelog.catalog.core.schema import Schema
from lakelog.catalog.core.state import BRANCH, MAIN, OperationKind
from lakelog.catalog.looking.audit.audit import AuditEntry, time_of
from lakelog.catalog.looking.pictures.model import ChangePicture, LanePicture, WriterPicture
from lakelog.catalog.looking.pictures.words import ROOT, what_was_done
from lakelog.catalog.names import quoted_where_needed
from lakelog.log.secrets import masked, masked_urls

LOG_COLUMNS = 10
"""So many logs, with most changes, have their own column in the drawing of a namespace."""

Around = Callable[[AuditEntry], tuple[Schema | None, Schema | None]]
"""Returns the schemas before and after a change, if they are known."""


@dataclass(slots=True)
class ChangeTimeline:
    """Changes, the newest first, with their writers and lanes."""

    changes: list[ChangePicture] = field(default_factory=list)
    writers: list[WriterPicture] = field(default_factory=list)
    lanes: list[LanePicture] = field(default_factory=list)


def timeline_of(
    entries: Sequence[AuditEntry], log_of: Callable[[AuditEntry], int], around: Around, *, of_table: bool
) -> ChangeTimeline:
    """Return the changes of `entries`, of a table or of many logs."""
    timeline = ChangeTimeline()
    writers: dict[tuple[Any, ...], int] = {}
    for entry in entries:
        timeline.changes.append(_change(entry, log_of(entry), _writer(entry, writers), around))
    timeline.writers = _written(list(writers), timeline.changes)
    if of_table:
        _Branches(timeline, entries).draw()
    else:
        _draw_logs(timeline, entries)
    return timeline


def _change(entry: AuditEntry, log: int, writer: int | None, around: Around) -> ChangePicture:
    if entry.what != "commit":
        return ChangePicture(
            kind=entry.what,
            log=log,
            version=entry.version,
            first_version=entry.first_version,
            time_us=time_of(entry),
            text=masked(entry.note or entry.what),
        )
    operation = ", ".join(entry.operations) or "nothing"
    is_rebased = entry.base is not None and entry.base < entry.version - 1
    return ChangePicture(
        log=log,
        version=entry.version,
        time_us=time_of(entry),
        operation=operation,
        text=what_was_done(operation, entry.details, *around(entry)),
        writer=writer,
        base=entry.base if is_rebased else None,
        commit_id=entry.commit_id,
        transaction=entry.transaction,
        transaction_logs=entry.transaction_logs or 0,
        query=entry.query,
        statement=entry.statement,
        added_rows=_counted(entry, "added_rows"),
        added_files=_counted(entry, "added_files"),
        added_bytes=_counted(entry, "added_bytes"),
        removed_rows=_counted(entry, "removed_rows"),
        removed_files=_counted(entry, "removed_files"),
        removed_bytes=_counted(entry, "removed_bytes"),
        deleted_rows=_counted(entry, "deleted_rows"),
    )


def _counted(entry: AuditEntry, name: str) -> int:
    """Return a count; 0 if a faulty client wrote something else in its place."""
    counts = [details.get(name) for _, details in _parts(entry)]
    # Operations of one commit that have the same details share them.
    numbers = [number for number in counts if isinstance(number, int) and 0 < number < 1 << 63]
    return sum(numbers) if "changes" in entry.details else max(numbers, default=0)


def _writer(entry: AuditEntry, known: dict[tuple[Any, ...], int]) -> int | None:
    identity = (entry.user, entry.engine, entry.client, entry.application, entry.host)
    return known.setdefault(identity, len(known)) if any(identity) else None


def _written(known: Sequence[tuple[Any, ...]], changes: Iterable[ChangePicture]) -> list[WriterPicture]:
    """Return the writers with the sums of their changes."""
    changes_by_writer: list[list[ChangePicture]] = [[] for _ in known]
    for change in changes:
        if change.writer is not None:
            changes_by_writer[change.writer].append(change)
    return [_totalled(identity, own) for identity, own in zip(known, changes_by_writer, strict=True)]


def _totalled(who: tuple[Any, ...], changes: Sequence[ChangePicture]) -> WriterPicture:
    user, engine, client, application, host = who
    times = [change.time_us for change in changes if change.time_us is not None]
    return WriterPicture(
        user=user,
        engine=engine,
        client=client,
        application=application,
        host=host,
        changes=len(changes),
        added_rows=sum(change.added_rows for change in changes),
        added_bytes=sum(change.added_bytes for change in changes),
        first_us=min(times, default=None),
        last_us=max(times, default=None),
    )


def with_aborted(changes: Sequence[ChangePicture]) -> list[ChangePicture]:
    """Return the changes of a log, with a row for versions without a change. The audit of an intact log leaves out
    versions that transactions prepared and did not commit, mostly because of a conflict."""
    rows: list[ChangePicture] = []
    for at, change in enumerate(changes):
        newer = changes[at - 1] if at else None
        if newer is not None and newer.kind == change.kind == "commit" and newer.version > change.version + 1:
            first, last = change.version + 1, newer.version - 1
            rows.append(
                ChangePicture(
                    kind="aborted",
                    log=change.log,
                    version=last,
                    first_version=first if first < last else None,
                    text="part of a transaction that was aborted: it changed nothing",
                )
            )
        rows.append(change)
    return rows


# The lanes of a table: main, and each branch for as long as it is there


class _Branches:
    def __init__(self, timeline: ChangeTimeline, entries: Sequence[AuditEntry]) -> None:
        self._found = timeline
        self._entries = entries
        self._live: dict[str, int] = {MAIN: 0}
        timeline.lanes = [LanePicture(name=MAIN, kind="main", column=0)]

    def draw(self) -> None:
        """Put each change on the lane whose contents it changed, from the oldest change to the newest."""
        changes = self._found.changes
        for place in range(len(changes) - 1, -1, -1):
            entry = self._entries[place]
            if entry.what != "commit":
                continue
            lane, joins = 0, None
            for operation, details in _parts(entry):
                if operation == f"create {BRANCH}":
                    self._begin(details, entry.version)
                    lane = self._live[str(details.get("name"))]
                elif operation == f"drop {BRANCH}":
                    lane = self._of(str(details.get("name")))
                    self._end(str(details.get("name")), entry.version)
                elif operation == OperationKind.FAST_FORWARD.value and "to" in details:
                    lane, joins = self._of(str(details.get("branch"))), self._of(str(details["to"]))
                elif details.get("branch"):
                    lane = self._of(str(details["branch"]))
            if lane or joins is not None:
                changes[place] = msgspec.structs.replace(changes[place], lane=lane, joins=joins)
        self._number()

    def _of(self, name: str) -> int:
        """Return the lane of a branch. A branch that is older than the picture begins before it."""
        if name not in self._live:
            self._live[name] = len(self._found.lanes)
            self._found.lanes.append(LanePicture(name=name, kind="branch", column=0))
        return self._live[name]

    def _begin(self, details: Mapping[str, Any], version: int) -> None:
        name, of_version = str(details.get("name")), details.get("version")
        if name in self._live:
            self._end(name, version)
        self._live[name] = len(self._found.lanes)
        lane = LanePicture(
            name=name,
            kind="branch",
            column=0,
            of=0,
            of_version=of_version if isinstance(of_version, int) else None,
            begun=version,
        )
        self._found.lanes.append(lane)

    def _end(self, name: str, version: int) -> None:
        at = self._live.pop(name, None)
        if at:
            self._found.lanes[at] = msgspec.structs.replace(self._found.lanes[at], ended=version)

    def _number(self) -> None:
        """Give each lane the first column that no overlapping lane uses."""
        ends: list[int | None] = [None]  # of the last lane in each column: None, it never ends
        for at, lane in enumerate(self._found.lanes):
            if at:
                first_version = lane.begun or 0
                free = (place for place, end in enumerate(ends) if end is not None and end < first_version)
                column = next(free, len(ends))
                ends[column : column + 1] = [lane.ended]
                self._found.lanes[at] = msgspec.structs.replace(lane, column=column)


def _parts(entry: AuditEntry) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each operation of a change with its details."""
    parts = entry.details.get("changes")
    if isinstance(parts, list):
        return [(str(part.get("operation")), part) for part in parts if isinstance(part, Mapping)]
    return [(operation, entry.details) for operation in entry.operations]


# The lanes of a namespace: its logs


def _draw_logs(timeline: ChangeTimeline, entries: Sequence[AuditEntry]) -> None:
    counts = Counter(change.log for change in timeline.changes if change.kind == "commit")
    busiest_logs = [log for log, _ in counts.most_common(LOG_COLUMNS)]
    entry_of_log = {change.log: entry for change, entry in zip(timeline.changes, entries, strict=True)}
    timeline.lanes = [
        LanePicture(name=_name(entry_of_log[log]), kind="log", column=column)
        for column, log in enumerate(busiest_logs)
    ]
    if len(counts) > len(busiest_logs):
        timeline.lanes.append(LanePicture(name="all others", kind="others", column=len(busiest_logs)))
    places = {log: place for place, log in enumerate(busiest_logs)}
    last_lane = max(0, len(timeline.lanes) - 1)
    timeline.changes = [
        msgspec.structs.replace(change, lane=places.get(change.log, last_lane)) for change in timeline.changes
    ]


def _name(entry: AuditEntry) -> str:
    return masked_urls(entry.location) if entry.name is None else quoted_where_needed(entry.name) or ROOT
