"""Which table has adopted the files in a folder: an object in that folder says so, which only one table can create.

Rule: an importer looks for it before it begins and after it has committed, and a table that adopts files puts it before
it looks for importers. So of the two at the same time, one sees the other. That holds however slow the importer is,
since the object stays when the last of the files is deleted. It must not know which files are adopted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

import msgspec

from lakelog.catalog.core.files import DataFile
from lakelog.log import LogOptions, OpenUrl
from lakelog.log.costs import Threads
from lakelog.log.errors import FormatError, InvalidInput, PermissionDenied
from lakelog.log.settling import create

CLAIM = "_lakelog_adopted.json"
"""Readers of folders leave out what begins so."""

GETS_AT_ONCE = 16


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """`table` is the place of the table that has adopted files of the folder, and `log_id` its id: the copy of a
    warehouse at another place has the same ids, and other files of its own, but not these."""

    table: str
    log_id: str


def claim_of(open_url: OpenUrl, folder: str) -> Claim | None:
    """Return which table has adopted files of a folder. Costs one GET."""
    store, key = open_url(f"{folder}/{CLAIM}")
    data = store.get(key)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Claim)
    except msgspec.DecodeError as error:
        raise FormatError(
            f"{folder}/{CLAIM} does not say which table has adopted the files there ({error}): restore it from a "
            "backup, or delete it, so that no table deletes these files"
        ) from None


def put_claim(open_url: OpenUrl, folder: str, claim: Claim) -> None:
    """Say that a table adopts files of a folder, if it does not say so already. InvalidInput where another table has
    said so."""
    store, key = open_url(f"{folder}/{CLAIM}")
    if create(store, key, msgspec.json.encode(claim), LogOptions()):
        return
    there = claim_of(open_url, folder)
    if there != claim:
        raise _claimed(folder, there)


def drop_claim(open_url: OpenUrl, folder: str) -> None:
    """Take back what was said, where nothing was adopted after all."""
    store, key = open_url(f"{folder}/{CLAIM}")
    store.delete([key])


def check_unclaimed(open_url: OpenUrl, folders: Collection[str], own: Claim | None = None) -> None:
    """Raise InvalidInput where a table has adopted files of one of the folders, or of one that it is in, other than by
    the claim `own`. One GET for each."""
    places = list(dict.fromkeys(place for folder in folders for place in upwards(folder)))

    def claim(place: str) -> Claim | None:
        try:
            return claim_of(open_url, place)
        except PermissionDenied:
            # Of a folder above, whose reader may have no rights there: no table of this reader has adopted it.
            if place in folders:
                raise
            return None

    with Threads(min(GETS_AT_ONCE, len(places) or 1), thread_name_prefix="lakelog-claims") as pool:
        for place, found in zip(places, pool.map(claim, places), strict=True):
            if found is not None and found != own:
                raise _claimed(place, found)


def check_files_unclaimed(open_url: OpenUrl, paths: Iterable[str]) -> None:
    """As `check_unclaimed`, of the folders that these files are in."""
    check_unclaimed(open_url, {_folder_of(path) for path in paths})


def is_claim(path: str) -> bool:
    return path.rpartition("/")[2] == CLAIM


class Watch:
    """The folders that an import takes files from: looked at when they are met, and again when it has committed."""

    def __init__(self, open_url: OpenUrl, folder: str) -> None:
        self._open_url = open_url
        self._inside = f"{folder}/"
        self._met = {folder}
        check_unclaimed(open_url, self._met)

    def meet(self, files: Iterable[DataFile]) -> None:
        """Take files of the source, which may be anywhere. InvalidInput where a table has adopted some there."""
        met = {_folder_of(file.path) for file in files if not file.path.startswith(self._inside)} - self._met
        if met:
            check_unclaimed(self._open_url, met)
            self._met |= met

    def check_again(self) -> None:
        check_unclaimed(self._open_url, self._met)


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and those that it is in, innermost first; of a local one also by the links that lead to it."""
    yield from _upwards(folder)
    if folder.startswith("/") and (real := os.path.realpath(folder)) != folder:
        yield from _upwards(real)


def _upwards(folder: str) -> Iterator[str]:
    scheme, mark, rest = folder.rpartition("://")
    parts = [part for part in rest.split("/") if part]
    start = f"{scheme}{mark}" if mark else "/"
    for count in range(len(parts), 0, -1):
        yield start + "/".join(parts[:count])


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _claimed(folder: str, claim: Claim | None) -> InvalidInput:
    table = "another table" if claim is None else f"the table at {claim.table}"
    return InvalidInput(
        f"the files in {folder} were adopted by {table}, whose vacuum deletes them, as {folder}/{CLAIM} says: read "
        "that table, or insert its rows by a query. Where the folder has other files by now, delete that object; where "
        "an adoption was stopped before it ended, adopt the files again"
    )
