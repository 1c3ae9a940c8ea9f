"""A tree of JSON objects in a bucket, which a client reads as a REST catalog by plain GETs.

Rule: a path is the client's decoded request path. It may contain the control character between a namespace's
parts, which no key of a log may have. It must not know the content of the objects.
"""

from __future__ import annotations

import hashlib

from lakelog.catalog.engine import WarehouseStores, check_not_own
from lakelog.log.errors import InvalidInput
from lakelog.log.grammar import PUBLISHED_FOLDER
from lakelog.log.stores import DocumentStore, ObjectStore


class BucketTree:
    """The objects below a place in a bucket. Threads may share it."""

    def __init__(self, places: WarehouseStores, url: str) -> None:
        """Open the place. Makes no request.

        Raises InvalidInput for a place of lakelog's own, except `_rest/` in the warehouse, and for a place
        outside of buckets.
        """
        location = places.location(url)
        if location != PUBLISHED_FOLDER:
            if not location:
                raise InvalidInput(
                    f"{url} is the warehouse itself: choose a separate place, or {PUBLISHED_FOLDER}/ in it"
                )
            check_not_own(url)
        store, prefix = places.open(location)
        self.url = places.url(location)
        if not isinstance(store, DocumentStore):
            raise InvalidInput(
                f"{self.url} cannot hold a published catalog, whose objects lie at and below one name: give the URL "
                "of a bucket, or run lakelog serve"
            )
        self._store: ObjectStore = store
        self._documents: DocumentStore = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._put: dict[str, tuple[str, str]] = {}

    @property
    def uri(self) -> str:
        """The catalog's address for clients."""
        return self._documents.address_of(self._prefix)

    def takes(self, path: str) -> bool:
        """Return whether the store can have a key of this path."""
        return self._documents.takes_document(f"{self._prefix}{path}")

    def digest_of(self, data: bytes) -> str:
        """Return the tag of an object of these bytes, unless the bucket is encrypted with its own keys."""
        return hashlib.md5(data, usedforsecurity=False).hexdigest()

    def digests(self, top: str) -> dict[str, str]:
        """Return the digests of the objects whose paths begin with `top`, by path. Makes a LIST for every 1000.

        If the bucket is encrypted with its own keys, they are right only for objects that were put here. Any
        other object seems changed.
        """
        digests = {}
        for key, tag in self._documents.list_tags(f"{self._prefix}{top}"):
            path = key.removeprefix(self._prefix)
            put_tag, digest = self._put.get(path, ("", ""))
            digests[path] = digest if tag == put_tag else tag
        return digests

    def get(self, path: str) -> bytes | None:
        return self._store.get(f"{self._prefix}{path}")

    def create(self, path: str, data: bytes) -> bool:
        """Create an object; return False if it already exists."""
        return self._store.put_if_absent(f"{self._prefix}{path}", data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object. Raises Unsupported if the server cannot have objects below its name too."""
        tag = self._documents.put_document(f"{self._prefix}{path}", data)
        self._put[path] = tag, self.digest_of(data)

    def delete(self, path: str) -> None:
        self._documents.delete_document(f"{self._prefix}{path}")
