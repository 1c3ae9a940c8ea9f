"""The stream batches that a table has, so that a retried batch is not committed twice.

A stream is a writer that numbers its writes to a table: a streaming query, by its checkpoint, or a job with a
name of its own. The state keeps the last number of each, in snapshots too, so that it survives expiry, other
writers, a rollback and a replace. A committed batch stays committed, even if its rows are removed.

A mark is a stream's own record of that, kept with its progress. A table that was set back to an earlier time,
or restored from an older backup, lacks batches that the stream will not send again.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.schema.constraints import CheckConstraint
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import StreamCommitted, TableCloned
from lakelog.catalog.core.state.stream_forms import form_of
from lakelog.catalog.errors import BatchCommitted, CommitConflict, StreamStopped
from lakelog.log import Commit
from lakelog.log.errors import InvalidInput

NAME_LIMIT_BYTES = 256
NUMBER_LIMIT = 2**63
HASH_DIGITS = 16


class StreamBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch of a stream. Later batches have higher numbers. A table takes each at most once.

    With `from_checkpoint`, the numbers are a checkpoint's, which may repeat only its last batch. `after` is
    the mark that the stream has kept of the batch before.
    """

    stream: str
    number: int
    from_checkpoint: bool = False
    after: str | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.stream.encode()) <= NAME_LIMIT_BYTES:
            raise InvalidInput(
                f"{self.stream!r} is not a valid stream name: use 1 to {NAME_LIMIT_BYTES} bytes"
            )
        if type(self.number) is not int or not 0 <= self.number < NUMBER_LIMIT:
            raise InvalidInput(f"{self.number!r} is not a valid batch number: use a whole number from 0 on")

    def event(self) -> StreamCommitted:
        return StreamCommitted(stream=self.stream, batch=self.number)


def check_new(streams: Mapping[str, int], batch: StreamBatch, name: str) -> None:
    """Raise BatchCommitted if the table `name`, which has `streams`, already has the batch.

    Raises InvalidInput if a checkpoint repeats a batch before its last, because then its rows are not known.
    """
    last = streams.get(batch.stream)
    if last is None or batch.number > last:
        return
    if batch.from_checkpoint and batch.number < last:
        raise InvalidInput(
            f"{name} has the batch {last} of the streaming query {batch.stream}, but the query's checkpoint is at its "
            f"batch {batch.number}: the checkpoint is older than the table, as if from a backup. Start the query with "
            "a new checkpoint, from the version or time where it should continue"
        )
    raise BatchCommitted(f"{name} has the batch {batch.number} of the stream {batch.stream} already")


class StreamMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last batch of a stream in a table, and a version that has it. `hash` is the beginning of its
    commit's hash."""

    table: str
    batch: int
    version: int
    hash: str


def mark_of(head: TableHead, stream: str) -> str | None:
    """Return the mark of a stream for the version of `head`, or None if the table has no batch of it."""
    batch = head.state.streams.get(stream)
    if batch is None:
        return None
    mark = StreamMark(table=head.id, batch=batch, version=head.version, hash=head.view.hash[:HASH_DIGITS])
    return msgspec.json.encode(mark).decode()


def check_after(head: TableHead, batch: StreamBatch) -> None:
    """Raise StreamStopped if the table has lost batches of the stream, by the mark in `batch`.

    A table that takes over a name from another table has no batches of the stream. It accepts new batches,
    unless it was made from a version of the other table before the mark. Costs a GET if others have committed
    since the mark was made.
    """
    if batch.after is None:
        return
    try:
        mark = msgspec.json.decode(batch.after, type=StreamMark)
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"the mark {batch.after!r} of the stream {batch.stream} is none ({error}): give what the table has returned"
        ) from error
    if mark.version > head.version:
        head = head.refreshed()
    last = head.state.streams.get(batch.stream)
    if mark.table != head.id and last is None and not _made_before(head, mark):
        return
    if last is None or last < mark.batch:
        state = "none of them" if last is None else f"those up to {last} only"
        raise StreamStopped(
            f"the stream {batch.stream} has written its batches up to {mark.batch} to {head.name}, which has {state}: "
            f"the table, or its bucket, was set back to an earlier time, or restored from a backup. {AFTER_RESTORE}"
        )
    if mark.table == head.id and (mark.version > head.version or mark.hash != _hash_of(head, mark.version)):
        raise StreamStopped(
            f"the stream {batch.stream} has known version {mark.version} of {head.name}, which is another commit now: "
            f"the table, or its bucket, was set back to an earlier time, and has gone on since. {AFTER_RESTORE}"
        )


def _made_before(head: TableHead, mark: StreamMark) -> bool:
    """Return whether a table was made, from a backup or as a clone, from a version of the marked table before
    the mark.

    Returns False if the first version has expired, because then this is not known.
    """
    first = head.tracked.log.entry_at(1)
    if not isinstance(first, Commit) or first.log_id != head.id:
        return False
    clone_events = [event for event in table_events(first) if isinstance(event, TableCloned)]
    return any(clone.of == mark.table and clone.version < mark.version for clone in clone_events)


AFTER_RESTORE = (
    "Going on would leave out rows. Start the query with a new checkpoint, from where the rows of the table end; or, "
    "where these batches are not wanted, remove lakelog-sink.json in the query's checkpoint (of a job of your own: "
    "give no mark)"
)


def _hash_of(head: TableHead, version: int) -> str:
    return (head.view.hash if version == head.version else head.hash_of(version))[:HASH_DIGITS]


def check_takes(prepared_metadata: Metadata, current_metadata: Metadata, name: str) -> None:
    """Raise CommitConflict unless rows that were prepared for the metadata `prepared_metadata` can be committed
    now."""
    why = None
    if prepared_metadata.generation != current_metadata.generation:
        why = f"it was replaced in version {current_metadata.generation}"
    elif any(
        isinstance(constraint, CheckConstraint) and constraint not in prepared_metadata.constraints
        for constraint in current_metadata.constraints
    ):
        why = "it has a CHECK now that the rows are not checked against"
    elif form_of(prepared_metadata.schema, to_write=True) != form_of(current_metadata.schema, to_write=True):
        why = "it has other columns now"
    if why is not None:
        raise CommitConflict(
            f"the streaming query was started before {name} was changed: {why}. Nothing was written. Restart the query "
            "with the same checkpoint, to write to the table as it is now"
        )
