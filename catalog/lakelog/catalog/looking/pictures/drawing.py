"""Making a picture from a table's log and files, or from all logs of a namespace.

It only reads, and tolerates damage: the picture names it, and still has the rest. It reads the newest changes, as many
as the caller wants. It costs their GETs, the load of each table, and the manifests if it is of a single table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog.core.ddl import DroppedEntry, list_dropped
from lakelog.catalog.core.logs import (
    LogScope,
    LogTarget,
    NameTree,
    Progress,
    TableHead,
    chosen_scope,
    naming,
    no_such_table,
)
from lakelog.catalog.core.schema import TARGET_FILE_SIZE, Metadata, Schema
from lakelog.catalog.core.state import MAIN, NAMESPACE, TABLE, TableState
from lakelog.catalog.keeping.upkeep import Advice, advice_for, command_name, files_of, size_text, subject_of
from lakelog.catalog.looking.audit.audit import AuditEntry, audit_entries, time_of
from lakelog.catalog.looking.pictures.definitions import (
    changes_definition,
    definitions_of,
    metadata_at,
)
from lakelog.catalog.looking.pictures.health import damage_of, damaged_logs, done_by
from lakelog.catalog.looking.pictures.layout import layout_of
from lakelog.catalog.looking.pictures.model import (
    FORMAT,
    ChangePicture,
    DroppedThing,
    LogPicture,
    Picture,
    RefPicture,
)
from lakelog.catalog.looking.pictures.timeline import Around, ChangeTimeline, timeline_of, with_aborted
from lakelog.catalog.looking.pictures.words import ROOT
from lakelog.catalog.names import Identifier, quoted_where_needed
from lakelog.catalog.times import time_us
from lakelog.log.errors import FormatError, LakelogError
from lakelog.log.secrets import masked, masked_urls

_NOTED_MAX = 20
_NOTED_EVERY = 64
_FRAGMENTED_FILES = 100
"""A table with as many files, of a small part of the target size on average, is worth a look."""


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """The most changes to read, and the function that hears about progress."""

    changes: int
    progress: Progress


def picture_of_table(
    tree: NameTree,
    head: TableHead | None,
    path: Identifier | None,
    location: str | None,
    wish: PictureRequest,
) -> Picture:
    """Return the picture of a table. Without a `head`, its state cannot be read, and its name or location finds it."""
    if head is not None:
        location, log_id = head.url, head.id
        entries = _read(audit_entries(tree, location=location), wish, lambda entry: _is_of(entry, log_id))
    else:
        candidates = (
            audit_entries(tree, location=location) if path is None else audit_entries(tree, table=path)
        )
        entries = _read(candidates, wish, lambda entry: entry.kind == TABLE)
        if path is not None and not entries:
            raise no_such_table(path)
        location = entries[0].location if entries else location or ""
    assert location is not None
    name = masked_urls(location) if path is None else quoted_where_needed(path)
    timeline, metadata = _table_timeline(head, entries)
    changes = with_aborted(_with_older(timeline, entries, wish.changes))
    now_us = tree.logs.clocks.likely_us()
    common: dict[str, Any] = dict(
        format=FORMAT,
        kind="table",
        name=name,
        location=masked_urls(location),
        made_us=now_us,
        lakelog=_own_version(),
        writers=tuple(timeline.writers),
        lanes=tuple(timeline.lanes),
        changes=tuple(changes),
    )
    if head is None:
        problem = _problem(tree, location)
        log = LogPicture(
            kind=TABLE, name=name, location=masked_urls(location), changes=len(changes), problem=problem
        )
        damage = (*damaged_logs([log]), *damage_of(changes, path, location))
        return Picture(**common, logs=(log,), health=damage)
    files, unreadable = _files(head)
    with naming(head.tracked.log.location):
        layout = None if files is None else layout_of(files, head.metadata)
    totals = head.state.files
    log = LogPicture(
        kind=TABLE,
        name=name,
        location=masked_urls(location),
        log_id=head.id,
        version=head.version,
        time_us=head.time_us,
        rows=totals.row_count,
        files=totals.file_count,
        size_bytes=totals.size_bytes,
        changes=sum(change.kind == "commit" for change in changes),
        problem=unreadable,
    )
    health: tuple[Advice, ...] = tuple(damaged_logs([log]))
    if files is None or layout is None:
        health += tuple(damage_of(changes, path, location))
    else:
        damage = tuple(damage_of(changes, path, location))
        with naming(head.tracked.log.location):
            advice = advice_for(subject_of(head, path, done_by(changes), None, now_us), files)
        # Where something is damaged, that all else is well is no news.
        health += damage + tuple(item for item in advice if not damage or item.action or item.level != "good")
    return Picture(
        **common,
        logs=(log,),
        definitions=definitions_of(metadata),
        refs=_refs(head),
        layout=layout,
        health=health,
    )


def picture_of_namespace(tree: NameTree, path: Identifier, wish: PictureRequest) -> Picture:
    """Return the picture of a namespace with all below it; the root's is of the warehouse."""
    scope, problem = _scope(tree, path, wish.progress)
    logs = [_log(TABLE, target) for target in scope.tables]
    logs += [_log(NAMESPACE, target) for target in scope.namespaces]
    logs += [
        LogPicture(
            kind=target.kind,
            name=target.name,
            location=masked_urls(target.location),
            problem=masked(target.error),
        )
        for target in scope.unreadable
    ]
    if problem is not None:
        logs.append(
            LogPicture(kind=NAMESPACE, name=quoted_where_needed(path) or ROOT, location="", problem=problem)
        )
    entries = _read(audit_entries(tree, namespace=path), wish, lambda entry: True)
    places = {log.location: place for place, log in enumerate(logs)}

    def log_of(entry: AuditEntry) -> int:
        url = masked_urls(entry.location)
        if url not in places:
            places[url] = len(logs)
            name = url if entry.name is None else quoted_where_needed(entry.name) or ROOT
            logs.append(LogPicture(kind=entry.kind, name=name, location=url, dropped=entry.dropped))
        return places[url]

    timeline = timeline_of(entries, log_of, lambda entry: (None, None), of_table=False)
    counts = Counter(change.log for change in timeline.changes if change.kind == "commit")
    logs = [msgspec.structs.replace(log, changes=counts[place]) for place, log in enumerate(logs)]
    changes = _with_older(timeline, entries, wish.changes)
    health = (*damaged_logs(logs), *damage_of(changes, path, ""), *_fragmented(scope.tables))
    return Picture(
        format=FORMAT,
        kind="namespace" if path else "warehouse",
        name=quoted_where_needed(path) if path else masked_urls(tree.logs.warehouse),
        location=masked_urls(tree.logs.warehouse),
        made_us=tree.logs.clocks.likely_us(),
        lakelog=_own_version(),
        logs=tuple(logs),
        writers=tuple(timeline.writers),
        lanes=tuple(timeline.lanes),
        changes=tuple(changes),
        health=health
        or (Advice(level="good", what="Every log can be read, and no table has many small files."),),
        dropped=() if problem is not None else tuple(map(_dropped, list_dropped(tree, path, recursive=True))),
    )


