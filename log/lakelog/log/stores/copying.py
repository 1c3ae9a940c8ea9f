"""Copies of objects from one store to another: by the server where one server has both, else through this process.

A stamp is what another object of the same key has differently: of S3 the ETag, of a local file its inode and the time
of its last change, of both the size. Stores in memory have none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.store import ObjectStore

if TYPE_CHECKING:
    from lakelog.log.stores.s3_store import S3Store

Stamp: TypeAlias = tuple[str | int, ...]


def is_copied_by_server(source: ObjectStore, target: ObjectStore) -> bool:
    """Return whether a copy needs neither memory nor a connection's bandwidth here."""
    return _is_on_s3(source) and _is_on_s3(target) and source.address == target.address


def copy_object(
    source: ObjectStore, key: str, target: ObjectStore, to: str, stamp: Stamp | None = None
) -> bool:
    """Create or replace the object `to` with the content of `key`, entirely, durably. NotFound.

    With `stamp`, return whether `key` was the object of that stamp, also once it was read; where it was not, `to` is to
    be deleted, or never used. Servers differ in whether they know a condition on what is copied, so none is set. Costs
    two requests where the server copies (more above 5 GB), else the object's size in memory; with a stamp one more.
    """
    if _is_on_s3(source) and _is_on_s3(target) and is_copied_by_server(source, target):
        target.copy_from(source, key, to)
    else:
        with source.open_input(key) as opened:
            target.put(to, opened.read())
    return stamp is None or stamp_of(source, key) == stamp


def stamp_of(store: ObjectStore, key: str) -> Stamp | None:
    """Return the stamp of an object, None where the store has no stamps. One request. NotFound."""
    return store.stamp_of(key) if _is_on_s3(store) or isinstance(store, LocalStore) else None


def list_stamps(store: ObjectStore, prefix: str) -> Iterator[tuple[str, Stamp]]:
    """Yield the keys that start with `prefix`, with their stamps; none where the store has no stamps. Costs what
    `list_sizes` does."""
    return store.list_stamps(prefix) if _is_on_s3(store) or isinstance(store, LocalStore) else iter(())


def _is_on_s3(store: ObjectStore) -> TypeGuard[S3Store]:
    """Return whether a store is one of S3. There is none as long as its module, which takes long to load, is not."""
    loaded = sys.modules.get("lakelog.log.stores.s3_store")
    return loaded is not None and isinstance(store, loaded.S3Store)
