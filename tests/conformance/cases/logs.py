"""Cases of logs: snapshots, expired versions, transactions, several clients, and other lines of a table."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case
from tests.conformance.rehash import objects_of, rehashed, write_objects

from lakelog.catalog import Table, col
from lakelog.catalog.core.files import deletion_vectors, manifest_bounds, manifests
from lakelog.catalog.core.files.data_file import decode_files, files_from_arrow
from lakelog.catalog.core.state import RowsAppended, encode
from lakelog.catalog.core.writes.file_changes import change_of, commit_write
from lakelog.catalog.engine import DataFile
from lakelog.log import CarriedChange, wait_for_background
from lakelog.log.decisions import DecisionPlace


def snapshot(table: Table) -> None:
    """Write the snapshot and the hint of a version."""
    table.table_head.tracked.log.snapshot(table.table_head.view)


def many_versions(bench: Bench) -> None:
    """Snapshots of several versions, with manifests that grew together and removed paths, and a hint."""
    table = bench.catalog.create_table("t", NAMED)
    for number in range(43):
        table = table.append(named(number, 1))
        if number % 9 == 8:
            table = table.delete(col("id") == number - 3)
    snapshot(table)
    table.append(named(100))


def expired(bench: Bench) -> None:
    """Versions that have expired, twice, and versions after the last base."""
    table = bench.catalog.create_table("t", NAMED)
    for number in range(6):
        table = table.append(named(number))
    table = table.delete(col("id") == 0)
    bench.catalog.expire("t", version=4, dry_run=False)
    table = bench.catalog.load_table("t").append(named(10))
    bench.catalog.expire("t", version=8, dry_run=False)
    table = bench.catalog.load_table("t").append(named(20))
    table.delete(col("id") == 20)


def packs(bench: Bench) -> None:
    """Lists of files in packs, whose entries are removed and joined."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("name", pa.string())])
    table = bench.catalog.create_table("t", schema, partition_by=["day"])

    def rows(first: int, count: int) -> pa.Table:
        ids = range(first, first + count)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "day": pa.array([id % 9 for id in ids], pa.int32()),
                "name": [str(id) for id in ids],
            }
        )

    table = table.append(rows(0, 9)).append(rows(20, 9))
    bench.catalog.expire("t", retain_last=1, dry_run=False)
    table = table.refresh().append(rows(40, 9))
    table = table.delete(col("day") == 1)
    table = table.delete(col("id") == 40)
    snapshot(table)
    table.append(rows(60, 2))
    bench.catalog.expire("t", retain_last=1, dry_run=False)
    bench.catalog.load_table("t").append(rows(80, 1))


def refs(bench: Bench) -> None:
    """Tags and branches: made, changed, fast-forwarded, dropped, made again, and in a snapshot."""
    table = bench.catalog.create_table("t", NAMED).append(named(1))
    table = table.create_branch("work").create_tag("first")
    work = table.at(ref="work").append(named(10)).delete(col("id") == 1)
    table = work.at(ref="main").alter([{"change": "rename-column", "name": ["name"], "new_name": "called"}])
    table = table.create_tag("second").fast_forward("main", "work")
    table = table.append(pa.table({"id": [20], "called": ["b"]}))
    table = table.create_branch("old", version=2).drop_tag("first")
    table.at(ref="old").append(pa.table({"id": [30], "called": ["c"]}))
    table = bench.catalog.load_table("t")
    snapshot(table)
    table = table.drop_branch("work").create_branch("work", version=2)
    table.create_tag("loaded", version=5)


class Death(BaseException):
    """Caught by nothing that goes on."""


def transactions(bench: Bench) -> None:
    """Transactions: committed and at a head, committed and followed, aborted and followed, and undecided."""
    catalog = bench.catalog
    for name in ("a", "b", "c"):
        catalog.create_table(name, NAMED)
    with catalog.transaction() as tx:
        tx.load_table("a").append(named(1))
        tx.load_table("b").append(named(2))
    _undecided(bench, "a", "b", 100)
    catalog.load_table("a").append(named(10))  # aborts it
    with catalog.transaction() as tx:
        tx.load_table("a").delete(col("id") == 10)
        tx.load_table("b").append(named(20))
        tx.create_table("made", NAMED).append(named(30))
    catalog.load_table("c").append(named(40))
    _undecided(bench, "b", "c", 200)


def _undecided(bench: Bench, one: str, other: str, first: int) -> None:
    """Leave intents in two tables of a coordinator that died before its decision."""

    def die(*_arguments: object) -> None:
        raise Death

    with (
        patch.object(DecisionPlace, "create", die),
        contextlib.suppress(Death),
        bench.catalog.transaction() as tx,
    ):
        tx.load_table(one).append(named(first))
        tx.load_table(other).append(named(first))


