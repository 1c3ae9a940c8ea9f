"""A table with a long history, written directly: a real writer's real commits, but in a single process without races.

Each version is drafted like an append, or like the deletion of a file. It goes through the log's own writer, which
encodes, hashes and folds it, and writes snapshots and hints when they are due. To save the time of a million appends,
each data file is a link to a shared real file, and nothing is synced.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.files.data_file import RemovedFile
from lakelog.catalog.core.state import FilesChanged, encode, table_events
from lakelog.log import Draft, LocalStore, LogOptions
from lakelog.log.format import WriteRef
from lakelog.log.ids import new_id
from lakelog.log.writing import PlacedCommit

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1, 2], "name": ["one", "two"]}, schema=SCHEMA)
NAME = "history.t"

DELETED_EVERY = 100
"""One of so many versions deletes a file of an earlier version."""

DELETED_BACK = 1000
"""The deleted file is among the last so many added files."""

LINKS_MAX = 60_000
"""Links to a file: ext4 allows 65,000."""

STEP_US = 60_000_000
"""Time between two versions, so that a million versions span about two years."""


class _Fast(LocalStore):
    """A folder that only this process writes to."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        if key.endswith("/00000000000000000001.json"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
        return True

    def now_us(self, near: str = "") -> int | None:
        return None


def write_history(warehouse: str, versions: int, progress: Callable[[int], None], *, end_us: int) -> str:
    """Make a warehouse whose table `NAME` has so many versions, the last at `end_us`. Return the table's location."""
    clock_us = end_us - versions * STEP_US
    # The writer does this in the foreground, because a busy background thread would leave some out.
    options = LogOptions(clock_us=lambda: clock_us, in_background=lambda name, work: work())
    store = _Fast(warehouse, fsync=False)
    catalog = Catalog(warehouse, log_options=options)
    engine.places(catalog).stores[engine.places(catalog).warehouse] = store
    catalog.create_namespace(NAME.partition(".")[0])
    table = catalog.create_table(NAME, SCHEMA).append(ROWS)
    tracked_log = table.table_head.tracked
    writer, view = tracked_log.log.writer, tracked_log.current()
    folder = Path(table.location)
    real = _data_file(table)
    source, links = real.path, 0
    chance = random.Random(versions)
    recent: list[RemovedFile] = []
    while view.version < versions:
        clock_us = end_us - (versions - view.version - 1) * STEP_US
        version, write = view.version + 1, WriteRef(id=new_id(), version=view.version)
        if version % DELETED_EVERY == 0 and recent:
            deleted_file = recent.pop(chance.randrange(len(recent)))
            draft = Draft(events=encode([_delete(deleted_file)]))
        else:
            path = f"data/{view.version:020d}-{write.id}-00000.parquet"
            if links == LINKS_MAX:
                source, links = path, 0
                (folder / path).write_bytes((folder / real.path).read_bytes())
            else:
                os.link(folder / source, folder / path)
                links += 1
            first_row = view.state.next_row
            file = msgspec.structs.replace(real, path=path, write_id=write.id, first_row=first_row)
            recent = [
                *recent[-DELETED_BACK:],
                RemovedFile(path=path, rows=file.rows, size_bytes=file.size_bytes),
            ]
            draft = Draft(events=encode([_append(file)]), write=write)
        commit = writer.put(view, draft, write.id, base=view.version)
        assert isinstance(commit, PlacedCommit), "no other client writes here"
        view = writer.settled(commit)
        if version % 10_000 == 0:
            progress(version)
    return table.location


def _data_file(table: Table) -> DataFile:
    """Return the table's only file, as its commit records it."""
    commit = next(iter(table.table_head.tracked.log.commits(first=2)))
    return next(
        file for event in table_events(commit) if isinstance(event, FilesChanged) for file in event.added
    )


def _append(file: DataFile) -> FilesChanged:
    return FilesChanged(
        operation="append", added=(file,), added_files=1, added_rows=file.rows, added_bytes=file.size_bytes
    )


def _delete(file: RemovedFile) -> FilesChanged:
    totals: dict[str, Any] = {"removed_files": 1, "removed_rows": file.rows, "removed_bytes": file.size_bytes}
    return FilesChanged(operation="delete", removed=(file,), filter="id = ?", **totals)
