"""Bounds of files that are gone.

They are in lists of files, snapshots, bases, statistics and Iceberg's metadata.

Rows that no version has any more may still be in such bounds. Files that a version has are read. Of other
files, only bounds remain, so these say whether rows to erase may have been in them. An erasure rewrites or
deletes objects with such bounds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    ColumnStats,
    DataFile,
    Entries,
    TableEstimates,
    contents,
    decode_files,
    files_to_arrow,
)
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.schema import AtomicType, Schema
from lakelog.catalog.core.state import TableState
from lakelog.catalog.formats.iceberg import read_all
from lakelog.catalog.keeping.erasure.holdings import paths_kept
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.log import LogView
from lakelog.log.errors import FormatError, LakelogError, NotFound
from lakelog.log.replay import is_blank

METADATA = "metadata/"
_WHOLE = {"byte": "<i", "short": "<i", "integer": "<i", "long": "<q"}


def old_bounds(head: TableHead, rows: RowSet) -> list[str]:
    """Return the keys of objects with bounds of files of no version that may have had rows to erase."""
    known_paths = pa.array(
        sorted({*paths_kept(head), *(path for item in rows.past for path in item["path"].to_pylist())}),
        pa.string(),
    )
    keys_with_bounds: list[str] = []

    def note(key: str, files: pa.Table) -> None:
        gone_files = files.filter(pc.invert(pc.is_in(files["path"], value_set=known_paths)))
        if gone_files.num_rows and key not in keys_with_bounds and rows.may_be_in(gone_files):
            keys_with_bounds.append(key)

    read_lists: set[object] = set()
    for key, view in _views(head):
        for state in view.state.kept():
            manifests, new_files, _ = state.files.since_manifests()
            for files in new_files:
                note(key, files)
            new = [item for item in manifests.entries if item.stored not in read_lists]
            read_lists |= {item.stored for item in new}
            for entries, files in _contents(head, new):
                note(head.tracked.log.keys.manifest(entries.stored.name), files)
        estimates = view.state.estimates
        if estimates is not None and rows.may_be_bounds(_as_file(estimates, head.schema), estimates.version):
            keys_with_bounds.append(f"{key} (statistics)")
    keys = head.tracked.log.keys
    undone = ((keys.commit(version), files) for version, files in rows.undone)
    for key, files in (*undone, *_unnamed_lists(head, read_lists), *_exported(head)):
        note(key, files)
    return keys_with_bounds


def _views(head: TableHead) -> Iterator[tuple[str, LogView[TableState]]]:
    """Yield the states in snapshots, the hint and bases, and the present state."""
    log = head.tracked.log
    replay, keys = log.replay, log.keys
    yield "the table's state", head.view
    for key in [*log.store.list_after(keys.snapshots), keys.latest]:
        root = replay.root_or_none(key, log.store.get(key))
        view = None if root is None or root.state is None else replay.view_of(root, key)
        if view is not None:
            yield key, view
    number = 1
    while (data := log.store.get(keys.base(number))) is not None:
        base, key, number = replay.base(number, data), keys.base(number), number + 1
        view = None if is_blank(base) else replay.view_of(base.root, key)
        if view is not None:
            yield key, view


def _contents(head: TableHead, lists: Sequence[Entries]) -> Iterator[tuple[Entries, pa.Table]]:
    """Yield existing lists with their contents. A snapshot that is not needed may name lists that are gone."""
    for entry in lists:
        try:
            yield from contents([entry], head.tracked.log.read_blobs)
        except NotFound:
            continue


def _as_file(estimates: TableEstimates, schema: Schema) -> pa.Table:
    """Return statistics as the bounds of a file of no version."""
    ids = {field.id: field.type for _, field in schema.walk() if isinstance(field.type, AtomicType)}
    stats = {
        id: ColumnStats(min=column.min, max=column.max)
        for id, column in estimates.columns.items()
        if id in ids and column.type == ids[id].name
    }
    file = DataFile(path="", size_bytes=0, rows=max(estimates.rows, 1), stats=stats)
    return files_to_arrow([file], schema, ())


def _unnamed_lists(head: TableHead, read: Iterable[object]) -> Iterator[tuple[str, pa.Table]]:
    """Yield lists of files that no snapshot and no base names."""
    log = head.tracked.log
    names = {getattr(item, "name", None) for item in read}
    for key in log.store.list_after(log.keys.manifests):
        if key.removeprefix(log.keys.manifests) in names:
            continue
        data = log.store.get(key)
        try:
            files = None if data is None else decode_files(data)
        except FormatError:
            continue  # a list of removed paths, which has no bounds
        if files is not None:
            yield key, files


def _exported(head: TableHead) -> Iterator[tuple[str, pa.Table]]:
    """Yield the entries of Iceberg's manifests beside the table."""
    table_log = head.tracked
    prefix = f"{table_log.prefix}/" if table_log.prefix else ""
    url = f"{head.url.rstrip('/')}/"
    for key, _ in table_log.store.list_sizes(f"{prefix}{METADATA}"):
        data = table_log.store.get(key) if key.endswith(".avro") else None
        if data is None:
            continue
        try:
            entries = [record["data_file"] for record in read_all(data).records if "data_file" in record]
        except LakelogError:
            continue
        files = [
            DataFile(
                path=str(record["file_path"]).removeprefix(url),
                size_bytes=0,
                rows=record["record_count"],
                stats=_bounds(record, head.schema),
            )
            for record in entries
            if record.get("content", 0) == 0
        ]
        if files:
            yield key, files_to_arrow(files, head.schema, ())


def _bounds(entry: dict[str, Any], schema: Schema) -> dict[int, ColumnStats]:
    """Return the bounds of an entry that are whole numbers and texts. Other bounds are not known."""
    sides = [
        {pair["key"]: pair["value"] for pair in entry.get(name) or ()}
        for name in ("lower_bounds", "upper_bounds")
    ]
    stats = {}
    for _, field in schema.walk():
        if field.id in sides[0] and field.id in sides[1] and isinstance(field.type, AtomicType):
            low, high = (_value(side[field.id], field.type) for side in sides)
            if low is not None and high is not None:
                stats[field.id] = ColumnStats(min=low, max=high, nans=0)
    return stats


def _value(data: bytes, type: AtomicType) -> int | str | None:
    name = type.name
    if name == "string":
        return data.decode(errors="replace")
    form = _WHOLE.get(name)
    return struct.unpack(form, data)[0] if form and len(data) == struct.calcsize(form) else None
