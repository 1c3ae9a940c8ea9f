"""Namespaces in pages, as clients meet them: look-ups, expiry beside readers, crashes, what fsck says and mends."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.files.arrow_lists import decode_table, encode_table
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.stored_types import state_of
from lakelog.catalog.core.state import (
    RELATION,
    TABLE,
    EntryLinked,
    NamespaceState,
    encode,
    name_pages,
    namespace_projection,
    namespace_state,
    paged_map,
    pages_in,
)
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.core.state.name_pages import StoredPage
from lakelog.log import CountingStore, Draft, LogOptions, MemoryStore
from lakelog.log.errors import FormatError, StorageError, UnsupportedFormat
from lakelog.log.expiry import expire
from lakelog.log.format import LogBase, SnapshotRoot, decode_base, decode_root, hash_of
from lakelog.log.format import encode as encode_object


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (namespace_state, paged_map):
        monkeypatch.setattr(module, "PAGED_FROM", 20)
    for module in (name_pages, paged_map):
        monkeypatch.setattr(module, "PAGE_NAMES", 10)
    monkeypatch.setattr(paged_map, "DIFFERENT_MIN", 2)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


@pytest.fixture
def client(warehouse: str, clock: Clock) -> Callable[[], Catalog]:
    return lambda: clock.client(warehouse)


@pytest.fixture
def many(catalog: Catalog) -> TrackedLog[NamespaceState]:
    """A namespace of 100 names, with a snapshot at its head."""
    catalog.create_namespace("n")
    return linked(catalog, range(100))


def linked(catalog: Catalog, numbers: range) -> TrackedLog[NamespaceState]:
    tracked_log = of(catalog)
    ids = [(number, uuid.uuid4().hex[:26]) for number in numbers]
    events = encode(
        [
            EntryLinked(
                space=RELATION,
                name=f"t{number:03d}",
                kind=TABLE,
                id=id,
                location=f"{tracked_log.location}/t-{id}",
            )
            for number, id in ids
        ]
    )
    tracked_log.log.snapshot(
        tracked_log.commit(tracked_log.current(), lambda view, passed: Draft(events=events)).view
    )
    return tracked_log


def of(catalog: Catalog) -> TrackedLog[NamespaceState]:
    return catalog._tree.namespace(("n",)).tracked


def pages(tracked: TrackedLog[Any]) -> set[str]:
    return {
        key.removeprefix(tracked.log.keys.manifests)
        for key in tracked.store.list_after(tracked.log.keys.manifests)
    }


def hinted(tracked: TrackedLog[Any]) -> SnapshotRoot:
    data = tracked.store.get(tracked.log.keys.latest)
    assert data is not None
    return decode_root(data, "", KNOWN)


def names(catalog: Catalog) -> list[str]:
    return [name for _, name in catalog.list_tables("n")]


ALL = [f"t{number:03d}" for number in range(100)]


def test_a_cold_look_up_reads_one_page_and_the_list_all_others_in_one_round(
    warehouse: str, many: TrackedLog[NamespaceState]
) -> None:
    store = CountingStore(MemoryStore.named(warehouse))
    cold = Catalog(warehouse, log_options=LogOptions(in_parallel=store.side_by_side))
    engine.places(cold).stores[engine.places(cold).warehouse] = store
    view = of(cold).current()
    assert len(hinted(many).uses or ()) == 10
    store.reset()
    assert view.state.entry(RELATION, "t050") is not None and view.state.entry(RELATION, "t051") is not None
    assert view.state.entry(RELATION, "t0505") is None
    assert (store.requests, store.rounds) == (1, 1)
    store.reset()
    assert view.state.names(RELATION, TABLE) == ALL
    assert (store.requests, store.rounds) == (9, 1)


def test_names_come_and_go_beside_pages(catalog: Catalog, client: Callable[[], Catalog], many: Any) -> None:
    other_catalog = client()
    assert other_catalog.list_tables("n") and engine.table_names(other_catalog, "n").to_pylist() == ALL
    for number in range(30):
        catalog.create_table(f"n.new{number}", SCHEMA)
        catalog.rename_table(f"n.new{number}", f"n.s{number:02d}")
    for number in range(10):
        catalog.drop_table(f"n.s{number:02d}")
    catalog.undrop_table("n.s05")
    expected = sorted([*ALL, "s05", *(f"s{number:02d}" for number in range(10, 30))])
    assert names(catalog) == names(other_catalog) == names(client()) == expected
    assert {entry.name for entry in client().dropped("n")} == {entry.name for entry in catalog.dropped("n")}
    assert len(client().dropped("n")) == 9
    with pytest.raises(Exception, match="already"):
        client().create_table("n.s10", SCHEMA)
    with client().transaction() as transaction:
        transaction.create_table("n.x", SCHEMA)
        transaction.drop_table("n.s10")
        assert "x" in [name for _, name in transaction.list_tables("n")]
    assert "x" in names(client()) and "s10" not in names(client())


def test_expiry_deletes_the_pages_that_its_base_does_not_need_and_readers_go_on(
    catalog: Catalog, client: Callable[[], Catalog], many: TrackedLog[NamespaceState]
) -> None:
    table = catalog.create_table("n.t0005", SCHEMA)
    linked(catalog, range(300, 330))
    reader, warm = client(), client()
    known_view = of(reader).current()
    of(warm).current()
    pages_before = pages(many)
    linked(catalog, range(100, 200))
    linked(catalog, range(200, 300))
    head = of(catalog).current().version
    at_head = of(reader).current()
    assert expire(many.log, head) == head
    base = decode_base(many.store.get(many.log.keys.base(1)) or b"", "", KNOWN, number=1)
    assert pages(many) == set(base.root.uses or ()) and not pages_before <= pages(many)
    # Pages of what it knows are gone: it reads its version anew, and where that has expired, the head.
    expected = sorted(["t0005", *(f"t{number:03d}" for number in range(330))])
    assert at_head.state.names(RELATION, TABLE) == expected
    assert warm.load_table("n.t0005").id == table.id and names(warm) == expected
    removed_pages = sorted(pages_before - pages(many))
    assert removed_pages, "some page was made anew"
    with pytest.raises(Exception, match="can be read|expired"):
        known_view.state.names(RELATION, TABLE)
    assert names(reader) == names(client()) == expected


def test_a_crash_between_pages_and_root_leaves_what_the_next_expiry_deletes(
    catalog: Catalog,
    client: Callable[[], Catalog],
    many: TrackedLog[NamespaceState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put = MemoryStore.put
    roots = (many.log.keys.snapshots, many.log.keys.latest)

    def failing(store: MemoryStore, key: str, data: bytes) -> None:
        if key.startswith(roots):
            raise StorageError("the process died", location="")
        put(store, key, data)

    pages_before = pages(many)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "put", failing)
        with pytest.raises(StorageError):
            linked(catalog, range(100, 150))
    assert pages(many) > pages_before
    assert names(client()) == [f"t{number:03d}" for number in range(150)]
    head = of(client()).current().version
    fresh = of(client())
    expire(fresh.log, head)
    assert pages(many) == set(
        decode_base(many.store.get(many.log.keys.base(1)) or b"", "", KNOWN, number=1).root.uses or ()
    )
    assert names(client()) == [f"t{number:03d}" for number in range(150)]


# What fsck says


def findings(catalog: Catalog, **how: Any) -> set[str]:
    """Return what is wrong with the namespace itself: no table is behind its names, or where that cannot be read."""
    kinds = {finding.kind for finding in catalog.fsck("n", **how).found}
    return kinds - {"log-missing", "log-unreadable", "manifest-unused"}


def test_fsck_names_a_page_that_is_missing_or_altered_and_writes_it_anew(
    catalog: Catalog, client: Callable[[], Catalog], many: TrackedLog[NamespaceState]
) -> None:
    assert findings(catalog) == set()
    first, second, *_ = sorted(pages(many))
    many.store.put(many.log.keys.manifest(second), b"?")
    with pytest.raises(FormatError, match="altered"):
        names(client())
    many.store.delete([many.log.keys.manifest(first)])
    assert findings(catalog) == {"manifest-missing", "manifest-altered"}
    assert names(client()) == ALL, "what is missing is looked for in the commits, as after an expiry"
    findings(catalog, repair=True)
    assert findings(catalog) == {"lost-kept"}, "the snapshot itself stays as it was"
    assert names(client()) == ALL


def lie(tracked: TrackedLog[Any], root: SnapshotRoot, change: Callable[[pa.Table], pa.Table]) -> SnapshotRoot:
    """Return a root that names another page, whose hash is right, in the place of its first."""
    state: Any = root.state
    first = StoredPage(*state["paged"][0]["pages"][0])
    blob = tracked.store.get(tracked.log.keys.manifest(first.name))
    assert blob is not None
    forged_table = encode_table(change(decode_table(blob)))
    state["paged"][0]["pages"][0][3] = hash_of(forged_table)
    name = StoredPage(*state["paged"][0]["pages"][0]).name
    tracked.store.put(tracked.log.keys.manifest(name), forged_table)
    return msgspec.structs.replace(root, uses=tuple(sorted(pages_in(state))))


def out_of_the_folder(table: pa.Table) -> pa.Table:
    return table.set_column(3, "location", pa.array(["n/../../etc"] * len(table)))


def other_tables(table: pa.Table) -> pa.Table:
    return table.set_column(2, "id", pa.array(["other"] * len(table)))


def out_of_order(table: pa.Table) -> pa.Table:
    return table.take([0, 2, 1, *range(3, len(table))])


@pytest.mark.parametrize("change", [out_of_the_folder, other_tables, out_of_order])
def test_fsck_names_a_forged_page_of_a_snapshot_and_writes_it_anew(
    catalog: Catalog, client: Callable[[], Catalog], many: TrackedLog[NamespaceState], change: Any
) -> None:
    root = lie(many, hinted(many), change)
    many.store.put(many.log.keys.latest, encode_object(msgspec.structs.replace(root, hash="")))
    assert "hint-differs" in findings(catalog)
    findings(catalog, repair=True)
    assert findings(catalog) <= {"lost-kept"}
    assert names(client()) == ALL


@pytest.mark.parametrize("change", [out_of_the_folder, out_of_order])
def test_fsck_names_a_forged_page_of_a_base(
    catalog: Catalog, client: Callable[[], Catalog], many: TrackedLog[NamespaceState], change: Any
) -> None:
    expire(many.log, many.current().version)
    key = many.log.keys.base(1)
    base = decode_base(many.store.get(key) or b"", "", KNOWN, number=1)
    forged_base = msgspec.structs.replace(base, root=lie(many, base.root, change), hash="")
    assert isinstance(forged_base, LogBase)
    many.store.put(key, encode_object(forged_base))
    many.store.delete([many.log.keys.latest, *many.store.list_after(many.log.keys.snapshots)])
    assert "base-disagrees" in findings(catalog)
    with pytest.raises(FormatError, match="form|order"):
        client().load_table("n.t001")


def test_an_older_lakelog_refuses_a_snapshot_with_pages_by_name(many: TrackedLog[NamespaceState]) -> None:
    known_fields = [
        field
        for field in msgspec.structs.fields(namespace_projection._Root)
        if field.name not in ("paged", "version")
    ]
    factories = {
        field_info.name: msgspec.field(default_factory=field_info.default_factory)
        for field_info in known_fields
        if field_info.default_factory is not msgspec.NODEFAULT
    }
    fields: Any = [
        (field_info.name, field_info.type)
        if field_info.required
        else (field_info.name, field_info.type, factories.get(field_info.name, field_info.default))
        for field_info in known_fields
    ]
    older = msgspec.defstruct("Root", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)
    with pytest.raises(UnsupportedFormat, match="paged"):
        state_of(hinted(many).state, older, "namespace", "table")
