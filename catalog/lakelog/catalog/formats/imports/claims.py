"""Which table adopted the files in a folder.

An object in the folder says so, and only one table can create it.

Rule: an importer looks for the object before it begins and after its commit. A table that adopts files
creates it before it looks for importers. So if both run at the same time, the importer or the table sees the
other. That holds however slow the importer is, because the object stays after the last of the files is
deleted. This module must not know which files are adopted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

import msgspec

from lakelog.catalog.core.files import DataFile
from lakelog.log import LogOptions, OpenUrl
from lakelog.log.costs import TallyThreads
from lakelog.log.errors import FormatError, InvalidInput, PermissionDenied
from lakelog.log.settling import create

CLAIM = "_lakelog_adopted.json"
"""Readers of folders ignore names with this beginning."""

GETS_AT_ONCE = 16


class FolderClaim(msgspec.Struct, frozen=True, kw_only=True):
    """`table` is the place of the table that adopted files of the folder, and `log_id` is its id.

    A copy of the warehouse at another place has the same ids, and files of its own, but not these files.
    """

    table: str
    log_id: str


def claim_of(open_url: OpenUrl, folder: str) -> FolderClaim | None:
    """Return the claim of the table that adopted files of a folder. Makes a GET request."""
    store, key = open_url(f"{folder}/{CLAIM}")
    data = store.get(key)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=FolderClaim)
    except msgspec.DecodeError as error:
        raise FormatError(
            f"{folder}/{CLAIM} does not say which table has adopted the files there ({error}): restore it from a "
            "backup, or delete it, so that no table deletes these files"
        ) from None


def put_claim(open_url: OpenUrl, folder: str, claim: FolderClaim) -> None:
    """Create the claim of a table on the files of a folder, if it does not exist.

    Raises InvalidInput if another table has a claim.
    """
    store, key = open_url(f"{folder}/{CLAIM}")
    if create(store, key, msgspec.json.encode(claim), LogOptions()):
        return
    existing_claim = claim_of(open_url, folder)
    if existing_claim != claim:
        raise _claimed(folder, existing_claim)


def drop_claim(open_url: OpenUrl, folder: str) -> None:
    """Delete the claim if no files were adopted after all."""
    store, key = open_url(f"{folder}/{CLAIM}")
    store.delete([key])


def check_unclaimed(open_url: OpenUrl, folders: Collection[str], own: FolderClaim | None = None) -> None:
    """Raise InvalidInput if a claim other than `own` is on a folder of these, or on a folder above.

    Makes a GET request for each folder, including those above.
    """
    places = list(dict.fromkeys(place for folder in folders for place in upwards(folder)))

    def claim(place: str) -> FolderClaim | None:
        try:
            return claim_of(open_url, place)
        except PermissionDenied:
            # A folder above, on which this reader may have no rights: no table of this reader adopted it.
            if place in folders:
                raise
            return None

    with TallyThreads(min(GETS_AT_ONCE, len(places) or 1), thread_name_prefix="lakelog-claims") as pool:
        for place, existing_claim in zip(places, pool.map(claim, places), strict=True):
            if existing_claim is not None and existing_claim != own:
                raise _claimed(place, existing_claim)


def check_files_unclaimed(open_url: OpenUrl, paths: Iterable[str]) -> None:
    """Check the folders of these files as `check_unclaimed` does."""
    check_unclaimed(open_url, {_folder_of(path) for path in paths})


def is_claim(path: str) -> bool:
    """Return whether an object's path is the path of a claim."""
    return path.rpartition("/")[2] == CLAIM


class FolderWatch:
    """The folders of an import's files. They are checked when they are met, and again after its commit."""

    def __init__(self, open_url: OpenUrl, folder: str) -> None:
        self._open_url = open_url
        self._inside = f"{folder}/"
        self._met = {folder}
        check_unclaimed(open_url, self._met)

    def meet(self, files: Iterable[DataFile]) -> None:
        """Take files of the source, which may be anywhere.

        Raises InvalidInput if a table adopted files there.
        """
        met = {_folder_of(file.path) for file in files if not file.path.startswith(self._inside)} - self._met
        if met:
            check_unclaimed(self._open_url, met)
            self._met |= met

    def check_again(self) -> None:
        check_unclaimed(self._open_url, self._met)


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and the folders above, innermost first. For a local folder, links are resolved too."""
    yield from _upwards(folder)
    if folder.startswith("/") and (real := os.path.realpath(folder)) != folder:
        yield from _upwards(real)


def _upwards(folder: str) -> Iterator[str]:
    scheme, mark, path = folder.rpartition("://")
    parts = [part for part in path.split("/") if part]
    start = f"{scheme}{mark}" if mark else "/"
    for count in range(len(parts), 0, -1):
        yield start + "/".join(parts[:count])


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _claimed(folder: str, claim: FolderClaim | None) -> InvalidInput:
    table = "another table" if claim is None else f"the table at {claim.table}"
    return InvalidInput(
        f"the files in {folder} were adopted by {table}, whose vacuum deletes them, as {folder}/{CLAIM} says: read "
        "that table, or insert its rows by a query. Where the folder has other files by now, delete that object; where "
        "an adoption was stopped before it ended, adopt the files again"
    )
