"""Repair of one log: snapshots and the hint are written anew, and nothing that was readable before is less so after.

The repair is tried first on an overlay of the store, which keeps all writes to itself. What a reader can read is read
before and after, version by version. Only where no version has lost anything do the writes go to the store itself:
first copies of what is to go (see `lost`), then what is new, and the removals last. It touches no commit, base or
decision, and must not know what events mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from lakelog.log import snapshots
from lakelog.log.checks import lost
from lakelog.log.checks.overlay import Overlay
from lakelog.log.checks.standing import Judge, Origin
from lakelog.log.checks.verify import Verified
from lakelog.log.errors import StorageError
from lakelog.log.format import hash_of
from lakelog.log.log import Log
from lakelog.log.view import UNREADABLE, S, View

PROBES_MAX = 64
"""A log of at most so many versions is read at each of them, before and after; a longer one around its snapshots."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader got: a version, and all that it saw of it."""

    version: int
    seen: tuple[object, ...]


def repair(log: Log[S], verified: Verified[S], judge: Judge[S]) -> str:
    """Write snapshot and hint anew, and move broken ones to `_lost/`, where that costs no reader anything.

    Returns what was done, or why nothing was. Costs about a load of the log for each version that is probed, twice.
    """
    view = verified.view
    if view is None or not verified.complete:
        return f"{log.location}: skipped, because its commits are damaged"
    if verified.spoiled:
        return f"{log.location}: skipped, because each of its bases, snapshots and hint needs an object that is damaged"
    return _Repair(log, verified, view, judge).run()


class _Repair(Generic[S]):
    def __init__(self, log: Log[S], verified: Verified[S], view: View[S], judge: Judge[S]) -> None:
        self.log = log
        self.verified = verified
        self.view = view
        self.judge = judge
        self.overlay = Overlay(log.store)
        self.trial: Log[S] = Log(
            self.overlay, log.keys.folder, log.projection, options=log.options, open_url=log.replay.open_url
        )

    def run(self) -> str:
        log, keys = self.log, self.log.keys
        removed = self._useless()
        named = (keys.snapshot_version(key) for key in removed)
        versions = self._probed(sorted(version for version in named if version is not None))
        before = self._readings(log, versions)
        snapshots.write(self.trial.replay, self.view)
        self.overlay.delete([key for key in removed if key not in self.overlay.written])
        worse = self._worse(before, self._readings(self.trial, versions))
        if worse is not None:
            return f"{log.location}: left as it is, because {worse}"
        written = self._changed()
        if self._hint() != self.verified.hint:
            # A writer has put another one, of a version that is at least as new.
            written.pop(keys.latest, None)
        # A snapshot that was broken by its manifests alone may be as it was, now that they are written anew.
        stays = self.overlay.written.keys() - written.keys()
        leaving = {key: each for key, each in removed.items() if key not in stays}
        if keys.latest not in written:
            leaving.pop(keys.latest, None)
        leaving |= self._replaced(written, leaving)
        folder = lost.keep(log, self.verified.log_id, leaving, list(written)) if leaving else None
        for key, data in written.items():
            log.store.put(key, data)
        log.store.delete([key for key in leaving if key not in written])
        return f"{log.location}: wrote snapshot and hint of version {self.view.version} anew" + (
            f", and moved {', '.join(leaving)} to {folder}" if leaving else ""
        )

    def _useless(self) -> dict[str, lost.Leaving]:
        """Return the broken snapshots and hint, as they still are."""
        verified = self.verified
        # Where commits are damaged, a snapshot that contradicts them may be the one that is right.
        replayed = verified.origin.is_replayed
        keys = [key for key, each in verified.broken.items() if each.alone or replayed]
        found = {}
        for key, data in zip(keys, self.log.store.get_many(keys), strict=True):
            if data is not None and hash_of(data) == verified.broken[key].hash:
                found[key] = lost.Leaving(data, verified.broken[key].why)
        return found

    def _changed(self) -> dict[str, bytes]:
        """Return what the overlay has written, in that order, without what is in the store already."""
        there = self.log.store.get_many(list(self.overlay.written))
        return {
            key: data
            for (key, data), known in zip(self.overlay.written.items(), there, strict=True)
            if data != known
        }

    def _replaced(self, written: dict[str, bytes], known: dict[str, lost.Leaving]) -> dict[str, lost.Leaving]:
        """Return what is there in place of the written objects; a hint that is sound is only older, and not kept."""
        latest, broken = self.log.keys.latest, self.verified.broken
        keys = [key for key in written if key not in known and (key != latest or key in broken)]
        return {
            key: lost.Leaving(data, broken[key].why if key in broken else "was not what is to be there")
            for key, data in zip(keys, self.log.store.get_many(keys), strict=True)
            if data is not None and data != written[key]
        }

    def _hint(self) -> str:
        data = self.log.store.get(self.log.keys.latest)
        return "" if data is None else hash_of(data)

    # Reading before and after

    def _probed(self, removed: Sequence[int]) -> list[int]:
        """Return the versions to read: all, or those around which readers begin at another snapshot than before."""
        first, head, roots = self.verified.first, self.view.version, self.verified.roots
        if head - first < PROBES_MAX:
            return list(range(first, head + 1))
        near = {first, head}
        for root in removed[:: max(1, 4 * len(removed) // PROBES_MAX)]:
            following = next((version for version in roots if version > root), head)
            near |= {root - 1, root, following - 1, following}
        return sorted(version for version in near if first <= version <= head)

    def _readings(self, log: Log[S], versions: Sequence[int]) -> list[Reading | None]:
        """Return what a reader gets: of the head without knowing its version, and of each of `versions`."""
        return [self._reading(log, None), *(self._reading(log, version) for version in versions)]

    def _reading(self, log: Log[S], version: int | None) -> Reading | None:
        try:
            view = log.load() if version is None else log.view_at(version)
            seen = self.judge.reads(view.state, log.read_blobs)
        except StorageError:
            raise
        except UNREADABLE:
            return None
        return Reading(view.version, (view.log_id, view.hash, view.time_us, view.fence, view.sealed, seen))

    def _worse(self, before: Sequence[Reading | None], after: Sequence[Reading | None]) -> str | None:
        """Return what would be lost."""
        for one, other in zip(before, after, strict=True):
            if one is None:
                continue
            what = f"version {one.version}, which can be read now,"
            if other is None:
                return f"{what} could not be read any more"
            if other.version != one.version:
                return "other clients write to it: check it again"
            # What commits say that can all be read is right, and a snapshot that says something else is not.
            if other.seen != one.seen and self.verified.origin is not Origin.COMMITS:
                return f"{what} would be another one"
        return None
