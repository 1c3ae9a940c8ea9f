"""Parts of objects, read in one round: what a reader needs of large ones.

A store may do without: then whole objects are read, and cut here. What comes back is as long as was asked for, or
shorter where the object is; the reader, who knows the hash of each part, notices.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from lakelog.log.stores.store import ObjectStore


class ObjectRange(NamedTuple):
    """The bytes of an object from `first` on, `size` of them; None: all."""

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
        """Return each part, or None where there is no such object; one parallel round, not one snapshot."""
        ...


def get_ranges(store: ObjectStore, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
    """As `RangedStore.get_ranges`, of any store."""
    if isinstance(store, RangedStore):
        return store.get_ranges(ranges)
    keys = list(dict.fromkeys(each.key for each in ranges))
    found = dict(zip(keys, store.get_many(keys), strict=True))
    return [None if (data := found[each.key]) is None else each.of(data) for each in ranges]
