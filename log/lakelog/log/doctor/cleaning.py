"""The objects that an examination wrote, and their removal; also those of earlier examinations that were killed.

Rule: only objects below an examination's own folder are removed, and each claim that they are gone is
checked. Another examination's folder is removed once its name is a day old, since that examination no longer
runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakelog.log.clocks import host_clock_us
from lakelog.log.doctor.kinds import kind_of
from lakelog.log.doctor.report import CheckVerdict, StoreCheck, unknown
from lakelog.log.doctor.rights import StoreRights
from lakelog.log.errors import LakelogError, PermissionDenied
from lakelog.log.grammar import DOCTOR_FOLDER as FOLDER
from lakelog.log.ids import new_id
from lakelog.log.stores.counting_store import CountingStore
from lakelog.log.stores.store import ObjectStore

ENDED_AFTER = timedelta(days=1)
_OWN_NAME = re.compile(r"([0-9]{8}T[0-9]{6})Z-[a-z2-7]{26}")
_TIME = "%Y%m%dT%H%M%S"


def new_folder() -> str:
    """Return the folder of a new examination, whose name shows its start."""
    return f"{FOLDER}/{_now():{_TIME}}Z-{new_id()}"


class NotingStore(CountingStore):
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
class ExaminationRemains:
    """The objects that an examination wrote: `keys`, which may exist, and perhaps more below `folder`."""

    store: ObjectStore
    folder: str
    keys: frozenset[str]
    rights: StoreRights

    def remove(self) -> StoreCheck:
        """Remove all objects, and check whether they are gone."""
        name, todo = "left behind", f"remove what is below {self.store.url}/{self.folder}"
        keys, failure = set(self.keys), ""
        may_list = not self.rights.missing("list")
        remaining_keys: Sequence[str] | None = None
        with suppress(LakelogError):
            keys |= {key for key, _ in self.store.list_leftovers(f"{self.folder}/")}
            if may_list:
                keys |= set(self.store.list_after(f"{self.folder}/"))
        try:
            self.store.delete(sorted(keys))
        except LakelogError as error:
            failure = f": {error}"
        with suppress(LakelogError):
            remaining_keys = self._still_there(keys)
        kind = kind_of(self.store)
        rest_result = kind.remove_rest(self.folder, len(self.keys)) if keys else None
        kind.remove_folders(self.folder)
        if remaining_keys or (remaining_keys is None and failure):
            count = len(keys) if remaining_keys is None else len(remaining_keys)
            message = f"{'up to ' if remaining_keys is None else ''}{count} objects{failure}"
            return StoreCheck(name=name, verdict=CheckVerdict.WARNING, what=message, todo=todo)
        if rest_result is not None:
            return StoreCheck(name=name, verdict=rest_result[0], what=rest_result[1], todo=todo)
        if remaining_keys is None:
            return unknown(
                name, f"{len(keys)} objects were deleted, and whether they are gone cannot be read"
            )
        return StoreCheck(name=name, verdict=CheckVerdict.GOOD, what="nothing")

    def _still_there(self, keys: Iterable[str]) -> Sequence[str] | None:
        """Return the keys that can still be seen; None if they may not be read."""
        if not self.rights.missing("list"):
            listed_keys = list(self.store.list_after(f"{self.folder}/"))
            return [*listed_keys, *(key for key, _ in self.store.list_leftovers(f"{self.folder}/"))]
        keys = list(keys)
        if keys and self.rights.missing("get what is absent"):
            return None
        return [key for key in keys if self.store.get(key) is not None]


def remove_of_others(store: ObjectStore, folder: str, rights: StoreRights) -> StoreCheck | None:
    """Remove the remains of old examinations; return the check about them, if there are any."""
    name = "left behind by others"
    if rights.missing("list"):
        return None
    try:
        folders = [f"{FOLDER}/{other_folder}" for other_folder in store.list_folders(f"{FOLDER}/")]
    except LakelogError as error:
        return unknown(name, str(error))
    other_folders = [other_folder for other_folder in folders if other_folder != folder]
    old_folders = [
        other_folder for other_folder in other_folders if _has_ended(other_folder.removeprefix(f"{FOLDER}/"))
    ]
    bad_checks = [
        check
        for other_folder in old_folders
        for check in [
            ExaminationRemains(store=store, folder=other_folder, keys=frozenset(), rights=rights).remove()
        ]
        if check.verdict is not CheckVerdict.GOOD
    ]
    if bad_checks:
        return StoreCheck(
            name=name, verdict=CheckVerdict.WARNING, what=bad_checks[0].what, todo=bad_checks[0].todo
        )
    running_count = len(other_folders) - len(old_folders)
    messages = [
        *([f"what {len(old_folders)} earlier examinations had left was removed"] if old_folders else []),
        *([f"{running_count} other examinations run now, or were killed"] if running_count else []),
    ]
    todo = f"where none runs, remove what is below {store.url}/{FOLDER}" if running_count else ""
    return (
        StoreCheck(name=name, verdict=CheckVerdict.NOTE, what="; ".join(messages), todo=todo)
        if messages
        else None
    )


def _has_ended(name: str) -> bool:
    match = _OWN_NAME.fullmatch(name)
    if match is None:
        return False
    try:
        start = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return False
    return _now() - start > ENDED_AFTER


def _now() -> datetime:
    return datetime.fromtimestamp(host_clock_us() // 1_000_000, UTC)
