"""A store on top of another store, which keeps its own writes and never passes them on.

A repair is tried on it. It must not know an object's purpose.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from lakelog.log.errors import NotFound
from lakelog.log.stores import ObjectStore


class StoreOverlay:
    """An ObjectStore over `below`. `written` are the objects put here, in the order of the puts. For one thread."""

    def __init__(self, below: ObjectStore) -> None:
        self.below = below
        self.url = below.url
        self.is_bucket = below.is_bucket
        self.written: dict[str, bytes] = {}
        self._removed: set[str] = set()

    def get(self, key: str) -> bytes | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        keys_below = [key for key in keys if key not in self.written and key not in self._removed]
        objects = dict(zip(keys_below, self.below.get_many(keys_below), strict=True)) if keys_below else {}
        return [self.written.get(key, objects.get(key)) for key in keys]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.get(key) is not None:
            return False
        self.put(key, data)
        return True

    def put(self, key: str, data: bytes) -> None:
        self.written[key] = data
        self._removed.discard(key)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return (key for key, _ in self.list_sizes(prefix, after))

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        sizes = {key: size for key, size in self.below.list_sizes(prefix, after) if key not in self._removed}
        for key, data in self.written.items():
            if key.startswith(prefix) and key.encode() > after.encode():
                sizes[key] = len(data)
        return iter(sorted(sizes.items(), key=lambda item: item[0].encode()))

    def list_folders(self, prefix: str) -> list[str]:
        relative_keys = (key.removeprefix(prefix).partition("/") for key in self.list_after(prefix))
        return sorted({folder for folder, slash, _ in relative_keys if slash})

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return self.below.list_leftovers(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.written.pop(key, None)
            self._removed.add(key)

    def open_input(self, key: str) -> BinaryIO:
        if key in self._removed:
            raise NotFound(f"{self.url}/{key} does not exist")
        return io.BytesIO(self.written[key]) if key in self.written else self.below.open_input(key)

    def now_us(self, near: str = "") -> int | None:
        return self.below.now_us(near)
