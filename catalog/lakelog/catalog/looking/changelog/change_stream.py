"""Reading the changes of a table as a stream.

It begins with the contents as inserts, or at some version. All changes follow.

A batch holds whole versions. So a reader can compare the changes of a batch with each other, without other
batches. Otherwise it moves like a stream of added rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import pyarrow as pa

from lakelog.catalog.core.schema import ready
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.looking.changelog.changelog import INSERT, Changelog, as_change
from lakelog.catalog.looking.changelog.file_diffs import ENTRY, entries
from lakelog.catalog.looking.changelog.stream_positions import BatchSize, StreamLimits, StreamPosition
from lakelog.catalog.looking.changelog.stream_source import FileBatch, TableStream
from lakelog.log.errors import InvalidInput, NotFound


class ChangePosition(StreamPosition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The position at which a stream of changes continues."""

    reads: ClassVar[str] = "changes"

    kind: Literal["changes"]

    @classmethod
    def first(cls, table: str, generation: int, version: int, *, whole: bool = False) -> Self:
        return cls(
            table=table,
            generation=generation,
            version=version,
            whole=whole,
            begun=version,
            begun_whole=whole,
            kind="changes",
        )


ready(ChangePosition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStream(TableStream):
    """A stream of changes of `table`, up to the version `last` or the time `last_us` if it has an end."""

    kind: ClassVar[type[StreamPosition]] = ChangePosition

    last: int | None = None
    last_us: int | None = None

    @property
    def _oldest(self) -> int:
        # The row changes of a replace are not known. A version that also created the table changed
        # no rows.
        generation = self.newest.metadata.generation
        return generation + 1 if generation > 1 else generation

    def head(self) -> StreamPosition:
        return self._marked(None, self._first(self._last + 1))

    def next(
        self, position: StreamPosition, limits: StreamLimits, until: StreamPosition | None = None
    ) -> StreamPosition:
        """As `TableStream.next`, but always at the end of a version.

        A version larger than `limits` is its own batch.
        """
        self._check_same(_of_changes(position))
        return self._marked(position, self._next(position, limits, until))

    def _next(
        self, position: StreamPosition, limits: StreamLimits, until: StreamPosition | None
    ) -> StreamPosition:
        position = _of_changes(position)
        last = self._last if until is None else min(self._last, until.version - 1)
        batch_size = BatchSize()
        next_position: StreamPosition = position
        if next_position.whole:
            files = self._whole(next_position.version)
            for size, rows in zip(files["size"].to_pylist(), files["rows"].to_pylist(), strict=True):
                batch_size = batch_size.with_file(size, rows)
            next_position = next_position.moved(next_position.version + 1)
        for table_version in self._seen(next_position.version, last):
            reason = self._change_of_columns(table_version)
            if reason is not None:
                if position.order < next_position.order:
                    return next_position
                raise reason
            larger_size = batch_size + table_version.spent
            if batch_size.files and larger_size.exceeds(limits):
                return next_position
            batch_size = larger_size
            next_position = next_position.moved(table_version.version + 1)
        return next_position if next_position.version > last else next_position.moved(last + 1)

    def batch(self, start: StreamPosition, end: StreamPosition) -> FileBatch:
        """Return the files of the changes between two positions, in the form of `Changelog.plan`."""
        start, end = _of_changes(start), _of_changes(end)
        self._check_same(end)
        if (start.begun, start.begun_whole) != (end.begun, end.begun_whole):
            # A process that does not know the stream's start retries the first batch.
            start = end.origin()
        first = start.version
        tables = [ENTRY.empty_table()]
        whole = start.whole and start.order < end.order
        if whole:
            tables.append(self._inserts(start.version))
            first += 1
        if first >= end.version:
            return FileBatch(files=pa.concat_tables(tables))
        for table_version in self._seen(first, end.version - 1):
            reason = self._change_of_columns(table_version)
            if reason is not None:
                raise reason
        log, files = self._changes(first, end.version - 1)
        return FileBatch(
            files=pa.concat_tables([*tables, files]),
            may_carry=log.may_carry,
            may_update=log.may_update,
            may_repeat=log.may_repeat or (whole and any(diff.takes_rows for diff in log.diffs)),
        )

    def files(self, start: StreamPosition, end: StreamPosition) -> pa.Table:
        return self.batch(start, end).files

    @property
    def _last(self) -> int:
        """The last existing version that the stream reads."""
        newest = self.newest.version if self.last is None else min(self.newest.version, self.last)
        if self.last_us is None or self.newest.time_us <= self.last_us:
            return newest
        return min(newest, self.versions.at_time(self.newest, self.last_us))

    def _inserts(self, version: int) -> pa.Table:
        time_us = self.newest.at_version(version).time_us
        rows = [
            as_change(entry, INSERT, version, time_us, self.name) for entry in entries(self._whole(version))
        ]
        return pa.Table.from_pylist(rows, schema=ENTRY)

    def _changes(self, first: int, last: int) -> tuple[Changelog, pa.Table]:
        try:
            log = Changelog(self.newest, first, last, columns_of_newest=True)
            return log, log.plan()
        except NotFound as error:
            raise StreamStopped(
                f"{error}. Changes may be lost. Start the query with a new checkpoint, from the present contents"
            ) from error


def _of_changes(position: StreamPosition) -> ChangePosition:
    """Return a position from a checkpoint. Raises InvalidInput if it is from a stream of rows."""
    if not isinstance(position, ChangePosition):
        raise InvalidInput(
            "the checkpoint is of a stream of rows, and this one is of changes: begin with a new checkpoint"
        )
    return position
