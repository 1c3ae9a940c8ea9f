"""Which files hold rows of an erasure: on each line of a table, for each clone, and in the past.

Rows that are marked as deleted count, as they are still in their files. Files of older versions, and those that no
version has, have no entry that is at hand; they are read by the columns that they have themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.erasure.work import ErasureWork
from lakelog.catalog.files import DELETED, DELETES, is_elsewhere, joined, physical_rows, started_at
from lakelog.catalog.logs import TableHead, TrackedLog
from lakelog.catalog.planning import Bound, IsTrue, bind, evaluate, match, terms, unknown_parts
from lakelog.catalog.schema import Curve, Predicate, Ranks, Schema
from lakelog.catalog.state import MAIN, TAG, TableState
from lakelog.log.errors import InvalidInput, Unsupported

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


def bound_to(predicate: Predicate, schema: Schema) -> Bound:
    """Return the condition for these columns. InvalidInput for a column that is not there, Unsupported for a condition
    that lakelog does not know."""
    bound = bind(predicate, schema)
    unknown = unknown_parts(bound)
    if unknown:
        raise Unsupported(
            f"rows cannot be forgotten by {next(iter(unknown))!s}, which only an engine can evaluate: use comparisons, "
            "IN, LIKE 'a%', IS NULL, AND, OR and NOT of columns and literals"
        )
    return bound


def held_by(head: TableHead, predicate: Predicate, work: ErasureWork, *, past: bool = True) -> Held:
    """Return which files hold such rows. Files that may are read, in their columns of the condition."""
    held = Held()
    found: dict[str, int] = {}
    for state in head.state.kept():
        rows = _on_line(head, state, predicate, found, work)
        if not rows:
            continue
        if state.line.startswith("clone "):
            held.clones[state.line.removeprefix("clone ")] = rows
        elif state.line != MAIN and state.refs[state.line].kind == TAG:
            held.tags[state.line] = rows
        else:
            held.lines[state.line] = rows
    if past:
        held.past = dict(past_files(head, predicate, work))
    return held


def _on_line(
    head: TableHead, state: TableState, predicate: Predicate, known: dict[str, int], work: ErasureWork
) -> dict[str, int]:
    """Return the files of a line with such rows; `known` are those that were read for another one."""
    rows: dict[str, int] = {}
    for schema in _schemas(head, state):
        try:
            bound = bound_to(predicate, schema)
        except InvalidInput:
            if schema is head.schema:
                raise
            continue  # a tag from before the column has only what the table's own columns show
        for path, count in _matching(head, state, schema, bound, known, work).items():
            rows[path] = max(count, rows.get(path, 0))
    return rows


def _schemas(head: TableHead, state: TableState) -> list[Schema]:
    own = state.current.schema
    return [head.schema] if own == head.schema else [head.schema, own]


def _matching(
    head: TableHead,
    state: TableState,
    schema: Schema,
    bound: Bound,
    known: dict[str, int],
    work: ErasureWork,
) -> dict[str, int]:
    tracked = head.tracked
    specs = state.current.specs
    rows: dict[str, int] = {}
    some = []
    for chunk in map(as_written, state.files.chunks(tracked.log.read_blobs)):
        found = match(chunk, bound, specs)
        whole = chunk.filter(found.all)
        rows |= dict(zip(whole["path"].to_pylist(), physical_rows(whole).to_pylist(), strict=True))
        some.append(chunk.filter(pc.invert(pc.or_(found.all, found.none))))
    if not some:
        return rows
    files = joined(some)
    paths = files["path"].to_pylist()
    rows |= {path: known[path] for path in paths if path in known and schema is head.schema}
    new = files.filter(pa.array([path not in rows for path in paths], pa.bool_()))
    read = work.count(head, new, schema, bound) if new.num_rows else {}
    known |= read
    return {**rows, **read}


def as_written(files: pa.Table) -> pa.Table:
    """Return entries of files as if none of their rows were deleted."""
    rows = physical_rows(files)
    files = files.set_column(files.column_names.index("rows"), "rows", rows)
    return files.drop_columns([name for name in (DELETES, DELETED) if name in files.column_names])


def past_files(head: TableHead, predicate: Predicate, work: ErasureWork) -> Iterator[tuple[str, int]]:
    """Yield the table's own data files that hold such rows, or may, and are on no line, with how many rows."""
    kept = {
        path
        for state in head.state.kept()
        for chunk in state.files.chunks(head.tracked.log.read_blobs, ())
        for path in chunk["path"].to_pylist()
    }
    bound = bound_to(predicate, head.schema)
    others = (each for each in listed(head.tracked) if each[0] not in kept)
    for path, _, count in work.count_listed(head, others, bound):
        if count is None or count:
            yield path, count or 0


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
            bound = IsTrue(bound_to(predicate, schema))
        except InvalidInput:
            continue
        asked = {term.path: term for term in terms(bound) if len(term.path) == 1}
        for id, values in zip((each.id for each in ranks.columns), Curve(ranks, schema).bounds, strict=True):
            path = schema.path_of(id)
            if path not in asked:
                continue
            others = {
                name: pa.nulls(len(values), term.type)
                for (name,), term in asked.items()
                if (name,) != path and term.type is not None
            }
            try:
                found = evaluate(bound, pa.table({path[0]: values, **others}))
            except (KeyError, pa.ArrowException):
                return True  # what cannot be found out, may be
            if pc.any(found, min_count=0).as_py():
                return True
    return False


def foreign_of(head: TableHead, held: Mapping[str, int]) -> list[str]:
    """Return those files that are another writer's: not the table's own, nor an owner's of a clone."""
    folders = [f"{head.logs.url(origin.location).rstrip('/')}/" for origin in head.state.origins]
    return sorted(
        path for path in held if is_elsewhere(path) and not any(path.startswith(folder) for folder in folders)
    )
