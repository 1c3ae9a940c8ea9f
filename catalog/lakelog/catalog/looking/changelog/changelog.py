"""Changes of a table's rows: which rows each version inserted and deleted, planned as files to be read.

A deleted row is read from the file that it was in, with all other rows of that file marked as deleted. An
update is a delete and an insert of the same id in the same version. A row that was only copied is a delete
and an insert of the same id and row version. This module does not combine them (see `net_changes`, and
Spark). Rows have the table's columns at the end of the versions, and five more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import (
    CONSTANTS,
    DELETES,
    FIRST_ROW,
    constants_from_json,
    constants_to_json,
    deletes_from_json,
    deletes_to_json,
    inline_deletes,
)
from lakelog.catalog.core.logs import HasHead, TableHead, read_vector
from lakelog.catalog.core.parquet import in_order
from lakelog.catalog.core.planning import Bound, bind, may_match
from lakelog.catalog.core.schema import (
    AtomicType,
    Field,
    Filter,
    Metadata,
    Schema,
    TypedValue,
    as_predicate,
    children,
    equal_keys,
    with_children,
)
from lakelog.catalog.core.writes import wider_type
from lakelog.catalog.looking.changelog.file_diffs import ENTRY, FileDiff, FileDiffs, FileEntry, file_diffs
from lakelog.log.errors import FormatError, InvalidInput, NotFound

if TYPE_CHECKING:
    from pyroaring import BitMap

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
_ADDED = tuple(
    Field(id=id, name=name, physical=name, type=AtomicType(type))
    for id, name, type in (
        (2_000_000_001, CHANGE_TYPE, "string"),
        (2_000_000_002, COMMIT_VERSION, "long"),
        (2_000_000_003, COMMIT_TIMESTAMP, "timestamp"),
    )
)
"""Columns that no file has. Their values are in the entries of the changes, under ids that no column has."""

INSERT, DELETE = "insert", "delete"
_VECTORS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """The requested range of changes, by versions or by times in microseconds.

    `with_start` and `with_end` include the ends. Without an end, it ends at the newest version. With
    `start_latest`, it begins with the next version.
    """

    start_version: int | None = None
    start_latest: bool = False
    end_version: int | None = None
    start_us: int | None = None
    end_us: int | None = None
    with_start: bool = True
    with_end: bool = True

    def __post_init__(self) -> None:
        starts = (self.start_version, self.start_us, self.start_latest or None)
        ends = (self.end_version, self.end_us)
        if starts.count(None) != 2 or ends.count(None) == 0:
            raise InvalidInput(
                "changes start at a version or at a time: give exactly one start, and at most one end"
            )
        if self.start_latest and self.end_version is not None:
            raise InvalidInput(
                f"changes from the latest version on begin with the next version, and version {self.end_version} is "
                "before that: leave out the end"
            )
        for start, end in ((self.start_version, self.end_version), (self.start_us, self.end_us)):
            if start is not None and end is not None and start > end:
                raise InvalidInput(f"changes cannot start at {start} and end at {end}, which is before that")

    @property
    def last_us(self) -> int | None:
        """The last time that a version of the range can have, if the range ends at a time."""
        return None if self.end_us is None else self.end_us - (not self.with_end)


def changelog_of(table: HasHead, asked_range: ChangeRange) -> Changelog:
    """Return the requested changes of a table or branch.

    In a transaction, its own changes are left out. Raises InvalidInput for a tag.
    """
    first, last = asked_versions(table, asked_range)
    return Changelog(table.table_head.at_version(table.table_head.version), first, last)


def asked_versions(table: HasHead, asked_range: ChangeRange) -> tuple[int, int]:
    """As `versions_of`, for a table or branch. Raises InvalidInput for a tag."""
    head = table.table_head
    if head.is_tag:
        raise InvalidInput(
            f"{head.name} is on {head.ref}, which is a tag and never changes: read the changes of the table or of a "
            "branch"
        )
    return versions_of(asked_range, head)


def versions_of(asked_range: ChangeRange, head: TableHead) -> tuple[int, int]:
    """Return the first and the last version of the requested changes.

    If there are none, the last is before the first. Raises NotFound if a requested version does not exist.
    """
    tracked, newest, name = head.tracked, head.version, head.name
    if tracked.transaction.creates_log:
        raise NotFound(f"{name} has no version yet: this transaction creates it")
    for version in (asked_range.start_version, asked_range.end_version):
        if version is not None and not 1 <= version <= newest:
            raise NotFound(f"{name} has no version {version}: its versions are 1 to {newest}")

    def at(time_us: int) -> int:
        try:
            return min(tracked.version_at_time(time_us), newest)
        except NotFound:
            return 0

    if asked_range.start_latest:
        first = newest + 1
    elif asked_range.start_version is not None:
        first = asked_range.start_version + (not asked_range.with_start)
    else:
        assert asked_range.start_us is not None
        first = at(asked_range.start_us - asked_range.with_start) + 1
    if asked_range.end_version is not None:
        last = asked_range.end_version - (not asked_range.with_end)
    elif asked_range.last_us is not None:
        last = at(asked_range.last_us)
    else:
        last = newest
    return first, last


def changes_schema(schema: Schema) -> Schema:
    """Return a table's columns, and the columns that describe each change.

    All are nullable because a deleted row may be older than a column's NOT NULL. Raises InvalidInput if a
    table's column has the name of an added column.
    """
    table_names = {field.name.lower() for field in schema.fields}
    for field in _ADDED:
        if field.name in table_names:
            raise InvalidInput(
                f"the table's column {field.name} has the name of a column of its changes: rename it to read them"
            )
    return Schema(fields=(*map(_may_be_null, schema.fields), *_ADDED), last_id=schema.last_id)


def _may_be_null(field: Field) -> Field:
    parts = tuple(map(_may_be_null, children(field.type)))
    return msgspec.structs.replace(
        field, type=with_children(field.type, parts) if parts else field.type, nullable=True,
        generated=None, identity=None,
    )  # fmt: skip


class Changelog:
    """The changes of the versions from `first` to `last` of a table, or of the branch that `newest` is on.

    Changes have the columns of `newest` with `columns_of_newest`, else the columns of `last`. Raises NotFound
    if a version has expired. Raises InvalidInput if rows of different versions cannot be in the same table.
    """

    def __init__(
        self,
        newest: TableHead,
        first: int,
        last: int,
        *,
        columns_of_newest: bool = False,
    ) -> None:
        self.newest = newest
        self.first = first
        self.last = last
        newest.note_rows_read(None)
        if columns_of_newest or not 1 <= last < newest.version:
            self._end = newest
        else:
            self._end = newest.at(newest.view_at(last))
            if self._end.id != newest.id:
                raise NotFound(f"version {last} at the place of {newest.name} belongs to another table")
        self.schema = changes_schema(self.metadata.schema)
        self._diffs = self._compared()

    @classmethod
    def of(cls, table: HasHead, first: int, last: int) -> Changelog:
        """Return the changelog of a table, or of the branch that it is on."""
        return cls(table.table_head, first, last)

    @property
    def metadata(self) -> Metadata:
        """The metadata of the version whose columns the changes have."""
        return self._end.metadata

    @property
    def end_version(self) -> int:
        """The version whose columns the changes have."""
        return self._end.version

    @property
    def diffs(self) -> Sequence[FileDiff]:
        return self._diffs

    @property
    def may_carry(self) -> bool:
        """Whether there may be rows that are deleted and inserted unchanged."""
        return any(diff.may_carry for diff in self._diffs)

    @property
    def may_update(self) -> bool:
        """Whether a version may delete and insert a row of the same id."""
        return any(diff.may_update for diff in self._diffs)

    @property
    def may_repeat(self) -> bool:
        """Whether several versions may change the same row."""
        active = [diff for diff in self._diffs if diff.takes_rows or diff.brings_rows]
        takes, brings = (any(d.takes_rows for d in active), any(d.brings_rows for d in active))
        return len(active) > 1 and takes and brings

    def plan(
        self,
        predicate: Filter | None = None,
        versions: Collection[int] | None = None,
    ) -> pa.Table:
        """Return the files with the changes of these versions (None: all), in order.

        Files that cannot match the predicate are left out. It compares only kinds of change, versions and
        times. Files have the columns of `plan_scan`, and are read by `schema`. Reads the vectors of files
        whose deleted rows changed.
        """
        bound = None if predicate is None else bind(as_predicate(predicate), self.schema)
        diff_changes = [
            (diff, change)
            for diff, change in self._wanted(bound)
            if versions is None or diff.version in versions
        ]
        rows = [
            as_change(entry, change, diff.version, diff.time_us, self.newest.name)
            for diff, change, entries in in_order(diff_changes, self._entries, _VECTORS_AT_ONCE)
            for entry in entries
        ]
        return pa.Table.from_pylist(rows, schema=ENTRY)

    def _wanted(self, bound_condition: Bound | None) -> list[tuple[FileDiff, str]]:
        parts = [
            (diff, change)
            for diff in self._diffs
            for change, is_there in ((DELETE, diff.takes_rows), (INSERT, diff.brings_rows))
            if is_there
        ]
        if bound_condition is None or not parts:
            return parts
        columns: dict[str, pa.Array] = {
            "rows": pa.array([1] * len(parts), pa.int64()),
            "spec": pa.array([0] * len(parts), pa.int32()),
        }
        values = (
            pa.array([change for _, change in parts], pa.string()),
            pa.array([diff.version for diff, _ in parts], pa.int64()),
            pa.array([diff.time_us for diff, _ in parts], pa.timestamp("us", "UTC")),
        )
        for field, column in zip(_ADDED, values, strict=True):
            columns[f"lo{field.id}"] = columns[f"hi{field.id}"] = column
            columns[f"nulls{field.id}"] = pa.array([0] * len(parts), pa.int64())
        mask = may_match(pa.table(columns), bound_condition, ()).to_pylist()
        return [part for part, keep in zip(parts, mask, strict=True) if keep]

    def _entries(self, part: tuple[FileDiff, str]) -> Iterator[tuple[FileDiff, str, list[FileEntry]]]:
        diff, change = part
        whole = diff.added if change == INSERT else diff.removed
        yield diff, change, list(whole)
        for old, new in diff.changed:
            deleted_rows, restored_rows = self._difference(old, new)
            rows = restored_rows if change == INSERT else deleted_rows
            if rows:
                yield diff, change, [_only(new, rows)]

    def _difference(self, old: FileEntry, new: FileEntry) -> tuple[BitMap, BitMap]:
        """Return the positions of rows deleted only in `new`, and of rows deleted only in `old`."""
        old_deletes, new_deletes = (
            read_vector(
                self.newest.tracked.store,
                self.newest.tracked.prefix,
                None if entry[DELETES] is None else deletes_from_json(entry[DELETES]),
                _physical_rows(entry),
            )
            for entry in (old, new)
        )
        return new_deletes - old_deletes, old_deletes - new_deletes

    # Comparing versions

    def _compared(self) -> Sequence[FileDiff]:
        if self.last < self.first:
            return ()
        name, oldest_version = self.newest.name, self.newest.state.expired
        if self.first <= oldest_version != 1:
            # The oldest retained version has its rows, but no commit.
            raise NotFound(
                f"the changes of version {self.first} of {name} are no longer known: versions before {oldest_version} "
                f"have expired. Read changes from version {oldest_version + 1} on, and let expire keep more versions"
            )
        try:
            diffs = file_diffs(self.newest, self.first, self.last, self._before)
        except NotFound as error:
            raise NotFound(
                f"the changes of {name} from version {self.first} to {self.last} can no longer be read: {error}"
            ) from error
        if diffs.made is not None:
            raise InvalidInput(
                f"{name} is on a branch that was created in version {diffs.made}: read its changes after that "
                "version, and earlier ones of the table itself"
            )
        if diffs.replaced:
            at = diffs.replaced[-1]
            raise InvalidInput(
                f"{name} was replaced in version {at}: earlier rows have none of its columns. Read the "
                f"changes up to version {at - 1}, or after version {at}"
            )
        self._check_types(diffs)
        return diffs.diffs

    def _before(self) -> TableHead:
        if self.first < 2:
            raise FormatError(
                f"{self.newest.tracked.log.location}: the first version of {self.newest.name} removes rows: find out "
                "which client wrote it"
            )
        previous_head = self.newest.at(self.newest.view_at(self.first - 1))
        if previous_head.id != self.newest.id:
            raise NotFound(f"version {self.first - 1} belongs to another table")
        return previous_head

    def _check_types(self, diffs: FileDiffs) -> None:
        for version, schema in diffs.schemas:
            misfit = wider_type(schema, self.metadata.schema) or equal_keys(schema, self.metadata.schema)
            if misfit is not None:
                raise InvalidInput(
                    f"rows of version {version} of {self.newest.name} do not fit the columns that it has at version "
                    f"{self.end_version}: {misfit}. Read the changes up to a version before its rollback"
                )


def as_change(entry: FileEntry, change: str, version: int, time_us: int, name: str) -> FileEntry:
    """Return the entry of a file whose rows are all the same kind of change, in a version of the table
    `name`.

    Raises InvalidInput if its rows have no ids.
    """
    if entry[FIRST_ROW] is None:
        raise InvalidInput(
            f"version {version} of {name} changed rows that have no ids: the file {entry['path']} was written by a "
            "lakelog that did not number rows. Read the changes of later versions"
        )
    constants = {} if entry[CONSTANTS] is None else constants_from_json(entry[CONSTANTS])
    values: tuple[str | int, ...] = (change, version, time_us)
    for field, value in zip(_ADDED, values, strict=True):
        assert isinstance(field.type, AtomicType)
        constants[field.id] = TypedValue(type=field.type.name, value=value)
    return {**entry, CONSTANTS: constants_to_json(constants)}


def _physical_rows(entry: FileEntry) -> int:
    deleted_rows = 0 if entry[DELETES] is None else deletes_from_json(entry[DELETES]).rows
    return int(entry["rows"]) + deleted_rows


def _only(entry: FileEntry, rows: BitMap) -> FileEntry:
    """Return the entry of a file with only these rows live."""
    from pyroaring import BitMap

    physical = _physical_rows(entry)
    deleted_rows = rows.flip(0, physical) if physical else BitMap()
    deletes = deletes_to_json(inline_deletes(deleted_rows)) if deleted_rows else None
    return {**entry, "rows": len(rows), DELETES: deletes}
