"""Streams that read a table. They always read the newest table, whatever version their query has loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.engine import form_of
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.handles import on_ref
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import changes as ask

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import TableStream


def form(at: ServedCatalog, asked: ask.StreamForm) -> ask.ChosenForm:
    return ask.ChosenForm(form=form_of(at.loaded(asked).schema))


def start(at: ServedCatalog, asked: ask.StreamStart) -> ask.OpaquePosition:
    position = _stream(at, asked).start(
        version=asked.starting_version, timestamp_us=asked.starting_timestamp_us
    )
    return ask.OpaquePosition(position=position.to_json())


def head(at: ServedCatalog, asked: ask.StreamHead) -> ask.OpaquePosition:
    return ask.OpaquePosition(position=_stream(at, asked).head().to_json())


def next_batch(at: ServedCatalog, asked: ask.StreamNext) -> ask.NextPosition:
    """Return the end of the next batch, and the newest position. Makes a GET if nothing is newer."""
    from lakelog.catalog.looking.changelog import StreamLimits

    stream = _stream(at, asked)
    until = None if asked.until is None else stream.position(asked.until)
    limits = StreamLimits(**msgspec.structs.asdict(asked.limits))
    end = stream.next(stream.position(asked.position), limits, until)
    return ask.NextPosition(position=end.to_json(), head=stream.head().to_json())


def files(at: ServedCatalog, asked: ask.StreamFiles) -> tuple[ask.StreamBatchFiles, Beside]:
    stream = _stream(at, asked)
    batch = stream.batch(stream.position(asked.start), stream.position(asked.end))
    answer = ask.StreamBatchFiles(
        may_carry=batch.may_carry, may_update=batch.may_update, may_repeat=batch.may_repeat
    )
    return answer, files_in_arrow(batch.files)


def _stream(at: ServedCatalog, asked: ask.StreamRequest) -> TableStream:
    # The table may be on a branch, which the stream refuses by name.
    from lakelog.catalog.looking.changelog import ChangeStream, TableStream

    table = on_ref(at.outside.table_at(asked.location), asked.ref)
    form, since, versions = asked.form, asked.version, at.stream_versions
    if asked.changes is None:
        return TableStream(
            table=table, name=asked.name, form=form, since=since, versions=versions, skips_changes=asked.skips_changes,
            skips_expired=asked.skips_expired,
        )  # fmt: skip
    end = asked.changes
    return ChangeStream(
        table=table, name=asked.name, form=form, since=since, versions=versions, last=end.last, last_us=end.last_us,
    )  # fmt: skip
