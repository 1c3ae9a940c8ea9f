"""The places of logs: stores, and the two forms of a location in the catalog.

A location is relative to the warehouse (`""` is the root namespace) or, if a user chose the place, a URL. One
store serves the warehouse, and each bucket or folder elsewhere has its own store.

The likely place of a namespace follows from its name. That is advice: only the log above, at its head, proves
that a name leads there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from itertools import islice

from lakelog.catalog.errors import NoSuchWarehouse
from lakelog.catalog.nearest import NAMES_MAX, nearest
from lakelog.log import canonical_url, open_store
from lakelog.log.stores import ObjectStore, is_of_one_process, shared_root

ID_LENGTH = 26
"""As long as an id that is made at random: 130 bits."""


class WarehouseStores:
    """The stores of a warehouse under one configuration. Safe to share between threads."""

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

    def beside(self, warehouse: str) -> WarehouseStores:
        """Return the places of another warehouse, under the same configuration."""
        other_places = WarehouseStores.__new__(WarehouseStores)
        other_places.warehouse, other_places._options = warehouse, self._options
        other_places.stores, other_places._lock = self.stores, self._lock
        return other_places

    def check_there(self, *, is_empty: bool = False) -> None:
        """Raise NoSuchWarehouse if the warehouse is a local folder that does not exist, or `is_empty` in a bucket.

        A bucket has no folders. An empty local folder is a warehouse without names. Makes no request.
        """
        if self.is_missing_folder or (is_empty and self._is_in_bucket):
            raise NoSuchWarehouse(self.absence())

    @property
    def is_missing_folder(self) -> bool:
        """Whether the warehouse is a local folder that does not exist. Makes no request."""
        return self.warehouse.startswith("/") and not os.path.isdir(self.warehouse)

    @property
    def _is_in_bucket(self) -> bool:
        return not self.warehouse.startswith("/") and not is_of_one_process(self.warehouse)

    def absence(self) -> str:
        """Return the error's text for a warehouse without a log, with the folder that may be meant."""
        if os.path.isfile(self.warehouse):
            return f"there is no warehouse at {self.warehouse}: it is a file, and a warehouse is a folder"
        text = f"there is no warehouse at {self.warehouse}: check the path (the first write creates it)"
        like = _warehouses_like(self.warehouse) if self.warehouse.startswith("/") else []
        return f"{text}; did you mean {' or '.join(like)}?" if like else text

    def url(self, location: str) -> str:
        """Return the URL of `location` (a plain path for local folders)."""
        if _is_url(location):
            return location
        return f"{self.warehouse}/{location}" if location else self.warehouse

    def location(self, url: str) -> str:
        """Return the location that `url` stands for, which is relative to the warehouse if it lies inside."""
        url = canonical_url(url)
        if url == self.warehouse:
            return ""
        inside = url.removeprefix(self.warehouse.rstrip("/") + "/")
        return url if inside == url else inside

    def open(self, location: str) -> tuple[ObjectStore, str]:
        """Return the store that holds `location`, and the prefix of its keys there."""
        if not _is_url(location):
            return self.store(self.warehouse), location
        root, prefix = shared_root(location)
        return self.store(root), prefix

    def open_url(self, url: str) -> tuple[ObjectStore, str]:
        """Return the store of the object at `url`, and its key, which is empty for a bucket."""
        location = self.location(url)
        folder, _, name = location.rpartition("/")
        if folder.endswith(":/"):
            return self.open(location)
        store, prefix = self.open(folder)
        return store, f"{prefix}/{name}" if prefix else name


def likely_id(above: str, name: str) -> str:
    """Return the id of the first namespace of a name.

    `above` is the URL of the namespace above, which no other namespace has, in no copy of the warehouse
    either.
    """
    # A name that is not valid UTF-8 is looked up in vain, and not refused here.
    digest = hashlib.sha256(f"{above}\n{name}".encode(errors="replace")).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]


def place_in(parent: str, id: str) -> str:
    """Return the location of the namespace of an id, below the location of the namespace above."""
    return f"{parent}/n-{id}" if parent else f"n-{id}"


def likely_places(warehouse: str, place: str, names: Sequence[str]) -> list[str]:
    """Return the likely places of the namespaces of a path of names, below the namespace at `place`."""
    places: list[str] = []
    for name in names if has_likely_places(warehouse) else ():
        place = place_in(place, likely_id(f"{warehouse}/{place}" if place else warehouse, name))
        places.append(place)
    return places


def has_likely_places(warehouse: str) -> bool:
    """Return whether namespaces have likely places in the warehouse.

    They have none in a folder. There each request is answered at once, and other machines may have a
    warehouse at the same path, whose namespaces must have other ids.
    """
    return not warehouse.startswith("/")


def _warehouses_like(missing: str) -> list[str]:
    """Return the folder above that is a warehouse, or those beside `missing` that are and have a like name."""
    above, name = os.path.split(missing)
    if os.path.isdir(f"{above}/_log"):
        return [above]
    try:
        with os.scandir(above) as entries:
            beside = [each.name for each in islice(entries, NAMES_MAX) if os.path.isdir(f"{each.path}/_log")]
    except OSError:
        return []
    return [os.path.join(above, like) for like in nearest(name, beside)]


def _is_url(location: str) -> bool:
    return location.startswith("/") or "://" in location
