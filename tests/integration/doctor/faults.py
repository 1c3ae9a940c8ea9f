"""Stores that each have one fault: mixins for a store in memory, or in a cloud."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from tests.patience import wait_until

from lakelog.log import MemoryStore, PermissionDenied, StorageError
from lakelog.log.doctor.races import RACERS, TRIES

if TYPE_CHECKING:
    Base = MemoryStore
else:
    Base = object


def in_memory(kind: type[MemoryStore]) -> type[MemoryStore]:
    """Return a store in memory with a fault."""
    return cast(type[MemoryStore], type(kind.__name__, (kind, MemoryStore), {}))


class Racy(Base):
    """Looks, and writes a moment later, as servers without atomic conditions do."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._looked: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if key in self._objects:
            return False
        if "races" in key:
            # Two that have looked write, however the host divides its time among them.
            self._looked.append(key)
            wait_until(lambda: self._looked.count(key) > 1, "another look")
        self.put(key, data)
        return True


class Unconditional(Base):
    """Ignores the condition."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.put(key, data)
        return True


class SameBytes(Base):
    """Takes a second request with the same bytes for a success, and so another writer's."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return super().put_if_absent(key, data) or self._objects[key] == data


class Remembering(Base):
    """Never frees a key for creation."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._taken: set[str] = set()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        is_created = key not in self._taken and super().put_if_absent(key, data)
        self._taken.add(key)
        return is_created

    def put(self, key: str, data: bytes) -> None:
        self._taken.add(key)
        super().put(key, data)


class Small(Base):
    """A gateway with a limit for one request."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if len(data) > 1_000_000:
            raise StorageError("the store answered 413", location=key)
        return super().put_if_absent(key, data)


class Losing(Base):
    """Says that it has created an object, and has not, now and then."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return ("races/0001" in key and key not in self._objects) or super().put_if_absent(key, data)


class Vanishing(Base):
    """Refuses what is not there."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return "races/0001" not in key and super().put_if_absent(key, data)


class NothingRemembered(Base):
    """A cache before the store remembers that an object was not there."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._absent: set[str] = set()

    def get(self, key: str) -> bytes | None:
        if key in self._absent:
            return None
        data = super().get(key)
        if data is None:
            self._absent.add(key)
        return data


class FirstRemembered(Base):
    """A cache before the store has the first version that was read."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._first_read: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        data = super().get(key)
        return None if data is None else self._first_read.setdefault(key, data)


class GhostsRead(Base):
    """Returns what was deleted."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._ghosts: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        data = super().get(key)
        return self._ghosts.get(key) if data is None else data

    def delete(self, keys: Sequence[str]) -> None:
        self._ghosts |= {key: self._objects[key] for key in keys if key in self._objects}
        super().delete(keys)


class GhostsListed(Base):
    """Lists what was deleted a moment ago."""

    _ghosts: dict[str, int]

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key, size in getattr(self, "_ghosts", {}).items():
            if key.startswith(prefix):
                yield key, size
        yield from super().list_sizes(prefix, after)

    def delete(self, keys: Sequence[str]) -> None:
        self._ghosts = {key: len(self._objects[key]) for key in keys if key in self._objects}
        super().delete(keys)


class ListedLate(Base):
    """Lists an object from the second list on."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._known: set[str] = set()

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key, size in super().list_sizes(prefix, after):
            if key in self._known:
                yield key, size
            self._known.add(key)


class Unordered(Base):
    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return iter(sorted(super().list_after(prefix, after), key=str.lower, reverse=True))


class FromTheStart(Base):
    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return super().list_after(prefix)


class Keeping(Base):
    """Deletes nothing, and says nothing of it."""

    def delete(self, keys: Sequence[str]) -> None:
        return


class Refusing(Base):
    """Refuses one action."""

    def __init__(self, action: str, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._action = action

    def _may(self, action: str) -> None:
        if self._action == action:
            raise PermissionDenied(f"may not {action}", location=self.url)

    def get(self, key: str) -> bytes | None:
        self._may("get")
        if key not in self._objects:
            self._may("get what is absent")
        return super().get(key)

    def put(self, key: str, data: bytes) -> None:
        self._may("put")
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._may("conditional put")
        return super().put_if_absent(key, data)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        self._may("list")
        return super().list_after(prefix, after)

    def delete(self, keys: Sequence[str]) -> None:
        self._may("delete")
        super().delete(keys)


class Full(Base):
    """Takes no more from the second race on, as a disk without space."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if "races/0001" in key:
            raise StorageError("cannot write", location=key) from OSError(
                errno.ENOSPC, os.strerror(errno.ENOSPC)
            )
        return super().put_if_absent(key, data)


class Silent(Base):
    """Answers nothing about one key for as long as racers ask."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._unanswered = iter(range(2 * RACERS * TRIES))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._check(key)
        return super().put_if_absent(key, data)

    def get(self, key: str) -> bytes | None:
        self._check(key)
        return super().get(key)

    def _check(self, key: str) -> None:
        if "races/0001" in key and next(self._unanswered, None) is not None:
            raise StorageError("no answer", location=key)


class Cutting(Base):
    """Returns the beginning of large objects."""

    def get(self, key: str) -> bytes | None:
        data = super().get(key)
        return data and data[:1_000_000]


class WithoutFolders(Base):
    def list_folders(self, prefix: str) -> list[str]:
        return []


class OldSizes(Base):
    """Lists the size that an object had first."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._sizes: dict[str, int] = {}

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key, size in super().list_sizes(prefix, after):
            yield key, self._sizes.setdefault(key, size)


class Inventing(Base):
    """Lists and returns an object before there is one."""

    def get(self, key: str) -> bytes | None:
        return super().get(key) or (b"invented" if "reads/" in key else None)

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        sizes = list(super().list_sizes(prefix, after))
        yield from sizes or ([(f"{prefix}invented", 1)] if "reads/" in prefix else [])


class NeverAbsent(Base):
    """Answers a read of what is not there by a page of its own."""

    def get(self, key: str) -> bytes | None:
        data = super().get(key)
        return b"<html>" if data is None else data


class Garbling(Base):
    def get(self, key: str) -> bytes | None:
        data = super().get(key)
        return data and data[::-1]


class NeverFree(Base):
    def put_if_absent(self, key: str, data: bytes) -> bool:
        return False
