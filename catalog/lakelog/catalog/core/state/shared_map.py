"""Mappings whose versions share their common entries, so that the cost of a change depends on the change.
Pure.

A version is a large dict, which many versions share and nothing changes, and a small dict of differences. If
the small dict has grown beyond the square root of the whole, both become a single dict. So n changes of m
names copy about n · √m entries. One rule: a version never changes for its readers. It must not know what the
values are.
"""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any, Generic, TypeVar

T = TypeVar("T")

DIFFERENT_MIN = 64
"""Up to this many differences a copy costs next to nothing."""


class RemovedKey:
    """The difference for a removed key."""


class SharedMap(Mapping[str, T], Generic[T]):
    """A version. Safe to share between threads."""

    __slots__ = ("_parts", "_len")

    def __init__(
        self, whole: dict[str, T] | None = None, different: dict[str, Any] | None = None, length: int = -1
    ) -> None:
        """Takes ownership of both dicts, which must not be changed. `length` is the mapping's length if there
        are differences."""
        whole = {} if whole is None else whole
        # Replaced by one assignment, because threads share a version.
        self._parts: tuple[dict[str, T], dict[str, Any]] = (whole, different or {})
        self._len = length if different else len(whole)

    def __getitem__(self, key: str) -> T:
        whole, different = self._parts
        if key in different:
            value: T | type[RemovedKey] = different[key]
            if value is RemovedKey:
                raise KeyError(key)
            return value  # type: ignore[return-value]
        return whole[key]

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[str]:
        return iter(self._united())

    def __repr__(self) -> str:
        return f"SharedMap({self._united()!r})"

    # A dict's own views are far faster than views that look up one key after another.

    def keys(self) -> KeysView[str]:
        return self._united().keys()

    def values(self) -> ValuesView[T]:
        return self._united().values()

    def items(self) -> ItemsView[str, T]:
        return self._united().items()

    def _united(self) -> dict[str, T]:
        """Return all entries as a dict, which must not be changed. It is kept for the next reader of all
        entries."""
        whole, different = self._parts
        if different:
            whole = united(whole, different)
            self._parts = (whole, {})
        return whole


class ChangingMap(MutableMapping[str, T], Generic[T]):
    """The next version of a mapping, while it is made."""

    __slots__ = ("_whole", "_different", "_len")

    def __init__(self, mapping_before: Mapping[str, T]) -> None:
        version: SharedMap[T] = (
            mapping_before if isinstance(mapping_before, SharedMap) else SharedMap(dict(mapping_before))
        )
        self._whole, different = version._parts
        self._different = copied(different)
        self._len = len(version)

    def shared(self) -> SharedMap[T]:
        """Return the finished version. This object must not be used after that."""
        if len(self._different) > DIFFERENT_MIN + 2 * math.isqrt(len(self._whole)):
            return SharedMap(united(self._whole, self._different))
        return SharedMap(self._whole, self._different, self._len)

    def __getitem__(self, key: str) -> T:
        value: T | type[RemovedKey] = self._different[key] if key in self._different else self._whole[key]
        if value is RemovedKey:
            raise KeyError(key)
        return value  # type: ignore[return-value]

    def __setitem__(self, key: str, value: T) -> None:
        self._len += key not in self
        self._different[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._len -= 1
        if key in self._whole:
            self._different[key] = RemovedKey
        else:
            del self._different[key]

    def discard(self, key: str) -> None:
        self.pop(key, None)

    def take(self, key: str) -> T | None:
        """Remove a key, and return its value, or None if it is not there."""
        return self.pop(key, None)

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[str]:
        return iter(united(self._whole, self._different))


def united(whole: dict[str, T], different: Mapping[str, Any]) -> dict[str, T]:
    """Return a new dict of both."""
    result = copied(whole)
    result.update(different)
    for key, value in different.items():
        if value is RemovedKey:
            result.pop(key, None)
    return result


def copied(names: dict[str, T]) -> dict[str, T]:
    return names.copy()
