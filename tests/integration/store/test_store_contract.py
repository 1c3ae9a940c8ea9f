"""What every store must do, on every store there is."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.integration.store.places import HERE, KINDS, empty_store, place
from tests.integration.store.sums import Sum

from lakelog.log import (
    Draft,
    LocalStore,
    Log,
    MemoryStore,
    NotFound,
    ObjectStore,
    StorageError,
    open_store,
    wait_for_background,
)
from lakelog.log.stores import (
    CopyingStore,
    CountingStore,
    ObjectRange,
    StampedStore,
    copies_at_once,
    copy_object,
    get_ranges,
    is_copied_by_server,
    list_stamps,
    s3_store,
    stamp_of,
)
from lakelog.log.stores.cloud_store import AzureStore
from lakelog.log.stores.copying import BY_SERVER_AT_ONCE, THROUGH_HERE_AT_ONCE
from lakelog.log.stores.local_store import TEMPORARY
from lakelog.log.stores.s3_place import CLIENT
from lakelog.log.stores.s3_store import S3Store

RACERS = 32
RACES = 8


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=[pytest.mark.s3] if kind not in HERE else []) for kind in KINDS],
)
def given(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str]]]:
    with (
        place(request.param, tmp_path_factory.mktemp("stores")) as given_place,
        pytest.MonkeyPatch.context() as patch,
    ):
        if request.param == "moto":
            # Lakelog's own client is held by the other servers, and by all other tests.
            patch.setenv(CLIENT, "s3fs")
        yield given_place


@pytest.fixture
def store(given: tuple[str, dict[str, str]]) -> ObjectStore:
    return empty_store(given)


def test_an_absent_object_is_none_and_a_present_one_is_its_bytes(store: ObjectStore) -> None:
    assert store.get("a/b.json") is None
    store.put("a/b.json", b"one")
    assert store.get("a/b.json") == b"one"
    store.put("a/b.json", b"")
    assert store.get("a/b.json") == b""


def test_parts_of_objects_are_read_as_far_as_they_go(store: ObjectStore) -> None:
    store.put("a/b", b"0123456789")
    store.put("a/none", b"")
    ranges = [
        ObjectRange("a/b", 0, 3),
        ObjectRange("a/absent", 0, 3),
        ObjectRange("a/b", 8, 5),
        ObjectRange("a/b", 20, 5),
        ObjectRange("a/none", 0, 5),
        ObjectRange("a/b"),
        ObjectRange("a/b", 4, 1),
    ]
    assert get_ranges(store, ranges) == [b"012", None, b"89", b"", b"", b"0123456789", b"4"]
    assert get_ranges(CountingStore(store), ranges[:2]) == [b"012", None]


def test_a_key_below_an_object_and_a_folder_of_objects_are_absent(store: ObjectStore) -> None:
    store.put("a/b", b"one")
    assert store.get("a/b/c") is None
    assert store.get("a") is None


def test_many_objects_come_in_the_order_of_their_keys_with_none_for_the_absent(store: ObjectStore) -> None:
    for i in range(40):
        store.put(f"many/{i}", str(i).encode())
    keys = [f"many/{i}" for i in reversed(range(0, 60, 3))]
    assert store.get_many(keys) == [str(i).encode() if i < 40 else None for i in reversed(range(0, 60, 3))]
    assert store.get_many([]) == []


def test_only_the_first_put_if_absent_takes_a_key(store: ObjectStore) -> None:
    assert store.put_if_absent("log/1", b"first")
    assert not store.put_if_absent("log/1", b"second")
    assert not store.put_if_absent("log/1", b"first")
    assert store.get("log/1") == b"first"


def test_exactly_one_of_32_racers_creates_a_key_and_all_see_its_object(store: ObjectStore) -> None:
    with ThreadPoolExecutor(RACERS) as pool:
        for race in range(RACES):
            start = threading.Barrier(RACERS)

            def run(
                racer: int, race: int = race, start: threading.Barrier = start
            ) -> tuple[bool, bytes | None]:
                start.wait()
                is_created = store.put_if_absent(f"race/{race}", str(racer).encode())
                return is_created, store.get(f"race/{race}")

            outcomes = list(pool.map(run, range(RACERS)))
            winners = [racer for racer, (is_created, _) in enumerate(outcomes) if is_created]
            assert len(winners) == 1
            assert {seen_data for _, seen_data in outcomes} == {str(winners[0]).encode()}


def test_a_deleted_object_is_gone_and_deleting_an_absent_one_is_fine(store: ObjectStore) -> None:
    store.put("a/1", b"x")
    store.put("a/2", b"x")
    store.delete(["a/1", "a/3"])
    store.delete(["a/1"])
    store.delete([])
    assert store.get("a/1") is None and store.get("a/2") == b"x"


def test_listing_gives_the_keys_of_a_prefix_after_another_sorted_by_their_bytes(store: ObjectStore) -> None:
    keys = ["l/a", "l/b/c", "l/b-d", "l/B", "l/z é=1/%20+", "l/ü", "m/a", "l2"]
    for key in keys:
        store.put(key, b"x")
    expected = sorted((key for key in keys if key.startswith("l/")), key=str.encode)
    assert list(store.list_after("l/")) == expected
    assert list(store.list_after("l/b")) == [key for key in expected if key.startswith("l/b")]
    assert list(store.list_after("l/", "l/b/c")) == [key for key in expected if key.encode() > b"l/b/c"]
    assert list(store.list_after("nothing/")) == []


def test_maintenance_sees_sizes_and_folders(store: ObjectStore) -> None:
    sizes = {"f/a/1": 3, "f/a/b/2": 0, "f/b": 5, "f/c-d/x": 1, "g/1": 2}
    for key, size in sizes.items():
        store.put(key, b"x" * size)
    assert dict(store.list_sizes("f/")) == {key: size for key, size in sizes.items() if key.startswith("f/")}
    assert list(store.list_sizes("f/", "f/b")) == [("f/c-d/x", 1)]
    assert store.list_folders("f/") == ["a", "c-d"] and {"f", "g"} <= set(store.list_folders(""))
    assert store.list_folders("nothing/") == [] and list(store.list_leftovers("f/")) == []


def test_listing_and_deleting_go_on_beyond_one_page(
    given: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page has a thousand keys. The servers are asked for smaller ones, which they continue in the same way."""
    store, pages = empty_store(given), []
    call = S3Store.call

    def small_pages(store: S3Store, operation: str, key: str | None = None, **arguments: Any) -> Any:
        if operation == "list_objects_v2":
            arguments["MaxKeys"] = 10
            pages.append(operation)
        return call(store, operation, key, **arguments)

    monkeypatch.setattr(S3Store, "call", small_pages)
    monkeypatch.setattr(s3_store, "DELETE_MAX", 10)
    keys = [f"page/{i:05d}" for i in range(35)]
    for key in keys:
        store.put(key, b"")
    assert list(store.list_after("page/")) == keys
    assert list(store.list_after("page/", keys[12])) == keys[13:]
    if isinstance(store, S3Store):
        assert len(pages) == 4 + 3
    store.delete(keys)
    assert list(store.list_after("page/")) == []


