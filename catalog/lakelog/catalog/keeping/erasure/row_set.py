"""Which rows an erasure is about: the ids of all that match, at any version and by any name that a column had then.

A row keeps its id when it is changed or moved, so its older and newer copies are found by it, whatever the condition
says of each. A condition is read by the names of each version from the one that added a file on: a name that a column
had only before that says nothing about the file's rows. It must not know lines, nor what becomes of a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import FIRST_ROW, VERSION, physical_rows
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.planning import (
    Bound,
    IsTrue,
    Specs,
    bind,
    evaluate,
    match,
    may_match,
    terms,
    unknown_parts,
)
from lakelog.catalog.core.schema import Predicate, Schema
from lakelog.catalog.keeping.erasure.history import history_of
from lakelog.catalog.keeping.erasure.lost_columns import columns_of, lost_columns, may_be_lost, with_lost
from lakelog.catalog.keeping.erasure.texts import values_of
from lakelog.catalog.keeping.erasure.work import ErasureWork, NumberArray, as_written, united
from lakelog.log.errors import InvalidInput, NotFound, Unsupported


def bound_to(predicate: Predicate, schema: Schema) -> Bound:
    """Return the condition for these columns. NoSuchColumn for a column that is not there, Unsupported for a condition
    that lakelog does not know."""
    bound = bind(predicate, schema)
    unknown = unknown_parts(bound)
    if unknown:
        raise Unsupported(
            f"rows cannot be forgotten by {next(iter(unknown))!s}, which only an engine can evaluate: use comparisons, "
            "IN, LIKE 'a%', IS NULL, AND, OR and NOT of columns and literals"
        )
    return bound


@dataclass(frozen=True, slots=True)
class Reading:
    """The condition by the names that columns had before version `until`; None: by those that they have."""

    schema: Schema
    bound: Bound
    until: int | None = None

    @property
    def columns(self) -> tuple[object, ...]:
        """The columns that the condition is about, whatever they are called."""
        return tuple((term.column_id, term.type, term.transform) for term in terms(self.bound))


@dataclass(frozen=True, slots=True)
class _Judged:
    """How many rows of a file match by one reading, and how many of these have no id."""

    rows: int
    without_id: int


@dataclass(slots=True)
class RowSet:
    """The rows of one table's log that an erasure is about. `ids`, ascending, are those that are known by now; a clone
    begins with those that it shares with its source. `readings` has the table's own names last."""

    predicate: Predicate
    work: ErasureWork
    readings: list[Reading]
    ids: NumberArray = field(default_factory=lambda: np.empty(0, np.int64))
    whole: bool = False
    """Whether all files are read, whatever is known of them."""
    past: list[pa.Table] = field(default_factory=list)
    """Entries of the files that versions have, from the first that can be read on; some are on a line, too."""
    unnamed: list[str] = field(default_factory=list)
    """Columns of files, by their names there, of which no version says what they were called."""
    first_names: list[Reading] = field(default_factory=list)
    """The condition by the names that columns had at first, where no version that can be read has these: of files that
    only expired versions had, nothing else is known."""
    undone: list[tuple[int, pa.Table]] = field(default_factory=list)
    """Versions of transactions that were aborted, or are undecided, with the entries of the files that they add."""
    quoting: bool = False
    """Whether a commit that is there keeps a statement that quotes a value of the condition."""
    first: int = 0
    """The first version that can be read."""
    present: Reading | None = None
    """The reading by the names that the table has now; None where a column of the condition is not there."""
    _judged: dict[tuple[str, tuple[object, ...]], _Judged] = field(default_factory=dict)
    _copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    _plain: set[str] = field(default_factory=set)

    def anew(self) -> RowSet:
        """Return the same rows, to be looked for in whole files, of which nothing is known but whether the ids of their
        rows follow from their place: a path never has another file."""
        return RowSet(
            self.predicate,
            self.work,
            self.readings,
            self.ids,
            whole=True,
            first=self.first,
            present=self.present,
            first_names=self.first_names,
            _plain=self._plain,
        )

    def shared(self, until: int) -> NumberArray:
        """Return the ids below `until`, as a clone has them."""
        return self.ids[: np.searchsorted(self.ids, until)]

    def note(self, head: TableHead, files: pa.Table, schema: Schema | None = None) -> None:
        """Learn the ids of all rows of these files that match, also of those that are deleted. `schema` is another one
        by which the files are read where they are."""
        self._note_all(head, files, self._readings(schema), head.metadata.specs)

    def note_past(self, head: TableHead, files: pa.Table) -> None:
        """Learn them of files from `past`, whose partitions are not known."""
        self._note_all(head, files, self.readings, ())

    def _note_all(self, head: TableHead, files: pa.Table, readings: Sequence[Reading], specs: Specs) -> None:
        for reading in readings:
            some = _added_before(files, reading.until)
            if some.num_rows:
                self._note(head, as_written(some), reading, specs)

    def _note(self, head: TableHead, files: pa.Table, reading: Reading, specs: Specs) -> None:
        columns = reading.columns
        paths = files["path"].to_pylist()
        files = files.filter(pa.array([(path, columns) not in self._judged for path in paths], pa.bool_()))
        if not files.num_rows:
            return
        if not self.whole:
            none = match(files, reading.bound, specs).none
            self._none(files.filter(none)["path"].to_pylist(), columns)
            files = files.filter(pc.invert(none))
        found = []
        for path, ids in self.work.matching(head, files, reading.schema, reading.bound, whole=self.whole):
            known = np.asarray(ids.drop_null(), np.int64)
            self._judged[path, columns] = _Judged(len(ids), ids.null_count)
            found.append(known)
        self._none(files["path"].to_pylist(), columns)
        self.ids = united([self.ids, *found])

    def _none(self, paths: Collection[str], columns: tuple[object, ...]) -> None:
        for path in paths:
            self._judged.setdefault((path, columns), _Judged(0, 0))

    def held(self, head: TableHead, files: pa.Table, schema: Schema | None = None) -> dict[str, int]:
        """Return those of the files, all of which are noted, that have such rows or copies of them, and how many."""
        self._count_copies(head, files)
        rows: dict[str, int] = {}
        for path in files["path"].to_pylist():
            judged = [self._judged.get((path, each.columns)) for each in self._readings(schema)]
            without = max((each.without_id for each in judged if each is not None), default=0)
            count = self._copies.get(path, (0, 0))[1] + without
            if count:
                rows[path] = count
        return rows

    def matching_now(self, paths: Iterable[str]) -> dict[str, int]:
        """Return how many rows of noted files match by the names that the table has now."""
        own = self.present
        found = {path: self._judged.get((path, own.columns)) if own else None for path in paths}
        return {path: 0 if judged is None else judged.rows for path, judged in found.items()}

    def _count_copies(self, head: TableHead, files: pa.Table) -> None:
        """Find out how many rows with the ids each file has. One without ids of other files is not read again."""
        if not len(self.ids):
            return
        known = len(self.ids)
        files = as_written(files)
        paths = files["path"].to_pylist()
        firsts = files[FIRST_ROW].to_pylist() if FIRST_ROW in files.column_names else [None] * len(paths)
        unread = []
        for path, first, rows in zip(paths, firsts, physical_rows(files).to_pylist(), strict=True):
            if self._copies.get(path, (-1, 0))[0] == known:
                unread.append(False)
                continue
            if first is not None and first + rows <= self.ids[0]:
                # Ids only go up: it is older than all of these rows.
                self._copies[path] = known, 0
                unread.append(False)
                continue
            if path in self._plain:
                low, high = np.searchsorted(self.ids, [first, first + rows])
                self._copies[path] = known, int(high - low)
                unread.append(False)
                continue
            unread.append(True)
        files = files.filter(pa.array(unread, pa.bool_()))
        if files.num_rows:
            for path, count, is_plain in self.work.copies(head, files, self.ids):
                self._copies[path] = known, count
                if is_plain:
                    self._plain.add(path)

    def may_be_in(self, files: pa.Table) -> bool:
        """Return whether such rows may have been in files that are gone, by their bounds alone. Those of a clone that
        has them by ids, and no column of the condition, may have been in any."""
        if not self.readings and len(self.ids):
            return True
        for reading in (*self.readings, *self.first_names):
            some = _added_before(files, reading.until)
            if some.num_rows and pc.any(may_match(some, reading.bound, ()), min_count=0).as_py():
                return True
        return False

    def may_be_bounds(self, statistics: pa.Table, version: int) -> bool:
        """Return whether bounds of the table at a version, in the form of one file, may be of such rows. Where that
        version can be read, its rows have been: then a bound is only of one if it is a value that is looked for."""
        if version < self.first:
            return self.may_be_in(statistics)
        return any(
            is_value(reading.bound, term.column_id, statistics[name].combine_chunks())
            for reading in self.readings
            for term in terms(reading.bound)
            for name in (f"lo{term.column_id}", f"hi{term.column_id}")
            if name in statistics.column_names
        )

    def _readings(self, schema: Schema | None) -> list[Reading]:
        """Return each of the readings whose columns are others than those of the ones before."""
        readings = {each.columns: each for each in self.readings}
        if schema is not None:
            found = _reading(self.predicate, schema, None)
            if found is not None:
                readings[found.columns] = found
        return list(readings.values())


