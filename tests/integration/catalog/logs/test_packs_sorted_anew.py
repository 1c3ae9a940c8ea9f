"""Packs that a dump sorts anew, if another client has sorted them before and the old ones have expired."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.files import manifest_bounds, manifests, overlaps
from lakelog.catalog.engine import DataFile
from lakelog.log import wait_for_background

Client = Callable[[], Catalog]
RUN, DAYS = 12, 6


@pytest.fixture(autouse=True)
def small_packs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_bounds, "BOUNDED_FROM", 2)
        patch.setattr(manifests, "PACKED_FROM", RUN)
        patch.setattr(manifests, "PACK_LEAF_ENTRIES", 3)
        patch.setattr(manifests, "RUN_LIMIT", RUN)
        patch.setattr(manifests, "ALWAYS_MERGED_BELOW", 2)
        patch.setattr(overlaps, "DEPTH_MAX", 5)
        yield


def grown(table: Table) -> Table:
    """Add files of all days, and write a snapshot."""
    write = engine.begin_write(table)
    day = table.spec.fields[0].id
    files = [
        DataFile(
            path=f"data/{write.version:020d}-{write.id}-{number}.parquet",
            size_bytes=1,
            rows=1,
            spec_id=table.spec.id,
            partition={day: number % DAYS},
            stats={},
            write_id=write.id,
        )
        for number in range(RUN)
    ]
    table = engine.commit_write(table, write, "append", files)
    wait_for_background()
    table.table_head.tracked.log.snapshot(table.table_head.view)
    return table


def packs_of(table: Table) -> set[str]:
    return {entry.stored.name for entry in table.table_head.view.state.files.stored_in().manifests.entries}


def test_a_client_whose_packs_have_expired_writes_a_snapshot_that_others_read(client: Client) -> None:
    catalog, other_catalog = client(), client()
    schema = pa.schema([("id", pa.int64()), ("day", pa.int32())])
    table = catalog.create_table("t", schema, partition_by=["day"])
    for _ in range(5):
        table = grown(table)
    old = packs_of(table)
    assert len(old) == 5
    theirs = other_catalog.load_table("t")
    for _ in range(4):
        theirs = grown(theirs)
    assert not old <= packs_of(theirs), "of some packs, all leaves were sorted anew"
    table = catalog.load_table("t")
    other_catalog.expire(table="t", retain_last=1, dry_run=False)
    table = grown(table)
    cold = client().load_table("t")
    assert cold.plan(col("day") == 3).num_rows == cold.plan().num_rows / DAYS == 10 * RUN / DAYS
    kinds = {finding.kind for finding in client().fsck().found}
    assert kinds <= {"data-file-missing", "manifest-unused"}, "files are in the log only"
