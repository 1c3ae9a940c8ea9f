"""Repair of a log: snapshots and the hint are rewritten, and all versions that were readable stay readable.

The repair is tried first on an overlay of the store, which keeps all writes to itself. Readable versions are
read before and after, version by version. Only if no version has lost anything do the writes go to the store
itself. Copies of the removed objects come first (see `lost`), then the new objects, and the removals last. A
repair touches no commit, base or decision, and must not know what events mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from lakelog.log import snapshots
from lakelog.log.checks import lost
from lakelog.log.checks.overlay import StoreOverlay
from lakelog.log.checks.standing import LogJudge, StateOrigin
from lakelog.log.checks.verify import VerifiedLog
from lakelog.log.errors import StorageError
from lakelog.log.format import hash_of
from lakelog.log.log import Log
from lakelog.log.view import UNREADABLE, LogView, S

PROBES_MAX = 64
"""Logs with at most so many versions are read at each version, longer logs around their snapshots."""


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """The result of a read: a version, and everything that the reader saw of it."""

    version: int
    seen: tuple[object, ...]


def repair(log: Log[S], verified_log: VerifiedLog[S], judge: LogJudge[S]) -> str:
    """Rewrite snapshot and hint, and move broken ones to `_lost/`, if that costs no reader anything.

    Returns a text about the repair, or why there was none. Costs about two loads of the log for each probed
    version.
    """
    view = verified_log.view
    if view is None or not verified_log.complete:
        return f"{log.location}: skipped, because its commits are damaged"
    log.check_writable(view)
    if verified_log.spoiled:
        return f"{log.location}: skipped, because each of its bases, snapshots and hint needs an object that is damaged"
    return _Repair(log, verified_log, view, judge).run()


class _Repair(Generic[S]):
    def __init__(
        self, log: Log[S], verified_log: VerifiedLog[S], view: LogView[S], judge: LogJudge[S]
    ) -> None:
        self.log = log
        self.verified = verified_log
        self.view = view
        self.judge = judge
        self.overlay = StoreOverlay(log.store)
        self.trial: Log[S] = Log(
            self.overlay, log.keys.folder, log.projection, options=log.options, open_url=log.replay.open_url
        )

    def run(self) -> str:
        log, keys = self.log, self.log.keys
        removed_objects = self._useless()
        removed_versions = (keys.snapshot_version(key) for key in removed_objects)
        versions = self._probed(sorted(version for version in removed_versions if version is not None))
        readings = self._readings(log, versions)
        snapshots.write(self.trial.replay, self.view)
        self.overlay.delete([key for key in removed_objects if key not in self.overlay.written])
        loss = self._worse(readings, self._readings(self.trial, versions))
        if loss is not None:
            return f"{log.location}: left as it is, because {loss}"
        new_objects = self._changed()
        if self._hint() != self.verified.hint:
            # A writer has put another hint, of a version that is at least as new.
            new_objects.pop(keys.latest, None)
        # A snapshot that only its manifests broke may stay as it was, now that they are rewritten.
        stays = self.overlay.written.keys() - new_objects.keys()
        leaving_objects = {
            key: leaving_object for key, leaving_object in removed_objects.items() if key not in stays
        }
        if keys.latest not in new_objects:
            leaving_objects.pop(keys.latest, None)
        leaving_objects |= self._replaced(new_objects, leaving_objects)
        folder = (
            lost.keep(log, self.verified.log_id, leaving_objects, list(new_objects))
            if leaving_objects
            else None
        )
        for key, data in new_objects.items():
            log.store.put(key, data)
        log.store.delete([key for key in leaving_objects if key not in new_objects])
        return f"{log.location}: wrote snapshot and hint of version {self.view.version} anew" + (
            f", and moved {', '.join(leaving_objects)} to {folder}" if leaving_objects else ""
        )

    def _useless(self) -> dict[str, lost.RemovedObject]:
        """Return the broken snapshots and hint that are still unchanged in the store."""
        verified = self.verified
        # If commits are damaged, a snapshot that contradicts them may be right.
        is_replayed = verified.origin.is_replayed
        keys = [key for key, broken_object in verified.broken.items() if broken_object.alone or is_replayed]
        leaving_objects = {}
        for key, data in zip(keys, self.log.store.get_many(keys), strict=True):
            if data is not None and hash_of(data) == verified.broken[key].hash:
                leaving_objects[key] = lost.RemovedObject(data, verified.broken[key].why)
        return leaving_objects

    def _changed(self) -> dict[str, bytes]:
        """Return the objects written in the overlay, in order, except those that are already in the store."""
        stored_objects = self.log.store.get_many(list(self.overlay.written))
        return {
            key: data
            for (key, data), stored_data in zip(self.overlay.written.items(), stored_objects, strict=True)
            if data != stored_data
        }

    def _replaced(
        self, written_data: dict[str, bytes], known_objects: dict[str, lost.RemovedObject]
    ) -> dict[str, lost.RemovedObject]:
        """Return the stored objects that the written objects replace. A sound hint is only older, and is not kept."""
        latest, broken_objects = self.log.keys.latest, self.verified.broken
        keys = [
            key
            for key in written_data
            if key not in known_objects and (key != latest or key in broken_objects)
        ]
        return {
            key: lost.RemovedObject(
                data, broken_objects[key].why if key in broken_objects else "was not what is to be there"
            )
            for key, data in zip(keys, self.log.store.get_many(keys), strict=True)
            if data is not None and data != written_data[key]
        }

    def _hint(self) -> str:
        data = self.log.store.get(self.log.keys.latest)
        return "" if data is None else hash_of(data)

    # Reading before and after

    def _probed(self, removed: Sequence[int]) -> list[int]:
        """Return the versions to read: all, or those around which readers start from other snapshots than before."""
        first, head, roots = self.verified.first, self.view.version, self.verified.roots
        if head - first < PROBES_MAX:
            return list(range(first, head + 1))
        near = {first, head}
        for root in removed[:: max(1, 4 * len(removed) // PROBES_MAX)]:
            next_root = next((version for version in roots if version > root), head)
            near |= {root - 1, root, next_root - 1, next_root}
        return sorted(version for version in near if first <= version <= head)

    def _readings(self, log: Log[S], versions: Sequence[int]) -> list[SeenVersion | None]:
        """Return a reader's results: for the head without a known version, and for each of `versions`."""
        return [self._reading(log, None), *(self._reading(log, version) for version in versions)]

    def _reading(self, log: Log[S], version: int | None) -> SeenVersion | None:
        try:
            view = log.load() if version is None else log.view_at(version)
            state_hash = self.judge.reads(view.state, log.read_blobs)
        except StorageError:
            raise
        except UNREADABLE:
            return None
        return SeenVersion(
            view.version, (view.log_id, view.hash, view.time_us, view.fence, view.sealed, state_hash)
        )

    def _worse(
        self, version_before: Sequence[SeenVersion | None], version_after: Sequence[SeenVersion | None]
    ) -> str | None:
        """Return the loss in words, None if there is none."""
        for reading, new_reading in zip(version_before, version_after, strict=True):
            if reading is None:
                continue
            version_text = f"version {reading.version}, which can be read now,"
            if new_reading is None:
                return f"{version_text} could not be read any more"
            if new_reading.version != reading.version:
                return "other clients write to it: check it again"
            # If all commits can be read, their state is right, and a snapshot with another state is wrong.
            if new_reading.seen != reading.seen and self.verified.origin is not StateOrigin.COMMITS:
                return f"{version_text} would be another one"
        return None