def several_changes(bench: Bench) -> None:
    """A version of the changes of several clients, whose rows are in the same file."""
    head = bench.catalog.create_table("t", NAMED).table_head
    write = head.begin_write()
    path = f"data/{write.version:020}-{write.id}-0.parquet"
    place = bench.folder / "warehouse" / head.tracked.location / path
    place.parent.mkdir(parents=True)
    physical = [field.physical for field in head.metadata.schema.fields]
    pq.write_table(named(0, 3).rename_columns(physical), place)
    file = DataFile(
        path=path, size_bytes=place.stat().st_size, rows=3, spec_id=head.metadata.spec.id, write_id=write.id
    )
    carries = [
        CarriedChange(head.logs.new_id(), head.version, {"user": user}, encode([RowsAppended(rows=rows)]))
        for user, rows in (("ada", 1), ("bob", 2))
    ]
    change = change_of("append", [file], None, None, [])
    commit_write(head, write, replace(change, carries=carries), None)
    bench.catalog.load_table("t").append(named(10))


def clones(bench: Bench) -> None:
    """A clone, and a clone of it, with deleted rows and rows of their own."""
    catalog = bench.catalog
    table = catalog.create_table("a", NAMED).append(named(0, 4))
    table.delete(col("id") == 1)
    catalog.clone("a", "b")
    catalog.load_table("b").append(named(10)).delete(col("id") == 2)
    catalog.clone("b", "c")
    catalog.load_table("a").truncate()
    catalog.load_table("c").materialize()
    for name in ("b", "c"):
        without_hints(bench, catalog.load_table(name))
    lists_in_json(bench.folder / "warehouse")


def clone_vectors(bench: Bench) -> None:
    """Clones of a table whose deletion vectors are in objects, with a copy of one outside of the warehouse."""
    catalog = bench.catalog
    table = catalog.create_table("a", NAMED, properties={"lakelog.write.delete.mode": "merge-on-read"})
    table.append(named(0, 6)).delete(col("id") == 1)
    catalog.clone("a", "b")
    catalog.load_table("b").append(named(10)).delete((col("id") == 2) | (col("id") == 11))
    catalog.clone("b", "c")
    for name in ("b", "c"):
        without_hints(bench, catalog.load_table(name))
    lists_in_json(bench.folder / "warehouse")
    (bench.folder / "files").mkdir()
    location = catalog.load_table("b").table_head.tracked.location
    (vectors,) = (bench.folder / "warehouse" / location / "data").glob("*.puffin")
    shutil.copy(vectors, bench.folder / "files")


def tags(bench: Bench) -> None:
    """Tags of columns that a table had, and a branch, which has those of now: in events, and in a snapshot."""
    for name in ("folded", "hinted"):
        table = bench.catalog.create_table(name, NAMED).append(named(0))
        table = table.create_tag("named").create_branch("work")
        table = table.alter(
            [
                {"change": "rename-column", "name": ["name"], "new_name": "called"},
                {"change": "add-column", "name": ["name"], "type": "long"},
            ]
        )
        table = table.create_tag("earlier", version=2)
        table.at(ref="work").append(pa.table({"id": [10], "called": ["b"], "name": [11]}))
        table = table.refresh()
        if name == "hinted":
            snapshot(table)
        table.alter([{"change": "rename-column", "name": ["name"], "new_name": "number"}])
        if name == "folded":
            without_hints(bench, table)


def lists_in_json(warehouse: Path) -> None:
    """Put lists of added files into their commits: in Arrow, the kit's runner could not change absolute paths."""
    objects = objects_of(warehouse)

    def edited_data(key: str, body: bytes) -> bytes:
        stored = json.loads(body + b"}")
        names = [sidecar["name"] for sidecar in stored.pop("sidecars", ())]
        for event in stored.get("events", ()):
            if "added_sidecar" in event:
                name = names[event.pop("added_sidecar")]
                files = files_from_arrow(
                    decode_files(objects.pop(f"{key.rpartition('/')[0]}/sidecars/{name}"))
                )
                event["added"] = msgspec.to_builtins(files, str_keys=True)
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode()[:-1] if names else body

    data_after = rehashed(dict(objects), edited_data)
    shutil.rmtree(warehouse)
    write_objects(warehouse, {key: data for key, data in data_after.items() if key in objects})


def without_hints(bench: Bench, table: Table) -> None:
    """Delete the hint and the snapshots of a table, which are derived."""
    wait_for_background()
    log = bench.folder / "warehouse" / table.table_head.tracked.location / "_log"
    (log / "latest.json").unlink(missing_ok=True)
    shutil.rmtree(log / "snapshots", ignore_errors=True)


CASES = (
    Case("many-versions", "a hint, snapshots of older versions, removed lists", many_versions),
    Case("expired", "bases, tombstones, and versions after them", expired),
    Case(
        "packs",
        "lists of files in packs, with their bounds",
        packs,
        [
            (manifest_bounds, "BOUNDED_FROM", 4),
            (manifests, "PACKED_FROM", 8),
            (manifests, "PACK_LEAF_ENTRIES", 6),
            (manifests, "ALWAYS_MERGED_BELOW", 4),
        ],
    ),
    Case("refs", "tags and branches", refs),
    Case("transactions", "transactions: committed, aborted, undecided", transactions),
    Case("several-changes", "changes of several clients in a version", several_changes),
    Case("clones", "clones of tables, and of clones", clones),
    Case(
        "clone-vectors",
        "clones whose deletion vectors are in the folders of other tables",
        clone_vectors,
        [(deletion_vectors, "INLINE_MAX_BYTES", 8)],
    ),
    Case("tags", "tags of former columns, and a branch with the columns of now", tags),
)
