"""Reading the changes of a table as a stream: its contents once as inserts, or from some version on, then all changes.

A version is in one batch as a whole. Where changes are compared with each other, Spark uses the time of a version as
event time, and drops late rows: so each batch has later times than all before it, in milliseconds, which is Spark's
unit. Otherwise it moves like a stream of added rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import msgspec
import pyarrow as pa

from lakelog.catalog.changelog.changelog import INSERT, Changelog, as_change
from lakelog.catalog.changelog.file_diffs import ENTRY, entries
from lakelog.catalog.changelog.stream_positions import Limits, Position, Spent
from lakelog.catalog.changelog.stream_source import Stream
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.schema import ready
from lakelog.log.errors import InvalidInput, NotFound


class ChangePosition(Position, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The position at which a stream of changes continues. `time_ms` is the latest time of any change before it."""

    reads: ClassVar[str] = "changes"

    time_ms: int

    @classmethod
    def first(cls, table: str, generation: int, version: int, *, whole: bool = False) -> Self:
        return cls(
            table=table,
            generation=generation,
            version=version,
            whole=whole,
            begun=version,
            begun_whole=whole,
            time_ms=0,
        )

    def origin(self) -> ChangePosition:
        return msgspec.structs.replace(
            self, version=self.begun, index=0, whole=self.begun_whole, time_ms=0, read=msgspec.UNSET
        )


ready(ChangePosition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStream(Stream):
    """A stream of changes of `table`, up to those of the version `last` or of the time `last_us` where it has an end.

    `compared`: the reader compares changes with each other, and has times in milliseconds.
    """

    kind: ClassVar[type[Position]] = ChangePosition

    last: int | None = None
    last_us: int | None = None
    compared: bool = True

    @property
    def _oldest(self) -> int:
        # The changes of rows by a replace are not known; a version that also created the table changed none.
        generation = self.newest.metadata.generation
        return generation + 1 if generation > 1 else generation

    def head(self) -> Position:
        return self._marked(None, self._first(self._last + 1))

    def next(self, position: Position, limits: Limits, until: Position | None = None) -> Position:
        """As `Stream.next`, but always at the end of a version: one larger than `limits` is a batch of its own."""
        self._check_same(_of_changes(position))
        return self._marked(position, self._next(position, limits, until))

    def _next(self, position: Position, limits: Limits, until: Position | None) -> Position:
        position = _of_changes(position)
        last = self._last if until is None else min(self._last, until.version - 1)
        spent, here = Spent(), position
        if here.whole:
            files = self._whole(here.version)
            for size, rows in zip(files["size"].to_pylist(), files["rows"].to_pylist(), strict=True):
                spent = spent.with_file(size, rows)
            here = self._behind(here, position, here.version, self._time_us(here.version))
        for seen in self._seen(here.version, last):
            reason = self._change_of_columns(seen)
            if reason is not None:
                if position.order < here.order:
                    return here
                raise reason
            more = spent + seen.spent
            if spent.files and more.exceeds(limits):
                return here
            spent = more
            here = self._behind(here, position, seen.version, seen.time_us)
        return here if here.version > last else here.moved(last + 1)

    def files(self, start: Position, end: Position) -> pa.Table:
        """Return the files of the changes between two positions, in the form of `Changelog.plan`."""
        start, end = _of_changes(start), _of_changes(end)
        self._check_same(end)
        if (start.begun, start.begun_whole) != (end.begun, end.begun_whole):
            # A retry of the first batch, by a process that does not know where it began.
            start = end.origin()
        found = [ENTRY.empty_table()]
        first = start.version
        if start.whole and start.order < end.order:
            found.append(self._inserts(start))
            first += 1
        if first < end.version:
            for seen in self._seen(first, end.version - 1):
                reason = self._change_of_columns(seen)
                if reason is not None:
                    raise reason
            found.append(self._changes(start, first, end.version - 1))
        return pa.concat_tables(found)

    @property
    def _last(self) -> int:
        """The last existing version that the stream reads."""
        newest = self.newest.version if self.last is None else min(self.newest.version, self.last)
        if self.last_us is None or self.newest.time_us <= self.last_us:
            return newest
        return min(newest, self.versions.at_time(self.newest, self.last_us))

    def _behind(
        self, here: ChangePosition, start: ChangePosition, version: int, time_us: int
    ) -> ChangePosition:
        """Return the position behind the changes of a version, in the batch that begins at `start`."""
        time_ms = max(here.time_ms, self._shown_us(start, time_us) // 1000)
        return msgspec.structs.replace(
            here, version=version + 1, index=0, whole=False, time_ms=time_ms, read=msgspec.UNSET
        )

    def _shown_us(self, start: ChangePosition, time_us: int) -> int:
        """Return the time that a version has in the batch that begins at `start`."""
        if not self.compared:
            return time_us
        # Rounded up: then a watermark in milliseconds is not before the last version, and releases it. So several
        # versions may have one time, but only in one batch.
        return max(-(-time_us // 1000), start.time_ms + 1) * 1000

    def _time_us(self, version: int) -> int:
        return self.newest.at_version(version).time_us

    def _inserts(self, start: ChangePosition) -> pa.Table:
        version = start.version
        time_us = self._shown_us(start, self._time_us(version))
        rows = [
            as_change(entry, INSERT, version, time_us, self.name) for entry in entries(self._whole(version))
        ]
        return pa.Table.from_pylist(rows, schema=ENTRY)

    def _changes(self, start: ChangePosition, first: int, last: int) -> pa.Table:
        try:
            log = Changelog(self.newest, first, last, columns_of_newest=True)
            return log.plan(time_of=lambda diff: self._shown_us(start, diff.time_us))
        except NotFound as error:
            raise StreamStopped(
                f"{error}. Changes may be lost. Start the query with a new checkpoint, from the present contents"
            ) from error


def _of_changes(position: Position) -> ChangePosition:
    """Return a position that a checkpoint has. InvalidInput for one of a stream of rows."""
    if not isinstance(position, ChangePosition):
        raise InvalidInput(
            "the checkpoint is of a stream of rows, and this one is of changes: begin with a new checkpoint"
        )
    return position
