"""Large folders are listed in parts side by side: each object once, wherever the parts begin."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.patience import barrier

from lakelog.catalog import Catalog
from lakelog.catalog.keeping.maintenance import listing
from lakelog.log import MemoryStore
from lakelog.log.errors import StorageError

NOW = dt.timedelta(0)
SMALL = {"ALONE": 7, "IN_PART": 5, "FILES_BETWEEN": 3, "AT_ONCE": 4}


@pytest.fixture
def paged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are lists of pages, as buckets are."""
    monkeypatch.setattr(MemoryStore, "is_bucket", True)
    for name, value in SMALL.items():
        monkeypatch.setattr(listing, name, value)


def filled_store(keys: set[str]) -> MemoryStore:
    store = MemoryStore.named(f"memory://{uuid.uuid4().hex}")
    for key in keys:
        store.put(key, b"x" * (len(key) % 7))
    return store


@pytest.mark.parametrize("seed", range(40))
def test_each_object_is_listed_once_and_in_order_wherever_the_bounds_are(paged: None, seed: int) -> None:
    chance = random.Random(seed)
    letters = "ab-é\uffee\U0001f600/"

    def key() -> str:
        inner = (
            "".join(chance.choice(letters) for _ in range(chance.randrange(1, 5)))
            .strip("/")
            .replace("//", "/")
        )
        return f"t/data/{inner or 'a'}"

    store = filled_store({key() for _ in range(chance.choice([0, 3, 8, 60, 300]))} | {"t/data2/x", "t/dat"})
    bounds = [key() for _ in range(chance.choice([0, 1, 5, 40]))] + ["s3://elsewhere/a", "t/data2/x", "t/"]
    assert list(listing.listed(store, "t/data/", bounds)) == list(store.list_sizes("t/data/"))


def test_parts_are_listed_at_the_same_time(paged: None, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled_store({f"t/data/{number:03}" for number in range(40)})
    together = barrier(3)
    real = store.list_sizes

    def waiting(prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        if after in ("t/data/006", "t/data/010", "t/data/013"):
            together.wait()
        return real(prefix, after)

    monkeypatch.setattr(store, "list_sizes", waiting)
    assert len(list(listing.listed(store, "t/data/", ["t/data/010", "t/data/013"]))) == 40


def test_an_error_of_one_part_ends_the_list(paged: None, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled_store({f"t/data/{number:03}" for number in range(40)})
    real = store.list_sizes

    def failing(prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        if after == "t/data/020":
            raise StorageError("no answer", location="t/data/")
        return real(prefix, after)

    monkeypatch.setattr(store, "list_sizes", failing)
    with pytest.raises(StorageError, match="no answer"):
        list(listing.listed(store, "t/data/", [f"t/data/{number:03}" for number in range(8, 40, 4)]))


def test_a_vacuum_of_parts_deletes_what_one_list_would_show(
    paged: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4().hex}")
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    for number in range(30):
        table = table.append(pa.table({"id": [number]}))
        if number % 3 == 0:
            table = table.delete([("id", "=", number)])
    catalog.expire("t", retain_last=1, dry_run=False)
    parts: list[int] = []
    real = listing._side_by_side

    def counted(store, prefix, some):
        parts.append(len(some))
        return real(store, prefix, some)

    monkeypatch.setattr(listing, "_side_by_side", counted)
    [planned] = catalog.vacuum("t", older_than=NOW, keys=True)
    assert parts[0] > 5
    monkeypatch.setattr(MemoryStore, "is_bucket", False)
    [alone] = catalog.vacuum("t", older_than=NOW, keys=True)
    assert planned.keys == alone.keys and planned.files == 10
    monkeypatch.setattr(MemoryStore, "is_bucket", True)
    [done] = catalog.vacuum("t", older_than=NOW, dry_run=False)
    assert done.files == 10
    assert sorted(catalog.load_table("t").scan().to_arrow()["id"].to_pylist()) == [
        number for number in range(30) if number % 3
    ]