def is_value(bound: Bound, column_id: int, values: pa.Array) -> bool:
    """Return whether one of a column's values is by itself one that the condition is about."""
    asked = {term.path: term for term in terms(bound) if len(term.path) == 1}
    found = [path for path, term in asked.items() if term.column_id == column_id]
    others = {
        path[0]: pa.nulls(len(values), term.type)
        for path, term in asked.items()
        if path not in found and term.type is not None
    }
    for path in found:
        try:
            matching = evaluate(IsTrue(bound), pa.table({path[0]: values, **others}))
        except (KeyError, pa.ArrowException):
            return True  # what cannot be found out, may be
        if pc.any(matching, min_count=0).as_py():
            return True
    return False


def row_set(
    head: TableHead,
    predicate: Predicate,
    work: ErasureWork,
    shared: NumberArray | None = None,
) -> RowSet:
    """Return the rows that match, of which only the ids are known that are `shared`, and the names that columns had at
    each version that can be read. Costs a GET for each of these. NoSuchColumn if no version has such a column,
    except for a clone, which has `shared` rows."""
    history = history_of(head, values_of(predicate))
    schemas, past, first = history.schemas, history.past, history.first
    readings: dict[tuple[object, ...], Reading] = {}
    for schema, until in schemas:
        found = _reading(predicate, schema, until)
        if found is None:
            continue
        before = readings.pop(found.columns, None)
        if before is not None and before.until is None:
            found = before
        readings[found.columns] = found
    found_columns, names = [schema for schema, _ in schemas], {}
    if may_be_lost(found_columns, head.schema.last_id):
        kept = [
            chunk for state in head.state.kept() for chunk in state.files.chunks(head.tracked.log.read_blobs)
        ]
        lost = lost_columns(head, found_columns, [*kept, *past])
        for name, schema in with_lost(predicate, head.schema, lost).items():
            reading = _reading(predicate, schema, None)
            if reading is not None:
                readings.setdefault(reading.columns, reading)
                del lost[name]
        names = lost
    if not readings and shared is None:
        bound_to(predicate, head.schema)
    rows = RowSet(predicate, work, list(readings.values()), past=past, unnamed=sorted(names), first=first)
    rows.present = _reading(predicate, head.schema, None)
    rows.undone, rows.quoting = history.undone, history.quoting
    known = {each.columns for each in rows.readings}
    for schema in with_lost(predicate, head.schema, columns_of(found_columns)).values():
        reading = _reading(predicate, schema, None)
        if reading is not None and reading.columns not in known:
            rows.first_names.append(reading)
    if shared is not None:
        rows.ids = shared
    return rows


def _reading(predicate: Predicate, schema: Schema, until: int | None) -> Reading | None:
    try:
        return Reading(schema, bound_to(predicate, schema), until)
    except (InvalidInput, NotFound):
        return None  # no column of that name, or one that cannot be compared with such a value


def _added_before(files: pa.Table, until: int | None) -> pa.Table:
    """Return the files that were there before a version; what is not known of, may have been."""
    if until is None or VERSION not in files.column_names:
        return files
    return files.filter(pc.fill_null(pc.less(files[VERSION], until), True))
