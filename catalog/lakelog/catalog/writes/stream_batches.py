"""Batches of streams: which of them a table has, so that one which is asked for again is not committed twice.

A stream is whoever numbers its writes to a table: a streaming query, by its checkpoint, or a job that gives itself a
name. The state keeps the last number of each, in snapshots too, so that neither expiry nor writers in between, neither
a rollback nor a replace make it forget. What was committed once stays committed, whatever became of the rows.
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

    `from_checkpoint`: the numbers are a checkpoint's, which may ask for its last batch again, and for none before.
    """

    stream: str
    number: int
    from_checkpoint: bool = False

    def __post_init__(self) -> None:
        if not 0 < len(self.stream.encode()) <= NAME_LIMIT_BYTES:
            raise InvalidInput(f"a stream's name has 1 to {NAME_LIMIT_BYTES} bytes, unlike {self.stream!r}")
        if type(self.number) is not int or not 0 <= self.number < NUMBER_LIMIT:
            raise InvalidInput(f"{self.number!r} is no number of a batch: these are whole, from 0 on")

    def event(self) -> StreamCommitted:
        return StreamCommitted(stream=self.stream, batch=self.number)


def check_new(streams: Mapping[str, int], batch: StreamBatch, name: str) -> None:
    """Raise BatchCommitted where the table `name`, which has `streams`, has the batch already.

    InvalidInput where a checkpoint asks for one before its last, for then it is not known which rows were in that.
    """
    last = streams.get(batch.stream)
    if last is None or batch.number > last:
        return
    if batch.from_checkpoint and batch.number < last:
        raise InvalidInput(
            f"{name} has the batch {last} of the streaming query {batch.stream}, whose checkpoint asks for its batch "
            f"{batch.number}: the checkpoint is older than the table, as if from a backup. Start the query with a new "
            "checkpoint, from the version or time that it is to go on from"
        )
    raise BatchCommitted(f"{name} has the batch {batch.number} of the stream {batch.stream} already")


def check_takes(prepared: Metadata, now: Metadata, name: str) -> None:
    """Raise CommitConflict unless rows that are written for the table as it was can be committed to it as it is."""
    why = None
    if prepared.generation != now.generation:
        why = f"it was replaced in version {now.generation}"
    elif any(isinstance(each, Check) and each not in prepared.constraints for each in now.constraints):
        why = "it has a CHECK now that the rows are not held against"
    elif form_of(prepared.schema, to_write=True) != form_of(now.schema, to_write=True):
        why = "it has other columns now"
    if why is not None:
        raise CommitConflict(
            f"the streaming query was started before {name} was changed: {why}. Nothing was written: start the query "
            "again, with the same checkpoint, and it writes to the table as it is"
        )
