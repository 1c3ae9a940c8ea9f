"""A store of a scheme that lakelog does not have, added as a vendor would add it: this module, and an entry.

Its objects are in memory. It is a bucket in all that it says of itself: it copies by itself, has stamps, and serves
all the places in a bucket by one store.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest import mock

from lakelog.log import MemoryStore, NotFound, ObjectStore
from lakelog.log.stores import Stamp
from lakelog.log.stores.opening import SCHEMES, StoreScheme

_count = itertools.count(1)


class SharedStore(MemoryStore):
    """See ObjectStore, CopyingStore and StampedStore."""

    is_bucket = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.copied: list[str] = []
        self.stamps: dict[str, int] = {}

    def put(self, key: str, data: bytes) -> None:
        super().put(key, data)
        self.stamps[key] = next(_count)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        is_new = super().put_if_absent(key, data)
        if is_new:
            self.stamps[key] = next(_count)
        return is_new

    def can_copy_from(self, source: ObjectStore) -> bool:
        return isinstance(source, SharedStore)

    def copy_from(self, source: ObjectStore, key: str, to: str) -> None:
        data = source.get(key)
        if data is None:
            raise NotFound(f"{source.url}/{key} does not exist")
        self.put(to, data)
        self.copied.append(to)

    def stamp_of(self, key: str) -> Stamp:
        if self.get(key) is None:
            raise NotFound(f"{self.url}/{key} does not exist")
        return (self.stamps[key],)

    def list_stamps(self, prefix: str) -> Iterator[tuple[str, Stamp]]:
        return ((key, self.stamp_of(key)) for key in self.list_after(prefix))


@contextmanager
def shared_scheme() -> Iterator[dict[str, SharedStore]]:
    """Register the scheme `shared` until the block ends; give the stores that were opened, by their roots."""
    stores: dict[str, SharedStore] = {}

    def opened_store(root: str, _options: Mapping[str, str]) -> ObjectStore:
        return stores.setdefault(root, SharedStore(root))

    with mock.patch.dict(SCHEMES, shared=StoreScheme(open=opened_store, aliases=("share",), is_shared=True)):
        yield stores
