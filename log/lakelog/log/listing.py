"""The objects below a log, from a listing. Only checks use it, because no answer of a log may rest on a listing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lakelog.log.grammar import is_blob, is_sidecar
from lakelog.log.keys import LogKeys
from lakelog.log.stores import ObjectStore

_VERSION = re.compile(r"([0-9]{20})\.json")
_BASE = re.compile(r"bases/([0-9]{20})\.json")
_SNAPSHOT = re.compile(r"snapshots/[0-9]{20}-[0-9a-f]{16}\.json")


HOLE_MAX = 1000
"""Each missing version of a hole is reported up to this length. After a longer hole, a key may be forged."""


@dataclass(slots=True)
class VersionRuns:
    """The numbers of the listed versions, as runs: a million of them without a long hole take two numbers."""

    runs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, version: int) -> None:
        last = self.runs[-1][1] if self.runs else 0
        if self.runs and last < version <= last + HOLE_MAX:
            self.runs[-1] = self.runs[-1][0], version
        else:
            self.runs.append((version, version))

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def last(self) -> int:
        """The highest version, 0 if there is none."""
        return max((last for _, last in self.runs), default=0)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last version of each part, from version 1 on. Within a part there are only short holes.

        If version 1 and many versions after it are missing, the first part is empty and ends with 0.
        """
        first, last = 1, 0
        for start, end in sorted(self.runs):
            if start - last > HOLE_MAX:
                yield first, last
                first = start
            last = max(last, end)
        yield first, last


@dataclass(slots=True)
class LogListing:
    """The listed objects by kind. `snapshots`, `inbox`, `lost` (removed by repairs) and `foreign` are keys.

    The other members are the names and numbers in the keys.
    """

    versions: VersionRuns = field(default_factory=VersionRuns)
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


def list_log(store: ObjectStore, keys: LogKeys) -> LogListing:
    """Return the objects below the log. Lists versions last, so that each derived object's version is listed."""
    listing = LogListing()
    for key in store.list_after(f"{keys.log}/"):
        name = key.removeprefix(f"{keys.log}/")
        if match := _BASE.fullmatch(name):
            listing.bases.append(int(match[1]))
        elif _SNAPSHOT.fullmatch(name):
            listing.snapshots.append(key)
        elif key.startswith(keys.manifests) and is_blob(blob_name := key.removeprefix(keys.manifests)):
            listing.manifests.add(blob_name)
        elif key.startswith(keys.sidecar("")) and is_sidecar(blob_name := key.removeprefix(keys.sidecar(""))):
            listing.sidecars.add(blob_name)
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
            listing.versions.add(int(match[1]))
    return listing
