"""Which table has adopted the files in a folder: an object in that folder says so, which only one table can create.

Rule: an importer looks for it before it begins and after it has committed, and a table that adopts files puts it before
it looks for importers. So of the two at the same time, one sees the other. It must not know which files are adopted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import msgspec

from lakelog.log import OpenUrl
from lakelog.log.errors import FormatError, InvalidInput, PermissionDenied

CLAIM = "_lakelog_adopted.json"
"""Readers of folders leave out what begins so."""


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


def put_claim(open_url: OpenUrl, folder: str, claim: Claim) -> bool:
    """Say that a table adopts files of a folder; return whether that was said by this call. InvalidInput where another
    table has said so."""
    store, key = open_url(f"{folder}/{CLAIM}")
    if store.put_if_absent(key, msgspec.json.encode(claim)):
        return True
    there = claim_of(open_url, folder)
    if there != claim:
        raise _claimed(folder, there)
    return False


def drop_claim(open_url: OpenUrl, folder: str) -> None:
    store, key = open_url(f"{folder}/{CLAIM}")
    store.delete([key])


def check_unclaimed(open_url: OpenUrl, folder: str) -> None:
    """Raise InvalidInput where a table has adopted files of a folder, or of one that this is in. One GET for each."""
    for place in _upwards(folder):
        try:
            claim = claim_of(open_url, place)
        except PermissionDenied:
            # Of a folder above, whose reader may have no rights there: no table of this reader has adopted it.
            if place == folder:
                raise
            continue
        if claim is not None:
            raise _claimed(place, claim)


def check_files_unclaimed(open_url: OpenUrl, paths: Collection[str]) -> None:
    """As `check_unclaimed`, of the folder that all of these files are in, at any depth."""
    folders = [f"{path.rpartition('/')[0]}/" for path in paths]
    check_unclaimed(open_url, os.path.commonprefix(folders).rpartition("/")[0])


def _upwards(folder: str) -> Iterator[str]:
    scheme, mark, rest = folder.rpartition("://")
    parts = [part for part in rest.split("/") if part]
    start = f"{scheme}{mark}" if mark else "/"
    for count in range(len(parts), 0, -1):
        yield start + "/".join(parts[:count])


def _claimed(folder: str, claim: Claim | None) -> InvalidInput:
    table = "another table" if claim is None else f"the table at {claim.table}"
    return InvalidInput(
        f"the files in {folder} were adopted by {table}, whose vacuum deletes them: read that table, or insert its "
        "rows by a query"
    )
