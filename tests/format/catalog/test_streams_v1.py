"""The format of streams: what a release wrote is read for ever, and today's code writes the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.format.catalog.streams_v1 import POSITIONS, fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog, StreamBatch
from lakelog.catalog.core.writes.stream_batches import check_new
from lakelog.catalog.looking.changelog.stream_positions import StreamPosition

GOLDEN = Path(__file__).parent / "streams_v1"
QUERY = "3e7c5f4e-6d0f-4a53-9a8f-0f4b9f0a7c11"


def test_today_writes_what_the_release_wrote() -> None:
    golden = released(GOLDEN)
    assert build(fill) == golden


def test_the_batches_of_every_version_are_read() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    streams = {
        version: dict(table.at(version=version).table_head.view.state.streams) for version in range(1, 5)
    }
    assert streams == {1: {}, 2: {QUERY: 0}, 3: {QUERY: 0, "a job": 7}, 4: {QUERY: 0, "a job": 8}}
    check_new(streams[4], StreamBatch(stream=QUERY, number=1), "t")
    assert [entry.operation for entry in table.history()][-3:] == ["append, stream"] * 2 + ["create"]


@pytest.mark.parametrize("text", POSITIONS)
def test_positions_in_checkpoints_are_read_and_written_as_they_were(text: str) -> None:
    assert StreamPosition.from_json(text).to_json() == text
