"""The objects below a log, from a listing: for checks only, since no answer of a log may rest on a listing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lakelog.log.grammar import is_blob, is_sidecar
from lakelog.log.keys import Keys
from lakelog.log.stores import ObjectStore

_VERSION = re.compile(r"([0-9]{20})\.json")
_BASE = re.compile(r"bases/([0-9]{20})\.json")
_SNAPSHOT = re.compile(r"snapshots/[0-9]{20}-[0-9a-f]{16}\.json")


HOLE_MAX = 1000
"""In a hole of at most so many versions, each that is missing is reported; behind a longer one, a key may be forged."""


@dataclass(slots=True)
class Listing:
    """`snapshots`, `inbox`, `lost` (what repairs have removed) and `foreign` are keys; the others are the names and
    numbers in the keys."""

    versions: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    manifests: set[str] = field(default_factory=set)
    sidecars: set[str] = field(default_factory=set)
    hint: bool = False
    inbox: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no object of a log exists."""
        return not (
            self.versions or self.bases or self.snapshots or self.manifests or self.sidecars or self.hint
        )


def list_log(store: ObjectStore, keys: Keys) -> Listing:
    """Return what is there. What is derived is listed before the versions, so that each has its version listed too."""
    listing = Listing()
    for key in store.list_after(f"{keys.log}/"):
        name = key.removeprefix(f"{keys.log}/")
        if match := _BASE.fullmatch(name):
            listing.bases.append(int(match[1]))
        elif _SNAPSHOT.fullmatch(name):
            listing.snapshots.append(key)
        elif key.startswith(keys.manifests) and is_blob(own := key.removeprefix(keys.manifests)):
            listing.manifests.add(own)
        elif key.startswith(keys.sidecar("")) and is_sidecar(own := key.removeprefix(keys.sidecar(""))):
            listing.sidecars.add(own)
        elif key == keys.latest:
            listing.hint = True
        elif key.startswith(keys.inbox):
            listing.inbox.append(key)
        elif key.startswith(keys.lost):
            listing.lost.append(key)
        elif not _VERSION.fullmatch(name):
            listing.foreign.append(key)
    for key in store.list_after(f"{keys.log}/0"):
        if match := _VERSION.fullmatch(key.removeprefix(f"{keys.log}/")):
            listing.versions.append(int(match[1]))
    return listing


def ranges(versions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last version of each part, from version 1 on, between which there are only short holes.

    The first part is empty, and ends with 0, where version 1 and many after it are missing.
    """
    first, last = 1, 0
    for version in sorted(versions):
        if version - last > HOLE_MAX:
            yield first, last
            first = version
        last = version
    yield first, last
