"""Bounds of files that are gone: rows that no version has any more may still be in lists of files, in snapshots, bases
and statistics, and in Iceberg's metadata.

Files that a version has are read. Of others, nothing is left but their bounds, so these say whether such rows may have
been in them. What has any is written anew by an erasure, or deleted.
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
from lakelog.log import View
from lakelog.log.errors import FormatError, LakelogError, NotFound
from lakelog.log.replay import is_blank

METADATA = "metadata/"
_WHOLE = {"byte": "<i", "short": "<i", "integer": "<i", "long": "<q"}


def old_bounds(head: TableHead, rows: RowSet) -> list[str]:
    """Return the keys of objects with bounds of files that no version has, in which such rows may have been."""
    known = pa.array(
        sorted({*paths_kept(head), *(path for each in rows.past for path in each["path"].to_pylist())}),
        pa.string(),
    )
    found: list[str] = []

    def note(key: str, files: pa.Table) -> None:
        gone = files.filter(pc.invert(pc.is_in(files["path"], value_set=known)))
        if gone.num_rows and key not in found and rows.may_be_in(gone):
            found.append(key)

    read: set[object] = set()
    for key, view in _views(head):
        for state in view.state.kept():
            manifests, added, _ = state.files.since_manifests()
            for files in added:
                note(key, files)
            new = [each for each in manifests.entries if each.stored not in read]
            read |= {each.stored for each in new}
            for entries, files in _contents(head, new):
                note(head.tracked.log.keys.manifest(entries.stored.name), files)
        estimates = view.state.estimates
        if estimates is not None and rows.may_be_bounds(_as_file(estimates, head.schema), estimates.version):
            found.append(f"{key} (statistics)")
    keys = head.tracked.log.keys
    undone = ((keys.commit(version), files) for version, files in rows.undone)
    for key, files in (*undone, *_unnamed_lists(head, read), *_exported(head)):
        note(key, files)
    return found


def _views(head: TableHead) -> Iterator[tuple[str, View[TableState]]]:
    """Yield the states that snapshots, the hint and bases have, and the present one."""
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
    """Yield lists that are there with what they hold: a snapshot that is not needed may name some that are gone."""
    for each in lists:
        try:
            yield from contents([each], head.tracked.log.read_blobs)
        except NotFound:
            continue


def _as_file(estimates: TableEstimates, schema: Schema) -> pa.Table:
    """Return statistics as the bounds of one file of no version."""
    ids = {field.id: field.type for _, field in schema.walk() if isinstance(field.type, AtomicType)}
    stats = {
        id: ColumnStats(min=each.min, max=each.max)
        for id, each in estimates.columns.items()
        if id in ids and each.type == ids[id].name
    }
    file = DataFile(path="", size_bytes=0, rows=max(estimates.rows, 1), stats=stats)
    return files_to_arrow([file], schema, ())


def _unnamed_lists(head: TableHead, read: Iterable[object]) -> Iterator[tuple[str, pa.Table]]:
    """Yield lists of files that no snapshot and no base names."""
    log = head.tracked.log
    named = {getattr(each, "name", None) for each in read}
    for key in log.store.list_after(log.keys.manifests):
        if key.removeprefix(log.keys.manifests) in named:
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
    tracked = head.tracked
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    url = f"{head.url.rstrip('/')}/"
    for key, _ in tracked.store.list_sizes(f"{prefix}{METADATA}"):
        data = tracked.store.get(key) if key.endswith(".avro") else None
        if data is None:
            continue
        try:
            entries = [each["data_file"] for each in read_all(data).records if "data_file" in each]
        except LakelogError:
            continue
        files = [
            DataFile(
                path=str(each["file_path"]).removeprefix(url),
                size_bytes=0,
                rows=each["record_count"],
                stats=_bounds(each, head.schema),
            )
            for each in entries
            if each.get("content", 0) == 0
        ]
        if files:
            yield key, files_to_arrow(files, head.schema, ())


def _bounds(entry: dict[str, Any], schema: Schema) -> dict[int, ColumnStats]:
    """Return the bounds of an entry that are whole numbers and texts; of others, nothing is known."""
    sides = [
        {pair["key"]: pair["value"] for pair in entry.get(name) or ()}
        for name in ("lower_bounds", "upper_bounds")
    ]
    found = {}
    for _, field in schema.walk():
        if field.id in sides[0] and field.id in sides[1] and isinstance(field.type, AtomicType):
            low, high = (_value(side[field.id], field.type) for side in sides)
            if low is not None and high is not None:
                found[field.id] = ColumnStats(min=low, max=high, nans=0)
    return found


def _value(data: bytes, type: AtomicType) -> int | str | None:
    name = type.name
    if name == "string":
        return data.decode(errors="replace")
    form = _WHOLE.get(name)
    return struct.unpack(form, data)[0] if form and len(data) == struct.calcsize(form) else None
