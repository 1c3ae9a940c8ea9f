"""Which places are lakelog's own: a user's table or files must not be put there, however the place is spelled.

A place is spelled in many ways: with `..`, doubled slashes, percent-encoding, over a symbolic link, in capitals on a
file system that minds none. All spellings of it are looked at. It must not know what is to be put there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput

_OF_LOGS = re.compile(r"_(?:log|txn|cut|lost|doctor)", re.IGNORECASE)
_OF_IDS = re.compile(r"[nt]-[a-z2-7]{26}", re.IGNORECASE)
_DECODINGS_MAX = 3


def check_not_own(url: str, *, of_ids: bool = True) -> None:
    """Raise InvalidInput for a place that is one of lakelog's folders or inside of one.

    With `of_ids` that is also the folder of a namespace or a table, whose place the catalog chose. No request.
    """
    for spelling in spellings(url):
        for part in spelling.split("/"):
            if part == ".." or _OF_LOGS.fullmatch(part) or (of_ids and _OF_IDS.fullmatch(part)):
                raise InvalidInput(
                    f"the location {url} is inside of lakelog's own folders, by its part {part}: choose a separate "
                    "folder"
                )


def data_folders(url: str) -> Iterator[str]:
    """Yield the places of tables that would have the place in their folder of data files."""
    for spelling in dict.fromkeys(spellings(url)):
        parts = spelling.split("/")
        for depth, part in enumerate(parts):
            if part.lower() == "data" and depth:
                yield "/".join(parts[:depth])


def spellings(url: str) -> list[str]:
    """Return a place as it is spelled, without percent-encoding, and behind symbolic links."""
    found = [canonical_url(url)]
    for _ in range(_DECODINGS_MAX):
        decoded = unquote(found[-1])
        if decoded == found[-1] or "\0" in decoded:
            break
        found.append(canonical_url(decoded))
    return found + [os.path.realpath(each) for each in found if each.startswith("/")]
