"""Writes that were prepared under a name: they never land in a table that no longer has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.ddl.test_staging import staged_files
from tests.integration.catalog.writes.test_identity import create as numbered
from tests.integration.catalog.writes.test_identity import of
from tests.unit.log.transactions import one_by_one

from lakelog.catalog import (
    Catalog,
    CommitConflict,
    NoSuchTable,
    StreamBatch,
    Table,
    TableRenamed,
    col,
    engine,
)
from lakelog.catalog.core import parquet
from lakelog.catalog.core.logs import NameTree
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema import ValuesTaken
from lakelog.catalog.core.writes import compaction_commit
from lakelog.catalog.core.writes.identity_rewrite import reserved
from lakelog.catalog.engine import TableEstimates
from lakelog.log import ConflictError, LakelogError, LogOptions, wait_for_background

Client = Callable[[], Catalog]
Change = Callable[[Table], object]


@pytest.fixture
def held(catalog: Catalog) -> Table:
    """A table that client A has loaded by its name."""
    catalog.create_namespace("n")
    catalog.create_namespace("m")
    new_table = catalog.create_table("n.t", SCHEMA, partition_by=["region"])
    new_table = new_table.append(rows(1, 2)).append(rows(3)).create_branch("b")
    catalog.create_table("n.t_new", SCHEMA, partition_by=["region"]).append(rows(100))
    return catalog.load_table("n.t")


def swap(catalog: Catalog) -> None:
    catalog.rename_table("n.t", "n.t_old")
    catalog.rename_table("n.t_new", "n.t")


def move(catalog: Catalog) -> None:
    catalog.rename_table("n.t", "m.t")


def ids(catalog: Catalog, name: str, ref: str | None = None) -> list[int]:
    return sorted(catalog.load_table(name, ref=ref).to_arrow()["id"].to_pylist())


def everything(client: Client) -> dict[str, tuple[str, int]]:
    """Return where all names lead, and the newest versions there."""
    catalog = client()
    tables = [*catalog.list_tables("n"), *catalog.list_tables("m")]
    return {
        ".".join(path): (table.id, table.version) for path in tables for table in [catalog.load_table(path)]
    }


CHANGES: dict[str, Change] = {
    "append": lambda table: table.append(rows(9)),
    "append of a batch": lambda table: table.append(rows(9), batch=StreamBatch(stream="q", number=1)),
    "overwrite": lambda table: table.overwrite(rows(9)),
    "overwrite by a filter": lambda table: table.overwrite(rows(1), col("id") == 1),
    "overwrite partitions": lambda table: table.overwrite_partitions(rows(9)),
    "truncate": lambda table: table.truncate(),
    "delete of files": lambda table: table.delete(col("region") == "EU"),
    "delete of rows": lambda table: table.delete(col("id") == 1),
    "delete of nothing": lambda table: table.delete(col("id") == 77),
    "alter": lambda table: table.alter([{"change": "set-property", "key": "k", "value": "v"}]),
    "compact": lambda table: table.compact(),
    "add partitions": lambda table: engine.add_partitions(table, [{"region": "US"}]),
    "rename partition": lambda table: engine.rename_partition(table, {"region": "EU"}, {"region": "US"}),
    "truncate partitions": lambda table: engine.truncate_partitions(table, [{"region": "EU"}]),
    "drop partitions": lambda table: engine.drop_partitions(table, [{"region": "EU"}]),
    "roll back": lambda table: table.rollback_to_version(1),
    "set version": lambda table: table.set_current_version(1),
    "tag": lambda table: table.create_tag("x"),
    "branch": lambda table: table.create_branch("x"),
    "drop branch": lambda table: table.drop_branch("b"),
    "fast-forward": lambda table: table.fast_forward("b", "main"),
    "statistics": lambda table: engine.commit_statistics(
        table, TableEstimates(version=table.version, rows=3, size_bytes=1, columns={})
    ),
    "append on a branch": lambda table: table.at(ref="b").append(rows(9)),
    "delete on a branch": lambda table: table.at(ref="b").delete(col("id") == 1),
    "refresh": lambda table: table.refresh(),
}


@pytest.mark.parametrize("seen", [False, True], ids=["unseen", "seen"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_by_a_held_handle_reaches_no_table_that_lost_the_name(
    catalog: Catalog, client: Client, held: Table, change: Change, seen: bool
) -> None:
    swap(client())
    if seen:
        # Another user of the same process has met the rename already.
        catalog.load_table("n.t_old")
    pairs_before = everything(client)
    with pytest.raises(TableRenamed, match="`n`.`t` was renamed to `n`.`t_old` since it was loaded"):
        change(held)
    assert everything(client) == pairs_before
    assert change(catalog.load_table("n.t_old"))


@pytest.mark.parametrize("rename", [swap, move])
def test_what_was_prepared_before_a_rename_is_refused_after_it(
    catalog: Catalog, client: Client, held: Table, rename: Callable[[Catalog], None]
) -> None:
    on_branch, change = held.at(ref="b"), [{"change": "set-property", "key": "k", "value": "v"}]
    appended_ref, deleted_ref, write = (
        engine.begin_write(held),
        engine.begin_write(held),
        engine.begin_write(on_branch),
    )
    token, altering_token = catalog.token("n.t"), catalog.token("n.t")
    paths = held.plan()["path"].to_pylist()
    rename(client())
    pairs_before = everything(client)
    prepared: list[Callable[[], object]] = [
        lambda: engine.commit_write(held, appended_ref, "truncate", [], token=token),
        lambda: engine.commit_rows(held, deleted_ref, "delete", removed=paths, condition=col("id") > 0),
        lambda: engine.commit_write(on_branch, write, "truncate", []),
        lambda: held.alter(change, token=altering_token),
    ]
    current_text = "`n`.`t_old`" if rename is swap else "`m`.`t`"
    for each in prepared:
        with pytest.raises(TableRenamed, match=f"`n`.`t` was renamed to {current_text}"):
            each()
    assert everything(client) == pairs_before


def test_a_compaction_that_has_written_its_files_is_refused(
    client: Client, held: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = parquet.copied_files

    def copied(*given: Any, **more: Any) -> Any:
        swap(client())
        return real(*given, **more)

    monkeypatch.setattr(compaction_commit, "copied_files", copied)
    version_before = held.version
    with pytest.raises(TableRenamed):
        held.compact()
    # The rename is the only version since.
    assert client().load_table("n.t_old").version == version_before + 1


def test_values_of_an_identity_column_are_not_taken_from_a_table_that_lost_the_name(
    catalog: Catalog, client: Client, held: Table
) -> None:
    table = numbered(catalog, "n.numbered")
    client().rename_table("n.numbered", "n.other")
    with pytest.raises(TableRenamed):
        reserved(table.table_head, [ValuesTaken(column=table.schema.find(("id",)).id, first=1, last=2)])
    assert [entry.operation for entry in client().load_table("n.other").history(limit=1)] == ["move"]
    with catalog.transaction() as tx:
        tx.rename_table("n.other", "n.third")
        tx.load_table("n.third").append(of("a"))
    assert ids(client(), "n.third") == [1]


def test_a_rename_that_was_undone_changes_nothing_for_a_held_handle(
    catalog: Catalog, client: Client, held: Table
) -> None:
    client().rename_table("n.t", "m.u")
    client().rename_table("m.u", "n.t")
    held.append(rows(9))
    assert ids(client(), "n.t") == [1, 2, 3, 9]


def test_a_table_by_place_is_written_whatever_its_name_is(
    catalog: Catalog, client: Client, held: Table
) -> None:
    placed_table = catalog.table_at(held.location)
    swap(client())
    placed_table.append(rows(9)).at(ref="b").append(rows(8))
    assert placed_table.identifier is None
    assert ids(client(), "n.t_old") == [1, 2, 3, 9]
    assert ids(client(), "n.t_old", "b") == [1, 2, 3, 8]
    assert ids(client(), "n.t") == [100]


def test_a_version_that_was_loaded_stays_readable_after_a_rename(
    catalog: Catalog, client: Client, held: Table
) -> None:
    swap(client())
    assert held.to_arrow().num_rows == 3
    assert held.at(version=2).to_arrow().num_rows == 2
    assert [table.version for table in engine.read_together([held, catalog.load_table("n.t")])][
        0
    ] >= held.version
    assert sum(1 for _ in held.history()) == held.version


def test_a_write_that_happened_before_the_rename_is_not_reported_as_failed(
    catalog: Catalog, client: Client, held: Table
) -> None:
    token, write = catalog.token("n.t"), engine.begin_write(held)
    change = [{"change": "set-property", "key": "k", "value": "v"}]
    held.alter(change, token=token)
    truncated_table = engine.commit_write(held, write, "truncate", [])
    swap(client())
    assert held.alter(change, token=token).properties["k"] == "v"
    assert catalog.load_table("n.t").alter(change, token=token)
    assert engine.commit_write(held, write, "truncate", []).version >= truncated_table.version
    assert dict(client().load_table("n.t").properties) == {}


@pytest.mark.parametrize("kind", ["replace", "create-or-replace"])
@pytest.mark.parametrize("rename", [swap, move])
def test_a_staged_replacement_never_replaces_a_table_that_lost_the_name(
    catalog: Catalog, client: Client, held: Table, kind: str, rename: Callable[[Catalog], None]
) -> None:
    stage = engine.stage(catalog, kind, "n.t", SCHEMA)
    files = staged_files(stage, rows(50))
    rename(client())
    try:
        engine.commit_stage(catalog, stage, files)
    except LakelogError:
        pass
    else:
        assert ids(client(), "n.t") == [50]
    assert ids(client(), "n.t_old" if rename is swap else "m.t") == [1, 2, 3]


def test_a_transaction_that_writes_by_a_name_fails_where_the_name_moved_on(
    catalog: Catalog, client: Client, held: Table
) -> None:
    tx = catalog.begin()
    tx.load_table("n.t").append(rows(9))
    tx.load_table("n.t_new").append(rows(9))
    swap(client())
    pairs_before = everything(client)
    with pytest.raises(TableRenamed, match="was renamed to"):
        tx.commit()
    assert everything(client) == pairs_before


def test_a_transaction_that_renames_goes_on_by_the_new_names(
    catalog: Catalog, client: Client, held: Table
) -> None:
    with catalog.transaction() as tx:
        old = tx.load_table("n.t")
        old.append(rows(8))
        tx.rename_table("n.t", "n.t_old")
        tx.rename_table("n.t_new", "n.t")
        with pytest.raises(TableRenamed, match="`n`.`t` was renamed to `n`.`t_old`"):
            old.append(rows(9))
        tx.load_table("n.t").append(rows(101))
        tx.load_table("n.t_old").append(rows(10))
    assert ids(client(), "n.t") == [100, 101]
    assert ids(client(), "n.t_old") == [1, 2, 3, 8, 10]


def test_a_table_that_a_transaction_creates_and_renames_has_its_last_name(
    catalog: Catalog, client: Client, held: Table
) -> None:
    with catalog.transaction() as tx:
        tx.create_table("n.x", SCHEMA).append(rows(1))
        tx.rename_table("n.x", "n.y")
        tx.rename_table("n.y", "m.z")
        tx.load_table("m.z").append(rows(2))
    client().load_table("m.z").append(rows(3))
    assert ids(client(), "m.z") == [1, 2, 3]
    assert not client().fsck().found


def test_a_restored_table_is_written_by_the_name_that_it_has_now(
    catalog: Catalog, client: Client, held: Table
) -> None:
    catalog.drop_table("n.t")
    client().undrop_table("n.t", to="m.back")
    with pytest.raises(LakelogError):
        held.append(rows(9))
    catalog.load_table("m.back").append(rows(4))
    assert ids(client(), "m.back") == [1, 2, 3, 4]


def test_the_name_is_kept_by_snapshots_and_through_expiry(
    catalog: Catalog, client: Client, held: Table
) -> None:
    table = held
    for n in range(40):
        table = table.append(rows(n))
    swap(client())
    for _ in range(40):
        client().load_table("n.t_old").append(rows(7))
    with pytest.raises(TableRenamed, match="`n`.`t_old`"):
        table.append(rows(9))
    client().expire("n.t_old", retain_last=1, dry_run=False)
    with pytest.raises(ConflictError, match="expired"):
        held.append(rows(9))
    cold = client().load_table("n.t_old")
    assert cold.table_head.state.link == catalog.load_table("n.t_old").table_head.state.link
    cold.append(rows(9))
    assert not client().fsck().found


def test_a_name_that_moves_while_it_is_resolved_leads_to_the_table_that_has_it_then(
    catalog: Catalog, client: Client, held: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespace is read, then the tables are swapped, then the table is read."""
    real = NameTree._view
    swapped_numbers: list[int] = []

    def view(tree: NameTree, tracked: Any, fresh: Any) -> Any:
        if tracked.location == held.table_head.tracked.location and not swapped_numbers:
            swapped_numbers.append(1)
            swap(client())
            fresh.discard(tracked.location)
        return real(tree, tracked, fresh)

    monkeypatch.setattr(NameTree, "_view", view)
    loaded_table = catalog.load_table("n.t")
    assert swapped_numbers and loaded_table.id != held.id
    loaded_table.append(rows(101))
    assert ids(client(), "n.t") == [100, 101]


