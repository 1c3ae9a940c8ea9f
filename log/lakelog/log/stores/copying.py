"""Copies of objects from one store to another: by the server if it can, else through this process.

A store shows abilities beside the port by methods of its own: those of `CopyingStore`, of `StampedStore`, or
neither. A stamp differs for another object of the same key. In S3 it is the ETag and the size; for a local
file it is the inode, the size and the time of the last change.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

from lakelog.log.stores.store import ObjectStore

BY_SERVER_AT_ONCE = 16
THROUGH_HERE_AT_ONCE = 2
"""Each object is then in memory as a whole."""

Stamp: TypeAlias = tuple[str | int, ...]


@runtime_checkable
class CopyingStore(Protocol):
    """A store whose server copies objects."""

    def can_copy_from(self, source: ObjectStore) -> bool:
        """Return whether the server has the objects of `source` too. Makes no request."""
        ...

    def copy_from(self, source: ObjectStore, key: str, to: str) -> None:
        """Create or replace the object `to` with the content of `key` of a store that it can copy from.

        Raises NotFound.
        """
        ...


@runtime_checkable
class StampedStore(Protocol):
    """A store that distinguishes an object from a later object of the same key."""

    def stamp_of(self, key: str) -> Stamp:
        """Return the stamp of an object. Makes a request. Raises NotFound."""
        ...

    def list_stamps(self, prefix: str) -> Iterator[tuple[str, Stamp]]:
        """Yield the keys that start with `prefix`, with their stamps. Costs as much as `list_sizes`."""
        ...


def is_copied_by_server(source: ObjectStore, target: ObjectStore) -> bool:
    """Return whether a copy needs neither memory nor network bandwidth here."""
    return isinstance(target, CopyingStore) and target.can_copy_from(source)


def copies_at_once(sources: Iterable[ObjectStore], target: ObjectStore) -> int:
    """Return how many objects of these stores may be copied in parallel."""
    by_server = all(is_copied_by_server(source, target) for source in sources)
    return BY_SERVER_AT_ONCE if by_server else THROUGH_HERE_AT_ONCE


def copy_object(
    source: ObjectStore, key: str, target: ObjectStore, to: str, stamp: Stamp | None = None
) -> bool:
    """Create or replace the object `to` with the content of `key`, entirely and durably. Raises NotFound.

    With `stamp`, return whether `key` had that stamp even after it was read. If not, `to` must be deleted, or
    never used. Servers differ in their support of conditions on a copy, so none is set. Makes two requests if
    the server copies (more above 5 GB), else needs the object's size in memory. A stamp takes another
    request.
    """
    if isinstance(target, CopyingStore) and target.can_copy_from(source):
        target.copy_from(source, key, to)
    else:
        with source.open_input(key) as source_file:
            target.put(to, source_file.read())
    return stamp is None or stamp_of(source, key) == stamp


def stamp_of(store: ObjectStore, key: str) -> Stamp | None:
    """Return the stamp of an object, None if the store has no stamps."""
    return store.stamp_of(key) if isinstance(store, StampedStore) else None


def list_stamps(store: ObjectStore, prefix: str) -> Iterator[tuple[str, Stamp]]:
    """Yield the keys that start with `prefix`, with their stamps; none if the store has no stamps."""
    return store.list_stamps(prefix) if isinstance(store, StampedStore) else iter(())
