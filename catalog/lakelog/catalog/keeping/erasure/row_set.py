"""The rows of an erasure: the ids of all rows that match at any version, by any name that a column had then.

A row keeps its id when it is changed or moved. So its id finds its older and newer copies, whether or not
they match the condition. For a file, a condition is read by the names of each version from the file's first
version on. A name that a column had only before that says nothing about the file's rows. This module must not
know lines, nor the further use of a file.
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
from lakelog.catalog.core.schema import Predicate, Ranks, Schema
from lakelog.catalog.keeping.erasure.history import history_of
from lakelog.catalog.keeping.erasure.lost_columns import columns_of, lost_columns, may_be_lost, with_lost
from lakelog.catalog.keeping.erasure.texts import values_of
from lakelog.catalog.keeping.erasure.work import ErasureWork, NumberArray, as_written, united
from lakelog.log.errors import InvalidInput, NotFound, Unsupported


def bound_to(predicate: Predicate, schema: Schema) -> Bound:
    """Return the condition for these columns.

    Raises NoSuchColumn for an unknown column, and Unsupported for a condition that lakelog cannot evaluate.
    """
    condition = bind(predicate, schema)
    unknown = unknown_parts(condition)
    if unknown:
        raise Unsupported(
            f"rows cannot be forgotten by {next(iter(unknown))!s}, which only an engine can evaluate: use comparisons, "
            "IN, LIKE 'a%', IS NULL, AND, OR and NOT of columns and literals"
        )
    return condition


@dataclass(frozen=True, slots=True)
class ConditionReading:
    """The condition by the names that columns had before version `until`. None means their present names."""

    schema: Schema
    bound: Bound
    until: int | None = None

    @property
    def columns(self) -> tuple[object, ...]:
        """Return the columns of the condition, whatever their names."""
        return tuple((term.column_id, term.type, term.transform) for term in terms(self.bound))


@dataclass(frozen=True, slots=True)
class _Judged:
    """The number of a file's rows that match a reading, and how many of these have no id."""

    rows: int
    without_id: int


