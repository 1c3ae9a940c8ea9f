"""The case of the events that change no row: what writers need, and the notes of upkeep."""

from __future__ import annotations

import contextlib
import datetime as dt
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from tests.conformance.cases.logs import Death
from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case

from lakelog.catalog import StreamBatch, Table, engine
from lakelog.catalog.core.files.column_statistics import ColumnEstimates, TableEstimates
from lakelog.catalog.core.files.data_file import RemovedFile
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.core.state import AdoptedDeleted, ErasureEnded, FilesAdopted, RowsErased, encode
from lakelog.log import Draft, wait_for_background

NOTHING = dt.timedelta(0)


def writers_events(bench: Bench) -> None:
    """Everything that only writers need: values, batches, estimates, sources, erasures, and cuts."""
    catalog = bench.catalog
    catalog.create_namespace("n", {"owner": "ada"})
    catalog.alter_namespace("n", set={"team": "red"}, remove=["owner"])
    numbered: dict[str, Any] = {"identity.start": 1, "identity.step": 1, "identity.allowExplicitInsert": True}
    fields = [("number", "long", False, numbered), ("name", "string", True, {})]
    schema = schema_from_spark(
        {
            "type": "struct",
            "fields": [
                dict(zip(("name", "type", "nullable", "metadata"), field, strict=True)) for field in fields
            ],
        }
    )
    table = catalog.create_table("n.numbered", schema).append(pa.table({"name": ["a", "b"]}))
    batch = StreamBatch(stream="a job", number=7)
    table = engine.commit_write(table, engine.begin_write(table), "append", (), batch=batch)
    column = ColumnEstimates(type="long", distinct=2, nulls=0, min=1, max=2, average_bytes=8, most_bytes=8)
    engine.commit_statistics(
        table, TableEstimates(version=table.version, rows=2, size_bytes=48, columns={1: column})
    )
    catalog.save_cut("before", namespace="n")
    catalog.drop_cut("before", namespace="n")
    table = catalog.create_table("n.erased", NAMED).append(named(0)).truncate()
    _say(table, RowsErased(erasure="erasure-1", filter="id = ?"))
    _say(table.refresh(), ErasureEnded(erasure="erasure-1", statement="{}"))
    catalog.load_table("n.erased").append(named(10))


def _say(table: Table, *events: Any) -> None:
    """Commit events alone."""
    head = table.table_head
    head.tracked.commit(head.view, lambda view, passed: Draft(events=encode(events)))


def sources(bench: Bench) -> None:
    """A table of a source's files, which it adopts, and some of which are deleted."""
    folder = bench.folder / "files"
    folder.mkdir()
    for number in range(2):
        pq.write_table(named(10 * number), folder / f"part-{number}.parquet")
    bench.catalog.import_table(str(folder), "imported", format="parquet")
    bench.catalog.import_table(str(folder), "adopted", format="parquet")
    table = bench.catalog.load_table("adopted")
    paths = sorted(table.table_head.all_files()["path"].to_pylist())
    files = tuple(RemovedFile(path=path, rows=0, size_bytes=1) for path in paths)
    source = table.table_head.state.source
    assert source is not None
    _say(table, FilesAdopted(source=source, files=files))
    table.refresh().delete("id < 10")
    _say(table.refresh(), AdoptedDeleted(files=files[:1]))


def released(bench: Bench) -> None:
    """A clone that has become a table of its own, and leftovers that a vacuum has found."""
    catalog = bench.catalog
    catalog.create_namespace("n")
    catalog.create_table("n.a", NAMED).append(named(0, 3))
    catalog.clone("n.a", "n.b")
    catalog.load_table("n.b").append(named(10)).materialize()
    catalog.expire("n.b", retain_last=1, dry_run=False, trust_clock=True)
    catalog.create_namespace("old")
    catalog.create_table("old.t", NAMED).append(named(20))
    catalog.drop_namespace("old", cascade=True)
    stage = engine.stage(catalog, "create", "n.never", NAMED)
    write = engine.begin_write(catalog.load_table("n.a"))
    for place, version, id in (
        (catalog.load_table("n.a").location, write.version, write.id),
        (stage.location, stage.write.version, stage.write.id),
    ):
        path = bench.folder / "warehouse" / place / "data" / f"{version:020}-{id}-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")

    def die(*_arguments: object, **_options: object) -> None:
        raise Death

    vacuum = partial(catalog.vacuum, older_than=NOTHING, trust_clock=True, dry_run=False)
    for _ in range(2):
        vacuum()
    # The events of a purge would be tombstones if this one came to its end.
    with patch("lakelog.log.expiry.expire", die), contextlib.suppress(Death):
        vacuum(dropped_older_than=NOTHING)
    wait_for_background()


CASES = (
    Case("writers", "events that only writers need", writers_events),
    Case("sources", "imported and adopted files", sources),
    Case("released", "a clone with files of its own, and the notes of vacuums and purges", released),
)
