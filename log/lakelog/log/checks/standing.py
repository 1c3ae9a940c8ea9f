"""What a check of one log knows as it comes from version to version, and whom it asks what events mean.

A state has an origin, since the check believes no object that another one contradicts. It must not know of stores.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lakelog.log.format import Commit, Json
from lakelog.log.view import S, View

T = TypeVar("T", contravariant=True)


class Judge(Protocol[T]):
    """The part of a log's check that needs to know what events mean."""

    def manifests(self, state: Json) -> Mapping[str, str]:
        """Return the manifests that a root's state names, with the SHA-256 of each."""
        ...

    def difference(self, replayed: T, stored: T) -> str | None:
        """Return how a stored state differs from the replayed one, None where they are the same. Reads manifests."""
        ...

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        """Take note of a sound commit and its effect, in the order of versions; `blobs` are None where one is lost."""
        ...

    def expired(self) -> None:
        """Forget the commits that have passed: they are before one that expired, and a cleaner has not come to them."""
        ...

    def begins(self, state: T) -> None:
        """Take note of the state that the oldest readable version has, where that is a base's."""
        ...

    def reads(self, state: T, fetch: Callable[[Sequence[str]], list[bytes]]) -> str:
        """Return a hash of all that a reader gets to see of a state. Reads its manifests by `fetch`.

        Raises LakelogError, or another of UNREADABLE, where a part of it cannot be read.
        """
        ...


class Origin(enum.Enum):
    """What a state that a check has was derived from."""

    NOTHING = enum.auto()
    COMMITS = enum.auto()
    BASE = enum.auto()
    ROOT = enum.auto()
    """A snapshot or the hint."""

    @property
    def is_replayed(self) -> bool:
        """Whether no object that readers can do without was believed."""
        return self in (Origin.COMMITS, Origin.BASE)


@dataclass(slots=True)
class Standing(Generic[S]):
    """The state at the version that a check has come to. `spoiled`: it goes back to a manifest that is broken, so that
    not all of it can be read."""

    view: View[S] | None
    origin: Origin
    spoiled: bool = False

    def lose(self) -> None:
        self.view, self.origin, self.spoiled = None, Origin.NOTHING, False

    def take(self, view: View[S] | None, origin: Origin, *, spoiled: bool) -> None:
        self.view, self.spoiled = view, spoiled and view is not None
        self.origin = Origin.NOTHING if view is None else origin


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken snapshot or hint. `alone`: that shows without reading the commits. `hash` is of the bytes seen."""

    alone: bool
    hash: str
    why: str