@dataclass(slots=True)
class RowSet:
    """The rows of a table's log in an erasure.

    `ids`, ascending, are the ids known so far. A clone begins with the ids that it shares with its source.
    `readings` has the table's own names last.
    """

    predicate: Predicate
    work: ErasureWork
    readings: list[ConditionReading]
    ids: NumberArray = field(default_factory=lambda: np.empty(0, np.int64))
    whole: bool = False
    """Whether all files are read, whatever is known of them."""
    past: list[pa.Table] = field(default_factory=list)
    """Entries of the files of readable versions. Some are on a line, too."""
    unnamed: list[str] = field(default_factory=list)
    """Columns of files, by their names there, for which no version has a name."""
    first_names: list[ConditionReading] = field(default_factory=list)
    """The condition by the first names of columns, if no readable version has these names.

    For files that only expired versions had, nothing else is known.
    """
    undone: list[tuple[int, pa.Table]] = field(default_factory=list)
    """Versions of aborted or undecided transactions, with the entries of the files that they add."""
    quoting: bool = False
    """Whether an existing commit has a statement or a former definition that quotes a value."""
    ranks: list[tuple[Schema, Ranks]] = field(default_factory=list)
    """Boundaries of clusterings at readable versions."""
    schemas: list[tuple[Schema, int | None]] = field(default_factory=list)
    """The schemas of readable versions, each with the version that ended it, the present schema last."""
    first: int = 0
    """The first readable version."""
    present: ConditionReading | None = None
    """The reading by the table's present names. None if a column of the condition does not exist."""
    _judged: dict[tuple[str, tuple[object, ...]], _Judged] = field(default_factory=dict)
    _copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    _plain: set[str] = field(default_factory=set)

    def anew(self) -> RowSet:
        """Return the same rows for a search in complete files, without the known results.

        Only the knowledge that row ids follow from their positions is kept, because a path never has another
        file.
        """
        return RowSet(
            self.predicate,
            self.work,
            self.readings,
            self.ids,
            whole=True,
            first=self.first,
            present=self.present,
            schemas=self.schemas,
            first_names=self.first_names,
            _plain=self._plain,
        )

    def shared(self, until: int) -> NumberArray:
        """Return the ids below `until`, which a clone has."""
        return self.ids[: np.searchsorted(self.ids, until)]

    def note(self, head: TableHead, files: pa.Table, schema: Schema | None = None) -> None:
        """Learn the ids of all rows of these files that match, including deleted rows.

        `schema` is an additional schema by which the files are read at their place.
        """
        self._note_all(head, files, self._readings(schema), head.metadata.specs)

    def note_past(self, head: TableHead, files: pa.Table) -> None:
        """Learn the ids of matching rows of files from `past`, whose partitions are not known."""
        self._note_all(head, files, self.readings, ())

    def _note_all(
        self, head: TableHead, files: pa.Table, readings: Sequence[ConditionReading], specs: Specs
    ) -> None:
        for condition in readings:
            older_files = _added_before(files, condition.until)
            if older_files.num_rows:
                self._note(head, as_written(older_files), condition, specs)

    def _note(self, head: TableHead, files: pa.Table, reading: ConditionReading, specs: Specs) -> None:
        columns = reading.columns
        paths = files["path"].to_pylist()
        files = files.filter(pa.array([(path, columns) not in self._judged for path in paths], pa.bool_()))
        if not files.num_rows:
            return
        if not self.whole:
            has_no_match = match(files, reading.bound, specs).none
            self._none(files.filter(has_no_match)["path"].to_pylist(), columns)
            files = files.filter(pc.invert(has_no_match))
        id_arrays = []
        for path, ids in self.work.matching(head, files, reading.schema, reading.bound, whole=self.whole):
            known_ids = np.asarray(ids.drop_null(), np.int64)
            self._judged[path, columns] = _Judged(len(ids), ids.null_count)
            id_arrays.append(known_ids)
        self._none(files["path"].to_pylist(), columns)
        self.ids = united([self.ids, *id_arrays])

    def _none(self, paths: Collection[str], columns: tuple[object, ...]) -> None:
        for path in paths:
            self._judged.setdefault((path, columns), _Judged(0, 0))

    def held(self, head: TableHead, files: pa.Table, schema: Schema | None = None) -> dict[str, int]:
        """Return the files that have rows of the erasure or copies of them, with their counts.

        All of the files have to be noted before.
        """
        self._count_copies(head, files)
        rows: dict[str, int] = {}
        for path in files["path"].to_pylist():
            verdicts = [self._judged.get((path, item.columns)) for item in self._readings(schema)]
            without = max((item.without_id for item in verdicts if item is not None), default=0)
            count = self._copies.get(path, (0, 0))[1] + without
            if count:
                rows[path] = count
        return rows

    def matching_now(self, paths: Iterable[str]) -> dict[str, int]:
        """Return how many rows of noted files match by the table's present names."""
        own = self.present
        verdicts = {path: self._judged.get((path, own.columns)) if own else None for path in paths}
        return {path: 0 if verdict is None else verdict.rows for path, verdict in verdicts.items()}

    def _count_copies(self, head: TableHead, files: pa.Table) -> None:
        """Count the rows with the ids in each file. A file without ids of other files is not read again."""
        if not len(self.ids):
            return
        id_count = len(self.ids)
        files = as_written(files)
        paths = files["path"].to_pylist()
        firsts = files[FIRST_ROW].to_pylist() if FIRST_ROW in files.column_names else [None] * len(paths)
        unread = []
        for path, first, rows in zip(paths, firsts, physical_rows(files).to_pylist(), strict=True):
            if self._copies.get(path, (-1, 0))[0] == id_count:
                unread.append(False)
                continue
            if first is not None and first + rows <= self.ids[0]:
                # Ids only increase, so the file is older than all of these rows.
                self._copies[path] = id_count, 0
                unread.append(False)
                continue
            if path in self._plain:
                low, high = np.searchsorted(self.ids, [first, first + rows])
                self._copies[path] = id_count, int(high - low)
                unread.append(False)
                continue
            unread.append(True)
        files = files.filter(pa.array(unread, pa.bool_()))
        if files.num_rows:
            for path, count, is_plain in self.work.copies(head, files, self.ids):
                self._copies[path] = id_count, count
                if is_plain:
                    self._plain.add(path)

    def may_be_in(self, files: pa.Table) -> bool:
        """Return whether files that are gone may have had rows of the erasure, by their bounds alone.

        If a clone has the rows by ids, but no column of the condition, any file may have had them.
        """
        if not self.readings and len(self.ids):
            return True
        for condition in (*self.readings, *self.first_names):
            older_files = _added_before(files, condition.until)
            if (
                older_files.num_rows
                and pc.any(may_match(older_files, condition.bound, ()), min_count=0).as_py()
            ):
                return True
        return False

    def may_be_bounds(self, statistics: pa.Table, version: int) -> bool:
        """Return whether bounds of the table at a version, in the form of a file, may be of rows to erase.

        If that version is readable, its rows have been read. Then a bound counts only if it is itself a value
        of the condition.
        """
        if version < self.first:
            return self.may_be_in(statistics)
        return any(
            is_value(condition.bound, term.column_id, statistics[name].combine_chunks())
            for condition in self.readings
            for term in terms(condition.bound)
            for name in (f"lo{term.column_id}", f"hi{term.column_id}")
            if name in statistics.column_names
        )

    def _readings(self, schema: Schema | None) -> list[ConditionReading]:
        """Return the readings with distinct columns."""
        readings = {condition.columns: condition for condition in self.readings}
        if schema is not None:
            other_condition = _reading(self.predicate, schema, None)
            if other_condition is not None:
                readings[other_condition.columns] = other_condition
        return list(readings.values())


