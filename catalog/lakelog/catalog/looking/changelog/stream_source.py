"""Reading a table as a stream: its contents or a version's rows first, and then all added rows.

A stream moves from position to position. Between two positions lies a list of files, the same at every
request. It delivers rows that were added. A version that removes or changes rows stops it, unless such
versions are skipped. A compaction changes no rows. Nothing here is kept between two requests except a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import joined
from lakelog.catalog.core.logs import HasHead, TableHead
from lakelog.catalog.core.state import MAIN, form_of
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.looking.changelog.stream_positions import BatchSize, StreamLimits, StreamPosition
from lakelog.catalog.looking.changelog.stream_versions import StreamVersion, StreamVersions, expired
from lakelog.catalog.times import time_text
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

LATEST = "latest"
LOOKED_AT_ONCE = 1000
HASH_DIGITS = 16

RESTORED = (
    "Going on would pass over rows. Start the query with a new checkpoint, from the first version after that time "
    "(startingVersion, or startingTimestamp), or from the present contents"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBatch:
    """The files between two positions, and whether they may change a row several times (see `Changelog`)."""

    files: pa.Table
    may_carry: bool = False
    may_update: bool = False
    may_repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStream:
    """A stream over a table, whose newest version for the present request is `table`.

    The query reads columns of the form `form` (see `form_of`), which the table had at version `since`. `name`
    is the query's name of the table. With `skips_changes`, versions that change rows are skipped, with all
    that they add. With `skips_expired`, versions that expired before they were read are skipped.
    """

    kind: ClassVar[type[StreamPosition]] = StreamPosition

    table: HasHead
    name: str
    form: str
    since: int
    skips_changes: bool = False
    skips_expired: bool = False
    versions: StreamVersions = field(default_factory=StreamVersions)

    def __post_init__(self) -> None:
        if self.newest.ref != MAIN:
            raise Unsupported(
                f"a stream reads the table itself, but {self.name} is on {self.newest.ref}: leave {self.newest.ref} out"
            )

    @property
    def newest(self) -> TableHead:
        """The newest version of the table, under the query's name."""
        return replace(self.table.table_head, name=self.name)

    # The first position

    def position(self, text: str) -> StreamPosition:
        """Return a checkpoint's position.

        Raises FormatError for another text. Raises InvalidInput if the position is from another kind of
        stream.
        """
        return self.kind.from_json(text)

    def start(self, *, version: int | str | None = None, timestamp_us: int | None = None) -> StreamPosition:
        """Return the first position.

        Without arguments, it is before the present contents. Else it is before the rows that `version` added,
        that the next version adds (`latest`), or that the first version not older than `timestamp_us` added.
        Raises InvalidInput or StreamStopped if the stream cannot begin there.
        """
        return self._marked(None, self._start(version, timestamp_us))

    def _start(self, version: int | str | None, timestamp_us: int | None) -> StreamPosition:
        newest = self.newest.version
        if version is None and timestamp_us is None:
            if newest > self.since and form_of(self.newest.schema) != self.form:
                raise self._other_columns(f"since version {self.since}")
            return self._first(newest, whole=True)
        if version == LATEST:
            return self._first(newest + 1)
        if timestamp_us is not None:
            version = self._version_from(timestamp_us)
        if not isinstance(version, int):
            raise InvalidInput(f"startingVersion is {version!r}: give the number of a version, or {LATEST}")
        if not 1 <= version <= newest + 1:
            raise InvalidInput(
                f"{self.name} has no version {version} to start from: its versions are 1 to {newest}"
            )
        if version < self._oldest:
            raise InvalidInput(
                f"the stream cannot start from version {version} of {self.name}, which was replaced in version "
                f"{self.newest.metadata.generation}: start from version {self._oldest} or a later one"
            )
        if version <= self._expired != 1:
            # The oldest retained version has all rows, but does not say which rows it added.
            raise InvalidInput(
                f"the stream cannot start from version {version} of {self.name}: versions before {self._expired} "
                f"have expired. Start from version {self._expired + 1} or a later one, or without startingVersion and "
                "startingTimestamp, from the present contents"
            )
        return self._first(version)

    def head(self) -> StreamPosition:
        """Return the position after all versions."""
        return self._marked(None, self._first(self.newest.version + 1))

    @property
    def _oldest(self) -> int:
        """The first version of the present table. A replace begins another table."""
        return self.newest.metadata.generation

    def _first(self, version: int, *, whole: bool = False) -> StreamPosition:
        return self.kind.first(self.newest.id, self.newest.metadata.generation, version, whole=whole)

    def _version_from(self, timestamp_us: int) -> int:
        head = self.newest
        try:
            version = head.tracked.version_at_time(timestamp_us - 1) + 1
        except NotFound:
            return 1
        # If no version shows that the time has come, the store's clock has to.
        if version > head.version and head.logs.clocks.is_future(timestamp_us, head.tracked.location):
            raise InvalidInput(
                f"startingTimestamp is {time_text(timestamp_us)}, which is in the future: a stream begins with what "
                f"there is, or at startingVersion {LATEST}"
            )
        return version

    @property
    def _expired(self) -> int:
        return self.newest.state.expired

    # Batches

    def next(
        self, position: StreamPosition, limits: StreamLimits, until: StreamPosition | None = None
    ) -> StreamPosition:
        """Return the end of a batch that begins at `position`, within `limits` and not after `until`.

        The batch ends before a version at which the stream has to stop. Raises StreamStopped if it begins
        there. Makes a GET for each version that no stream of this process has read.
        """
        self._check_same(position)
        return self._marked(position, self._next(position, limits, until))

    def _next(
        self, position: StreamPosition, limits: StreamLimits, until: StreamPosition | None
    ) -> StreamPosition:
        last = min(self.newest.version, until.version - 1) if until is not None else self.newest.version
        batch_size, next_position = BatchSize(), self._kept(position)
        if until is not None and next_position.order > until.order >= position.order:
            return until
        if next_position.whole:
            end_index, batch_size = self._taken(
                self._whole(next_position.version), next_position.index, batch_size, limits
            )
            if end_index is not None:
                return next_position.within(end_index)
            next_position = next_position.moved(next_position.version + 1)
        for table_version in self._seen(next_position.version, last):
            reason = self._reason_to_stop(table_version)
            if reason is not None:
                if position.order < next_position.order:
                    return next_position.moved(table_version.version)
                raise reason
            if not (table_version.changes and self.skips_changes):
                index = next_position.index if table_version.version == next_position.version else 0
                end_index, batch_size = self._taken(table_version.files, index, batch_size, limits)
                if end_index is not None:
                    return next_position.moved(table_version.version, end_index)
            next_position = next_position.moved(table_version.version + 1)
        return next_position if next_position.version > last else next_position.moved(last + 1)

    def batch(self, start: StreamPosition, end: StreamPosition) -> FileBatch:
        return FileBatch(files=self.files(start, end))

    def files(self, start: StreamPosition, end: StreamPosition) -> pa.Table:
        """Return the files (in the form of `plan_scan`) between two positions, in the order of the stream."""
        self._check_same(end)
        if (start.begun, start.begun_whole) != (end.begun, end.begun_whole):
            # A process that does not know the stream's start retries the first batch.
            start = end.origin()
        start = self._kept(start)
        if start.order >= end.order:
            return joined([])
        tables: list[pa.Table] = []
        position = start
        if position.whole:
            stop = end.index if end.whole else None
            tables.append(_between(self._whole(position.version), position.index, stop))
            position = position.moved(position.version + 1)
        last = end.version if end.index and not end.whole else end.version - 1
        for table_version in self._seen(position.version, last):
            reason = self._reason_to_stop(table_version)
            if reason is not None:
                raise reason
            if not table_version.changes:
                index = position.index if table_version.version == position.version else 0
                tables.append(
                    _between(
                        table_version.files,
                        index,
                        end.index if table_version.version == end.version else None,
                    )
                )
        return joined(tables)

    def _kept(self, position: StreamPosition) -> StreamPosition:
        """Return the position, or the position after all expired versions if the stream may skip them."""
        oldest_version = self._expired
        is_there = position.version > oldest_version or (
            position.version == oldest_version and position.whole
        )
        if not self.skips_expired or oldest_version == 1 or is_there:
            return position
        # An expired version may have changed the columns.
        if (
            oldest_version > self.since
            and form_of(self.newest.at_version(oldest_version).schema) != self.form
        ):
            raise self._other_columns(f"since version {self.since}")
        return position.moved(oldest_version + 1)

    def _taken(
        self, files: pa.Table, index: int, spent_size: BatchSize, limits: StreamLimits
    ) -> tuple[int | None, BatchSize]:
        """Return the index in `files` at which the batch ends, and its size.

        None if it takes all from `index` on.
        """
        at = index
        # Part by part: most batches end long before the contents of a large table do.
        while at < files.num_rows:
            part = files.slice(at, LOOKED_AT_ONCE)
            for size, rows in zip(part["size"].to_pylist(), part["rows"].to_pylist(), strict=True):
                larger_size = spent_size.with_file(size, rows)
                if spent_size.files and larger_size.exceeds(limits):
                    return at, spent_size
                spent_size = larger_size
                at += 1
        return None, spent_size

    def _reason_to_stop(self, seen: StreamVersion) -> StreamStopped | None:
        reason = self._change_of_columns(seen)
        if reason is not None:
            return reason
        if seen.changes and not self.skips_changes:
            return StreamStopped(
                f"version {seen.version} of {self.name} ({seen.operation}; by {seen.author}) changed or removed rows, "
                "but a stream reads only added rows. Restart the query with the option skipChangeCommits = true, to "
                "skip such versions with all that they add; or read changes (spark.readStream.changes); or start it "
                "with a new checkpoint, "
                f"from the present contents or from version {seen.version + 1} on (startingVersion)"
            )
        return None

    def _change_of_columns(self, seen: StreamVersion) -> StreamStopped | None:
        if seen.version > self.since and seen.form is not None and seen.form != self.form:
            return self._other_columns(f"in version {seen.version} ({seen.operation}; by {seen.author})")
        return None

    def _other_columns(self, when: str) -> StreamStopped:
        return StreamStopped(
            f"the columns of {self.name} were changed {when}, after the query had begun to read it. All rows before "
            "that were delivered. Load the table again and restart the query with the same checkpoint, to continue "
            "with the present columns"
        )

    def _check_same(self, position: StreamPosition) -> None:
        if position.table != self.newest.id:
            raise StreamStopped(
                f"the checkpoint is of another table (with the id {position.table}) than {self.name} is now (with the "
                f"id {self.newest.id}): start the query with a new checkpoint"
            )
        generation = self.newest.metadata.generation
        if position.generation != generation:
            raise StreamStopped(
                f"{self.name} was replaced in version {generation}, but the stream has read the table before that: "
                "start the query with a new checkpoint"
            )
        if position.last_read > self.newest.version:
            raise StreamStopped(
                f"the checkpoint has read version {position.last_read} of {self.name}, whose newest is "
                f"{self.newest.version}: the table, or its bucket, was set back to an earlier time. {RESTORED}"
            )
        if position.read is not msgspec.UNSET and position.read != self._hash_of(position.last_read):
            raise StreamStopped(
                f"the checkpoint has read version {position.last_read} of {self.name}, which is another commit now: "
                f"the table, or its bucket, was set back to an earlier time, and has gone on since. {RESTORED}"
            )

    def _marked(self, position_before: StreamPosition | None, position: StreamPosition) -> StreamPosition:
        """Return a position with the hash of the version read last.

        A position that has not moved is unchanged.
        """
        if position_before is not None and position_before.order == position.order:
            return position_before
        if position_before is None and position.last_read != self.newest.version:
            return position  # of a stream that begins: nothing was read yet
        return msgspec.structs.replace(position, read=self._hash_of(position.last_read))

    def _hash_of(self, version: int) -> str:
        """Return the hash of a version's commit, which its tombstone has too.

        Makes a GET if it is not cached.
        """
        if version == self.newest.version:
            return self.newest.view.hash[:HASH_DIGITS]
        return self.versions.hash_of(self.newest, version)[:HASH_DIGITS]

    def _whole(self, version: int) -> pa.Table:
        if version >= self._expired:
            try:
                return self.versions.whole(self.newest, version)
            except NotFound:
                pass
        raise expired(self.name, version)

    def _seen(self, first: int, last: int) -> Iterator[StreamVersion]:
        if first <= last and first < self._expired:
            raise expired(self.name, first)
        try:
            yield from self.versions.seen(self.newest, first, last)
        except NotFound as error:
            raise expired(self.name, first) from error


def _between(files: pa.Table, index: int, stop: int | None) -> pa.Table:
    return files.slice(index, None if stop is None else max(0, stop - index))
