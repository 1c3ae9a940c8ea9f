"""Reading the changes of a table as a stream: its contents once as inserts, or from some version on, then all changes.

A version is in one batch as a whole, so that a reader can compare the changes of a batch with each other and needs
nothing of other batches. Otherwise it moves like a stream of added rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import pyarrow as pa

from lakelog.catalog.core.schema import ready
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.looking.changelog.changelog import INSERT, Changelog, as_change
from lakelog.catalog.looking.changelog.file_diffs import ENTRY, entries
from lakelog.catalog.looking.changelog.stream_positions import Limits, Position, Spent
from lakelog.catalog.looking.changelog.stream_source import Batch, Stream
from lakelog.log.errors import InvalidInput, NotFound


class ChangePosition(Position, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
class ChangeStream(Stream):
    """A stream of changes of `table`, up to those of the version `last` or of the time `last_us` if it has an end."""

    kind: ClassVar[type[Position]] = ChangePosition

    last: int | None = None
    last_us: int | None = None

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
        spent = Spent()
        here: Position = position
        if here.whole:
            files = self._whole(here.version)
            for size, rows in zip(files["size"].to_pylist(), files["rows"].to_pylist(), strict=True):
                spent = spent.with_file(size, rows)
            here = here.moved(here.version + 1)
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
            here = here.moved(seen.version + 1)
        return here if here.version > last else here.moved(last + 1)

    def batch(self, start: Position, end: Position) -> Batch:
        """Return the files of the changes between two positions, in the form of `Changelog.plan`."""
        start, end = _of_changes(start), _of_changes(end)
        self._check_same(end)
        if (start.begun, start.begun_whole) != (end.begun, end.begun_whole):
            # A retry of the first batch, by a process that does not know where it began.
            start = end.origin()
        first = start.version
        found = [ENTRY.empty_table()]
        whole = start.whole and start.order < end.order
        if whole:
            found.append(self._inserts(start.version))
            first += 1
        if first >= end.version:
            return Batch(files=pa.concat_tables(found))
        for seen in self._seen(first, end.version - 1):
            reason = self._change_of_columns(seen)
            if reason is not None:
                raise reason
        log, files = self._changes(first, end.version - 1)
        return Batch(
            files=pa.concat_tables([*found, files]),
            may_carry=log.may_carry,
            may_update=log.may_update,
            may_repeat=log.may_repeat or (whole and any(diff.takes_rows for diff in log.diffs)),
        )

    def files(self, start: Position, end: Position) -> pa.Table:
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


def _of_changes(position: Position) -> ChangePosition:
    """Return a position that a checkpoint has. InvalidInput for one of a stream of rows."""
    if not isinstance(position, ChangePosition):
        raise InvalidInput(
            "the checkpoint is of a stream of rows, and this one is of changes: begin with a new checkpoint"
        )
    return position