def is_value(bound_condition: Bound, column_id: int, values: pa.Array) -> bool:
    """Return whether a value of a column is itself a value of the condition."""
    terms_by_path = {term.path: term for term in terms(bound_condition) if len(term.path) == 1}
    column_paths = [path for path, term in terms_by_path.items() if term.column_id == column_id]
    null_columns = {
        path[0]: pa.nulls(len(values), term.type)
        for path, term in terms_by_path.items()
        if path not in column_paths and term.type is not None
    }
    for path in column_paths:
        try:
            mask = evaluate(IsTrue(bound_condition), pa.table({path[0]: values, **null_columns}))
        except (KeyError, pa.ArrowException):
            return True  # it may be such a value if it cannot be evaluated
        if pc.any(mask, min_count=0).as_py():
            return True
    return False


def row_set(
    head: TableHead,
    predicate: Predicate,
    work: ErasureWork,
    shared_array: NumberArray | None = None,
) -> RowSet:
    """Return the matching rows, with only `shared_array` ids known, and the columns' names at readable versions.

    Makes a GET request for each readable version. Raises NoSuchColumn if no version has such a column, except
    for a clone, which has `shared_array` rows.
    """
    history = history_of(head, values_of(predicate))
    schemas, past, first = history.schemas, history.past, history.first
    readings: dict[tuple[object, ...], ConditionReading] = {}
    for schema, until in schemas:
        condition = _reading(predicate, schema, until)
        if condition is None:
            continue
        older_condition = readings.pop(condition.columns, None)
        if older_condition is not None and older_condition.until is None:
            condition = older_condition
        readings[condition.columns] = condition
    all_schemas, names = [schema for schema, _ in schemas], {}
    if may_be_lost(all_schemas, head.schema.last_id):
        chunks = [
            chunk for state in head.state.kept() for chunk in state.files.chunks(head.tracked.log.read_blobs)
        ]
        unnamed_columns = lost_columns(head, all_schemas, [*chunks, *past])
        for name, schema in with_lost(predicate, head.schema, unnamed_columns).items():
            lost_condition = _reading(predicate, schema, None)
            if lost_condition is not None:
                readings.setdefault(lost_condition.columns, lost_condition)
                del unnamed_columns[name]
        names = unnamed_columns
    if not readings and shared_array is None:
        bound_to(predicate, head.schema)
    rows = RowSet(predicate, work, list(readings.values()), past=past, unnamed=sorted(names), first=first)
    rows.present = _reading(predicate, head.schema, None)
    rows.undone, rows.quoting = history.undone, history.quoting
    rows.ranks, rows.schemas = history.ranks, schemas
    known_columns = {item.columns for item in rows.readings}
    for schema in with_lost(predicate, head.schema, columns_of(all_schemas)).values():
        lost_condition = _reading(predicate, schema, None)
        if lost_condition is not None and lost_condition.columns not in known_columns:
            rows.first_names.append(lost_condition)
    if shared_array is not None:
        rows.ids = shared_array
    return rows


def _reading(predicate: Predicate, schema: Schema, until: int | None) -> ConditionReading | None:
    try:
        return ConditionReading(schema, bound_to(predicate, schema), until)
    except (InvalidInput, NotFound):
        return None  # no column of that name, or a column that cannot be compared with such a value


def _added_before(files: pa.Table, until: int | None) -> pa.Table:
    """Return the files that existed before a version. Files of unknown versions are included."""
    if until is None or VERSION not in files.column_names:
        return files
    return files.filter(pc.fill_null(pc.less(files[VERSION], until), True))
