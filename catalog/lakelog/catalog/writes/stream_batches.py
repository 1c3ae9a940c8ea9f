"""Batches of streams: which of them a table has, so that a retried batch is not committed twice.

A stream is a writer that numbers its writes to a table: a streaming query, by its checkpoint, or a job with a name of
its own. The state keeps the last number of each, in snapshots too, so that it survives expiry, other writers, a
rollback and a replace. A committed batch stays committed, even if its rows are removed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lakelog.catalog.errors import BatchCommitted, CommitConflict
from lakelog.catalog.schema import Check, Metadata
from lakelog.catalog.state import StreamCommitted, form_of
from lakelog.log.errors import InvalidInput

NAME_LIMIT_BYTES = 256
NUMBER_LIMIT = 2**63


class StreamBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One batch of a stream. Later batches have higher numbers; a table takes each at most once.

    `from_checkpoint`: the numbers are a checkpoint's, which may repeat its last batch, and no earlier one.
    """

    stream: str
    number: int
    from_checkpoint: bool = False

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
    """Raise BatchCommitted where the table `name`, which has `streams`, has the batch already.

    InvalidInput where a checkpoint repeats one before its last, because then it is not known which rows that had.
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


def check_takes(prepared: Metadata, now: Metadata, name: str) -> None:
    """Raise CommitConflict unless rows that were prepared for the metadata `prepared` can be committed now."""
    why = None
    if prepared.generation != now.generation:
        why = f"it was replaced in version {now.generation}"
    elif any(isinstance(each, Check) and each not in prepared.constraints for each in now.constraints):
        why = "it has a CHECK now that the rows are not checked against"
    elif form_of(prepared.schema, to_write=True) != form_of(now.schema, to_write=True):
        why = "it has other columns now"
    if why is not None:
        raise CommitConflict(
            f"the streaming query was started before {name} was changed: {why}. Nothing was written. Restart the query "
            "with the same checkpoint, to write to the table as it is now"
        )