def test_a_name_that_moves_while_a_transaction_resolves_it_is_a_conflict(
    catalog: Catalog, client: Client, held: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, real = client(), TrackedLog.load
    fresh._logs.log_options = LogOptions(in_parallel=one_by_one)
    swapped_numbers: list[int] = []

    def load(tracked: TrackedLog[Any], beside: Any, hint: Any = None) -> Any:
        # The namespace has been read by then.
        if tracked.location == held.table_head.tracked.location and not swapped_numbers:
            swapped_numbers.append(1)
            swap(client())
        return real(tracked, beside, hint)

    monkeypatch.setattr(TrackedLog, "load", load)
    with pytest.raises(CommitConflict, match="as of one moment"):
        fresh.begin().load_table("n.t")
    assert fresh.begin().load_table("n.t").id != held.id


def test_a_name_whose_table_was_taken_over_by_another_warehouse_leads_to_nothing_else(
    client: Client, catalog: Catalog, tmp_path: Any
) -> None:
    place = str(tmp_path / "place")
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA, location=place)
    other_catalog = Catalog(tmp_path / "other", options={"fsync": "off"})
    other_catalog.create_namespace("n")
    other_catalog.register_table("n.taken", place, take_over=True)
    # Until the next commit, only the other warehouse says what became of the take-over.
    with pytest.raises(LakelogError, match="is part of a transaction that is decided at"):
        catalog.load_table("n.t")
    other_catalog.load_table("n.taken").append(rows(1))
    with pytest.raises(LakelogError, match="taken over by another warehouse"):
        catalog.load_table("n.t")
    assert catalog.table_at(place).append(rows(2)).row_count == 2


