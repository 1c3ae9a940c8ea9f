"""Which files hold rows of an erasure: on each line of a table, for each clone, and in the past.

Rows that are marked as deleted count because they are still in their files. Older and newer copies of
matching rows count too. Files of no version have no entry: they are read by their own columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelog.catalog.core.files import is_elsewhere, started_at
from lakelog.catalog.core.logs import TableHead, TrackedLog
from lakelog.catalog.core.schema import ClusteringCurve, Predicate, Ranks, Schema
from lakelog.catalog.core.state import MAIN, TAG, TableState
from lakelog.catalog.keeping.erasure.row_set import RowSet, bound_to, is_value
from lakelog.catalog.keeping.maintenance.promises import over
from lakelog.log.errors import InvalidInput, NotFound

DATA = "data/"


@dataclass(slots=True)
class HeldRows:
    """Paths of files with rows to erase, and row counts, by writable lines, by tags, and by ids of clones.

    `past` files are on no line. If their count is not known, it is 0.
    """

    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    tags: dict[str, dict[str, int]] = field(default_factory=dict)
    clones: dict[str, dict[str, int]] = field(default_factory=dict)
    past: dict[str, int] = field(default_factory=dict)

    @property
    def live(self) -> dict[str, int]:
        """Return all files that a line, a tag or a clone needs."""
        parts = [*self.lines.values(), *self.tags.values(), *self.clones.values()]
        return {path: rows for part in parts for path, rows in part.items()}


def held_by(head: TableHead, rows: RowSet, *, past: bool = True) -> HeldRows:
    """Return the files that hold rows to erase.

    Files that may hold any are read, in the columns of the condition.
    """
    result = HeldRows()
    fetch = head.tracked.log.read_blobs
    states = needed(head)
    for state in states:
        for chunk in state.files.chunks(fetch):
            rows.note(head, chunk, _own_schema(head, state))
    past_entries = _past_entries(head, rows) if past else []
    for files in past_entries:
        rows.note_past(head, files)
    for state in states:
        rows_by_path: dict[str, int] = {}
        for chunk in state.files.chunks(fetch):
            rows_by_path |= rows.held(head, chunk, _own_schema(head, state))
        if not rows_by_path:
            continue
        if state.line.startswith("clone "):
            result.clones[state.line.removeprefix("clone ")] = rows_by_path
        elif state.line != MAIN and state.refs[state.line].kind == TAG:
            result.tags[state.line] = rows_by_path
        else:
            result.lines[state.line] = rows_by_path
    if past:
        for files in past_entries:
            result.past |= rows.held(head, files)
        result.past |= dict(
            _files_of_no_version(head, rows, {path for entries in past_entries for path in _paths(entries)})
        )
    return result


def needed(head: TableHead) -> list[TableState]:
    """Return the lines of a table, and the states kept for clones that still need them.

    Other clones' files may be gone.
    """
    ended_clones = set(over(head.logs, head.id, head.state.clones.items()))
    return [state for state in head.state.kept() if state.line.removeprefix("clone ") not in ended_clones]


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
    """Return the files of readable versions that are on no line, each once."""
    paths = paths_kept(head)
    own_paths = {path for path, _ in listed(head.tracked)}
    entries = []
    for files in rows.past:
        mask = []
        for path in _paths(files):
            mask.append(path not in paths and (path in own_paths or _is_there(head, path)))
            paths.add(path)
        new_files = files.filter(pa.array(mask, pa.bool_()))
        if new_files.num_rows:
            entries.append(new_files)
    return entries


def _is_there(head: TableHead, path: str) -> bool:
    """Return whether a file at another place exists. No log keeps it for versions that cannot be read."""
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
    """Yield the table's own data files of no version that hold rows to erase, or may, with their row counts."""
    known_paths = {*paths_kept(head), *past}
    other_files = [item for item in listed(head.tracked) if item[0] not in known_paths]
    for path, count in counted_files(head, rows, other_files):
        if count is None or count:
            yield path, count or 0


def counted_files(
    head: TableHead, rows: RowSet, files: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, int | None]]:
    """Yield files that are known only by path and size, with the number of matching rows.

    None if it is not certain.
    """
    counts: dict[str, int | None] = {}
    for condition in rows.readings:
        for path, _, count in rows.work.count_listed(head, files, condition.schema, condition.bound):
            count_so_far = counts.get(path, 0)
            counts[path] = None if count_so_far is None or count is None else max(count_so_far, count)
    for condition in rows.first_names:
        for path, _, count in rows.work.count_listed(head, files, condition.schema, condition.bound):
            count_so_far = counts.get(path, 0)
            if count is None and rows.readings:
                continue  # it has no such column, and the other conditions' counts stay
            counts[path] = None if count_so_far is None or count is None else max(count_so_far, count)
    yield from counts.items()


def listed(tracked: TrackedLog[TableState]) -> Iterator[tuple[str, int]]:
    """Yield the path and size of lakelog's own data files in the folder of a table."""
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    for key, size in tracked.store.list_sizes(f"{prefix}{DATA}"):
        path = key.removeprefix(prefix)
        if started_at(path) is not None and path.endswith(".parquet"):
            yield path, size


def boundaries(head: TableHead) -> list[tuple[Schema, Ranks]]:
    """Return the boundaries by which the lines of a table, and the states kept for clones, are clustered."""
    definitions = [state.current for state in head.state.kept()]
    return [(metadata.schema, metadata.ranks) for metadata in definitions if metadata.ranks is not None]


def is_boundary(predicate: Predicate, found: Sequence[tuple[Schema, Ranks]]) -> bool:
    """Return whether a boundary is itself a value of the condition."""
    for schema, ranks in found:
        try:
            condition = bound_to(predicate, schema)
        except (InvalidInput, NotFound):
            continue
        ids = (column.id for column in ranks.columns)
        if any(
            is_value(condition, id, values)
            for id, values in zip(ids, ClusteringCurve(ranks, schema).bounds, strict=True)
        ):
            return True
    return False