# Reading


def _read(
    entries: Iterator[AuditEntry], wish: PictureRequest, concerns: Callable[[AuditEntry], bool]
) -> list[AuditEntry]:
    """Return the newest entries, and a further entry if there are more than the caller wants."""
    newest: list[AuditEntry] = []
    for entry in islice((entry for entry in entries if concerns(entry)), wish.changes + 1):
        newest.append(entry)
        if len(newest) % _NOTED_EVERY == 0:
            wish.progress(f"{len(newest):,} changes were read, of at most {wish.changes:,}")
    return newest


def _is_of(entry: AuditEntry, log_id: str) -> bool:
    """Return whether an entry is of this table, and not of an earlier table at its place."""
    return entry.log_id is None or entry.log_id == log_id


def _table_timeline(
    head: TableHead | None, entries: Sequence[AuditEntry]
) -> tuple[ChangeTimeline, dict[int, Metadata]]:
    metadata: dict[int, Metadata] = {}
    commits = [entry for entry in entries if entry.what == "commit"]
    if head is not None and commits:
        changed = [entry.version for entry in commits if changes_definition(entry.operations)]
        metadata = metadata_at(head, min(entry.version for entry in commits), changed)
    elif head is not None:
        metadata = {head.version: head.metadata}
    return timeline_of(entries, lambda entry: 0, _schemas(metadata), of_table=True), metadata


