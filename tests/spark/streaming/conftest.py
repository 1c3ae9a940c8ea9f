"""Streaming queries of tests: what they have read, and that none of them is left running."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from tests.patience import PATIENCE_S

_numbers = itertools.count()


class Streams:
    """The streaming queries of a test, on its catalog. A checkpoint is named, and may be used again."""

    def __init__(self, lake: Any, folder: Path) -> None:
        self.lake = lake
        self.folder = folder
        self._running: list[StreamingQuery] = []

    def table(self, name: str, **options: Any) -> DataFrame:
        reader = self.lake.spark.readStream
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader.table(f"{self.lake.name}.{name}")

    def checkpoint(self, name: str) -> str:
        return str(self.folder / "checkpoints" / name)

    def to_table(
        self, frame: DataFrame, name: str, checkpoint: str = "c", mode: str = "append", **options: Any
    ) -> StreamingQuery:
        """Start a query that writes all there is to a table, and go on until it is stopped."""
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", self.checkpoint(checkpoint))
        for key, value in options.items():
            writer = writer.option(key, value)
        return self.kept(writer.toTable(f"{self.lake.name}.{name}"))

    def copy(self, frame: DataFrame, name: str, checkpoint: str = "c", **options: Any) -> StreamingQuery:
        """Write all that there is now to a table, in as many batches as that takes."""
        writer = frame.writeStream.option("checkpointLocation", self.checkpoint(checkpoint))
        query = writer.options(**options).trigger(availableNow=True).toTable(f"{self.lake.name}.{name}")
        self.kept(query).awaitTermination()
        return query

    def batches(self, frame: DataFrame, checkpoint: str | None = None) -> list[list[Any]]:
        """Return the first column of all that there is now, a list for each batch, sorted."""
        found: list[list[Any]] = []

        def take(batch: DataFrame, number: int) -> None:
            found.append(sorted(row[0] for row in batch.collect()))

        where = self.checkpoint(checkpoint or f"unnamed {next(_numbers)}")
        query = frame.writeStream.foreachBatch(take).option("checkpointLocation", where)
        self.kept(query.trigger(availableNow=True).start()).awaitTermination()
        return [batch for batch in found if batch]

    def kept(self, query: StreamingQuery) -> StreamingQuery:
        self._running.append(query)
        return query

    def failure(self, query: StreamingQuery) -> str:
        """Return why a query fails."""
        with pytest.raises(StreamingQueryException) as error:
            query.processAllAvailable()
            query.awaitTermination(int(PATIENCE_S))
        return str(error.value)

    def stop(self) -> None:
        for query in self._running:
            with contextlib.suppress(Exception):
                query.stop()


@pytest.fixture
def streams(lake: Any, tmp_path: Path) -> Iterator[Streams]:
    new_streams = Streams(lake, tmp_path)
    yield new_streams
    new_streams.stop()
