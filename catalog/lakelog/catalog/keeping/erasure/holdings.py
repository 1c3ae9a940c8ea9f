"""Which files hold rows of an erasure: on each line of a table, for each clone, and in the past.

Rows that are marked as deleted count, as they are still in their files, and so do older and newer copies of the rows
that match. Files that no version has have no entry: they are read by the columns that they have themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelog.catalog.core.files import is_elsewhere, started_at
from lakelog.catalog.core.logs import TableHead, TrackedLog
from lakelog.catalog.core.schema import Curve, Predicate, Ranks, Schema
from lakelog.catalog.core.state import MAIN, TAG, TableState
from lakelog.catalog.keeping.erasure.row_set import RowSet, bound_to, is_value
from lakelog.catalog.keeping.maintenance import over
from lakelog.log.errors import InvalidInput, NotFound

DATA = "data/"


@dataclass(slots=True)
class Held:
    """Paths of files with such rows, and how many: by lines that can be written, by tags, and by ids of clones. `past`
    files are on no line; those of which that is not known count with 0 rows."""

    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    tags: dict[str, dict[str, int]] = field(default_factory=dict)
    clones: dict[str, dict[str, int]] = field(default_factory=dict)
    past: dict[str, int] = field(default_factory=dict)

    @property
    def live(self) -> dict[str, int]:
        """All files that a line, a tag or a clone needs."""
        parts = [*self.lines.values(), *self.tags.values(), *self.clones.values()]
        return {path: rows for part in parts for path, rows in part.items()}


def held_by(head: TableHead, rows: RowSet, *, past: bool = True) -> Held:
    """Return which files hold such rows. Files that may are read, in their columns of the condition."""
    held = Held()
    fetch = head.tracked.log.read_blobs
    kept = needed(head)
    for state in kept:
        for chunk in state.files.chunks(fetch):
            rows.note(head, chunk, _own_schema(head, state))
    others = _past_entries(head, rows) if past else []
    for files in others:
        rows.note_past(head, files)
    for state in kept:
        found: dict[str, int] = {}
        for chunk in state.files.chunks(fetch):
            found |= rows.held(head, chunk, _own_schema(head, state))
        if not found:
            continue
        if state.line.startswith("clone "):
            held.clones[state.line.removeprefix("clone ")] = found
        elif state.line != MAIN and state.refs[state.line].kind == TAG:
            held.tags[state.line] = found
        else:
            held.lines[state.line] = found
    if past:
        for files in others:
            held.past |= rows.held(head, files)
        held.past |= dict(
            _files_of_no_version(head, rows, {path for each in others for path in _paths(each)})
        )
    return held


def needed(head: TableHead) -> list[TableState]:
    """Return the lines of a table, and what is kept for clones that still need it: the files of others may be gone."""
    ended = set(over(head.logs, head.id, head.state.clones.items()))
    return [state for state in head.state.kept() if state.line.removeprefix("clone ") not in ended]


def _own_schema(head: TableHead, state: TableState) -> Schema | None:
    own = state.current.schema
    return None if own == head.schema else own


def _paths(files: pa.Table) -> list[str]:
    return list(files["path"].to_pylist())


def paths_kept(head: TableHead) -> set[str]:
    """Return the paths of all files that a line, a tag or a clone needs."""
    fetch = head.tracked.log.read_blobs
    return {
        path for state in needed(head) for chunk in state.files.chunks(fetch, ()) for path in _paths(chunk)
    }


def _past_entries(head: TableHead, rows: RowSet) -> list[pa.Table]:
    """Return the files that are on no line, and that a version has which can be read, each once."""
    seen = paths_kept(head)
    there = {path for path, _ in listed(head.tracked)}
    found = []
    for files in rows.past:
        wanted = []
        for path in _paths(files):
            wanted.append(path not in seen and (path in there or _is_there(head, path)))
            seen.add(path)
        some = files.filter(pa.array(wanted, pa.bool_()))
        if some.num_rows:
            found.append(some)
    return found


def _is_there(head: TableHead, path: str) -> bool:
    """Return whether a file in another place is there: no log keeps it for versions that cannot be read."""
    open_url = head.tracked.log.replay.open_url
    if not is_elsewhere(path) or open_url is None:
        return False
    store, key = open_url(path)
    try:
        with store.open_input(key):
            return True
    except NotFound:
        return False


def _files_of_no_version(head: TableHead, rows: RowSet, past: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the table's own data files that no version has and that hold such rows, or may, with how many."""
    known = {*paths_kept(head), *past}
    others = [each for each in listed(head.tracked) if each[0] not in known]
    for path, count in counted_files(head, rows, others):
        if count is None or count:
            yield path, count or 0


def counted_files(
    head: TableHead, rows: RowSet, files: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, int | None]]:
    """Yield files of which nothing but path and size is known, with how many rows match; None where it may have any."""
    counts: dict[str, int | None] = {}
    for reading in rows.readings:
        for path, _, count in rows.work.count_listed(head, files, reading.schema, reading.bound):
            known = counts.get(path, 0)
            counts[path] = None if known is None or count is None else max(known, count)
    for reading in rows.first_names:
        for path, _, count in rows.work.count_listed(head, files, reading.schema, reading.bound):
            known = counts.get(path, 0)
            if count is None and rows.readings:
                continue  # it has no such column, and what the others say of it stays
            counts[path] = None if known is None or count is None else max(known, count)
    yield from counts.items()


def listed(tracked: TrackedLog[TableState]) -> Iterator[tuple[str, int]]:
    """Yield the path and size of lakelog's own data files in the folder of a table."""
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    for key, size in tracked.store.list_sizes(f"{prefix}{DATA}"):
        path = key.removeprefix(prefix)
        if started_at(path) is not None and path.endswith(".parquet"):
            yield path, size


def boundaries(head: TableHead) -> list[tuple[Schema, Ranks]]:
    """Return the boundaries by which the lines of a table are clustered, and what is kept for clones."""
    kept = [state.current for state in head.state.kept()]
    return [(each.schema, each.ranks) for each in kept if each.ranks is not None]


def is_boundary(predicate: Predicate, head: TableHead) -> bool:
    """Return whether a boundary by itself is a value that the condition is about."""
    for schema, ranks in boundaries(head):
        try:
            bound = bound_to(predicate, schema)
        except (InvalidInput, NotFound):
            continue
        ids = (each.id for each in ranks.columns)
        if any(
            is_value(bound, id, values) for id, values in zip(ids, Curve(ranks, schema).bounds, strict=True)
        ):
            return True
    return False