def test_an_object_written_through_one_store_is_seen_and_listed_through_another(
    given: tuple[str, dict[str, str]],
) -> None:
    first = empty_store(given)
    second = open_store(first.url, given[1])
    assert list(second.list_after("x/")) == [] and second.get("x/1") is None
    first.put("x/1", b"one")
    assert second.get("x/1") == b"one" and list(second.list_after("x/")) == ["x/1"]


def test_a_folder_that_goes_while_it_is_empty_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the folder of a warehouse does, when `lakelog doctor` has made it and finds it empty at its end."""
    store, remaining_numbers, open_file = LocalStore(str(tmp_path / "w"), fsync=False), [3], os.open

    def late(path: Any, *how: Any, **named: Any) -> int:
        if TEMPORARY in str(path) and remaining_numbers[0]:
            remaining_numbers[0] -= 1
            shutil.rmtree(tmp_path / "w", ignore_errors=True)
        return open_file(path, *how, **named)

    monkeypatch.setattr(os, "open", late)
    assert store.put_if_absent("a/b", b"1") and store.get("a/b") == b"1" and remaining_numbers == [0]
    remaining_numbers[0] = 1000
    with pytest.raises(StorageError, match="cannot write"):
        store.put("a/c", b"1")


def test_an_input_can_be_read_anywhere(store: ObjectStore) -> None:
    store.put("data", bytes(range(256)) * 100)
    with store.open_input("data") as opened_input:
        opened_input.seek(-3, 2)
        assert opened_input.read() == b"\xfd\xfe\xff"
        opened_input.seek(257)
        assert opened_input.read(2) == b"\x01\x02"
    with pytest.raises(NotFound, match="nowhere"):
        store.open_input("nowhere")


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 300_000])
def test_the_end_of_a_parquet_file_comes_with_its_size(
    store: ObjectStore, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random.Random(size).randbytes(size)
    store.put("data/a.parquet", data)
    asked_texts: list[str] = []
    if isinstance(store, S3Store):
        call = store.call
        monkeypatch.setattr(
            store,
            "call",
            lambda operation, *rest, **more: asked_texts.append(operation) or call(operation, *rest, **more),
        )
    with store.open_input("data/a.parquet") as opened_input:
        assert opened_input.seek(0, 2) == size
        opened_input.seek(max(0, size - 64 * 1024))
        assert opened_input.read() == data[-64 * 1024 :]
        if isinstance(store, S3Store):
            # Of an empty object some servers have no end.
            assert asked_texts == ["get_object"] or (
                asked_texts == ["get_object", "head_object"] and not size
            )
        opened_input.seek(0)
        assert opened_input.read() == data
        opened_input.seek(size // 2)
        assert opened_input.read(10) == data[size // 2 :][:10]
    with pytest.raises(NotFound, match=r"nowhere\.parquet"):
        store.open_input("data/nowhere.parquet")


def test_a_parquet_file_that_is_replaced_while_it_is_read_is_an_error(store: ObjectStore) -> None:
    if not isinstance(store, S3Store):
        return
    store.put("data/a.parquet", b"1" * 100_000)
    with store.open_input("data/a.parquet") as opened_input:
        store.put("data/a.parquet", b"2" * 100_000)
        opened_input.seek(99_000)
        assert opened_input.read() == b"1" * 1000
        opened_input.seek(0)
        with pytest.raises(StorageError):
            opened_input.read(10)


def test_writers_of_one_log_in_several_threads_lose_and_double_nothing(store: ObjectStore) -> None:
    Log(store, "t", Sum()).create(Draft(events=({"n": 0},)), log_id="l")

    def write(writer: int) -> None:
        log = Log(store, "t", Sum())
        view = log.load()
        for _ in range(6):
            view = log.commit(view, lambda view, passed: Draft(events=({"n": 10**writer},))).view

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(5)))
    wait_for_background()
    view = Log(store, "t", Sum()).load()
    assert (view.version, view.state) == (31, 66666)
    assert [commit.version for commit in Log(store, "t", Sum()).commits()] == list(range(1, 32))


def test_a_stamp_is_another_once_the_object_is_another(store: ObjectStore) -> None:
    store.put("data/a", b"one")
    store.put("data/b", b"one")
    stamp_before = stamp_of(store, "data/a")
    if stamp_before is None:
        assert not isinstance(store, StampedStore) and not list(list_stamps(store, ""))
        return
    assert dict(list_stamps(store, "data/")) == {"data/a": stamp_before, "data/b": stamp_of(store, "data/b")}
    assert copy_object(store, "data/a", store, "copy", stamp_before) and store.get("copy") == b"one"
    store.put("data/a", b"two")
    assert stamp_of(store, "data/a") != stamp_before
    assert not copy_object(store, "data/a", store, "copy", stamp_before)
    with pytest.raises(NotFound):
        stamp_of(store, "data/c")


def test_a_store_copies_its_own_objects_entirely_and_names_a_missing_one(store: ObjectStore) -> None:
    store.put("data/a", b"one" * 100_000)
    store.put("data/to", b"before")
    assert copy_object(store, "data/a", store, "data/to") and store.get("data/to") == b"one" * 100_000
    with pytest.raises(NotFound, match="data/absent does not exist"):
        copy_object(store, "data/absent", store, "data/to")
    assert store.get("data/to") == b"one" * 100_000
    by_server = is_copied_by_server(store, store)
    # A copy by Azure may still be under way when its answer arrives.
    assert (
        by_server
        == isinstance(store, CopyingStore)
        == (store.is_bucket and not isinstance(store, AzureStore))
    )
    assert copies_at_once([store], store) == (BY_SERVER_AT_ONCE if by_server else THROUGH_HERE_AT_ONCE)


def test_what_no_server_can_copy_is_copied_through_this_process(store: ObjectStore) -> None:
    memory = MemoryStore()
    memory.put("data/a", b"one")
    assert not is_copied_by_server(memory, store) and not is_copied_by_server(store, memory)
    assert copy_object(memory, "data/a", store, "data/b") and store.get("data/b") == b"one"
    assert copy_object(store, "data/b", memory, "data/c") and memory.get("data/c") == b"one"
    assert copies_at_once([store, memory], store) == THROUGH_HERE_AT_ONCE
