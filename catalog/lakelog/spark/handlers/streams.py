"""Streams that read a table. The table itself is always the newest, whatever version their query has loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.state import form_of
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.handles import on_ref
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import changes as ask

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import Stream


def form(at: OpenCatalog, asked: ask.StreamForm) -> ask.Form:
    return ask.Form(form=form_of(at.loaded(asked).schema))


def start(at: OpenCatalog, asked: ask.StreamStart) -> ask.Position:
    found = _stream(at, asked).start(version=asked.starting_version, timestamp_us=asked.starting_timestamp_us)
    return ask.Position(position=found.to_json())


def head(at: OpenCatalog, asked: ask.StreamHead) -> ask.Position:
    return ask.Position(position=_stream(at, asked).head().to_json())


def next_batch(at: OpenCatalog, asked: ask.StreamNext) -> ask.Next:
    """Costs a GET where nothing is newer."""
    from lakelog.catalog.looking.changelog import Limits

    stream = _stream(at, asked)
    until = None if asked.until is None else stream.position(asked.until)
    limits = Limits(**msgspec.structs.asdict(asked.limits))
    end = stream.next(stream.position(asked.position), limits, until)
    return ask.Next(position=end.to_json(), head=stream.head().to_json())


def files(at: OpenCatalog, asked: ask.StreamFiles) -> tuple[ask.StreamBatchFiles, Beside]:
    stream = _stream(at, asked)
    batch = stream.batch(stream.position(asked.start), stream.position(asked.end))
    among = ask.StreamBatchFiles(
        may_carry=batch.may_carry, may_update=batch.may_update, may_repeat=batch.may_repeat
    )
    return among, files_in_arrow(batch.files)


def _stream(at: OpenCatalog, asked: ask.OfStream) -> Stream:
    # On a branch, which is refused by name.
    from lakelog.catalog.looking.changelog import ChangeStream, Stream

    table = on_ref(at.outside.table_at(asked.location), asked.ref)
    form, since, versions = asked.form, asked.version, at.stream_versions
    if asked.changes is None:
        return Stream(
            table=table, name=asked.name, form=form, since=since, versions=versions, skips_changes=asked.skips_changes,
            skips_expired=asked.skips_expired,
        )  # fmt: skip
    end = asked.changes
    return ChangeStream(
        table=table, name=asked.name, form=form, since=since, versions=versions, last=end.last, last_us=end.last_us,
    )  # fmt: skip
