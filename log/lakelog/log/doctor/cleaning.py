"""What an examination has written, and its removal; what earlier ones left that were killed.

Rule: only what is below an examination's own folder is removed, and what is said to be gone was looked for. Another
examination's folder is removed once its name is a day old, when it no longer runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakelog.log.clocks import host_clock_us
from lakelog.log.doctor import bucket
from lakelog.log.doctor.report import Check, Verdict, unknown
from lakelog.log.doctor.rights import Rights
from lakelog.log.errors import LakelogError, PermissionDenied
from lakelog.log.grammar import DOCTOR_FOLDER as FOLDER
from lakelog.log.ids import new_id
from lakelog.log.stores.counting_store import CountingStore
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.s3_store import S3Store
from lakelog.log.stores.store import ObjectStore

ENDED_AFTER = timedelta(days=1)
_OWN_NAME = re.compile(r"([0-9]{8}T[0-9]{6})Z-[a-z2-7]{26}")
_TIME = "%Y%m%dT%H%M%S"


def new_folder() -> str:
    """Return the folder of a new examination, whose name says when it began."""
    return f"{FOLDER}/{_now():{_TIME}}Z-{new_id()}"


class Noting(CountingStore):
    """A store that remembers the keys that may have been written."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.written: set[str] = set()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        with self._noted(key):
            return super().put_if_absent(key, data)

    def put(self, key: str, data: bytes) -> None:
        with self._noted(key):
            super().put(key, data)

    @contextmanager
    def _noted(self, key: str) -> Iterator[None]:
        is_new = key not in self.written
        self.written.add(key)
        try:
            yield
        except PermissionDenied:
            if is_new:
                self.written.discard(key)
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """What one examination wrote: `keys` may be there, and more, below `folder`."""

    store: ObjectStore
    folder: str
    keys: frozenset[str]
    rights: Rights

    def remove(self) -> Check:
        """Remove all of it, and look whether it is gone."""
        name, todo = "left behind", f"remove what is below {self.store.url}/{self.folder}"
        keys, failed = set(self.keys), ""
        may_list = not self.rights.missing("list")
        left: Sequence[str] | None = None
        with suppress(LakelogError):
            keys |= {key for key, _ in self.store.list_leftovers(f"{self.folder}/")}
            if may_list:
                keys |= set(self.store.list_after(f"{self.folder}/"))
        try:
            self.store.delete(sorted(keys))
        except LakelogError as error:
            failed = f": {error}"
        with suppress(LakelogError):
            left = self._still_there(keys)
        versions = self._versions() if keys else None
        _remove_directories(self.store, self.folder)
        if left or (left is None and failed):
            count = len(keys) if left is None else len(left)
            what = f"{'up to ' if left is None else ''}{count} objects{failed}"
            return Check(name=name, verdict=Verdict.WARNING, what=what, todo=todo)
        if versions is not None:
            return Check(name=name, verdict=versions[0], what=versions[1], todo=todo)
        if left is None:
            return unknown(
                name, f"{len(keys)} objects were deleted, and whether they are gone cannot be read"
            )
        return Check(name=name, verdict=Verdict.GOOD, what="nothing")

    def _still_there(self, keys: Iterable[str]) -> Sequence[str] | None:
        """Return what can still be seen; None where that may not be read."""
        if not self.rights.missing("list"):
            listed = list(self.store.list_after(f"{self.folder}/"))
            return [*listed, *(key for key, _ in self.store.list_leftovers(f"{self.folder}/"))]
        keys = list(keys)
        if keys and self.rights.missing("get what is absent"):
            return None
        return [key for key in keys if self.store.get(key) is not None]

    def _versions(self) -> tuple[Verdict, str] | None:
        """Remove noncurrent versions, and parts of uploads. Return what may be left of them, and how bad that is."""
        if not isinstance(self.store, S3Store):
            return None
        with suppress(Exception):
            bucket.abort_uploads(self.store, self.folder)
        known = bucket.versioning(self.store)
        if known.what == "off":
            return None
        try:
            bucket.remove_versions(self.store, self.folder)
        except Exception as error:
            if known.verdict is Verdict.UNKNOWN:
                return Verdict.UNKNOWN, "no object; whether noncurrent versions are there may not be read"
            return (
                Verdict.WARNING,
                f"noncurrent versions of {len(self.keys)} objects ({type(error).__name__})",
            )
        return None


def remove_of_others(store: ObjectStore, folder: str, rights: Rights) -> Check | None:
    """Remove what examinations left that began long ago; return what is to be said of them, if there are any."""
    name = "left behind by others"
    if rights.missing("list"):
        return None
    try:
        folders = [f"{FOLDER}/{each}" for each in store.list_folders(f"{FOLDER}/")]
    except LakelogError as error:
        return unknown(name, str(error))
    others = [each for each in folders if each != folder]
    ended = [each for each in others if _has_ended(each.removeprefix(f"{FOLDER}/"))]
    left = [
        check
        for each in ended
        for check in [Remains(store=store, folder=each, keys=frozenset(), rights=rights).remove()]
        if check.verdict is not Verdict.GOOD
    ]
    if left:
        return Check(name=name, verdict=Verdict.WARNING, what=left[0].what, todo=left[0].todo)
    running = len(others) - len(ended)
    said = [
        *([f"what {len(ended)} earlier examinations had left was removed"] if ended else []),
        *([f"{running} other examinations run now, or were killed"] if running else []),
    ]
    todo = f"where none runs, remove what is below {store.url}/{FOLDER}" if running else ""
    return Check(name=name, verdict=Verdict.NOTE, what="; ".join(said), todo=todo) if said else None


def _has_ended(name: str) -> bool:
    found = _OWN_NAME.fullmatch(name)
    if found is None:
        return False
    try:
        began = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return False
    return _now() - began > ENDED_AFTER


def _now() -> datetime:
    return datetime.fromtimestamp(host_clock_us() // 1_000_000, UTC)


def _remove_directories(store: ObjectStore, folder: str) -> None:
    """Remove the folders that are empty now, but not the place itself."""
    if isinstance(store, LocalStore):
        own = f"{store.url}/{folder}"
        below = [each for each, _, _ in os.walk(own, topdown=False)]
        with suppress(OSError):
            for directory in dict.fromkeys([*below, own, f"{store.url}/{FOLDER}"]):
                if os.path.isdir(directory):
                    os.rmdir(directory)
