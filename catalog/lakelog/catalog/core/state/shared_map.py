"""Mappings whose versions share what they have in common, so that a change costs about what it changes. Pure.

A version is a large dict, which many versions share and nothing changes, and a small one with what is different. Once
that has grown beyond the square root of the whole, both become one: n changes of m names copy about n · √m entries.
One rule: what a version shows never changes. It must not know what the values are.
"""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any, Generic, TypeVar

T = TypeVar("T")

DIFFERENT_MIN = 64
"""Up to so many differences a copy costs next to nothing."""


class Gone:
    """Stands among the differences for a key that was removed."""


class SharedMap(Mapping[str, T], Generic[T]):
    """One version. Safe to share between threads."""

    __slots__ = ("_parts", "_len")

    def __init__(
        self, whole: dict[str, T] | None = None, different: dict[str, Any] | None = None, length: int = -1
    ) -> None:
        """Takes both dicts over: they are not changed any more. `length` is that of the mapping where they differ."""
        whole = {} if whole is None else whole
        # Replaced by one assignment, as threads share a version.
        self._parts: tuple[dict[str, T], dict[str, Any]] = (whole, different or {})
        self._len = length if different else len(whole)

    def __getitem__(self, key: str) -> T:
        whole, different = self._parts
        if key in different:
            found: T | type[Gone] = different[key]
            if found is Gone:
                raise KeyError(key)
            return found  # type: ignore[return-value]
        return whole[key]

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[str]:
        return iter(self._united())

    def __repr__(self) -> str:
        return f"SharedMap({self._united()!r})"

    # A dict's own views are far faster than those that ask for one key after another.

    def keys(self) -> KeysView[str]:
        return self._united().keys()

    def values(self) -> ValuesView[T]:
        return self._united().values()

    def items(self) -> ItemsView[str, T]:
        return self._united().items()

    def _united(self) -> dict[str, T]:
        """Return all as one dict, not to be changed; it is kept, so that the next reader of all has it."""
        whole, different = self._parts
        if different:
            whole = united(whole, different)
            self._parts = (whole, {})
        return whole


class Changing(MutableMapping[str, T], Generic[T]):
    """The version after another one, while it is made."""

    __slots__ = ("_whole", "_different", "_len")

    def __init__(self, before: Mapping[str, T]) -> None:
        version: SharedMap[T] = before if isinstance(before, SharedMap) else SharedMap(dict(before))
        self._whole, different = version._parts
        self._different = copied(different)
        self._len = len(version)

    def shared(self) -> SharedMap[T]:
        """Return the version that was made; this is not to be used after that."""
        if len(self._different) > DIFFERENT_MIN + 2 * math.isqrt(len(self._whole)):
            return SharedMap(united(self._whole, self._different))
        return SharedMap(self._whole, self._different, self._len)

    def __getitem__(self, key: str) -> T:
        found: T | type[Gone] = self._different[key] if key in self._different else self._whole[key]
        if found is Gone:
            raise KeyError(key)
        return found  # type: ignore[return-value]

    def __setitem__(self, key: str, value: T) -> None:
        self._len += key not in self
        self._different[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._len -= 1
        if key in self._whole:
            self._different[key] = Gone
        else:
            del self._different[key]

    def discard(self, key: str) -> None:
        self.pop(key, None)

    def take(self, key: str) -> T | None:
        """Remove a key, and return its value, if it is there."""
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
        if value is Gone:
            result.pop(key, None)
    return result


def copied(names: dict[str, T]) -> dict[str, T]:
    return names.copy()
