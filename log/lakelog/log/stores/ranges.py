"""Parts of objects, read in a single round, for readers that need little of large objects.

A store need not support this: then whole objects are read, and cut here. A result is shorter than requested
if the object is. The reader knows the hash of each part, so it notices.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from lakelog.log.stores.store import ObjectStore


class ObjectRange(NamedTuple):
    """The bytes of an object from `first` on: `size` bytes, or all if it is None."""

    key: str
    first: int = 0
    size: int | None = None

    def of(self, data: bytes) -> bytes:
        """Return this part of a whole object."""
        return data if self.size is None else data[self.first : self.first + self.size]


@runtime_checkable
class RangedStore(Protocol):
    """A store that reads parts of objects."""

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        """Return each part, None if its object is absent. Makes a parallel round, which is not a snapshot."""
        ...


def get_ranges(store: ObjectStore, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
    """Do the same as `RangedStore.get_ranges`, for any store."""
    if isinstance(store, RangedStore):
        return store.get_ranges(ranges)
    keys = list(dict.fromkeys(part.key for part in ranges))
    objects = dict(zip(keys, store.get_many(keys), strict=True))
    return [None if (data := objects[part.key]) is None else part.of(data) for part in ranges]