@pytest.mark.parametrize("held_by", ["compact", "expire", "vacuum"])
def test_maintenance_that_began_before_a_rename(
    catalog: Catalog, client: Client, held: Table, held_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction by a handle is refused. Expiry and vacuum find the table anew each time, and finish on that one."""
    if held_by == "compact":
        swap(client())
        with pytest.raises(TableRenamed):
            held.compact()
        return
    # A snapshot that is still being written would leave manifests of expired versions, which fsck notes for vacuum.
    wait_for_background()
    real = NameTree.table

    def table(tree: NameTree, identifier: Any) -> Any:
        found_log = real(tree, identifier)
        monkeypatch.setattr(NameTree, "table", real)
        swap(client())
        return found_log

    monkeypatch.setattr(NameTree, "table", table)
    if held_by == "expire":
        names = [done.name for done in catalog.expire("n.t", retain_last=1, dry_run=False)]
    else:
        names = [done.name for done in catalog.vacuum("n.t", dry_run=False)]
    assert names == ["`n`.`t`"]
    assert ids(client(), "n.t_old") == [1, 2, 3]
    assert ids(client(), "n.t") == [100]
    assert not client().fsck().found


def test_renames_and_writes_of_threads_put_no_row_into_another_table(client: Client, held: Table) -> None:
    """Each row says which table it is for, as its writer had loaded it."""
    is_done = threading.Event()
    wrong: list[BaseException] = []

    def swapping() -> None:
        catalog = client()
        try:
            for n in range(500):
                catalog.rename_table("n.t", f"n.t{n}")
                catalog.create_table("n.t", SCHEMA, partition_by=["region"])
                if n >= 10 and len(set(acknowledged.values())) >= 5:
                    break
                time.sleep(0.005)
        except BaseException as error:
            wrong.append(error)
        finally:
            is_done.set()

    acknowledged: dict[int, str] = {}

    def writing(first: int) -> None:
        catalog, n = client(), first
        while not is_done.is_set():
            n += 1
            try:
                table = catalog.load_table("n.t")
                table.append(rows(n))
            except (NoSuchTable, CommitConflict):
                continue
            except BaseException as error:
                wrong.append(error)
                return
            acknowledged[n] = table.id

    threads = [
        threading.Thread(target=swapping),
        *(threading.Thread(target=writing, args=(n * 100_000,)) for n in (1, 2)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    found_ids = {
        id: table.id
        for path in client().list_tables("n")
        for table in [client().load_table(path)]
        for id in ids(client(), ".".join(path))
    }
    assert acknowledged.items() <= found_ids.items()
    assert len(set(acknowledged.values())) >= 5
    assert not client().fsck().found
