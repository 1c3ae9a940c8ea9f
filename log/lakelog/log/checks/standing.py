"""The state of a check as it goes from version to version, and the judge that knows what events mean.

A state has an origin, since the check believes no object that another object contradicts. It must not know of
stores.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lakelog.log.format import Commit, Json
from lakelog.log.view import LogView, S

T = TypeVar("T", contravariant=True)


class LogJudge(Protocol[T]):
    """The part of a log's check that needs to know what events mean."""

    def manifests(self, state: Json) -> Mapping[str, str]:
        """Return the manifests that a root's state names, with the SHA-256 of each."""
        ...

    def difference(self, replayed: T, stored: T) -> str | None:
        """Return how a stored state differs from the replayed state, None if equal. Reads manifests."""
        ...

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        """Record a sound commit and its effect, in version order. `blobs` is None if a blob is lost."""
        ...

    def expired(self) -> None:
        """Forget the recorded commits, because a later commit expired and a cleaner has not reached them."""
        ...

    def begins(self, state: T) -> None:
        """Record the state of the oldest readable version, if it is a base's."""
        ...

    def reads(self, state: T, fetch: Callable[[Sequence[str]], list[bytes]]) -> str:
        """Return a hash of everything that a reader sees of a state. Reads its manifests by `fetch`.

        Raises LakelogError, or another error in UNREADABLE, if a part of it cannot be read.
        """
        ...


class StateOrigin(enum.Enum):
    """The objects that a check's state was derived from."""

    NOTHING = enum.auto()
    COMMITS = enum.auto()
    BASE = enum.auto()
    ROOT = enum.auto()
    """A snapshot or the hint."""

    @property
    def is_replayed(self) -> bool:
        """Whether only objects that readers need were believed."""
        return self in (StateOrigin.COMMITS, StateOrigin.BASE)


@dataclass(slots=True)
class CheckStanding(Generic[S]):
    """The state at a check's current version.

    If it is `spoiled`, it depends on a broken manifest, so not all of it can be read.
    """

    view: LogView[S] | None
    origin: StateOrigin
    spoiled: bool = False

    def lose(self) -> None:
        self.view, self.origin, self.spoiled = None, StateOrigin.NOTHING, False

    def take(self, view: LogView[S] | None, origin: StateOrigin, *, spoiled: bool) -> None:
        self.view, self.spoiled = view, spoiled and view is not None
        self.origin = StateOrigin.NOTHING if view is None else origin


@dataclass(frozen=True, slots=True)
class BrokenState:
    """A broken snapshot or hint. `hash` is the hash of the bytes that were read.

    If `alone` is True, it can be found broken without reading the commits.
    """

    alone: bool
    hash: str
    why: str
