"""Which places are lakelog's own.

A user's table or files must not be put there, however the place is spelled. A place is spelled in many ways:
with `..`, doubled slashes, percent-encoding, over a symbolic link, in capitals on a file system that ignores
case. All its spellings are checked. It must not know which object is to be put there.
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
    """Raise InvalidInput for a place that is lakelog's own folder or inside of such a folder.

    Makes no request. With `of_ids` that includes the folder of a namespace or a table, if the catalog chose
    its place.
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
    urls = [canonical_url(url)]
    for _ in range(_DECODINGS_MAX):
        plain = unquote(urls[-1])
        if plain == urls[-1] or "\0" in plain:
            break
        urls.append(canonical_url(plain))
    return urls + [os.path.realpath(spelling) for spelling in urls if spelling.startswith("/")]