def _schemas(metadata: dict[int, Metadata]) -> Around:
    versions = sorted(metadata)
    before = dict(zip(versions[1:], versions, strict=False))

    def around(entry: AuditEntry) -> tuple[Schema | None, Schema | None]:
        if "change schema" not in entry.operations or entry.version not in before:
            return None, None
        return metadata[before[entry.version]].schema, metadata[entry.version].schema

    return around


def _with_older(timeline: ChangeTimeline, entries: Sequence[AuditEntry], limit: int) -> list[ChangePicture]:
    """Return the changes, with a single entry for all changes that were not read."""
    if len(entries) <= limit:
        return timeline.changes
    first = entries[limit]
    # Those of a namespace that were read may be of one log, and older ones of others all the same.
    is_one_log = timeline.lanes[0].kind == MAIN
    description = f"versions 1-{first.version}" if is_one_log else "older changes"
    older = ChangePicture(
        kind="older",
        version=first.version if is_one_log else 0,
        first_version=1 if is_one_log else None,
        time_us=time_of(first),
        text=f"{description} were not read: only the newest {limit:,} were asked for",
    )
    return [*timeline.changes[:limit], older]


def _files(head: TableHead) -> tuple[pa.Table | None, str | None]:
    """Return the live files, or the reason if they cannot be read."""
    try:
        return files_of(head), None
    except LakelogError as error:
        return None, masked(str(error))


def _scope(tree: NameTree, path: Identifier, progress: Progress) -> tuple[LogScope, str | None]:
    """Return the logs of a namespace, or the reason if its own log cannot be read."""
    try:
        return chosen_scope(tree, namespace=path, progress=progress), None
    except FormatError as error:
        return LogScope(), masked(str(error))


def _problem(tree: NameTree, location: str) -> str:
    try:
        tree.logs.table(tree.logs.location(location)).current()
    except LakelogError as error:
        return masked(str(error))
    return f"{location} cannot be read"


# What is there now


def _log(kind: str, target: LogTarget[Any]) -> LogPicture:
    view, path = target.view, target.path or ()
    files = view.state.files if kind == TABLE else None
    return LogPicture(
        kind=kind,
        name=quoted_where_needed(path) or ROOT,
        location=masked_urls(target.tracked.log.location),
        log_id=view.log_id,
        version=view.version,
        time_us=view.time_us,
        rows=files.row_count if files is not None else 0,
        files=files.file_count if files is not None else 0,
        size_bytes=files.size_bytes if files is not None else 0,
    )


def _refs(head: TableHead) -> tuple[RefPicture, ...]:
    main = head.state.files
    refs = [
        RefPicture(
            name=MAIN,
            kind="branch",
            version=head.version,
            rows=main.row_count,
            files=main.file_count,
            size_bytes=main.size_bytes,
        )
    ]
    for name, ref in sorted(head.state.refs.items()):
        files = ref.files
        refs.append(
            RefPicture(
                name=name,
                kind=ref.kind,
                version=ref.version,
                rows=files.row_count,
                files=files.file_count,
                size_bytes=files.size_bytes,
            )
        )
    return tuple(refs)


def _fragmented(tables: Sequence[LogTarget[TableState]]) -> Iterator[Advice]:
    """Yield advice for tables whose files are small on average, by their totals."""
    tables_by_count = []
    for table in tables:
        files = table.view.state.files
        target = TARGET_FILE_SIZE.of(table.view.state.current.properties)
        if files.file_count >= _FRAGMENTED_FILES and files.size_bytes < files.file_count * target // 8:
            tables_by_count.append((files.file_count, table))
    for count, table in sorted(tables_by_count, key=lambda pair: -pair[0])[:_NOTED_MAX]:
        mean = size_text(table.view.state.files.size_bytes // count)
        name = command_name(table.path, table.tracked.log.location)
        yield Advice(
            level="could",
            what=f"{quoted_where_needed(table.path or ())} has {count:,} files of {mean} on average.",
            command=f"lakelog compact {name}",
        )


def _dropped(entry: DroppedEntry) -> DroppedThing:
    name = command_name(entry.name, entry.location)
    return DroppedThing(
        kind=entry.kind,
        name=quoted_where_needed(entry.name),
        dropped_us=time_us(entry.dropped_at),
        kept_until_us=time_us(entry.kept_until),
        user=None if entry.user is None else masked(entry.user),
        command=f"lakelog undrop {name} --id {entry.id}",
    )


def _own_version() -> str:
    try:
        return version("lakelog")
    except PackageNotFoundError:
        return "unknown"
