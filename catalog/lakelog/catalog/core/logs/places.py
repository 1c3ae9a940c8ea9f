"""The places of logs: stores, and the two forms of a location in the catalog.

A location is relative to the warehouse (`""` is the root namespace) or, where a user chose the place, a URL. One store
serves the warehouse, and one serves each bucket or folder elsewhere.

Where a namespace is likely to be follows from its name. That is advice: that a name leads there is believed only from
the log above, at its head.
"""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence

from lakelog.catalog.errors import NoSuchWarehouse
from lakelog.log import canonical_url, open_store
from lakelog.log.stores import ObjectStore

ID_LENGTH = 26
"""As long as an id that is made at random: 130 bits."""


class Places:
    """The stores of one warehouse under one configuration. Safe to share between threads."""

    def __init__(self, warehouse: str, options: Mapping[str, str]) -> None:
        self.warehouse = canonical_url(warehouse)
        self._options = dict(options)
        self.stores: dict[str, ObjectStore] = {}
        self._lock = threading.Lock()
        self.store(self.warehouse)

    def store(self, url: str) -> ObjectStore:
        with self._lock:
            if url not in self.stores:
                self.stores[url] = open_store(url, self._options)
            return self.stores[url]

    def beside(self, warehouse: str) -> Places:
        """Return the places of another warehouse, under the same configuration."""
        other = Places.__new__(Places)
        other.warehouse, other._options = warehouse, self._options
        other.stores, other._lock = self.stores, self._lock
        return other

    def check_there(self) -> None:
        """NoSuchWarehouse where the warehouse is a local folder that does not exist. A bucket reports that by itself,
        and a prefix without objects is an empty warehouse."""
        if self.warehouse.startswith("/") and not os.path.isdir(self.warehouse):
            raise NoSuchWarehouse(
                f"there is no warehouse at {self.warehouse}: check the path (the first write creates it)"
            )

    def url(self, location: str) -> str:
        """Return the URL of `location` (a plain path for local folders)."""
        if _is_url(location):
            return location
        return f"{self.warehouse}/{location}" if location else self.warehouse

    def location(self, url: str) -> str:
        """Return the location that `url` stands for: relative to the warehouse where it lies inside."""
        url = canonical_url(url)
        if url == self.warehouse:
            return ""
        inside = url.removeprefix(self.warehouse.rstrip("/") + "/")
        return url if inside == url else inside

    def open(self, location: str) -> tuple[ObjectStore, str]:
        """Return the store that holds `location`, and the prefix of its keys there."""
        if not _is_url(location):
            return self.store(self.warehouse), location
        if location.startswith("s3://"):
            # One client per bucket serves all the places in it.
            bucket, _, prefix = location.removeprefix("s3://").partition("/")
            return self.store(f"s3://{bucket}"), prefix
        return self.store(location), ""

    def open_url(self, url: str) -> tuple[ObjectStore, str]:
        """Return the store of the object at `url`, and its key, which is empty for a bucket."""
        location = self.location(url)
        folder, _, name = location.rpartition("/")
        if folder.endswith(":/"):
            return self.open(location)
        store, prefix = self.open(folder)
        return store, f"{prefix}/{name}" if prefix else name


def likely_id(above: str, name: str) -> str:
    """Return the id of the first namespace of a name; `above` is the URL of the namespace above, which is of no other,
    in no copy of the warehouse either."""
    # A name that is no text in UTF-8 is looked up in vain, and not refused here.
    digest = hashlib.sha256(f"{above}\n{name}".encode(errors="replace")).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]


def place_in(parent: str, id: str) -> str:
    """Return the location of the namespace of an id, below that of the namespace above."""
    return f"{parent}/n-{id}" if parent else f"n-{id}"


def likely_places(warehouse: str, place: str, names: Sequence[str]) -> list[str]:
    """Return where the namespaces of a path of names are likely to be, below the one at `place`."""
    places: list[str] = []
    for name in names if has_likely_places(warehouse) else ():
        place = place_in(place, likely_id(f"{warehouse}/{place}" if place else warehouse, name))
        places.append(place)
    return places


def has_likely_places(warehouse: str) -> bool:
    """Whether namespaces have likely places there. In a folder none has: each request is answered at once, and other
    machines may have a warehouse at the same path, whose namespaces must have other ids."""
    return not warehouse.startswith("/")


def _is_url(location: str) -> bool:
    return location.startswith("/") or "://" in location
